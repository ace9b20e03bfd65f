"""What the studies of the five papers share: their data, cells that a stopped run keeps, claims, and pages.

A study is a module with ``SETS`` (names of outputs it can use) and ``run(study)``. It computes cells
by ``study.cell(key, function, …)``: each is kept on disk at once, so that a run that was stopped goes on where it was.
It ends with ``study.claim(…)`` for each claim and ``study.page(…)`` for each page.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from calibrant.progress import reporting

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "docs" / "evidence"
RECORDS = EVIDENCE / "claims"
CELLS = ROOT / "build" / "papers"
OURS = ROOT / "benchmarks" / "data"
BESIDE = ROOT.parent / "shared" / "data"

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and what our run says of it."""

    code: str  # M1, K2, …
    place: str  # where the paper makes it
    says: str  # the claim in words
    protocol: str  # how it was tested
    found: str  # the figures, with errors
    verdict: str
    page: str  # the page that shows it, without its suffix

    def __post_init__(self) -> None:
        if self.verdict not in (HOLDS, PARTLY, FAILS, UNTESTED):
            raise ValueError(f"unknown verdict {self.verdict!r}")


@dataclass
class Outputs:
    """Scores of a real model as log-probabilities or logits, with labels, and embeddings where there are some."""

    name: str
    logits: np.ndarray
    labels: np.ndarray
    embeddings: np.ndarray | None = None
    first: int = 0  # rows of the source's own validation part, where it has one

    @property
    def k(self) -> int:
        return self.logits.shape[1]


def find(name: str) -> list[Path]:
    """Return the files of a set: the whole one beside the project, or the small one inside it."""
    if (BESIDE / f"{name}.npz").exists():
        return [BESIDE / f"{name}.npz"]
    single = OURS / f"{name}.npz"
    return [single] if single.exists() else sorted(OURS.glob(f"{name}-*.npz"))


def load(name: str) -> Outputs:
    """Read a set, its parts one after the other."""
    parts: dict[str, list[np.ndarray]] = {}
    first = 0
    for path in find(name):
        with np.load(path) as data:
            for key in data.files:
                kind = key.removesuffix("_val").removesuffix("_test")
                parts.setdefault(kind, []).append(data[key])
                if key == "labels_val":
                    first = len(data[key])
    joined = {kind: np.concatenate(found) for kind, found in parts.items()}
    if "logits" in joined:
        logits = joined["logits"].astype(np.float64)
    else:
        logits = np.log(np.maximum(joined["probs"].astype(np.float64), 1e-45))  # below float32's smallest number
    return Outputs(name, logits, joined["labels"].astype(np.int64), joined.get("embeddings"), first)


@dataclass
class Study:
    """A run of one module: quick or whole, with its cells, claims and pages."""

    paper: str
    name: str
    sets: Sequence[str]
    quick: bool = False
    claims: list[Claim] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, Any] = field(default_factory=dict)
    further: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.found = [name for name in self.sets if find(name)]
        self.missing = [name for name in self.sets if not find(name)]
        self._cells = {} if self.quick else dict(self._stored())

    @property
    def _store(self) -> Path:
        return CELLS / f"{self.paper}-{self.name}.jsonl"

    def _stored(self) -> Iterator[tuple[str, Any]]:
        if not self._store.exists():
            return
        for line in self._store.read_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # the line that a stopped run was writing
                continue
            yield entry["key"], entry["value"]

    def needs(self, name: str, is_here: bool) -> bool:
        """Note data that are no outputs of models, and whether they are here; without them pages stay as they were."""
        (self.further if is_here else self.unmet).append(name)
        if not is_here:
            print(f"{self.name}: without {name} (benchmarks/data/README.md)")
        return is_here

    def size(self, whole: int, quick: int) -> int:
        """Return how many repeats to make: so many in a whole run, so many in a quick one."""
        return quick if self.quick else whole

    def cell(self, key: Sequence[Any], compute: Callable[[], Any]) -> Any:
        """Return a cell's value, computed now unless an earlier run has left it."""
        name = json.dumps([str(part) for part in key])
        if name not in self._cells:
            started = time.process_time()
            value = json.loads(json.dumps(compute(), default=_plain))
            self._cells[name] = value
            taken = round(time.process_time() - started, 3)  # of the processor, so that a busy machine changes little
            if not self.quick:
                CELLS.mkdir(parents=True, exist_ok=True)
                with self._store.open("a") as out:
                    out.write(json.dumps({"key": name, "value": value, "seconds": taken}) + "\n")
        return self._cells[name]

    def cells(
        self, title: str, keys: Sequence[Sequence[Any]], compute: Callable[..., Any]
    ) -> dict[tuple[Any, ...], Any]:
        """Compute many cells under a progress bar: ``compute(*key)`` for each key."""
        found = {}
        with reporting(True, f"{self.name}: {title}") as advance:
            for done, key in enumerate(keys, 1):
                found[tuple(key)] = self.cell((title, *key), lambda key=key: compute(*key))
                advance(done, len(keys))
        return found

    def claim(self, **words: str) -> None:
        """Note one claim and its verdict."""
        made = Claim(**words)
        self.claims.append(made)
        print(f"{made.code}: {made.verdict}. {made.found}", flush=True)

    def page(self, name: str, text: str) -> None:
        """Note a page, to be written at the end."""
        self.pages[name] = text.rstrip() + "\n"

    def picture(self, name: str, axes: Any, words: str) -> str:
        """Note a picture, to be written at the end; return the line that shows it on a page."""
        self.pictures[name] = axes.figure
        return f"![{words}](pictures/{name}.png)"

    def _rows(self) -> dict[str, int]:
        """Return the data that are here, with their rows (0 where that says nothing)."""
        return {**{name: rows_of(name) for name in self.found}, **dict.fromkeys(self.further, 0)}

    def close(self) -> bool:
        """Write pages and claims, unless the run was quick or on fewer sets than the record; say so if it was."""
        written = self._write()
        for figure in self.pictures.values():
            plt.close(figure)
        return written

    def _write(self) -> bool:
        record = RECORDS / f"{self.paper}-{self.name}.json"
        if self.quick:
            print(f"{self.name}: a quick run in {time.perf_counter() - self.started:.0f} s; nothing is written")
            return False
        known = json.loads(record.read_text())["sets"] if record.exists() else {}
        here = self._rows()
        lacking = sorted({*self.unmet, *(name for name, rows in known.items() if here.get(name, -1) < rows)})
        if lacking:
            print(
                f"{self.name}: pages are left alone, as {', '.join(lacking)} is missing here or has fewer rows than "
                f"they were made of (benchmarks/data/README.md)"
            )
            return False
        RECORDS.mkdir(parents=True, exist_ok=True)
        for name, text in self.pages.items():
            (EVIDENCE / f"{name}.md").write_text(text)
        (EVIDENCE / "pictures").mkdir(exist_ok=True)
        for name, figure in self.pictures.items():
            figure.savefig(EVIDENCE / "pictures" / f"{name}.png", dpi=110, bbox_inches="tight")
        content = {
            "study": self.name,
            "paper": self.paper,
            "sets": here,
            "claims": [asdict(claim) for claim in self.claims],
        }
        record.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return True


def rows_of(name: str) -> int:
    """Return how many rows a set has here."""
    count = 0
    for path in find(name):
        with np.load(path) as data:
            count += sum(len(data[key]) for key in data.files if key.startswith("labels") or key.endswith("_correct"))
    return count


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, figures to the right."""
    lines = ["| " + " | ".join(head) + " |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(values.mean()), float(error)


def shown(values: Sequence[float] | np.ndarray, digits: int = 2, scale: float = 1.0) -> str:
    """Return mean ± standard error as text."""
    mean, error = mean_and_error(np.asarray(values) * scale)
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def quick_by_default() -> bool:
    """Tell whether QUICK=1 was said."""
    return os.environ.get("QUICK", "") not in ("", "0")
