"""From results to a page."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from .. import __version__
from ..calibrator import Calibrator
from ..errors import InvalidInput
from ..files.atomic import replacing
from ..metrics import brier_decomposition
from ..metrics.curves import ReliabilityCurve
from ..metrics.summary import Measurement, measure
from ..selection import Comparison
from .marks import INSIDE, SIZE, comparison_marks, frame_marks, learning_marks, reliability_marks
from .meanings import MEANINGS

__all__ = ["Context", "report"]


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
    result: Measurement | Comparison | Calibrator, path: str | os.PathLike[str], context: Context | None = None
) -> None:
    """Write one HTML file about a measurement, a comparison or a fitted map. It needs no network and no script.

    Parameters
    ----------
    result : Measurement, Comparison or Calibrator
        From `measure`, `compare` or a fit.
    path : path
        Replaced atomically.
    context : Context, optional
        Title, facts of the data, and the command that reproduces the report.
    """
    page = _page(result, context or Context())
    text = _template().render(**page)
    with replacing(path) as out:
        out.write(text.encode())


def _template() -> jinja2.Template:
    source = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"figure": _figure, "interval": _interval}
    return environment.from_string(source)


def _figure(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, float) and np.isinf(value):
        return "∞"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _interval(interval: Any) -> str:
    return str(interval) if np.isfinite(interval.estimate) else _figure(float(interval.estimate))


def _page(result: Any, context: Context) -> dict[str, Any]:
    before: Measurement | None = None
    after: Measurement | None = None
    comparison = result if isinstance(result, Comparison) else None
    decompositions: dict[str, Any] = {}
    if isinstance(result, Measurement):
        before = result
    elif comparison is not None:
        answers = {name: comparison.answers(name) for name in dict.fromkeys(["identity", comparison.best_])}
        found = {name: measure(a.labels, a.probabilities, sample_weight=a.weights) for name, a in answers.items()}
        before, after = found["identity"], found.get(comparison.best_) if comparison.best_ != "identity" else None
        decompositions = {
            name: brier_decomposition(a.labels, a.probabilities, sample_weight=a.weights) for name, a in answers.items()
        }
    elif not isinstance(result, Calibrator):
        raise InvalidInput(
            "result is nothing a report can be about",
            seen=type(result).__name__,
            allowed="what measure or compare returns, or a fitted calibrator",
        )
    fitted = _fitted_facts(result) if isinstance(result, Calibrator) else {}
    return {
        "title": context.title,
        "context": context,
        "before": before,
        "after": after,
        "comparison": comparison,
        "fitted": fitted,
        "facts": _fact_table(context.facts or fitted),
        "summary": _summary(before, after, comparison, fitted),
        "metrics": _metrics(before, after),
        "meanings": MEANINGS,
        "decompositions": decompositions,
        "views": _views(before, after, context.class_names),
        "frame": frame_marks(),
        "size": f"0 0 {SIZE[0]} {SIZE[1]}",
        "inside": " ".join(map(str, INSIDE)),
        "forest": None if comparison is None else comparison_marks(comparison, str(comparison.settings["metric"])),
        "learning": learning_marks(comparison.curves) if comparison is not None and comparison.curves else None,
        "versions": {"calibrant": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "numbers": _numbers(before, after, comparison, context),
    }


def _summary(
    before: Measurement | None, after: Measurement | None, comparison: Comparison | None, fitted: dict[str, Any]
) -> list[str]:
    words = [before.verdict] if before is not None else []
    if after is not None and comparison is not None:
        words.append(f"After {comparison.best_}: {after.verdict}")
    if comparison is not None:
        words.append(f"Recommended: {comparison.best_}. Why is said below, under Recommendation.")
    if fitted:
        words.append(f"{fitted['map']} was fitted on {fitted['rows']} rows.")
    return words


def _fitted_facts(fitted: Calibrator) -> dict[str, Any]:
    told = fitted.fit_report_
    return {
        "map": repr(fitted),
        "rows": fitted.n_samples_,
        "classes": len(fitted.classes_),
        "converged": "yes" if told.converged else "no",
        f"{told.loss} before": told.loss_before,
        f"{told.loss} after": told.loss_after,
        f"held-out {told.loss} before": told.held_out_before,
        f"held-out {told.loss} after": told.held_out_after,
        "keeps": fitted.traits.preserves,
        "at a bound": ", ".join(told.at_bound) or "nothing",
        "messages": "; ".join(told.messages) or "none",
    }


def _fact_table(facts: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[Any]]]]:
    """Return the names of the parts and the rows: one value for all parts, or one for each of them."""
    parts = list(dict.fromkeys(part for value in facts.values() if isinstance(value, Mapping) for part in value))
    rows = [(name, [v.get(p) for p in parts] if isinstance(v, Mapping) else [v]) for name, v in facts.items()]
    return parts, rows


def _metrics(before: Measurement | None, after: Measurement | None) -> list[tuple[str, Any, Any]]:
    if before is None:
        return []
    first = {"accuracy": before.accuracy, **before.metrics}
    second = {} if after is None else {"accuracy": after.accuracy, **after.metrics}
    return [(name, interval, second.get(name)) for name, interval in first.items()]


def _views(before: Measurement | None, after: Measurement | None, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The diagrams: the top label first, then the classes, those with the largest harm first."""
    if before is None:
        return []
    top = [f"error {before.metrics['ece_crossfit']}"] + (
        [] if after is None else [f"error {after.metrics['ece_crossfit']}"]
    )
    views = [_view("Most probable class", before.curve, None if after is None else after.curve, top)]
    later = {} if after is None else {curve.view: curve for curve in after.class_curves}
    for curve in sorted(before.class_curves, key=_harm, reverse=True):
        name = names[int(curve.view)] if curve.view.isdigit() and int(curve.view) < len(names) else curve.view
        views.append(_view(name, curve, later.get(curve.view), [f"mean gap {_harm(curve):.4f}"]))
    return views


def _view(name: str, before: ReliabilityCurve, after: ReliabilityCurve | None, corner: list[str]) -> dict[str, Any]:
    return {"name": name, "marks": reliability_marks(before, after, corner), "harm": _harm(before)}


def _harm(curve: ReliabilityCurve) -> float:
    """Mean gap of a curve, weighted by rows."""
    bins = curve.binned
    return float(bins.weight @ np.abs(bins.score - bins.frequency) / bins.weight.sum())


def _numbers(
    before: Measurement | None, after: Measurement | None, comparison: Comparison | None, context: Context
) -> Markup:
    """All numbers as JSON that can stand inside a script element."""
    found = {
        "calibrant": __version__,
        "facts": dict(context.facts),
        "before": None if before is None else _short(before.to_dict()),
        "after": None if after is None else _short(after.to_dict()),
        "comparison": None if comparison is None else json.loads(comparison.to_json()),
    }
    text = json.dumps(_rounded(found), ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _short(measured: dict[str, Any]) -> dict[str, Any]:
    for curve in measured["class_curves"]:
        curve.pop("isotonic")
    return measured


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
