"""TRIPOD+AI (Collins et al. 2024): which items on performance a measurement answers; the rest is the author's."""

from __future__ import annotations

import numpy as np

from ..metrics.measurement import Measurement


def checklist(found: Measurement) -> list[tuple[str, str, str]]:
    """Return (item, what it asks, what was done or what is left to be said by the author)."""
    size, participants = _participants(found)
    groups = found.group_findings
    by_group = "Not done: no groups were given (--groups)." if groups is None else _groups(found)
    missing = (
        "Rows with missing scores or outcomes are refused, never dropped or imputed: say how they were handled before."
    )
    return [
        ("5, 6", "Source of the data, dates, setting, who took part", "By the author: not known to this program."),
        ("8", "Outcome and how it was assessed", "By the author."),
        ("10", "Sample size", f"{size}; intervals say what so many can tell."),
        ("11", "Missing data", missing),
        ("12e", "Measures of performance: calibration, discrimination, utility", _measures(found)),
        ("12f", "Updating of the model", "None: the probabilities were measured as they came."),
        ("14", "Fairness and heterogeneity between groups", by_group),
        ("20", "Participants: number with and without the outcome", participants),
        (
            "23a",
            "Performance with confidence intervals",
            f"All figures below, at {round(100 * found.rate.confidence)} %.",
        ),
        ("23b", "Heterogeneity in performance", by_group),
        ("25", "Interpretation, limitations", "The verdict above says what these rows show; the rest is the author's."),
    ]


def _participants(found: Measurement) -> tuple[str, str]:
    """Return how many rows and events there are, and how many with and without it: with weights the author knows."""
    smooth, rows = found.smooth, found.n
    if smooth is not None and not np.isclose(smooth.yes.sum() + smooth.no.sum(), rows):
        return (
            f"{rows:,} weighted rows, events {found.rate.estimate:.3g} of the weight",
            "By the author: rows have weights.",
        )
    events = round(found.rate.estimate * rows)
    return f"{rows:,} rows, {events:,} events", f"{events:,} and {rows - events:,}."


def _measures(found: Measurement) -> str:
    names = ", ".join(name for name in found.metrics)
    return f"Smooth curve with a simultaneous band, decision curve, and {names}."


def _groups(found: Measurement) -> str:
    groups = found.group_findings
    assert groups is not None  # asked for where there are groups
    return f"{len(groups.rows)} groups, intervals for all looks together, test that they differ: {groups.test.p}."
