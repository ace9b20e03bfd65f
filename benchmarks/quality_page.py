"""The page that benchmarks/quality.py writes: what holds beside probmetrics, the figures, and where the time goes."""

from __future__ import annotations

from typing import Any

LIMIT = 0.003  # how much worse than probmetrics' sms ours may be
SLOWEST = 8
Results = dict[str, dict[str, Any]]


def page(results: dict[str, Results], own: list[str], peers: list[str], code: str) -> str:
    """Return the page. ``results`` are by set and map, ``code`` marks the version that the run was made with."""
    own = [name for name in own if any(name in found for found in results.values())]
    lines = ["# Held-out quality on real outputs", "", "Written by `benchmarks/quality.py`; its docstring says how."]
    lines += [*older(results, own, code), "", "## Beside probmetrics (NLL)", "", *verdict(results, own), ""]
    for figure, title in (("nll", "Log-loss"), ("brier", "Brier score"), ("accuracy", "Accuracy")):
        lines += [f"## {title}", "", *table(figure, results, own, peers), ""]
    lines += ["## Where the time goes", "", *slowest(results, own), ""]
    return "\n".join(lines)


def older(results: dict[str, Results], own: list[str], code: str) -> list[str]:
    """Name the maps whose figures come from code before that of the last run."""
    names = [n for n in own if any(found.get(n, {}).get("code", code) != code for found in results.values())]
    return [f"Kept from an earlier version of the code: {', '.join(names)}."] if names else []


def table(figure: str, results: dict[str, Results], own: list[str], peers: list[str]) -> list[str]:
    """One row a map, one column a set: there are more maps than sets."""
    lines = ["| map | " + " | ".join(results) + " |", "| --- " * (len(results) + 1) + "|"]
    for name in [*own, *peers]:
        cells = [cell(found.get(name, {}), figure) for found in results.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def cell(found: dict[str, Any], figure: str) -> str:
    return f"{found[figure]:.4f}" if figure in found else found.get("error", "-")


def verdict(results: dict[str, Results], own: list[str]) -> list[str]:
    """Compare our sms, and the best of ours, with theirs."""
    head = "| set | our sms / theirs | best of ours / best of theirs | which | processor seconds: ours, theirs |"
    lines, good, all_good, total, behind = [head, "| --- " * 5 + "|"], 0, 0, 0, []
    for title, found in results.items():
        peers = {n: f for n, f in found.items() if n.startswith("probmetrics") and "nll" in f}
        if "probmetrics sms" not in peers or "sms" not in found:
            continue
        total += 1
        if "nll" not in found["sms"]:  # ours failed where theirs did not: that counts against us
            lines.append(f"| {title} | {found['sms'].get('error', '-')} | - | - | - |")
            continue
        ratio = found["sms"]["nll"] / peers["probmetrics sms"]["nll"]
        name = min((n for n in own if "nll" in found.get(n, {})), key=lambda n: found[n]["nll"])
        best = found[name]["nll"] / min(f["nll"] for f in peers.values())
        times = f"{found['sms']['seconds']:.2f}, {peers['probmetrics sms']['seconds']:.2f}"
        lines.append(f"| {title} | {ratio:.4f} | {best:.4f} | {name} | {times} |")
        good, all_good = good + (ratio <= 1 + LIMIT), all_good + (best <= 1.0)
        behind += [title] if ratio > 1 + LIMIT or best > 1.0 else []
    print(f"sms within {LIMIT:.1%}: {good} of {total}; best of ours no worse: {all_good} of {total}")
    return [
        f"Our sms is within {LIMIT:.1%} of theirs or better on {good} of {total} sets that they can run; the best",
        f"of ours is no worse than the best of theirs on {all_good} of {total}.",
        f"Behind on: {', '.join(behind) or 'none'}.",
        "",
        *lines,
    ]


def slowest(results: dict[str, Results], own: list[str]) -> list[str]:
    """Name the maps that take most of the processor's time, over all sets, with fitting and answering."""
    spent = {n: sum(f.get(n, {}).get("all_seconds", 0.0) for f in results.values()) for n in own}
    stopped = {n: [t for t, f in results.items() if "error" in f.get(n, {})] for n in own}
    lines = [f"All maps on all sets: {sum(spent.values()):.0f} s of one processor, without those that did not finish."]
    lines += ["", "| map | seconds | not finished on |", "| --- | --- | --- |"]
    order = sorted(own, key=lambda n: (len(stopped[n]), spent[n]), reverse=True)
    for name in order[: max(SLOWEST, sum(map(bool, stopped.values())))]:
        lines.append(f"| {name} | {spent[name]:.1f} | {', '.join(stopped[name]) or '-'} |")
    return lines
