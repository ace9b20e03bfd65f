"""Any metric with an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..parameters import generator
from .inference.intervals import Interval, check_confidence, check_resamples
from .inference.resampling import Sampling
from .inference.uncertainty import from_resamples
from .table import row_of
from .views.forecasts import read


def bootstrap(
    metric: str | Callable[..., float],
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    clusters: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    random_state: int = 0,
    **options: Any,
) -> Interval:
    """Return a metric with an interval that covers the true value.

    Metrics are resampled, and the interval is reflected: with θ the estimate and q the quantiles of the resampled
    values it is [2θ - q_high, 2θ - q_low]. Calibration errors need more care. Noise raises them, and resampling adds
    about as much noise again, in squares (in cubes for smECE, whose bandwidth grows with the noise). The lower end is
    therefore √(2θ² - q_high²) or 0. How much of the estimate is noise depends on the unknown truth, but it is never
    negative, so the upper end is θ plus the longer side of the resampled values about their mean. A debiased error gets
    the interval of the binned error with the same bins, as a debiased value that was cut at 0 has nothing to be
    reflected. Three rules make this hold for calibrated samples and rare events too:

    - The lower end is above 0 only where a test finds miscalibration at the level 1 - confidence: the sweep test of
      `calibration_test` for one view, and one of the class-wise error for all classes and whole vectors. Resampling
      cannot see the noise of outcomes that did not happen.
    - Where fewer than five rows have the rarer outcome, or went against their score (were below ½ and happened, or
      above and did not), the upper end is at least `bounds.largest_error`.
    - The largest gap of bins (norm "max") has simultaneous intervals of its bins instead (`bounds`); that of other
      estimators and views has none.

    The cross-fitted error has a standard error of its own; accuracy has Clopper and Pearson's interval; losses have
    Student's, corrected for skewness, and none where they are infinite or such rows are too few.
    Every other metric is resampled and reflected. Coverage: docs/evidence/coverage.md.

    Parameters
    ----------
    metric : str or callable
        The name of a metric in `calibrant.metrics`, or a metric of (y_true, y_prob, sample_weight=…): one of those, or
        your own.
    sample_weight : array-like of shape (n,), optional
        Rows are drawn with equal probability and carry their weights.
    clusters : array-like of shape (n,), optional
        Whatever says which rows belong together (a patient, a prompt, an image): clusters are drawn whole.
    **options
        Handed to the metric.

    Returns
    -------
    Interval
        ``low`` and ``high`` are None where there is none, and ``note`` says why.

    Examples
    --------
    >>> from calibrant.metrics import ece
    >>> from calibrant.simulation import scenarios
    >>> y, p = scenarios["resnet110_c10"].sample(2000, random_state=0)
    >>> found = bootstrap(ece, y, p, resamples=200)
    >>> print(found)
    0.0726 [0.0570, 0.0851]
    """
    check_confidence(confidence)
    check_resamples(resamples, 2)
    sampling = Sampling(resamples, generator(random_state), slow=resamples)
    row = row_of(metric)
    if row is not None:
        forecasts = row.read(y_true, y_prob, sample_weight, classes, options).clustered(clusters)
        return row.interval(forecasts, confidence, sampling, **options)
    assert callable(metric)  # names were looked up
    known = {**({} if classes is None else {"classes": classes}), **options}
    estimate = float(metric(y_true, y_prob, sample_weight=sample_weight, **known))
    forecasts = read(y_true, y_prob, sample_weight, classes=classes, marginals=bool(options.get("marginals")))
    drawn = (f.weights for f in sampling.forecasts(forecasts.clustered(clusters)))
    values = np.array([metric(y_true, y_prob, sample_weight=weights, **known) for weights in drawn])
    return from_resamples(estimate, values, confidence)
