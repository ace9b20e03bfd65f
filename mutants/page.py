"""The page that says how many changes the tests notice, and which they do not."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .change import Change

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "mutants.md"
REASONS = Path(__file__).parent / "survivors.txt"
LEAST = 0.95  # the share of changes that must be noticed
NOTICED = ("failed", "crashed", "slow")
SURVEYED = (11, 12)  # seeds of which many changes met the quickest tests only


def outcomes(path: Path, *, first: bool = False) -> dict[str, str]:
    """Return the last known outcome of every change, or the first: before tests were written for it."""
    lines = path.read_text().splitlines() if path.exists() else []
    known = [json.loads(line) for line in lines]
    return {found["key"]: found["outcome"] for found in (reversed(known) if first else known)}


def as_drawn(path: Path) -> dict[int, dict[str, str]]:
    """Return the outcomes of seeds on the tests of their day, of changes that earlier seeds had drawn as well."""
    found: dict[int, dict[str, str]] = {}
    for known in map(json.loads, path.read_text().splitlines() if path.exists() else []):
        if "seed" in known:
            found.setdefault(known["seed"], {})[known["key"]] = known["outcome"]
    return found


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
    at_first: dict[int, dict[str, str]],
) -> int:
    """Write the page and return 0 where enough changes are noticed and all have been tried.

    ``fresh`` are changes of other seeds in the order in which they were tried, and ``at_first`` their first outcomes:
    no test was written for them before. The last of them decides.
    """
    why = reasons()
    now, first = Share.of(changes, known, why), {s: Share.of(c, at_first[s], why) for s, c in fresh.items()}
    since = {s: Share.of(c, known, why) for s, c in fresh.items()}
    tried = [c for c in changes if known.get(c.key, "does not compile") != "does not compile"]
    listed = (changes, *(c for s, c in fresh.items() if s not in SURVEYED))
    survivors = {c.key: c for part in listed for c in part if known.get(c.key) == "survived"}
    PAGE.write_text(
        "\n".join(
            [
                *_head(seed, now, first, since, _alone(changes, fresh, at_first, why)),
                *_tables(tried, known),
                *_list(list(survivors.values()), why),
            ]
        )
    )
    print(f"seed {seed}: {now}")
    for other, share in first.items():
        print(f"seed {other} at first: {share}; now: {since[other]}")
    return 0 if now.good else 1


@dataclass(frozen=True)
class Share:
    """How many changes were tried, noticed, change nothing or are left."""

    drawn: int
    tried: int
    noticed: int
    same: int
    missing: int

    @staticmethod
    def of(changes: list[Change], known: dict[str, str], why: dict[str, tuple[bool, str]]) -> Share:
        """Count the outcomes of changes; those that do not compile were not tried."""
        tried = [c for c in changes if known.get(c.key, "does not compile") != "does not compile"]
        noticed = sum(known[c.key] in NOTICED for c in tried)
        same = sum(known[c.key] == "survived" and why.get(c.key, (False, ""))[0] for c in tried)
        return Share(len(changes), len(tried), noticed, same, sum(c.key not in known for c in changes))

    @property
    def value(self) -> float:
        """The share of changes that are noticed, of those that change anything."""
        return self.noticed / max(1, self.tried - self.same)

    @property
    def good(self) -> bool:
        """Whether it is as large as asked for, and nothing is left."""
        return self.value >= LEAST and not self.missing

    def __str__(self) -> str:
        left = f"; {self.missing} not tried" if self.missing else ""
        return f"{self.noticed} of {self.tried} noticed, {self.same} change nothing: {self.value:.1%}{left}"


def _alone(changes: list[Change], fresh: dict[int, list[Change]], at_first: Any, why: Any) -> Share:
    """Return the share of the last seed's changes that no other seed has drawn."""
    last = next(reversed(fresh))
    seen = {c.key for part in (changes, *(some for s, some in fresh.items() if s != last)) for c in part}
    return Share.of([c for c in fresh[last] if c.key not in seen], at_first[last], why)


def _head(seed: int, now: Share, first: dict[int, Share], since: dict[int, Share], alone: Share) -> list[str]:
    last = next(reversed(first), seed)
    fresh = first.get(last, now)
    said = "holds" if now.good and fresh.good else "holds in part" if now.good else "does not hold"
    lines = [
        "# Mutants",
        "",
        f"**Verdict: {said}.** Asked for: of small changes to the code the tests notice {LEAST:.0%}, without those",
        "that give the same answers to any input (argued below).",
        "",
        f"- **Seed {seed}, for which tests were written**: {_words(now)}",
    ]
    for other in first:
        name = _tried(other, last)
        lines.append(f"- **Seed {other}, {name}**: at first {_words(first[other])} Now {_words(since[other])}")
    return [
        *lines,
        f"- **Of these, changes that no other seed has drawn**: {_words(alone)}",
        "",
        f"`make mutants` draws the changes by a seed (here {seed}) from the rooms that compute numbers and from the",
        "compiled core, makes one at a time in a copy of the tree and runs the tests that reach its line: first those",
        "that keep what all maps and figures say (`tests/kept`), then those of its room, then others (at most 30 s).",
        "Seeds from 8 on were tried quickly: the kept tests and, for what they do not notice, tests of its room, for",
        "seconds up to a minute (`--quickly`), of seed 13 for half as long, of 14 and 15, which draw no changes to the",
        "core, for 12 and 8 s a round. Such a share is a lower bound: of seeds 8 and 14 it missed one change that a",
        "test of another file has always noticed (`_boosting.py:56`, `validation/one_score.py:75`; since seed 15 the",
        "files that name what a change is part of are tried, whatever their room). Four changes to the core of seed 9",
        "were tried twice with the same tests: at first, on a busy machine, most tests had been left out as slow.",
        "Noticed means that a test fails, that the process ends or that the tests take five times as long. The page is",
        "written by `python -m mutants --page`; outcomes are kept in `mutants/outcomes.jsonl`, reasons in",
        "`mutants/survivors.txt`.",
        "",
        "How survivors count: one is left out of the share only where its reason below says why no input could give",
        "another answer, but for rounding. A change of a tolerance, of a limit of rounds, of a start or of how long",
        "a search takes counts as not noticed, though answers agree. Tests that read `../shared` do not run here.",
        "",
        f"The tables are of seed {seed}; the survivors of all seeds but {' and '.join(map(str, SURVEYED))}: of those",
        "changes of theirs that some seconds of tests did not notice, tests were written for what they have in common,",
        "and they were not tried again.",
        "",
    ]


def _tried(seed: int, last: int) -> str:
    if seed in SURVEYED:
        return "many changes, to see where tests are blind, on two to ten seconds of tests"
    return "tried once, as it was drawn" if seed == last else "first without, then with tests for it"


def _words(share: Share) -> str:
    left = f" {share.missing} have not been tried." if share.missing else ""
    noticed = f"{share.noticed} of {share.tried} are noticed ({share.noticed / max(1, share.tried):.1%})"
    return f"{noticed}, {share.same} change nothing: {share.value:.1%} of the rest.{left}"


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
