"""A file is an input: what it says of a map is checked against the map's own table before the map is used."""

import copy
import json
import warnings

import numpy as np
import pytest

import calibrant
from calibrant import registry
from calibrant.calibrator import Calibrator
from calibrant.errors import CalibrantError, FileProblem, InvalidInput
from calibrant.files.container import pack, unpack
from calibrant.files.saving import to_bytes
from calibrant.invariants import Fitted, Numbers, Optional, Values, check_state

Z = np.random.default_rng(0).normal(size=(60, 3)) * 2
Y = np.where(np.random.default_rng(1).random(60) < 0.6, Z.argmax(axis=1), np.random.default_rng(2).integers(0, 3, 60))


@pytest.fixture(scope="module")
def files():
    """The file of each registered map."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: to_bytes(calibrant.make(name).fit(Z, Y)) for name in registry.names()}


def read(tmp_path, data):
    path = tmp_path / "map.calibrant"
    path.write_bytes(data)
    return calibrant.load(path)


def maps_in(value):
    """The fitted maps inside a value, itself included."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from maps_in(item)
    elif isinstance(value, Calibrator) and hasattr(value, "fit_report_"):
        yield value
        for item in list(vars(value).values()):
            yield from maps_in(item)


@pytest.mark.parametrize("name", registry.names())
def test_every_fitted_attribute_is_declared(files, tmp_path, name):
    for fitted in maps_in(read(tmp_path, files[name])):
        table = type(fitted)._state
        assert table is not None, f"{type(fitted).__name__} declares no _state: see calibrant/invariants.py"
        set_by_fit = {key for key in vars(fitted) if key.endswith("_") and not key.startswith("_")}
        assert set_by_fit <= {*table, *fitted._state_of_all}, f"{type(fitted).__name__}._state lacks an attribute"


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("seed", [0, 1])
def test_a_forged_file_is_refused_or_answers_distributions(files, tmp_path, name, seed):
    rng = np.random.default_rng(seed)
    document, tensors = unpack(files[name], "")
    for key, bad in [(key, bad) for key in tensors for bad in (np.nan, np.inf, -5.0, 7.0, 1e300, "short", "turned")]:
        if len(tensors) > 12 and rng.random() > 12 / len(tensors):
            continue
        forged = {k: v.copy() for k, v in tensors.items()}
        array = forged[key]
        if isinstance(bad, str):
            forged[key] = array[..., :-1].copy() if bad == "short" else array[..., ::-1].copy()
        elif array.size and (array.dtype.kind == "f" or np.isfinite(bad)):
            with np.errstate(all="ignore"):
                array.flat[rng.integers(array.size)] = np.asarray(bad).astype(array.dtype)
        try:
            fitted = read(tmp_path, pack(document, forged))
            p = fitted.predict_proba(Z)
        except CalibrantError:
            continue
        assert np.isfinite(p).all(), (key, bad)
        assert (p >= 0).all(), (key, bad)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)


def forged(data, change):
    document, tensors = unpack(data, "")
    document = copy.deepcopy(document)
    change(document["calibrator"]["map"])
    return pack(json.loads(json.dumps(document)), tensors)


def test_maps_ten_thousand_deep_are_refused(files, tmp_path):
    document, tensors = unpack(files["ts"], "")
    deep = json.dumps(document["calibrator"])
    deep = '{"tuple": [' * 10_000 + deep + "]}" * 10_000
    text = json.dumps({**document, "calibrator": 0}).replace('"calibrator": 0', f'"calibrator": {deep}')
    with pytest.raises(FileProblem):
        read(tmp_path, _packed(text, tensors))


def test_chains_two_hundred_deep_are_refused(files, tmp_path):
    document, tensors = unpack(files["ts > irova"] if "ts > irova" in files else files["irova-ts"], "")
    tree = document["calibrator"]
    for _ in range(200):
        tree = {"map": {**tree["map"], "state": {**tree["map"]["state"], "parts_": [copy.copy(tree)]}}}
    with pytest.raises(FileProblem, match="deeper"):
        read(tmp_path, pack({**document, "calibrator": tree}, tensors))


def _packed(text, tensors):
    from calibrant.files import container

    return container.pack_tensors(
        dict(tensors), metadata={"calibrant": text, "sha256": container._digest(text, tensors)}
    )


def test_an_array_of_text_cannot_ask_for_more_memory_than_its_file(files, tmp_path):
    names = ["x" * 200_000, *(f"c{i}" for i in range(20_000))]
    wide = {"objects": names, "shape": [len(names)], "dtype": "<U200000"}
    with pytest.raises(FileProblem, match="memory"):
        read(tmp_path, forged(files["identity"], lambda m: m["state"].update(classes_=wide)))


@pytest.mark.parametrize("name", ["os:system", "builtins:eval", "calibrant.errors:FileProblem", "no-such", ["ts"], 3])
def test_other_classes_are_refused(files, tmp_path, name):
    with pytest.raises(FileProblem):
        read(tmp_path, forged(files["ts"], lambda m: m.update({"class": name})))


@pytest.mark.parametrize("columns", [10**12, 2**70, -1, 0, "three", 2.5, None])
def test_senseless_numbers_of_columns_are_refused(files, tmp_path, columns):
    for name in ("ts", "kcal"):
        with pytest.raises(FileProblem):
            read(tmp_path, forged(files[name], lambda m: m["state"].update(n_features_in_=columns)))


def test_an_attribute_that_the_class_does_not_have_is_refused(files, tmp_path):
    with pytest.raises(FileProblem, match="no such attribute"):
        read(tmp_path, forged(files["ts"], lambda m: m["state"].update(weights_=3.0)))


def test_a_missing_attribute_is_refused(files, tmp_path):
    with pytest.raises(FileProblem, match="missing"):
        read(tmp_path, forged(files["ts"], lambda m: m["state"].pop("temperature_")))


def test_a_number_of_rows_that_is_missing_is_refused(files, tmp_path):
    with pytest.raises(FileProblem, match="how many rows"):
        read(tmp_path, forged(files["ts"], lambda m: m["state"].pop("n_samples_")))


@pytest.mark.parametrize("name", ["irova", "irova-ets", "imax"])
def test_parts_that_are_not_fitted_are_refused(files, tmp_path, name):
    def change(tree):
        parts = tree["state"].get("maps_") or tree["state"]["parts_"]
        parts[-1]["map"]["state"] = {}

    with pytest.raises(FileProblem, match="not fitted"):
        read(tmp_path, forged(files[name], change))


def test_parameters_of_parts_are_checked(files, tmp_path):
    def change(tree):
        tree["state"]["maps_"][0]["map"]["parameters"]["epsilon"] = 7.0

    with pytest.raises(FileProblem, match="epsilon"):
        read(tmp_path, forged(files["irova"], change))


def test_a_report_that_is_none_is_refused(files, tmp_path):
    def change(tree):
        tree["state"]["fit_report_"]["report"]["loss_before"] = "low"

    with pytest.raises(FileProblem, match="loss_before"):
        read(tmp_path, forged(files["ts"], change))


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (Values("n", order="rising"), np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0])),
        (Values("n", order="falling"), np.array([1.0, 0.0]), np.array([0.0, 1.0])),
        (Values("n", low=0, total=1), np.array([0.5, 0.5]), np.array([0.5, 0.6])),
        (Values("n", finite=False), np.array([-np.inf, 0.0]), np.array([np.nan])),
        (Values("n"), np.array([1.0]), np.array([np.inf])),
        (Values("n", kind="i", low=0, below="K"), np.array([0, 2]), np.array([3])),
        (Values("n", kind="i"), np.array([1]), np.array([1.0])),
        (Values("n", kind="i"), np.array([1], dtype=np.int32), np.array([1], dtype=np.int16)),
        (Values("n", kind="i"), np.array([1]), np.array([1], dtype=np.uint64)),
        (Values("n"), np.array([1.0], dtype=np.float32), np.array([1.0], dtype=np.float16)),
        (Values("K", "K+1"), np.zeros((3, 4)), np.zeros((3, 3))),
        (Values(3), np.zeros(3), [0.0, 0.0, 0.0]),
        (Values("n", kind="b"), np.array([True]), np.array([1])),
        (Numbers(2), (1.0, 2), (1.0,)),
        (Optional(Values(3)), None, np.zeros(2)),
    ],
)
def test_checks(check, good, bad):
    assert check.wrong(good, {"K": 3}) == ""
    assert check.wrong(bad, {"K": 3})


def test_sizes_are_learnt_once():
    sizes = {"K": 3}
    assert not Values("bins").wrong(np.zeros(5), sizes)
    assert not Values("bins-1").wrong(np.zeros(4), sizes)
    assert Values("bins-1").wrong(np.zeros(5), sizes)


def test_parts_must_have_as_many_classes():
    two = calibrant.make("ts").fit(Z[:, :2], Y % 2)
    assert Fitted("parts").wrong([two], {"K": 3})
    assert not Fitted("parts").wrong([two], {"K": 2})


def test_the_table_of_a_class_is_what_is_checked():
    fitted = calibrant.make("ts").fit(Z, Y)
    check_state(fitted)
    fitted.temperature_ = float("nan")
    with pytest.raises(InvalidInput, match="temperature_"):
        check_state(fitted)


def test_every_class_that_a_file_can_name_declares_its_state():
    def below(kind):
        for other in kind.__subclasses__():
            yield other
            yield from below(other)

    ours = [
        kind for kind in below(Calibrator) if kind.__module__.startswith("calibrant.") and "_identifier" in vars(kind)
    ]
    assert len(ours) > 20
    assert [kind.__name__ for kind in ours if kind._state is None] == []


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("effects_", lambda a: a[:, :-1]),
        ("effects_", lambda a: a * np.nan),
        ("centre_", lambda a: a[:1]),
        ("effective_", lambda a: a - 1),
        ("names_", lambda a: a[:1]),
    ],
)
def test_groups_that_contradict_themselves_are_refused(tmp_path, key, change):
    fitted = calibrant.ByGroup(calibrant.make("ts")).fit(Z, Y, groups=np.arange(60) % 3)
    setattr(fitted, key, change(getattr(fitted, key)))
    with pytest.raises(CalibrantError, match="ByGroup"):
        read(tmp_path, to_bytes(fitted))


def test_numbers_of_a_report_are_numbers_that_can_be_told(files, tmp_path):
    for name, value in (("loss_after", 2**70), ("iterations", 2**63)):
        document, tensors = unpack(files["ts"], "")
        document["calibrator"]["map"]["state"]["fit_report_"]["report"][name] = value
        with pytest.raises(FileProblem, match=name):
            read(tmp_path, pack(document, tensors))
    document["calibrator"]["map"]["state"]["fit_report_"] = None
    with pytest.raises(FileProblem, match="no fitted calibrator"):
        read(tmp_path, pack(document, tensors))


def test_an_interval_that_ends_before_it_begins_is_refused(tmp_path):
    document, tensors = unpack(to_bytes(calibrant.VennAbers().fit(Z[:, :2], Z[:, 1] > Z[:, 0] + 0.1)), "")
    state = document["calibrator"]["map"]["state"]
    state["lower_"], state["upper_"] = state["upper_"], state["lower_"]
    with pytest.raises(FileProblem, match="above upper_"):
        read(tmp_path, pack(document, tensors))


def test_classes_are_finite(files, tmp_path):
    document, tensors = unpack(files["ts"], "")
    document["calibrator"]["map"]["state"]["classes_"] = {
        "objects": [0, 1, {"float": "inf"}],
        "shape": [3],
        "dtype": "O",
    }
    with pytest.raises(FileProblem, match="classes_"):
        read(tmp_path, pack(document, tensors))


def test_what_zeros_are_read_as_is_one_of_two(files, tmp_path):
    with pytest.raises(InvalidInput, match="saturated"):
        calibrant.make("ts", saturated="exakt").fit(Z, Y)
    document, tensors = unpack(files["ts"], "")
    document["calibrator"]["map"]["parameters"]["saturated"] = []
    with pytest.raises(FileProblem, match="saturated"):
        read(tmp_path, pack(document, tensors))


def test_classes_are_an_array():
    """Found by a fuzzer: a list loaded, and could not be asked for the classes of several rows."""
    fitted = calibrant.make("ts").fit(Z, Y)
    check_state(fitted)
    fitted.classes_ = fitted.classes_.tolist()
    with pytest.raises(CalibrantError, match="array"):
        check_state(fitted)


def test_a_place_of_zeros_that_is_no_number_is_refused_but_for_embeddings(files, tmp_path):
    def spoil(of_map):
        of_map["state"]["zero_"] = {"float": "nan"}

    with pytest.raises(CalibrantError, match="zero_"):
        read(tmp_path, forged(files["ts"], spoil))
    assert np.isnan(read(tmp_path, forged(files["kcal"], spoil)).zero_)


@pytest.mark.parametrize("name", ["uniform", "ts"])
def test_a_map_of_one_class_is_refused(files, tmp_path, name):
    """Found by a fuzzer: a map without parameters of its own answered one column of ones."""
    one = {"objects": ["only"], "shape": [1], "dtype": "O"}
    with pytest.raises(FileProblem, match="at least two classes"):
        read(tmp_path, forged(files[name], lambda m: m["state"].update(classes_=one, n_features_in_=1)))
