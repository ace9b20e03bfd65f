"""Names to maps, one line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

from .calibrator import Calibrator
from .errors import InvalidInput
from .maps.binary.base import BinaryMap
from .maps.binary.bayesian_binning import BayesianBinning
from .maps.binary.beta import BetaCalibration
from .maps.binary.binning import Binning
from .maps.binary.isotonic import Isotonic
from .maps.binary.isotonic_centred import CentredIsotonic
from .maps.binary.logit_spline import LogitSpline
from .maps.binary.platt import PlattScaling
from .maps.binary.quadratic import QuadraticScaling
from .maps.binary.spline import SplineCalibration
from .maps.binary.venn_abers import VennAbers
from .maps.kernel import KCal
from .maps.perturbation import Hoki
from .maps.scaling.binwise import BinwiseTemperatureScaling
from .maps.scaling.dirichlet import DirichletCalibration
from .maps.scaling.ensemble import EnsembleTemperatureScaling
from .maps.scaling.floored import FlooredTemperature
from .maps.scaling.gaussian_process import GaussianProcessCalibration
from .maps.scaling.matrix import MatrixScaling
from .maps.scaling.order_preserving import OrderPreservingScaling
from .maps.scaling.temperature import TemperatureScaling
from .maps.scaling.trivial import Identity, Uniform
from .maps.scaling.vector import VectorScaling
from .operators.chain import Chain
from .operators.mixture import Mixture
from .operators.one_vs_rest import OneVsRest
from .operators.structured import StructuredScaling
from .traits import Traits

__all__ = ["STEPS", "Entry", "entries", "make", "make_seeded", "names"]


@dataclass(frozen=True)
class Entry:
    """A registered map: its name, how it is made, one line on what it is, and where it comes from."""

    name: str
    build: Callable[[], Calibrator]
    summary: str
    source: str

    @property
    def traits(self) -> Traits:
        """The traits of a fresh instance."""
        return self.build().traits


# Nats that a step function starts behind in the blend, and owes to folds with few errors in a choice.
STEPS = {"irm": 2.0, "irova": 4.0, "bbq": 4.0}


def _each(kind: Callable[..., BinaryMap], *settings: Any) -> Callable[[], Calibrator]:
    """A map of its own for every class."""
    return lambda: OneVsRest(kind(*settings))


def _shared(kind: Callable[..., BinaryMap], *settings: Any, **more: Any) -> Callable[[], Calibrator]:
    """One map for all classes."""
    return lambda: OneVsRest(kind(*settings, **more), share="all")


def _lent(edges: str, kind: type[Calibrator]) -> Binning:
    """Bins that answer the mean of another map."""
    return Binning(edges, representatives=kind())


def _after(first: type[Calibrator], then: Callable[[], Calibrator]) -> Callable[[], Calibrator]:
    return lambda: Chain([first(), then()])


_irova, _irm, _bbq = _each(Isotonic), _shared(Isotonic, strict=True), _each(BayesianBinning)


def _blend() -> Calibrator:
    """Maps of every kind, each weighed by the probability that it is the best on other rows.

    Step functions start behind: where few rows hold few errors, folds flatter what is sure between them. With 200 rows
    of one event and a good model, what folds said was best by step functions was up to 55 % behind on other rows
    (docs/evidence/choice.md). Weights between classes under ODIR are what naive Bayes and discriminants need; without a
    floor a few labels that the scores exclude cost more than they gain (up to half of the loss on digits).
    """
    curves = [EnsembleTemperatureScaling(), GaussianProcessCalibration(), StructuredScaling("vector")]
    floor = FlooredTemperature()  # holds every class off zero, in what the matrix sees or in what it answers
    odir = [Chain([floor, DirichletCalibration("odir")]), Chain([DirichletCalibration("odir"), floor])]
    smooth, steps = [*curves, StructuredScaling(), *odir], [_irm(), _irova(), _bbq()]
    return Mixture([*smooth, *steps], weights="likely", cv=5, handicaps=(*[0.0] * len(smooth), *STEPS.values()))


_ENTRIES = [
    Entry("identity", Identity, "leaves the scores alone", ""),
    Entry("uniform", Uniform, "1/K for every class", ""),
    Entry("ts", TemperatureScaling, "one temperature", "Guo et al. 2017"),
    Entry("ets", EnsembleTemperatureScaling, "temperature, identity and uniform, mixed", "Zhang et al. 2020, Eq. 5"),
    Entry("bts", BinwiseTemperatureScaling, "a temperature for each range of the top confidence", "Ji et al. 2019"),
    Entry("iop", OrderPreservingScaling, "a rising curve through log p, exact in the ranking", "Rahimi et al. 2020"),
    Entry("gp", GaussianProcessCalibration, "a latent Gaussian process through log p", "Wenger et al. 2020"),
    Entry("platt", _each(PlattScaling), "a sigmoid for each class", "Platt 1999"),
    Entry("platt-s", _shared(PlattScaling), "one sigmoid for all classes", "Patel et al. 2021"),
    Entry("beta", _each(BetaCalibration), "a three-parameter sigmoid a class", "Kull et al. 2017"),
    Entry("beta-s", _shared(BetaCalibration), "one three-parameter sigmoid for all", "Patel et al. 2021"),
    Entry("quadratic", _each(QuadraticScaling), "a sigmoid with one more bend a class", "CalArena 2026"),
    Entry("logit-spline", _each(LogitSpline), "a smooth rising curve of log-odds a class", "Lucena 2018"),
    Entry("isotonic-s", _shared(Isotonic), "one step function for all classes", "Patel et al. 2021"),
    Entry("spline", _each(SplineCalibration), "slope of a cumulative curve, a class", "Gupta et al. 2021"),
    Entry("irova", _irova, "isotonic: a step function for each class", "Zadrozny & Elkan 2002"),
    Entry("isotonic-centred", _each(CentredIsotonic), "isotonic without ties, a class", "Oron & Flournoy 2017"),
    Entry("venn-abers", _each(VennAbers), "two isotonic answers a class, merged", "Vovk et al. 2015"),
    Entry("irm", _irm, "one strictly isotonic map for all", "Zhang 2020, §3.3.2"),
    Entry("irova-ts", _after(TemperatureScaling, _irova), "ts, then irova", "Zhang et al. 2020"),
    Entry("irova-ets", _after(EnsembleTemperatureScaling, _irova), "ets, then irova", ""),
    Entry("irm-ts", _after(TemperatureScaling, _irm), "ts, then irm", "Zhang et al. 2020"),
    Entry("hb-width", _each(Binning, "equal_width"), "equal-width bins, by class", "Zadrozny & Elkan 2001"),
    Entry("hb-width-s", _shared(Binning, "equal_width"), "equal-width bins for all classes", "Patel et al. 2021"),
    Entry("hb-mass", _each(Binning), "bins of equal mass, by class", "Zadrozny & Elkan 2001"),
    Entry("hb-mass-s", _shared(Binning), "bins of equal mass for all classes", "Patel et al. 2021"),
    Entry("bbq", _bbq, "an average of equal-mass binnings", "Naeini et al. 2015"),
    Entry(
        "scaling-binning",
        _each(_lent, "equal_mass", TemperatureScaling),
        "hb-mass with ts' answers",
        "Kumar et al. 2019",
    ),
    Entry("imax", _shared(Binning, "imax"), "I-Max bins for all classes", "Patel et al. 2021"),
    Entry("imax-cw", _each(Binning, "imax"), "I-Max bins, by class", "Patel et al. 2021"),
    Entry("imax-ts", _shared(_lent, "imax", TemperatureScaling), "imax with ts' answers", "Patel et al. 2021"),
    Entry("imax-gp", _shared(_lent, "imax", GaussianProcessCalibration), "imax with gp's answers", "Patel et al. 2021"),
    Entry("imax-platt", _shared(_lent, "imax", PlattScaling), "imax with Platt's answers", "Patel et al. 2021"),
    Entry("imax-beta", _shared(_lent, "imax", BetaCalibration), "imax with beta's answers", "Patel et al. 2021"),
    Entry("imax-isotonic", _shared(_lent, "imax", Isotonic), "imax with isotonic answers", "Patel et al. 2021"),
    Entry("mi-binning", _shared(Binning, "mi"), "bins of greatest mutual information", "Patel et al. 2021, Eq. 2"),
    Entry("svs", partial(StructuredScaling, "vector"), "vector scaling, strengths by evidence", "Berta et al. 2026"),
    Entry("sms", StructuredScaling, "matrix scaling, strengths by evidence", "Berta et al. 2026"),
    Entry("blend", _blend, "several maps, mixed by their losses on held-out rows", "Yao et al. 2018, §3.4"),
    Entry("vector", VectorScaling, "a slope and an intercept a class", "Guo et al. 2017"),
    Entry("matrix", MatrixScaling, "a full matrix and intercepts", "Guo et al. 2017"),
    Entry("matrix-odir", partial(MatrixScaling, "odir"), "off-diagonals and intercepts penalised", "Kull et al. 2019"),
    Entry("dirichlet", DirichletCalibration, "matrix scaling of log-probabilities", "Kull et al. 2019"),
    Entry(
        "dirichlet-odir",
        partial(DirichletCalibration, "odir"),
        "off-diagonals and intercepts penalised",
        "Kull et al. 2019",
    ),
    Entry("kcal", KCal, "kernel density on learnt projections of embeddings", "KCal (paper 001)"),
    Entry("kcal-linear", partial(KCal, "linear"), "kcal with a linear projection", "KCal (paper 001), App. D"),
    Entry("kcal-logits", partial(KCal, inputs="logits"), "kcal on the logits", "KCal (paper 001), App. E"),
    Entry("hoki", Hoki, "confidence from label changes under noise on the logits", "Hoki (paper 004)"),
]
_BY_NAME = {entry.name: entry for entry in _ENTRIES}
_ALIASES = {"isotonic": "irova"}  # other names that `make` takes
# What other libraries and people call some of them.
_ELSEWHERE = {
    "sigmoid": "platt",
    "logistic": "platt",
    "temperature": "ts",
    "temperature_scaling": "ts",
    "histogram": "hb-width",
    "histogram_binning": "hb-width",
    "binning": "hb-mass",
    "vector_scaling": "vector",
    "matrix_scaling": "matrix",
    "none": "identity",
}


def names() -> list[str]:
    """Return the registered names, in the order of the docs."""
    return list(_BY_NAME)


def entries() -> list[Entry]:
    """Return the registered maps, in the order of the docs."""
    return list(_ENTRIES)


def make(name: str, **parameters: Any) -> Calibrator:
    """Make a fresh map by its registered name; ``"a > b"`` chains two, ``"a + b"`` mixes them, ``"auto"`` chooses one.

    Parameters that the named map itself does not have are handed to the pieces inside it that do, so
    ``make("irm", smoothing=0)`` reaches the isotonic fit within the lift.

    Examples
    --------
    >>> make("ts", loss="brier")
    TemperatureScaling(loss='brier')
    """
    if not isinstance(name, str):
        raise InvalidInput("a map is made by its name", seen=repr(name)[:80], allowed='a word, such as "ets"')
    if ">" in name:
        parts = [make(part.strip()) for part in name.split(">")]
        embedded = parts[0].traits.needs == "embeddings"
        made: Calibrator = Chain(parts, inputs="embeddings" if embedded else "logits")
    elif "+" in name:
        made = Mixture([make(part.strip()) for part in name.split("+")])
    elif _ALIASES.get(name, name) in _BY_NAME:
        made = _BY_NAME[_ALIASES.get(name, name)].build()
    elif name == "auto":
        made = import_module(".selection", __package__).AutoCalibrator()  # which knows of the registry itself
    else:
        near = [_ELSEWHERE[name.lower()]] if name.lower() in _ELSEWHERE else get_close_matches(name, _BY_NAME, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise InvalidInput("no map has this name", seen=repr(name), allowed=", ".join(_BY_NAME), hint=hint)
    for key, value in parameters.items():
        _hand_over(made, name, key, value)
    made._made_as = name
    return made


def make_seeded(name: str, random_state: int, **parameters: Any) -> Calibrator:
    """Make a map as `make` does, with the seed wherever it has randomness and no other was given."""
    made = make(name, **parameters)
    random = [path for path in made.get_params(deep=True) if path.rsplit("__", 1)[-1] == "random_state"]
    if random and "random_state" not in parameters:
        made.set_params(**dict.fromkeys(random, random_state))
    return made


def _hand_over(made: Calibrator, name: str, key: str, value: Any) -> None:
    known = made.get_params(deep=True)
    if key in known:
        made.set_params(**{key: value})
        return
    inside = [path for path in known if path.endswith("__" + key)]
    if not inside:
        own = sorted({path.rsplit("__", 1)[-1] for path in known})
        raise InvalidInput(f"{name} has no parameter {key}", allowed=", ".join(own))
    made.set_params(**dict.fromkeys(inside, value))
