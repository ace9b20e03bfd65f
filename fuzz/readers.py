"""Damaged data files of every reader: what is read fits together, or the file is refused with a sentence."""

from __future__ import annotations

import gzip
import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import make, scan
from calibrant.files.reading import read

from .harness import attempt

Rng = np.random.Generator
KINDS = (".npz", ".npy", ".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".safetensors", ".csv.gz", ".npz.gz")
UNSCANNED = (".npz.gz", ".safetensors")  # are read whole
ROOM = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-"))


@cache
def whole(kind: str) -> bytes:
    """Return a sound file."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    if kind.endswith(".gz"):
        return gzip.compress(whole(kind[:-3]))
    out = io.BytesIO()
    if kind == ".npz":
        np.savez_compressed(out, logits=z, labels=y)
    elif kind == ".npy":
        np.save(out, z)
    elif kind == ".safetensors":
        from safetensors.numpy import save

        out.write(save({"logits": z, "labels": y}))
    elif kind in (".parquet", ".arrow"):
        _write_table(kind, out, z, y)
    elif kind == ".jsonl":
        for row, label in zip(z.tolist(), y.tolist(), strict=True):
            out.write(f'{{"logits": {row}, "label": {label}}}\n'.encode())
    else:
        mark = "\t" if kind == ".tsv" else ","
        lines = [mark.join(["logit_a", "logit_b", "logit_c", "label"])]
        lines += [mark.join([*map(str, row), "abc"[label]]) for row, label in zip(z.tolist(), y.tolist(), strict=True)]
        out.write("\n".join(lines).encode())
    return out.getvalue()


def _write_table(kind: str, out: io.BytesIO, z: Any, y: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({**{f"logit_{i}": z[:, i] for i in range(3)}, "label": [f"logit_{i}" for i in y]})
    if kind == ".parquet":
        pq.write_table(table, out)
        return
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)


def case(rng: Rng) -> str:
    """Damage a file and read it."""
    kind = KINDS[rng.integers(len(KINDS))]
    path = ROOM / f"rows{kind}"
    path.write_bytes(_damaged(rng, whole(kind)))
    attempt(lambda: read(path, kind="logits" if rng.random() < 0.5 else None))
    if kind not in UNSCANNED:
        attempt(lambda: make("ts").fit(scan(path)))
    return kind


def _damaged(rng: Rng, data: bytes) -> bytes:
    spoilt = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(max(1, len(spoilt))))
        kind = rng.integers(6)
        if kind == 0:
            del spoilt[at:]
        elif kind == 1:
            spoilt[at : at + 1] = rng.bytes(1)
        elif kind == 2:
            spoilt[at:at] = rng.bytes(int(rng.integers(1, 9)))
        elif kind == 3:
            del spoilt[at : at + int(rng.integers(1, 20))]
        elif kind == 4:
            spoilt[at:at] = spoilt[max(0, at - 30) : at]
        else:
            words = [b"nan", b"1e999", b"-", b"\x00", b"\xff\xfe", b'"', b"\n", b"{", b"9" * 400, "é".encode()]
            spoilt[at:at] = words[rng.integers(len(words))]
    return bytes(spoilt)
