"""Every preset of version 0.1.0, fitted by it and by the present code in turn: the second half of benchmarks/fit.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = ((1000, 10), (5000, 100), (25_000, 1000))
MOST_RATIO = 1.10
_BUDGET = 6.0  # seconds for which a preset is fitted again at one size, by either version
_FEWEST, _MOST = 3, 200  # pairs of fits, however long or short they are: 25 of 1 ms are over while another job runs
_ENDLESS = 60.0  # seconds after which one pair has to do
_TRAINED = ("kcal", "kcal-linear", "kcal-logits")  # torch trains them: what that takes is not ours
_HUGE = ("matrix-odir", "dirichlet", "dirichlet-odir", "blend")  # at 1,000 classes as long as matrix, or as sms, each


class Version:
    """A process that fits what it is asked for."""

    def __init__(self, python: Path) -> None:
        command = [str(python), str(HERE / "fit_worker.py")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended: {asked}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(before: Path, record: Path) -> dict[str, dict[str, Any]]:
    """Fit all presets with both versions in turn; what ``record`` has already is not run again."""
    found: dict[str, dict[str, Any]] = json.loads(record.read_text()) if record.exists() else {}
    old, new = Version(before), Version(Path(sys.executable))
    presets = [name for name in old.ask(names=True)["names"] if name not in _TRAINED]
    for n, k in SIZES:
        for name in presets:
            key = f"{name} {n} {k}"
            if key in found or (k == 1000 and name in _HUGE):
                continue
            found[key] = _pairs(old, new, name, n, k)
            print(key, _ratios(found[key]), file=sys.stderr, flush=True)
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps(found, indent=1))
    old.close()
    new.close()
    return found


def _pairs(old: Version, new: Version, name: str, n: int, k: int) -> dict[str, Any]:
    """Return the best times of each version, after one fit of each that is not counted where it is short."""
    asked = {"map": name, "n": n, "k": k}
    times = [(old.ask(**asked), new.ask(**asked))]
    first = sum(part["wall"] for part in times[0])
    if first < _ENDLESS:
        count = int(min(_MOST, max(_FEWEST, 2 * _BUDGET / first)))
        times = [(old.ask(**asked), new.ask(**asked)) for _ in range(count)]
    result: dict[str, Any] = {"fits": len(times)}
    for kind in ("wall", "processor"):
        result[kind] = [min(pair[side][kind] for pair in times) for side in (0, 1)]
    return result


def _ratios(result: dict[str, Any]) -> tuple[float, float]:
    wall, processor = result["wall"], result["processor"]
    return wall[1] / wall[0], processor[1] / processor[0]


def section(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the page's part on both versions, with its verdict."""
    slower = [key for key, result in found.items() if min(_ratios(result)) > MOST_RATIO]
    named = [f"{n} at {int(a):,} × {int(b):,}" for n, a, b in (key.split() for key in slower)]
    verdict = "No map is slower by more than 10 %." if not named else f"Slower by more than 10 %: {', '.join(named)}."
    lines = [
        "## Beside version 0.1.0",
        "",
        f"**{verdict}** A map counts as slower where both the clock and the processors say so: others may use the "
        "machine.",
        "",
        "Both versions fit the same rows in turn, in processes of their own; the best of 3 to 200 fits of each, in ms, "
        "and by how much the present code takes longer, by the clock and of the processors. KCal is left out, as torch "
        f"trains it; at 1,000 classes so are {', '.join(_HUGE)}, which take as long as matrix and sms do.",
        "",
        "| map | " + " | ".join(f"{n:,} × {k:,} | clock | processors" for n, k in SIZES) + " |",
        "| --- " * (1 + 3 * len(SIZES)) + "|",
    ]
    for name in dict.fromkeys(key.split()[0] for key in found):
        cells = [_cell(found.get(f"{name} {n} {k}")) for n, k in SIZES]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return " | | "
    wall, processor = _ratios(result)
    before, after = (1e3 * seconds for seconds in result["wall"])
    digits = 1 if before < 100 else 0
    return f"{before:.{digits}f} → {after:.{digits}f} | {wall - 1:+.0%} | {processor - 1:+.0%}"
