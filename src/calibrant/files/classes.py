"""The classes a saved file may name: calibrators that this process has already imported, and nothing else.

A class of calibrant declares the name that files know it by, ``_identifier = "temperature-scaling"``, which stays when
its module or the class is renamed. A map of a user's own that declares none goes by "module:qualname".
"""

from __future__ import annotations

from ..errors import FileProblem, InvalidInput

_KNOWN: dict[str, type] = {}

# Files of 0.1.0 name classes by the modules they lived in.
_NAMES_OF_0_1_0 = {
    "calibrant.maps.binary.bayesian_binning:BayesianBinning": "bayesian-binning",
    "calibrant.maps.binary.beta:BetaCalibration": "beta-calibration",
    "calibrant.maps.binary.binning:Binning": "binning",
    "calibrant.maps.binary.isotonic:Isotonic": "isotonic",
    "calibrant.maps.binary.platt:PlattScaling": "platt-scaling",
    "calibrant.maps.binary.spline:SplineCalibration": "spline-calibration",
    "calibrant.maps.binary.two_class:TwoClassMap": "two-class-map",
    "calibrant.maps.kernel:KCal": "kcal",
    "calibrant.maps.perturbation:Hoki": "hoki",
    "calibrant.maps.scaling._structured_base:FlooredTemperature": "floored-temperature",
    "calibrant.maps.scaling._structured_part:StructuredPart": "structured-part",
    "calibrant.maps.scaling.binwise:BinwiseTemperatureScaling": "binwise-temperature-scaling",
    "calibrant.maps.scaling.dirichlet:DirichletCalibration": "dirichlet-calibration",
    "calibrant.maps.scaling.ensemble:EnsembleTemperatureScaling": "ensemble-temperature-scaling",
    "calibrant.maps.scaling.gaussian_process:GaussianProcessCalibration": "gaussian-process-calibration",
    "calibrant.maps.scaling.matrix:MatrixScaling": "matrix-scaling",
    "calibrant.maps.scaling.order_preserving:OrderPreservingScaling": "order-preserving-scaling",
    "calibrant.maps.scaling.structured:StructuredScaling": "structured-scaling",
    "calibrant.maps.scaling.temperature:TemperatureScaling": "temperature-scaling",
    "calibrant.maps.scaling.trivial:Identity": "identity",
    "calibrant.maps.scaling.trivial:Uniform": "uniform",
    "calibrant.maps.scaling.vector:VectorScaling": "vector-scaling",
    "calibrant.operators.chain:Chain": "chain",
    "calibrant.operators.mixture:Mixture": "mixture",
    "calibrant.operators.one_vs_rest:OneVsRest": "one-vs-rest",
    "calibrant.selection.auto:AutoCalibrator": "auto-calibrator",
}


def identifier_of(cls: type) -> str:
    """Return the name under which files know a class: the one it declares itself, or where it lives."""
    return cls.__dict__.get("_identifier") or _place(cls)


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def remember(cls: type) -> None:
    """Let files name this class; `Calibrator` calls it for every subclass as it is defined.

    Defining a class again, as a notebook does, replaces it; another class of the same identifier is refused.
    """
    identifier = identifier_of(cls)
    other = _KNOWN.get(identifier, cls)
    if _place(other) != _place(cls):
        raise InvalidInput(
            f"two classes have the identifier {identifier!r}",
            seen=f"{_place(other)} and {_place(cls)}",
            hint="give one of them another _identifier",
        )
    _KNOWN[identifier] = cls


def is_known(cls: type) -> bool:
    """Tell whether objects of exactly this class can be saved."""
    return _KNOWN.get(identifier_of(cls)) is cls


def find_class(name: str) -> type:
    """Return the class of this identifier; a name from a file never imports anything."""
    identifier = _NAMES_OF_0_1_0.get(name, name)
    if identifier in _KNOWN:
        return _KNOWN[identifier]
    module, colon, _ = identifier.partition(":")
    if not colon or module.split(".")[0] == "calibrant":
        hint = "the file comes from another version of calibrant: upgrade, or fit the map again"
    else:
        hint = f"it is a map of your own: import {module} before loading"
    raise FileProblem("the file names a calibrator that is not known here", seen=repr(name[:200]), hint=hint)
