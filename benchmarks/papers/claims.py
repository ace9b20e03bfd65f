"""Writes docs/evidence/claims.md from the records that the studies leave; nothing on it is typed."""

from __future__ import annotations

import json

from frame import EVIDENCE, FAILS, HOLDS, PARTLY, RECORDS, UNTESTED

PAPERS = {
    "000": "Mix-n-Match (Zhang et al. 2020)",
    "001": "KCal (Lin et al. 2023)",
    "002": "I-Max (Patel et al. 2021)",
    "003": "Mitigating bias in calibration error estimation (Roelofs et al. 2022)",
    "004": "Hoki (Jang et al. 2021)",
    "beyond": "ours against the field",
}


def write_claims() -> None:
    """Write the page of all claims."""
    (EVIDENCE / "claims.md").write_text(claims_page())


def _shown(name: str, rows: int) -> str:
    return f"{name} ({rows:,} rows)" if rows else name


def claims_page() -> str:
    """Return the page of all claims, a section a paper."""
    records = [json.loads(path.read_text()) for path in sorted(RECORDS.glob("*.json"))]
    verdicts = [c["verdict"] for record in records for c in record["claims"] if record["paper"] != "beyond"]
    counts = [f"{verdicts.count(v)} {v}" for v in (HOLDS, PARTLY, FAILS, UNTESTED) if v in verdicts]
    lines = [
        "# The claims of the five papers, and what our runs say",
        "",
        f"**{len(verdicts)} claims: {', '.join(counts)}.**",
        "",
        "Written by `make papers` from the results of its studies. A verdict is about the paper's own form of the "
        "method (its",
        "loss, smoothing, norm; marginals not normalised), on the outputs at hand; what our defaults do stands on "
        "the page that",
        "the last column names. Errors are standard errors over splits or simulations unless a page says otherwise. "
        "The codes",
        "are ours: the papers do not number their claims.",
    ]
    for paper, title in PAPERS.items():
        own = [record for record in records if record["paper"] == paper]
        if not own:
            continue
        lines += ["", f"## {paper}: {title}", "", f"Command: `python benchmarks/papers/run.py {paper}`."]
        for record in own:
            if record["sets"]:
                data = ", ".join(_shown(name, rows) for name, rows in record["sets"].items())
                lines += ["", f"Data of `{record['study']}`: {data}."]
        lines += ["", "| claim | where | what the paper says | protocol | ours | verdict | page |", "| --- " * 7 + "|"]
        for c in sorted(
            (c for record in own for c in record["claims"]), key=lambda c: (c["code"][0], int(c["code"][1:]))
        ):
            page = f"[{c['page']}]({c['page']}.md)"
            cells = (c["code"], c["place"], c["says"], c["protocol"], c["found"], f"**{c['verdict']}**", page)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_claims()
