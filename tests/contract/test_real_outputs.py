"""Traits, tested on the outputs of real models: what claims to keep the ranking keeps it in every row."""

import warnings

import numpy as np
import pytest

from calibrant import CalibrationWarning, registry
from calibrant.testing.answers import require_distributions, require_promise

FILES = [
    "cifar100_resnet50",
    "cifar100_densenet_bc",
    "cifar10_extreme_logits",
    "cifar10_overconfident",
    "cifar10_resnet110",
    "cifar10_vgg16",
    "imdb",
    "newsgroups20",
    "soccer_forecasts",
    "tinyimagenet_probe",
]
FIT_ROWS = 600


def _load(path):
    with np.load(path) as file:
        kind = "logits" if any(key.startswith("logits") for key in file) else "probs"
        part = ("_val", "_test") if f"{kind}_val" in file else ("", "")
        scores, labels, other = file[kind + part[0]], file["labels" + part[0]], file[kind + part[1]]
    every = slice(None, None, len(labels) // FIT_ROWS)  # some files are sorted by label
    return "logits" if kind == "logits" else "probabilities", scores[every], labels[every], other


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_traits_hold_on_real_outputs(shared_data, entry, name):
    path = shared_data / f"{name}.npz"
    if not path.exists():
        pytest.skip("this set is not here")
    traits = entry.traits
    if traits.needs != "scores":
        pytest.skip("needs embeddings")
    inputs, scores, labels, other = _load(path)
    if traits.preserves == "nothing":
        other = other[:500]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        map_ = entry.build().set_params(inputs=inputs).fit(scores, labels)
    p = map_.predict_proba(other)
    require_distributions(p, other.shape)
    assert p.dtype == other.dtype
    if traits.preserves != "nothing":
        require_promise(traits.preserves, other, p)
        np.testing.assert_array_equal(map_.predict(other), other.argmax(axis=1))
