"""The page that says how many changes the tests notice, and which they do not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from .change import Change

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "mutants.md"
REASONS = Path(__file__).parent / "survivors.txt"
LEAST = 0.95  # the share of changes that must be noticed
NOTICED = ("failed", "crashed", "slow")


def outcomes(path: Path, *, first: bool = False) -> dict[str, str]:
    """Return the last known outcome of every change, or the first: before tests were written for it."""
    lines = path.read_text().splitlines() if path.exists() else []
    known = [json.loads(line) for line in lines]
    return {found["key"]: found["outcome"] for found in (reversed(known) if first else known)}


def reasons() -> dict[str, tuple[bool, str]]:
    """Return for survivors whether no test could notice them (``=``) or none does yet (``-``), and why."""
    found = {}
    for line in REASONS.read_text().splitlines() if REASONS.exists() else []:
        if line and not line.startswith("#"):
            key, sign, why = line.split(maxsplit=2)
            found[key] = (sign == "=", why)
    return found


def write(
    changes: list[Change],
    seed: int,
    fresh: dict[int, list[Change]],
    known: dict[str, str],
    at_first: dict[str, str],
) -> int:
    """Write the page and return 0 where enough changes are noticed and all have been tried.

    ``fresh`` are changes of other seeds, and ``at_first`` first outcomes: no test was written for them before.
    """
    tried = [c for c in changes if known.get(c.key, "does not compile") != "does not compile"]
    noticed = [c for c in tried if known[c.key] in NOTICED]
    survivors = [c for c in tried if known[c.key] == "survived"]
    why = reasons()
    same = [c for c in survivors if why.get(c.key, (False, ""))[0]]
    share = len(noticed) / max(1, len(tried) - len(same))
    missing = sum(c.key not in known for c in changes)
    good = share >= LEAST and not missing
    PAGE.write_text(
        "\n".join(
            [
                *_head(tried, noticed, same, share, missing, good, seed),
                *_fresh(fresh, known, at_first, why),
                *_tables(tried, known),
                *_list(survivors, why),
            ]
        )
    )
    print(f"{len(noticed)} of {len(tried)} noticed, {len(same)} change nothing: {share:.1%}; {missing} not tried")
    return 0 if good else 1


def _head(
    tried: list[Change], noticed: list[Change], same: list[Change], share: float, missing: int, good: bool, seed: int
) -> list[str]:
    verdict = "holds" if good else "does not hold"
    left = f" {missing} changes that were drawn have not been tried." if missing else ""
    return [
        "# Mutants",
        "",
        f"**Verdict: {verdict}.** Of {len(tried)} small changes to the code, the tests notice {len(noticed)} "
        f"({len(noticed) / max(1, len(tried)):.1%}). {len(same)} of the others give the same answers to any input "
        f"(argued below); without those the share is {share:.1%} (asked for: {LEAST:.0%}).{left}",
        "",
        f"`make mutants` draws the changes by a seed (here {seed}) from the rooms that compute numbers and from the",
        "compiled core, makes one at a time in a copy of the tree and runs the tests that reach its line, those of its",
        "room first (at most 60 s of them). Noticed means that a test fails, that the process ends or that the",
        "tests take five times as long. The page is written by `python -m mutants`; outcomes are kept in",
        "`mutants/outcomes.jsonl`, reasons in `mutants/survivors.txt`.",
        "",
        "How survivors count: one is left out of the share only where its reason below says why no input could give",
        "another answer, but for rounding. A change of a tolerance, of a limit of rounds, of a start or of how long",
        "a search takes counts as not noticed, though answers agree. Tests that read `../shared` do not run here.",
        "",
    ]


def _fresh(
    samples: dict[int, list[Change]],
    known: dict[str, str],
    at_first: dict[str, str],
    why: dict[str, tuple[bool, str]],
) -> list[str]:
    """Say what became of other samples, for which no test had been written, and what is known of them since."""
    lines = [
        "**Of changes that no test had been written for** the tests notice less; this is what to expect of the next.",
        'Survivors of any kind are not noticed at first; "now" is after tests were written for some of them.',
        "",
        "| seed | drawn | tried | noticed at first | now | change nothing |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for seed, changes in sorted(samples.items()):
        tried = [c for c in changes if at_first.get(c.key, "does not compile") != "does not compile"]
        noticed, now = (sum(told[c.key] in NOTICED for c in tried) for told in (at_first, known))
        same = sum(known[c.key] == "survived" and why.get(c.key, (False, ""))[0] for c in tried)
        size = max(1, len(tried))
        lines.append(
            f"| {seed} | {len(changes)} | {len(tried)} | {noticed} ({noticed / size:.1%}) | {now} ({now / size:.1%}) "
            f"| {same} |"
        )
    return [*lines, ""]


def _tables(tried: list[Change], known: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for title, name in (("room", lambda c: c.room), ("kind", lambda c: c.kind)):
        every = Counter(map(name, tried))
        seen = Counter(name(c) for c in tried if known[c.key] in NOTICED)
        lines += [f"| {title} | tried | noticed |", "| --- | --- | --- |"]
        lines += [f"| {group} | {count} | {seen[group]} |" for group, count in sorted(every.items())]
        lines += [""]
    return lines


def _list(survivors: list[Change], why: dict[str, tuple[bool, str]]) -> list[str]:
    lines = ["## Survivors", "", "| where | change | why |", "| --- | --- | --- |"]
    for change in sorted(survivors, key=lambda c: (c.path, c.line)):
        same, reason = why.get(change.key, (False, "not looked at yet"))
        where = f"`{change.path.removeprefix('src/calibrant/')}:{change.line}` {change.kind}"
        sign = "changes nothing: " if same else "not noticed: "
        lines.append(f"| {where} | {_both(change)} | {sign}{reason} |")
    return [*lines, ""]


def _both(change: Change) -> str:
    """Return the texts around the place where they differ."""
    a, b = change.before, change.after
    first = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    start = max(0, first - 25)
    shown = [text[start : first + 30].replace("|", "\\|").replace("`", "'") for text in (a, b)]
    return f"`{shown[0]}` → `{shown[1]}`"
