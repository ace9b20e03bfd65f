"""A real, small, over-confident classifier: what the demo works on."""

from __future__ import annotations

from typing import Any, NamedTuple


class Outputs(NamedTuple):
    """Probabilities and labels of rows to calibrate on and of rows to judge on."""

    held_out: tuple[Any, Any]
    test: tuple[Any, Any]


def digits_outputs(seed: int = 0) -> Outputs:
    """Train a network on 150 of scikit-learn's 1,797 digits, and return its outputs on the others."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    x_train, x_rest, y_train, y_rest = train_test_split(x / 16, y, train_size=150, stratify=y, random_state=seed)
    x_held, x_test, y_held, y_test = train_test_split(x_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=seed)
    model = MLPClassifier((64,), solver="lbfgs", alpha=0, max_iter=1000, random_state=seed).fit(x_train, y_train)
    return Outputs((model.predict_proba(x_held), y_held), (model.predict_proba(x_test), y_test))
