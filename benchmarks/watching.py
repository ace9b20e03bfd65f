"""Does the monitor keep its promise, and how soon does it see? ``python benchmarks/watching.py [--scale 1.0]``.

A thousand null streams of 10,000 batches are watched at once: the library's own bets (`Alternatives`, `Starts`) and the
recursion of `calibrant.monitoring.process` without logarithms; the first streams of each design are also fed to
`Monitor` itself, row by row, and must agree. Writes docs/evidence/watching.md. The peer runs in
.venv-peers, if it is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import beta, binom

from calibrant.monitoring import Monitor
from calibrant.monitoring.alternatives import Alternatives
from calibrant.monitoring.process import FROM_THE_START, LIFETIME, RUN_LENGTH, Starts
from calibrant.monitoring.sequence import gap_bound
from calibrant.monitoring.state import RESERVED

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
ALPHA = 0.05
BATCHES = 10_000
TOLD = Alternatives()


@dataclass(frozen=True)
class Design:
    """Distinct forecasts (m, K), each said so many times in every batch; K = 1 for the probability of one event."""

    name: str
    forecasts: Floats
    copies: int

    @property
    def rows(self) -> int:
        return len(self.forecasts) * self.copies


def events(name: str, prevalence: float, m: int = 12, copies: int = 8, shape: float = 1.5) -> Design:
    """Return forecasts at the quantiles of a beta law with this mean."""
    middle = (np.arange(m) + 0.5) / m
    return Design(name, beta.ppf(middle, shape, shape * (1 - prevalence) / prevalence)[:, None], copies)


def classes(name: str, k: int, copies: int = 8) -> Design:
    p = np.random.default_rng(k).dirichlet(np.full(k, 3.0 / k), 10)
    return Design(name, 0.98 * p + 0.02 / k, copies)


NULLS = [
    events("event, prevalence 1 %", 0.01),
    events("event, prevalence 10 %", 0.1),
    events("event, prevalence 50 %", 0.5),
    Design("event, ties at 0, 0.1, …, 1", np.linspace(0, 1, 11)[:, None], 8),
    Design("event, one row a batch", np.array([[0.2]]), 1),
    Design("event, 1 %, one row a batch", np.array([[0.01]]), 1),
    classes("3 classes (4 streams)", 3),
    classes("10 classes (11 streams)", 10),
]
GROUPED = events("event, 10 groups (11 streams)", 0.2, m=10, copies=10)


def tables(p: Floats) -> tuple[Floats, Floats]:
    """Return log L of every alternative where the event happens and where it does not, (m, J) each."""
    return TOLD.log_ratios(p, np.ones(len(p))), TOLD.log_ratios(p, np.zeros(len(p)))


class Bets:
    """The money of many streams at once, in plain numbers: under the null they stay in range."""

    def __init__(self, starts: Starts, leading: tuple[int, ...], harmonic: bool = False) -> None:
        self.starts, self.harmonic, self.k = starts, harmonic, 0
        self.m = np.zeros((*leading, len(starts.decays), len(TOLD)))
        self.u = np.ones(len(starts.decays))

    def step(self, log_ratio: Floats) -> Floats:
        """Take a batch, (…, J), and return E of every stream."""
        self.k += 1
        put = np.array([1 / (self.k * (self.k + 1))]) if self.harmonic else self.u * np.asarray(self.starts.shares)
        self.m += put[:, None]
        self.m *= np.exp(log_ratio)[..., None, :]
        np.minimum(self.m, 1e200, out=self.m)  # an alarm long since
        self.u = self.u - put if self.harmonic else self.u * np.asarray(self.starts.decays)
        parts = self.m.mean(axis=-1) + (self.u if self.starts.keeps_the_rest else 0.0)
        return parts @ np.asarray(self.starts.weights)


def draw(rng: np.random.Generator, truth: Floats, copies: int, streams: int) -> NDArray[np.int64]:
    """Return how often each class came of each forecast, (streams, m, K); K = 1: how often the event."""
    if truth.shape[1] == 1:
        return rng.binomial(copies, truth[:, 0], size=(streams, len(truth)))[..., None]
    return rng.multinomial(copies, truth, size=(streams, len(truth)))


def stream_ratios(design: Design, came: NDArray[np.int64], looks: list[tuple[Floats, Floats, Callable]]) -> Floats:
    """Return Σ log L of every stream of bets, (streams, S, J)."""
    found = []
    for yes, no, pick in looks:
        happened = pick(came).astype(np.float64)
        found.append(happened @ (yes - no) + design.copies * no.sum(axis=0))
    return np.stack(found, axis=1)


def looks_of(design: Design) -> tuple[list[tuple[Floats, Floats, Callable]], Floats]:
    """Return the streams of a design (the event; or the most probable class and every class) and their shares."""
    p = design.forecasts
    if p.shape[1] == 1:
        return [(*tables(p[:, 0]), lambda came: came[..., 0])], np.ones(1)
    top, rows = p.argmax(axis=1), np.arange(len(p))
    looks = [(*tables(p[rows, top]), lambda came: came[:, rows, top])]
    looks += [(*tables(p[:, k]), lambda came, k=k: came[:, :, k]) for k in range(p.shape[1])]
    k = p.shape[1]
    return looks, np.array([0.5, *[0.5 / k] * k])


def watch_null(design: Design, streams: int, batches: int, seed: int) -> dict[str, float]:
    """Return the share of null streams that ever alarm, and that ever leave the sequences of the gap and the offset."""
    rng, (looks, weights) = np.random.default_rng(seed), looks_of(design)
    bets, highest = Bets(LIFETIME, (streams, len(looks))), np.zeros(streams)
    kept: list[NDArray[np.int64]] = []
    gap, squares, left = np.zeros(streams), np.zeros(streams), np.zeros(streams, dtype=bool)
    offsets, lost = np.zeros((streams, len(TOLD.offsets))), np.zeros(streams, dtype=bool)
    p, clock, bound = design.forecasts, *bound_table()
    for number in range(batches):
        came = draw(rng, p, design.copies, streams)
        if number < 40:
            kept.append(came[:2])
        ratios = stream_ratios(design, came, looks)
        e = bets.step(ratios) @ weights
        highest = np.maximum(highest, e)
        if p.shape[1] == 1:
            offsets += ratios[:, 0, : offsets.shape[1]]
            lost |= np.exp(np.minimum(offsets, 100.0)).mean(axis=1) >= 1 / ALPHA  # E(0) of `offset_ends`
            y = came[..., 0]
            gap += (y - design.copies * p[:, 0]).sum(axis=1)
            squares += (y * (1 - p[:, 0]) ** 2 + (design.copies - y) * p[:, 0] ** 2).sum(axis=1)
            left |= np.abs(gap) > np.interp(squares, clock, bound)
        if number == 39:
            compare_with_monitor(design, kept, e[:2])
    found = {"alarms": float((highest >= 1 / ALPHA).mean())}
    return found | ({"gap": float(left.mean()), "offset": float(lost.mean())} if p.shape[1] == 1 else {})


def bound_table() -> tuple[Floats, Floats]:
    """Return the bound on a grid of clocks; a chord between points lies below the concave bound, so it is strict."""
    clock = np.r_[0.0, np.geomspace(1e-3, 1e7, 600)]
    return clock, np.array([gap_bound(float(v), ALPHA) for v in clock])


def compare_with_monitor(design: Design, kept: list[NDArray[np.int64]], e: Floats) -> None:
    """Feed the same outcomes, row by row, to the monitor itself."""
    for stream in range(len(e)):
        monitor = Monitor(ALPHA)
        for came in kept:
            y, p = [], []
            for forecast, counts in zip(design.forecasts, came[stream], strict=True):
                if len(counts) == 1:
                    y += [1] * counts[0] + [0] * (design.copies - counts[0])
                else:
                    y += [k for k, count in enumerate(counts) for _ in range(count)]
                p += [forecast] * design.copies
            q = np.asarray(p)
            monitor.update(np.asarray(y), q[:, 0] if q.shape[1] == 1 else q)
        assert abs(monitor.log_e - np.log(e[stream])) < 1e-8, (design.name, monitor.log_e, np.log(e[stream]))


def watch_groups(design: Design, streams: int, batches: int, seed: int) -> float:
    """Return the share of null streams that ever alarm with as many groups as forecasts, all there from the start."""
    rng, g = np.random.default_rng(seed), len(design.forecasts)
    yes, no = tables(design.forecasts[:, 0])
    bets, highest = Bets(LIFETIME, (streams, 1 + g)), np.zeros(streams)
    weights = np.array([0.5, *[0.5 * (1 - RESERVED) / g] * g])
    for _ in range(batches):
        y = draw(rng, design.forecasts, design.copies, streams)[..., 0].astype(np.float64)
        groups = y[..., None] * (yes - no) + design.copies * no
        ratios = np.concatenate([groups.sum(axis=1, keepdims=True), groups], axis=1)
        highest = np.maximum(highest, bets.step(ratios) @ weights + 0.5 * RESERVED)
    return float((highest >= 1 / ALPHA).mean())


def run_lengths(design: Design, alpha: float, streams: int, batches: int, seed: int) -> Floats:
    """Return the batches to the first false alarm of an e-detector, at most ``batches``."""
    rng, (looks, _) = np.random.default_rng(seed), looks_of(design)
    bets, first = Bets(RUN_LENGTH, (streams, 1)), np.full(streams, batches)
    for number in range(batches):
        e = bets.step(stream_ratios(design, draw(rng, design.forecasts, design.copies, streams), looks))[:, 0]
        first = np.where((e >= 1 / alpha) & (first == batches), number + 1, first)
    return first


def changed_null(streams: int, batches: int, seed: int) -> float:
    """Return the share of streams with a constant error that ``question="changed"`` alarms at."""
    alarms = 0
    for stream in range(streams):
        rng, monitor = np.random.default_rng([seed, stream]), Monitor(ALPHA, question="changed")
        p = np.array([0.1, 0.3, 0.5, 0.8])[rng.integers(0, 4, (batches, 20))]
        y = rng.random(p.shape) < expit(logit(p) - 0.7)
        for k in range(batches):
            monitor.update(y[k], p[k])
        alarms += monitor.alarm
    return alarms / streams


Drift = Callable[[Floats], Floats]


def power(design: Design, drift: Drift, onset: int, after: int, streams: int, how: str, seed: int) -> tuple[str, float]:
    """Return "share seen / median delay in batches", and the share that alarmed before the drift."""
    rng, (looks, _) = np.random.default_rng(seed), looks_of(design)
    starts, harmonic = {
        "restarts": (LIFETIME, False),
        "none": (FROM_THE_START, False),
        "1/k²": (Starts((1.0,), (1.0,), (1.0,)), True),
        "run length": (RUN_LENGTH, False),
    }[how]
    level = ALPHA if how != "run length" else 1 / BATCHES
    bets, first = Bets(starts, (streams, 1), harmonic), np.full(streams, -1)
    for number in range(onset + after):
        truth = design.forecasts if number < onset else drift(design.forecasts)
        e = bets.step(stream_ratios(design, draw(rng, truth, design.copies, streams), looks))[:, 0]
        first = np.where((e >= 1 / level) & (first < 0), number + 1, first)
    early = (first > 0) & (first <= onset)
    seen = first > onset
    if seen.sum() == 0:
        return "0 %", float(early.mean())
    share = seen.sum() / max(1, (~early).sum())
    delay = np.where(seen, first - onset, np.inf)[~early]
    median = np.median(delay)
    return f"{100 * share:.0f} % / {median:.0f}" if np.isfinite(median) else f"{100 * share:.0f} % / –", early.mean()


def shifted(size: float) -> Drift:
    return lambda p: expit(logit(p) + size)


def turned(slope: float) -> Drift:
    return lambda p: expit(logit(np.median(p)) + slope * (logit(p) - logit(np.median(p))))


PEER = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from probcal.monitor import CalibrationMonitor
data = np.load(sys.argv[1])
found, begun = [], time.process_time()
for y, p in zip(data["y"], data["p"]):
    monitor, at = CalibrationMonitor(alpha=0.05), 0
    for k in range(len(y)):
        step = monitor.update(y[k], p[k])
        if step.alarm and not at:
            at = k + 1
    found.append(at)
print(json.dumps({"first": found, "seconds": time.process_time() - begun}))
"""


def beside_the_peer(drift: str, streams: int) -> str:
    """Compare with probcal's monitor on the same rows: 120 batches of 100, the drift after 60."""
    rng = np.random.default_rng(11)
    p = rng.beta(2, 4, (streams, 120, 100))
    truth = p.copy()
    if drift != "none":
        truth[:, 60:] = expit(logit(p[:, 60:]) + float(drift))
    y = (rng.random(p.shape) < truth).astype(np.int64)
    first, begun = np.zeros(streams, dtype=np.int64), time.process_time()
    for stream in range(streams):
        monitor = Monitor(ALPHA)
        for k in range(120):
            monitor.update(y[stream, k], p[stream, k])
        first[stream] = monitor.alarmed.batch if monitor.alarmed else 0
    lines = [peer_line(drift, "calibrant", first, time.process_time() - begun)]
    python = ROOT / ".venv-peers" / "bin" / "python"
    if python.exists():
        with tempfile.TemporaryDirectory() as work:
            np.savez(Path(work) / "peer.npz", y=y, p=p)
            done = subprocess.run([python, "-c", PEER, f"{work}/peer.npz"], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        lines.append(peer_line(drift, "probcal", np.array(told["first"]), told["seconds"]))
    return "\n".join(lines)


def peer_line(drift: str, who: str, first: NDArray[np.int64], seconds: float) -> str:
    early, seen = (first > 0) & (first <= 60), first > 60
    delay = np.median(np.where(seen, first - 60, np.inf)[~early])
    words = f"{delay:.0f}" if np.isfinite(delay) else "–"
    cells = f"{100 * early.mean():.0f} %", f"{100 * seen.mean():.0f} %", words, f"{1000 * seconds / len(first):.0f} ms"
    return row(drift, who, *cells)


class Kept:
    """Lines that were measured before: a run that was interrupted goes on where it stopped."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lines: dict[str, str] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def line(self, key: str, measure: Callable[[], str]) -> str:
        """Return the line of this key, measured now unless it is there."""
        if key not in self.lines:
            self.lines[key] = measure()
            if self.path is not None:
                self.path.write_text(json.dumps(self.lines, indent=1))
        print(self.lines[key], flush=True)
        return self.lines[key]


def null_line(design: Design, streams: int, seed: int) -> str:
    found = watch_null(design, streams, BATCHES, seed)
    outside = [percent(found[name]) if name in found else "" for name in ("gap", "offset")]
    return row(design.name, design.rows, f"{streams:,}", percent(found["alarms"]), *outside)


def row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def too_many(line: str) -> bool:
    """Tell whether a line of null streams has more alarms, or more left sequences, than chance explains."""
    cells = [cell.strip() for cell in line.strip("| ").split("|")]
    streams = int(cells[2].replace(",", ""))
    limit = binom.ppf(0.999, streams, ALPHA) / streams
    return any(float(cell.removesuffix(" %")) / 100 > limit for cell in cells[3:] if cell)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the number of streams; 1 writes the page")
    parser.add_argument("--keep", type=Path, help="a file of lines measured so far")
    options = parser.parse_args()
    kept = Kept(options.keep)
    count = lambda n: max(20, round(options.scale * n))  # noqa: E731

    null = []
    for i, design in enumerate(NULLS):
        streams = count(1000 if design.forecasts.shape[1] == 1 else 500)
        null.append(kept.line(design.name, lambda d=design, n=streams, i=i: null_line(d, n, 100 + i)))
    grouped = lambda n: row(GROUPED.name, GROUPED.rows, n, percent(watch_groups(GROUPED, n, BATCHES, 7)), "", "")  # noqa: E731
    null.append(kept.line(GROUPED.name, lambda: grouped(count(500))))
    name = '`question="changed"`, constant error -0.7, 5,000 batches'
    null.append(
        kept.line(name, lambda: row(name, 20, count(100), percent(changed_null(count(100), BATCHES // 2, 5)), "", ""))
    )
    run = kept.line(
        "run length", lambda: f"{run_lengths(events('', 0.1), 1 / 500, count(500), BATCHES, 3).mean():,.0f}"
    )
    failed = [line.split("|")[1].strip() for line in null if too_many(line)]
    failed += ["run length"] if float(run.replace(",", "")) < 500 else []

    power_lines = [row("drift", "prevalence", *(f"from batch {o + 1:,}" for o in ONSETS)), row(*["---"] * 6)]
    for name, drift in DRIFTS.items():
        for prevalence in (0.01, 0.1, 0.5):
            measure = lambda d=drift, p=prevalence: [  # noqa: E731
                power(events("", p), d, o, 500, count(200), "restarts", 9)[0] for o in ONSETS
            ]
            told = (name, f"{100 * prevalence:g} %")
            power_lines.append(kept.line(" ".join(told), lambda told=told, measure=measure: row(*told, *measure())))

    restart_lines = [row("offset -0.35, prevalence 10 %", *WAYS.values()), row(*["---"] * 5)]
    for onset in ONSETS:
        measure = lambda o=onset: [  # noqa: E731
            power(events("", 0.1), shifted(-0.35), o, 500, count(400), how, 21)[0] for how in WAYS
        ]
        name = f"from batch {onset + 1:,}"
        restart_lines.append(kept.line(name, lambda n=name, measure=measure: row(n, *measure())))

    peer = [
        kept.line(f"peer {d}", lambda d=d: beside_the_peer(d, count(60))) for d in ("none", "-0.2", "-0.35", "-0.7")
    ]
    text = page([*NULL_HEAD, *null], run, power_lines, restart_lines, peer, failed)
    if options.scale < 1:
        print(text)
    else:
        (ROOT / "docs/evidence/watching.md").write_text(text)


NULL_HEAD = [
    row("null streams", "rows a batch", "streams", "ever alarmed", "ever outside: gap", "ever outside: offset"),
    row(*["---"] * 6),
]
ONSETS = (0, 20, 200, 2000)
DRIFTS = {f"offset {s:+g}": shifted(s) for s in (-0.1, -0.2, -0.35, 0.35, -0.7)}
DRIFTS |= {"slope × 0.7": turned(0.7), "slope × 1.4": turned(1.4)}
WAYS = {"restarts": "ours", "1/k²": "1/(k(k+1))", "none": "no restarts", "run length": "run length 10,000"}


def page(
    null: list[str], run: str, power_lines: list[str], restarts: list[str], peer: list[str], failed: list[str]
) -> str:
    verdict = HOLDS if not failed else f"**Verdict: the promise does not hold** for {', '.join(failed)}."
    parts = {"null": null, "power": power_lines, "restarts": restarts, "peer": peer}
    told = {name: "\n".join(lines) for name, lines in parts.items()}
    return PAGE.format(verdict=verdict, run=run, **told)


HOLDS = """**Verdict: the promise holds.** At α = 5 % no design alarms in more than 5 % of null streams of 10,000
batches by more than chance, and neither confidence sequence is left by more than 5 %."""
PAGE = """# Does the monitor keep its promise, and how soon does it see?

{verdict}

`python benchmarks/watching.py`. Outcomes are drawn from the forecasts themselves; every design has 10,000 batches
unless it says otherwise. The alarm and each confidence sequence (of observed less expected, and of one offset of the
log-odds) have α = 5 %, over all batches together. The first two streams of each design but that of groups were also fed
to `Monitor` row by row and agreed to 1e-8 in log E after 40 batches. Power is of one stream (an event); several streams
share the rate and need a little longer.

{null}

`promise="run_length"` with α = 1/500 at prevalence 10 %: {run} batches to the first false alarm on average (promised:
500).

## How soon a drift is seen

Batches of 96 rows. Share of streams that alarm within 500 batches after the drift, of those that had not alarmed
before, and the median delay in batches. Offsets are steps on the log-odds; slopes turn around the median forecast, so
that the level hardly changes.

{power}

Rare events carry little: at 1 % a batch of 96 rows holds one event.

## When bets begin

The same drift with other weights over starts. Geometric weights (ours) merge exactly at a fixed size; they are slower
for errors from the first batch on, and quicker for late ones. A run length is a weaker promise, and quicker still for
late ones.

{restarts}

## Beside a peer

The same rows: 120 batches of 100, prevalence a third, the drift (offset) from batch 61 on. probcal 0.4.0
(`CalibrationMonitor(alpha=0.05)`) has no restarts and refits on all the past at every batch. PITMonitor (Farran 2026)
has no package; its question is `question="changed"` here.

| drift | who | alarmed before | seen | median delay, batches | processor time a stream |
| --- | --- | --- | --- | --- | --- |
{peer}
"""


if __name__ == "__main__":
    main()
