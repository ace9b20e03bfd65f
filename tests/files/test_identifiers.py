"""What a file calls a class, and that files outlive modules and versions."""

import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import overconfident

import calibrant.loading
from calibrant import Calibrator, make
from calibrant.errors import CalibrationWarning, FileProblem, InvalidInput
from calibrant.files.classes import _KNOWN, find_class, identifier_of, is_known
from calibrant.files.container import pack, unpack
from calibrant.files.saving import read_document
from calibrant.fits.report import FitReport
from calibrant.traits import Traits

_OLD_ZEROS = Path(__file__).with_name("zeros-0.1.0.npz")  # what 0.1.0 answered to logits of -inf


def _old_files(shared_data: Path) -> list[Path]:
    found = sorted((shared_data / "saved-0.1.0").glob("*.calibrant"))
    assert len(found) > 40
    return found


def test_every_old_file_answers_as_it_did(shared_data: Path) -> None:
    answers = np.load(shared_data / "saved-0.1.0" / "answers.npz")
    zeros = np.load(_OLD_ZEROS)
    for path in _old_files(shared_data):
        kind = "binary" if path.stem.startswith("binary") else "logits"
        kind = "embeddings" if path.stem in ("kcal", "kcal-linear") else kind
        loaded = calibrant.load(path)
        np.testing.assert_allclose(
            loaded.predict_proba(answers[kind]), answers[f"p:{path.stem}"], rtol=0, atol=1e-5, err_msg=path.stem
        )
        if path.stem in zeros:
            np.testing.assert_allclose(
                loaded.predict_proba(zeros["logits"]), zeros[path.stem], rtol=0, atol=1e-5, err_msg=path.stem
            )


def test_an_old_file_saved_again_answers_the_same(shared_data: Path, tmp_path: Path) -> None:
    zeros = np.load(_OLD_ZEROS)
    for path in _old_files(shared_data):
        loaded = calibrant.load(path)
        loaded.save(tmp_path / "again")
        assert "calibrant." not in str(read_document(tmp_path / "again")["calibrator"])
        if path.stem in zeros:
            again = calibrant.load(tmp_path / "again").predict_proba(zeros["logits"])
            assert again.tobytes() == loaded.predict_proba(zeros["logits"]).tobytes()


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


def test_old_names_are_those_of_classes_of_today() -> None:
    from calibrant import loading

    assert loading  # it imports every map
    for old, identifier in _NAMES_OF_0_1_0.items():
        assert find_class(old) is find_class(identifier)


def test_classes_of_calibrant_that_can_be_fitted_have_an_identifier() -> None:
    from calibrant import loading

    assert loading  # it imports every map
    own = [cls for cls in _KNOWN.values() if cls.__module__.startswith("calibrant.")]
    nameless = {cls.__name__ for cls in own if ":" in identifier_of(cls)}
    bases = {base.__name__ for cls in own for base in cls.__mro__[1:]}
    assert nameless <= bases
    assert len(own) - len(nameless) > 20


def _map_class(name: str, **members: Any) -> Any:
    def fit(self: Any, data: Any) -> FitReport:
        self.value_ = 0.25
        return FitReport(0, True, "nll", 1.0, 1.0, 1.0, 1.0, 0.0)

    def answer(self: Any, logits: Any) -> Any:
        return np.full_like(logits, 1 / logits.shape[1])

    common = {"_traits": Traits("scaling", "ranking", "full", "0"), "_fit": fit, "_map": answer}
    return type(name, (calibrant.Identity,), {"__module__": __name__, **common, **members})


def test_two_classes_of_one_identifier_are_refused() -> None:
    first = _map_class("First", _identifier="test-of-two")
    with pytest.raises(InvalidInput, match="two classes have the identifier 'test-of-two'"):
        _map_class("Second", _identifier="test-of-two")
    assert find_class("test-of-two") is first
    with pytest.raises(InvalidInput, match="temperature-scaling"):
        _map_class("Usurper", _identifier="temperature-scaling")
    assert find_class("temperature-scaling") is calibrant.TemperatureScaling


def test_a_class_defined_again_takes_the_place_of_the_first() -> None:
    first = _map_class("Again", _identifier="test-of-again")
    second = _map_class("Again", _identifier="test-of-again")
    assert find_class("test-of-again") is second
    assert is_known(second)
    assert not is_known(first)


def test_a_subclass_has_a_name_of_its_own(tmp_path: Path) -> None:
    child = _map_class("Child")  # of Identity, whose identifier it must not take
    z, y = overconfident(40, 3)
    child().fit(z, y).save(tmp_path / "m")
    assert read_document(tmp_path / "m")["calibrator"]["map"]["class"] == f"{__name__}:Child"
    assert type(calibrant.load(tmp_path / "m")) is child


def test_an_unknown_identifier_asks_for_an_upgrade(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="upgrade"):
        find_class("map-of-the-future")
    with pytest.raises(FileProblem, match="import somewhere before loading"):
        find_class("somewhere:Else")


def test_a_class_turns_what_earlier_versions_wrote_into_its_own(tmp_path: Path) -> None:
    z, y = overconfident(40, 3)
    _map_class("Changing")().fit(z, y).save(tmp_path / "m")

    def upgraded(cls: Any, state: dict[str, Any]) -> dict[str, Any]:
        state["values_"] = [state.pop("value_")]
        return state

    changed = _map_class("Changing", _upgraded_state=classmethod(upgraded))
    loaded = calibrant.load(tmp_path / "m")
    assert type(loaded) is changed
    assert loaded.values_ == [0.25]  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(loaded, "value_")


_OWN = """
import numpy as np
from calibrant import Calibrator
from calibrant.fits.report import FitReport
from calibrant.traits import Traits

class Tilt(Calibrator):
    _identifier = "acme-tilt"
    _traits = Traits("scaling", "ranking", "full", "1")
    def __init__(self, *, inputs="logits", classes=None, saturated="small"):
        self.inputs, self.classes, self.saturated = inputs, classes, saturated
    def _fit_rows(self, sample):
        self.share_ = 0.125
        return FitReport(0, True, "nll", 1.0, 1.0, 1.0, 1.0, 0.0)
    def _map(self, logits):
        p = np.full_like(logits, (1 - self.share_) / (logits.shape[1] - 1))
        p[:, 0] = self.share_
        return p
"""


def _run(directory: Path, *lines: str) -> str:
    code = "\n".join(["import sys", f"sys.path.insert(0, {str(directory)!r})", "import calibrant", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_outlives_the_move_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text(_OWN)
    path = str(tmp_path / "m")
    _run(tmp_path, "from here import Tilt", f"Tilt().fit([[1.0, 0.0], [0.0, 2.0]], [0, 1]).save({path!r})")
    (tmp_path / "there").mkdir()
    (tmp_path / "here.py").rename(tmp_path / "there" / "moved.py")
    load = f"print(calibrant.load({path!r}).predict_proba([[1.0, 0.0]])[0, 0])"
    assert _run(tmp_path, "import there.moved", load) == "0.125"


def test_a_file_outlives_the_move_of_one_of_our_own_modules(tmp_path: Path) -> None:
    z, y = overconfident(60, 3)
    fitted = make("ts > hoki")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted.fit(z, y).save(tmp_path / "m")
    package = tmp_path / "calibrant"
    shutil.copytree(Path(calibrant.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for core in _compiled_core():
        if not (package / core.name).exists():
            shutil.copy(core, package)
    (package / "maps" / "perturbation.py").rename(package / "maps" / "noise.py")
    for source in package.rglob("*.py"):
        text = source.read_text()
        source.write_text(text.replace("maps.perturbation", "maps.noise"))
    np.save(tmp_path / "z.npy", z)
    answer = _run(
        tmp_path,
        # an editable installation puts a finder of its own before the path
        "from importlib.machinery import PathFinder",
        "for name in [n for n in sys.modules if n.split('.')[0] == 'calibrant']: del sys.modules[name]",
        "sys.meta_path[:] = [f for f in sys.meta_path if f is PathFinder or 'calibrant' not in str(f).lower()]",
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in type(f).__module__.lower()]",
        "import calibrant, numpy as np",
        f"assert calibrant.__file__.startswith({str(tmp_path)!r}), calibrant.__file__",
        f"loaded = calibrant.load({str(tmp_path / 'm')!r})",
        "assert type(loaded.parts_[1]).__module__ == 'calibrant.maps.noise'",
        f"print(loaded.predict_proba(np.load({str(tmp_path / 'z.npy')!r})).tobytes().hex())",
    )
    assert bytes.fromhex(answer) == fitted.predict_proba(z).tobytes()


def _compiled_core() -> list[Path]:
    from calibrant import _core

    return [Path(str(_core.__file__))]


def test_a_file_of_the_first_format_may_name_modules(tmp_path: Path) -> None:
    z, y = overconfident(60, 3)
    fitted: Calibrator = make("ts").fit(z, y)
    fitted.save(tmp_path / "m")
    document, tensors = unpack((tmp_path / "m").read_bytes(), "m")
    assert document["format"] == 2
    document["format"] = 1
    document["calibrator"]["map"]["class"] = "calibrant.maps.scaling.temperature:TemperatureScaling"
    (tmp_path / "m").write_bytes(pack(document, tensors))
    assert calibrant.load(tmp_path / "m").predict_proba(z).tobytes() == fitted.predict_proba(z).tobytes()


FRESH = """
import importlib, pkgutil
import calibrant, calibrant.loading
from calibrant.files import classes
known = set(classes._KNOWN)
for module in pkgutil.walk_packages(calibrant.__path__, "calibrant."):
    if "__main__" not in module.name and not module.name.startswith(("calibrant.torch", "calibrant.cli")):
        importlib.import_module(module.name)
print(*{name for name, cls in classes._KNOWN.items() if "_identifier" in vars(cls)} - known)
"""


def test_a_fresh_process_knows_every_class_that_a_file_may_name():
    found = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_operators_load_in_a_fresh_process(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3)) * 2
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    groups = np.arange(300) % 2
    made = [
        calibrant.ByGroup(calibrant.make("ts")).fit(z, y, groups=groups),
        calibrant.Multicalibrated(calibrant.make("ts")).fit(z, y, groups=groups),
        calibrant.MultiLabel(calibrant.PlattScaling()).fit(z, np.eye(3, dtype=int)[y]),
        calibrant.TopLabel(calibrant.PlattScaling()).fit(z, y),
        calibrant.PriorShift(calibrant.make("ts")).fit(z, y),
    ]
    for number, fitted in enumerate(made):
        fitted.save(tmp_path / f"{number}.calibrant")
    code = "import calibrant, sys; print(*(type(calibrant.load(path)).__name__ for path in sys.argv[1:]))"
    paths = [str(tmp_path / f"{number}.calibrant") for number in range(len(made))]
    for given in (paths, *([path] for path in paths)):  # alone too: one class may bring another
        found = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, check=True)
        assert found.stdout.split() == [type(made[paths.index(path)]).__name__ for path in given]
