"""Table 3 of paper 000: TS and ETS with the most calibration rows; and the top label before and after ETS."""

from __future__ import annotations

import numpy as np
from frame import FAILS, HOLDS, PARTLY, Study, mean_and_error, shown, table
from mixnmatch import FORMS, SETS, answers, judged, outputs

from calibrant.arrays import best_column, softmax
from calibrant.metrics import reliability_curve
from calibrant.plots import reliability

__all__ = ["SETS", "run"]


def run(study: Study) -> None:
    """Judge M8, and write the page."""
    names = study.found[:1] if study.quick else study.found
    draws = study.size(20, 2)

    def one(name: str, form: str, draw: int) -> dict[str, float]:
        rows = outputs(name)
        order = np.random.default_rng([13, draw]).permutation(len(rows.labels))
        held = min(5000, len(order) // 2)
        test, fit = order[:held], order[held : held + 10_000]
        raw = softmax(rows.logits[test])
        found: dict[str, float] = {"rows": len(fit)}
        for method in ("ts", "ets"):
            p = answers(method, form, rows, fit, test)
            found[method] = judged(p, rows.logits[test], rows.labels[test], raw)["ece"]
        return found

    cells = study.cells("table 3", [(n, form, d) for n in names for form in FORMS for d in range(draws)], one)
    lines, told, better, worse = [], [], 0, 0
    for form, words in FORMS.items():
        table_rows = []
        for name in names:
            own = [cells[name, form, draw] for draw in range(draws)]
            ts, ets = (np.array([cell[m] for cell in own]) for m in ("ts", "ets"))
            mean, error = mean_and_error(ets - ts)
            if form == "paper":
                better += mean < -2 * error
                worse += mean > 2 * error and mean > 1e-6  # a digit that the paper's table would not show
                told.append(f"{name} {shown(ets - ts, 3, 100)}")
            figures = [shown(ts, 2, 100), shown(ets, 2, 100), shown(ets - ts, 3, 100)]
            table_rows.append([name, f"{own[0]['rows']:,}", *figures])
        head = ["set", "rows", "TS", "ETS", "ETS less TS"]
        lines += [
            f"## Table 3: top-label ECE¹ (%) with the most calibration rows, {words}",
            "",
            table(head, table_rows),
            "",
        ]
    study.claim(
        code="M8", place="§5.2, Table 3", page="ets",
        verdict=HOLDS if better and not worse else PARTLY if better else FAILS,
        found=f"ETS clearly lower on {better}, clearly higher on {worse} of {len(names)} sets; ECE¹ of ETS less that "
        "of TS in "
        f"points: {', '.join(told)}",
        says="with the most calibration rows ETS has a lower top-label ECE¹ than TS, above all with many classes",
        protocol=f"squared loss for both, KDE estimate, up to 10,000 rows to fit on, 5,000 to judge, {draws} random "
        "splits",
    )  # fmt: skip
    c = study.claims[-1]
    head = [
        "# ETS with many rows (paper 000, Table 3), and before and after",
        "",
        f"**{c.code} {c.verdict}**: {c.found}.",
        "",
    ]
    pictures = ["## The top label before and after ETS, the paper's form", ""]
    for name in names:
        pictures += [before_and_after(study, name), ""]
    study.page("ets", "\n".join([*head, *lines, *pictures]))


def before_and_after(study: Study, name: str) -> str:
    """Draw what the top label says against what comes true, as it came and by ETS."""
    rows = outputs(name)
    order = np.random.default_rng([7, 0]).permutation(len(rows.labels))
    size = min(5000, len(order) // 3)
    fit, test = order[:size], order[size : size + 10_000]
    curves = []
    for method in ("none", "ets"):
        p = answers(method, "paper", rows, fit, test)
        right = best_column(p, rows.logits[test]) == rows.labels[test]
        curves.append(reliability_curve(right.astype(int), np.clip(p.max(axis=1), 0, 1)))
    return study.picture(f"ets-{name}", reliability(*curves), f"{name}: the top label before and after ETS")
