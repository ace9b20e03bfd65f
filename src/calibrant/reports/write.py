"""From results to a page."""

from __future__ import annotations

import json
import os
import platform
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from .. import __version__
from ..calibrator import Calibrator
from ..errors import CalibrationWarning, InvalidInput
from ..files.atomic import replacing
from ..metrics import brier_decomposition
from ..metrics.estimators.curves import ReliabilityCurve, reliability_curve
from ..metrics.inference.intervals import wide_words
from ..metrics.measurement import Measurement
from ..metrics.measuring import measure
from ..metrics.table import meanings_of
from ..monitoring import Monitor
from ..selection import Comparison
from .fitted import curves_of, facts_of, parameters_of, settings_of
from .marks import (
    INSIDE,
    MAP,
    SIZE,
    comparison_marks,
    frame_marks,
    in_script,
    learning_marks,
    map_marks,
    reliability_marks,
)
from .profile_marks import decision_marks, group_marks, shown_span, smooth_marks
from .tripod import checklist
from .trying import MOST_FIELDS, trying
from .watching import watching_page

SPANS = (0.02, 0.04, 0.1, 0.2, 0.4)  # where 99 % of the rows say no more, they are drawn once more, larger
KEY = (
    "accuracy",
    "event_rate",
    "observed_expected",
    "calibration_slope",
    "ici",
    "ece_crossfit",
    "auroc",
    "nll",
    "brier",
)  # the figures beside the picture


@dataclass(frozen=True)
class Context:
    """Where the numbers come from.

    Attributes
    ----------
    title : str
    facts : dict
        Facts of the data, in words; a dict for a fact that each part of the data has its own value of.
    command : str
        What reproduces the report.
    class_names : sequence of str
    warnings : tuple of str
    """

    title: str = "Calibration report"
    facts: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    class_names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def report(
    result: Measurement | Comparison | Calibrator | Monitor,
    path: str | os.PathLike[str],
    context: Context | None = None,
) -> None:
    """Write one HTML file about a measurement, a comparison, a fitted map or a monitor, which needs no network.

    Where the map has at most 20 scores a row, the page answers scores that are typed into it; the rest needs no script.

    Parameters
    ----------
    result : Measurement, Comparison, Calibrator or Monitor
        From `measure`, `compare`, a fit or `calibrant.monitoring`.
    path : path
        Replaced atomically.
    context : Context, optional
        Title, facts of the data, and the command that reproduces the report.
    """
    context = Context() if context is None else context
    if not isinstance(context, Context):
        raise InvalidInput("context is none", seen=type(context).__name__, allowed="calibrant.reports.Context(…)")
    if isinstance(result, Monitor):
        title = "Calibration watch" if context.title == Context.title else context.title
        told = watching_page(result) | {"title": title, "context": context, "inf": np.inf}
        text = _template("watching.html").render(**told)
    else:
        text = _template("page.html").render(**_page(result, context))
    with replacing(path) as out:
        out.write(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode())


# Control characters and marks of direction, which names may hold: written out, as in a JSON string, and not obeyed.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _template(name: str) -> Any:
    source = Path(__file__).with_name(name).read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"figure": _figure}
    return environment.from_string(source)


def _figure(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, float) and np.isinf(value):
        return "∞"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _page(result: Any, context: Context) -> dict[str, Any]:
    before: Measurement | None = None
    after: Measurement | None = None
    comparison = result if isinstance(result, Comparison) else None
    fitted = result if isinstance(result, Calibrator) else None
    decompositions: dict[str, Any] = {}
    if isinstance(result, Measurement):
        before = result
    elif comparison is not None:
        before, after, decompositions = _judged(comparison)
    elif fitted is None:
        raise InvalidInput(
            "result is nothing a report can be about",
            seen=type(result).__name__,
            allowed="what measure or compare returns, a fitted calibrator or a monitor",
        )
    facts = {} if fitted is None else facts_of(fitted)
    figures = _metrics(before, after)
    return {
        "title": context.title,
        "context": context,
        "before": before,
        "after": after,
        "comparison": comparison,
        "facts": _fact_table(context.facts or facts),
        "parameters": [] if fitted is None else parameters_of(fitted),
        "curves": Markup("") if fitted is None else map_marks(*curves_of(fitted)),
        "summary": _summary(before, after, comparison, fitted),
        "advice": _advice(before, comparison, fitted),
        "metrics": figures,
        "profile": _profile(before) if after is None else Markup(""),
        "trying": trying(_to_try(comparison, after, fitted), context.class_names),
        "key": [row for row in figures if row[0] in KEY],
        "key_wide": _wide(row for row in figures if row[0] in KEY),
        "wide": _wide(figures),
        "notes": list(dict.fromkeys(i.note for _, *pair in figures for i in pair if i is not None and i.note)),
        "meanings": {} if before is None else meanings_of(before.is_event),
        "decompositions": decompositions,
        "views": _views(before, after, context.class_names),
        "what": "" if before is None else f"{before.n:,} rows of {before.subject}",
        "frame": frame_marks(),
        "near": _near(before, after),
        "size": f"0 0 {SIZE[0]} {SIZE[1]}",
        "inside": " ".join(map(str, INSIDE)),
        "map_size": " ".join(map(str, MAP)),
        "forest": None if comparison is None else comparison_marks(comparison, str(comparison.settings["metric"])),
        "learning": learning_marks(comparison.curves) if comparison is not None and comparison.curves else None,
        "versions": {"calibrant": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "numbers": _numbers(before, after, comparison, context),
    }


def _wide(figures: Iterable[tuple[str, Any, Any]]) -> str:
    """Which intervals of a table hold more often than they claim, as the end of a sentence."""
    rows = [(name, pair) for name, *pair in figures]
    words = wide_words(*({name: pair[i] for name, pair in rows if pair[i] is not None} for i in (0, 1)))
    return f"; {words}" if words else ""


def _to_try(comparison: Comparison | None, after: Measurement | None, fitted: Calibrator | None) -> Calibrator | None:
    """The map that answers typed scores: the fitted one, or that which a comparison chose, if it changes anything."""
    if comparison is None:
        return fitted
    if after is None or after.n_classes > MOST_FIELDS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the page says what held-out rows think of the map
        return comparison.refit_


def _profile(found: Measurement | None) -> Any:
    """What the profile, groups and labels of a measurement add to the page."""
    if found is None:
        return Markup("")
    smooth, decisions, groups = found.smooth, found.decisions, found.group_findings
    by_group = [(name, dict(list(part.figures.items())[:6])) for name, part in found.groups.items()]
    page = {
        "smooth": None if smooth is None else smooth_marks(smooth),
        "cut": smooth is not None and shown_span(smooth) < 1,
        "decision": None if decisions is None else decision_marks(decisions),
        "groups": None if groups is None else group_marks(groups),
        "findings": groups,
        "by_group": by_group,
        "by_group_wide": wide_words(*(figures for _, figures in by_group)),
        "labels": found.labels,
        "labels_wide": "" if found.labels is None else wide_words(*found.labels.labels.values()),
        "checklist": checklist(found) if found.profile == "risk" else [],
        "level": round(100 * found.rate.confidence),
    }
    return Markup(_template("profile.html").render(**page))


def _judged(comparison: Comparison) -> tuple[Measurement, Measurement | None, dict[str, Any]]:
    """Measure what the scores as they came and the chosen map answered; the probability of an event as an event."""
    found, parts = {}, {}
    for name in dict.fromkeys(["identity", comparison.best_]):
        told = comparison.answers(name)
        p = told.probabilities[:, 1] if comparison.settings.get("event") else told.probabilities
        found[name] = measure(told.labels, p, sample_weight=told.weights)
        parts[name] = brier_decomposition(told.labels, p, sample_weight=told.weights)
    before, after = found["identity"], None if comparison.best_ == "identity" else found[comparison.best_]
    return before, None if after is None else _same_classes(before, after, comparison), parts


def _same_classes(before: Measurement, after: Measurement, comparison: Comparison) -> Measurement:
    """Return what was measured afterwards with the curves of the classes that are drawn before."""
    wanted = [curve.view for curve in before.class_curves]
    if wanted == [curve.view for curve in after.class_curves]:
        return after
    told = comparison.answers(comparison.best_)
    known = {"sample_weight": told.weights, "classes": np.arange(told.probabilities.shape[1])}
    curves = [reliability_curve(told.labels, told.probabilities, view=int(name), **known) for name in wanted]
    return replace(after, class_curves=tuple(curves))


def _summary(
    before: Measurement | None, after: Measurement | None, comparison: Comparison | None, fitted: Calibrator | None
) -> list[tuple[str, str]]:
    """What was found: pairs of whom it is about ("before", "after" or "") and words."""
    if fitted is not None:
        lines = str(fitted.fit_report_).splitlines()
        return [("", f"{settings_of(fitted)[:120]}, fitted on {fitted.n_samples_:,} rows. " + "; ".join(lines) + ".")]
    words = [("before" if after is not None else "", before.verdict)] if before is not None else []
    if after is not None and comparison is not None:
        words.append((f"after {comparison.best_}", after.verdict))
    if comparison is not None and comparison.zeros_words:
        words.append(("", comparison.zeros_words))
    return words


def _advice(before: Measurement | None, comparison: Comparison | None, fitted: Calibrator | None) -> str:
    """What to do."""
    if comparison is not None:
        take = "Leave the scores as they are." if comparison.best_ == "identity" else f"Take {comparison.best_}."
        return f"{take} {comparison.reason}"
    if fitted is not None:
        if fitted.fit_report_.harms:
            return "Leave the scores as they are: on other rows this map does worse than none."
        return "Apply it to scores of the same model with predict_proba, and measure the answers on rows of their own."
    assert before is not None  # a report is about one of the three
    if before.shape == "none":
        return "Nothing needs correcting by what these rows can tell; more rows would narrow what remains possible."
    return (
        "Compare maps on rows the model was not trained on (calibrant compare, or calibrant.compare) and take the best."
    )


def _fact_table(facts: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[Any]]]]:
    """Return the names of the parts and the rows: one value for all parts, or one for each of them."""
    parts = list(dict.fromkeys(part for value in facts.values() if isinstance(value, Mapping) for part in value))
    rows = [(name, [v.get(p) for p in parts] if isinstance(v, Mapping) else [v]) for name, v in facts.items()]
    return parts, rows


def _metrics(before: Measurement | None, after: Measurement | None) -> list[tuple[str, Any, Any]]:
    if before is None:
        return []
    second = {} if after is None else after.figures
    return [(name, interval, second.get(name)) for name, interval in before.figures.items()]


def _views(before: Measurement | None, after: Measurement | None, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The diagrams: that of the event or top label first, then the classes, those with the largest harm first."""
    if before is None:
        return []
    top = [f"error {before.metrics['ece_crossfit']}"] + (
        [] if after is None else [f"error {after.metrics['ece_crossfit']}"]
    )
    first = "The event" if before.is_event else "Most probable class"
    views = [_view(first, before.curve, None if after is None else after.curve, top)]
    later = {} if after is None else {curve.view: curve for curve in after.class_curves}
    for curve in sorted(before.class_curves, key=lambda curve: curve.mean_gap, reverse=True):
        name = names[int(curve.view)] if curve.view.isdigit() and int(curve.view) < len(names) else curve.view
        views.append(_view(name, curve, later.get(curve.view), [f"mean gap {curve.mean_gap:.4f}"]))
    return views


def _near(before: Measurement | None, after: Measurement | None) -> dict[str, Any] | None:
    """The same diagram of small probabilities, where an event is rare."""
    if before is None or not before.is_event:
        return None
    below = np.cumsum(before.curve.counts)
    reached = before.curve.edges[1:][np.searchsorted(below, 0.99 * below[-1])]
    span = next((span for span in SPANS if reached <= span), None)
    if span is None:
        return None
    later = None if after is None else after.curve
    return {"span": span, "marks": Markup(frame_marks(span) + reliability_marks(before.curve, later, (), span))}


def _view(name: str, before: ReliabilityCurve, after: ReliabilityCurve | None, corner: list[str]) -> dict[str, Any]:
    return {"name": name, "marks": reliability_marks(before, after, corner), "harm": before.mean_gap}


def _numbers(
    before: Measurement | None, after: Measurement | None, comparison: Comparison | None, context: Context
) -> Any:
    """All numbers as JSON that can stand inside a script element."""
    found = {
        "calibrant": __version__,
        "facts": dict(context.facts),
        "before": None if before is None else _short(before.to_dict()),
        "after": None if after is None else _short(after.to_dict()),
        "comparison": None if comparison is None else json.loads(comparison.to_json()),
    }
    return in_script(found)


def _short(measured: dict[str, Any]) -> dict[str, Any]:
    """Leave out the steps of the classes, and their edges, which are those of the whole."""
    for curve in measured["class_curves"]:
        curve.pop("isotonic")
        curve.pop("edges")
    return measured
