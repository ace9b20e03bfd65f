"""``calibrant inspect``."""

from __future__ import annotations

from typing import Any

import click

from ..main import COMMANDS
from ..options import Run, common, data_options, read_data
from ..output import cell, print_json, print_table


@click.command("inspect", help=COMMANDS["inspect"])
@click.argument("file", metavar="FILE")
@data_options
@common
def command(file: str, names: Any, run: Run) -> None:
    """Tell what is in a file."""
    from ...files.reading import FORMATS, ending

    is_data = ending(file) in FORMATS or file == "-"
    facts = _data_facts(read_data(file, names)) if is_data else _map_facts(file)
    if run.as_json:
        print_json("inspect", file=file, what="data" if is_data else "map", **facts)
        return
    told = {key.replace("_", " "): value for key, value in facts.items() if value != []}
    print_table(("", file), [row for key, value in told.items() for row in _rows(key, value)], left=2)


def _rows(name: str, value: Any) -> list[tuple[str, str]]:
    """A row for each line that a fact takes."""
    return [(name if i == 0 else "", line) for i, line in enumerate(_words(value).split("\n"))]


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{cell(key)}:{_below(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return cell(", ".join(map(str, value[:20])) + (", …" if len(value) > 20 else ""))
    return f"{value:.6g}" if isinstance(value, float) else cell(value)


def _below(value: Any) -> str:
    words = _words(value)
    return "".join(f"\n  {line}" for line in words.split("\n")) if isinstance(value, dict) else f" {words}"


def _map_facts(path: str) -> dict[str, Any]:
    """What the file says of itself; the map is loaded too, so that a file which inspect shows is one which works."""
    from ...files.saving import read_document
    from ...loading import load

    document, fitted = read_document(path), load(path)
    summary = dict(document["summary"])
    loss = {key: summary.pop(key) for key in ("before", "after", "held_out_before", "held_out_after")}
    return {
        "map": repr(fitted.unfitted().set_params(classes=None)),  # which are told below
        "saved": document["saved"],
        "written_by": f"calibrant {document['calibrant']}, format {document['format']}",
        "fitted_on_rows": summary["rows"],
        "classes": [str(c) for c in fitted.classes_.tolist()],
        "columns": [str(c) for c in getattr(fitted, "feature_names_in_", ())],
        "inputs": fitted.inputs,
        summary["loss"]: loss,
        "traits": summary["traits"],
        "state": {k: v for k, v in vars(fitted).items() if k.endswith("_") and isinstance(v, (int, float, str))},
        "arrays": document["arrays"],
    }


def _data_facts(data: Any) -> dict[str, Any]:
    from ..facts import facts

    parts = {name or "all": facts(data, rows) for name, rows in data.parts.items()}
    return {
        "kind": data.kind,
        "classes": len(data.classes),
        "class_names": list(data.class_names),
        "parts": parts,
        "unused": list(data.unused),
        "sha256": data.digest,
    }
