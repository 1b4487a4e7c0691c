"""Saved predictors: the same answers, no code, and versions compared first."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge

from calipers.conformal import (
    ConformalClassifier,
    ConformalRegressor,
    TransductiveKNNClassifier,
    load_predictor,
    persistence,
    raps,
    save_predictor,
)
from calipers.difficulty import DifficultyBins
from calipers.exceptions import DegradedResultWarning, InputError

pytest.importorskip("skops", reason="skops is not installed")
X, Y = load_iris(return_X_y=True)
PREDICTORS = {
    "lac": ConformalClassifier(calibration_size=0.4, random_state=0),
    "raps by label": ConformalClassifier(
        calibration_size=0.4, random_state=0, label_conditional=True, nonconformity=partial(raps, penalty=0.1)
    ),
    "regression": ConformalRegressor(Ridge(), calibration_size=0.4, random_state=0),
    "full": TransductiveKNNClassifier(),
}


def saved(tmp_path, predictor):
    path = tmp_path / "predictor.skops"
    save_predictor(predictor, path)
    return path


def rewrite_note(path, **versions):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["calipers.json"] = json.dumps(json.loads(members["calipers.json"]) | versions).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_loaded_predictor_gives_the_same_answers(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = PREDICTORS[name].fit(X, Y)
    again = load_predictor(saved(tmp_path, predictor))
    method = "predict_set" if hasattr(predictor, "predict_set") else "predict_interval"
    np.testing.assert_array_equal(getattr(again, method)(X[::7]), getattr(predictor, method)(X[::7]))
    assert [path.name for path in tmp_path.iterdir()] == ["predictor.skops"]


def test_a_predictor_by_distances_is_saved_too(tmp_path):
    inside = np.abs(X[:, :1] - X[:, 0])
    predictor = TransductiveKNNClassifier(metric="precomputed").fit(inside, Y)
    again = load_predictor(saved(tmp_path, predictor))
    np.testing.assert_array_equal(again.predict_set(inside[::7]), predictor.predict_set(inside[::7]))


def test_a_type_that_is_not_trusted_is_refused_until_it_is_named(tmp_path):
    forest = RandomForestClassifier(3, random_state=0)
    path = saved(tmp_path, ConformalClassifier(forest, calibration_size=0.4, random_state=0).fit(X, Y))
    with pytest.raises(
        InputError, match=r"not trusted: sklearn.tree._tree.Tree. Do not load it unless you know"
    ):
        load_predictor(path)
    assert load_predictor(path, trusted=["sklearn.tree._tree.Tree"]).predict_set(X[:2]).shape == (2, 3)


class Planted:
    def __reduce__(self):
        return (open, ("planted", "w"))


def test_a_pickle_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "predictor.skops"
    path.write_bytes(pickle.dumps(Planted()))
    with pytest.raises(
        InputError, match="was not written by save_predictor. Pickle and joblib files are never read"
    ):
        load_predictor(path)
    assert not (tmp_path / "planted").exists()


def test_a_file_of_another_series_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    rewrite_note(path, calipers="97.0.0")
    monkeypatch.setattr(persistence, "_skops", lambda: pytest.fail("the file was opened"))
    with pytest.raises(InputError, match="was written by calipers 97.0.0, this is .*Fit it again"):
        load_predictor(path)


def doctored(path, *, checksum=True, **members):
    """The same archive with some members replaced, or left out where None, and its checksum made to match."""
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()} | members
    if checksum and "calipers.json" not in members:
        with zipfile.ZipFile(io.BytesIO(), "w") as copy:
            for name, content in kept.items():
                if content is not None:
                    copy.writestr(name, content)
            digest = persistence.digest_of(copy)
        kept["calipers.json"] = json.dumps(json.loads(kept["calipers.json"]) | {"sha256": digest}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in kept.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def first_array(path):
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".npy"))
        return name, archive.read(name)


def schema_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("schema.json"))


@pytest.mark.parametrize("schema", [None, b"{", b"{}", b"[]"], ids=["gone", "broken", "empty", "list"])
def test_a_damaged_description_is_named(schema, tmp_path):
    path = doctored(saved(tmp_path, PREDICTORS["lac"].fit(X, Y)), **{"schema.json": schema})
    with pytest.raises(
        InputError, match=r"predictor.skops is damaged or was changed .* Save the predictor again"
    ):
        load_predictor(path)


@pytest.mark.parametrize("length", [None, 20], ids=["gone", "cut"])
def test_a_damaged_array_is_named(length, tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    name, content = first_array(path)
    doctored(path, **{name: None if length is None else content[:length]})
    with pytest.raises(InputError, match="is damaged or was changed after save_predictor wrote it"):
        load_predictor(path)


@pytest.mark.parametrize("note", [b"[1]", b"null", b"3"])
def test_a_note_that_is_no_note_is_refused(note, tmp_path):
    path = doctored(saved(tmp_path, PREDICTORS["lac"].fit(X, Y)), **{"calipers.json": note})
    with pytest.raises(InputError, match="was not written by save_predictor"):
        load_predictor(path)


def test_a_file_of_a_later_skops_is_refused_with_its_reason(tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    doctored(path, **{"schema.json": json.dumps(schema_of(path) | {"protocol": 99}).encode()})
    with pytest.raises(InputError, match=r"ValueError: The file was saved with skops protocol 99"):
        load_predictor(path)


# scikit-learn misses its own version in the doctored file
@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")
def test_a_class_of_another_package_in_the_place_of_ours_is_refused(tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    text = json.dumps(schema_of(path))
    for module, name, sentence in (
        ("os", "system", "holds types that are not trusted: os.system. Do not load it unless"),
        (
            "sklearn.linear_model._logistic",
            "LogisticRegression",
            "does not hold a Calipers predictor but a Logistic",
        ),
    ):
        changed = text.replace('"ConformalClassifier"', f'"{name}"')
        changed = changed.replace("calipers.conformal.classifier", module)
        doctored(path, **{"schema.json": changed.encode()})
        with pytest.raises(InputError, match=sentence):
            load_predictor(path)


def test_a_score_that_writes_files_is_not_trusted(tmp_path):
    harmless = ConformalClassifier(nonconformity=partial(save_predictor, path=str(tmp_path / "target")))
    path = saved(tmp_path, harmless)
    with pytest.raises(InputError, match=r"not trusted: calipers.conformal.persistence.save_predictor"):
        load_predictor(path)


def test_another_scikit_learn_is_told(tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    rewrite_note(path, **{"scikit-learn": "0.0.1"})
    with pytest.warns(DegradedResultWarning, match="was written with scikit-learn 0.0.1"):
        load_predictor(path)


@pytest.mark.parametrize(("version", "series"), [("0.1.3", ("0", "1")), ("2.4.0", ("2",))])
def test_files_stay_readable_within_a_series(version, series):
    assert persistence._series(version) == series


def test_a_name_borrowed_through_one_of_our_modules_is_not_ours():
    assert persistence._is_ours("calipers.conformal.classifier.ConformalClassifier")
    assert not persistence._is_ours("calipers.conformal.persistence.import_optional")
    assert not persistence._is_ours("calipers.conformal.no_such.Thing")
    assert not persistence._is_ours("calipers.conformal.persistence.save_predictor")
    assert not persistence._is_ours("os.system")


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ({"nonconformity": lambda P: 1 - P}, "<lambda>"),
        ({"groups": DifficultyBins(n_bins=2, random_state=0)}, "a method of the model"),
    ],
)
def test_a_part_that_is_no_data_is_refused_and_leaves_no_file(option, part, tmp_path):
    predictor = ConformalClassifier(calibration_size=0.4, random_state=0, **option).fit(X, Y)
    with pytest.raises(InputError, match=f"has a part that cannot be written as data: .*{part}"):
        save_predictor(predictor, tmp_path / "predictor.skops")
    assert list(tmp_path.iterdir()) == []


def scaled_scores(path, factor):
    """The archive with its stored calibration scores multiplied."""
    with zipfile.ZipFile(path) as archive:
        arrays = {
            name: np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    name, scores = next((n, a) for n, a in arrays.items() if a.ndim == 1 and a.size and np.isnan(a[-1]))
    file = io.BytesIO()
    np.save(file, scores * factor)
    return {name: file.getvalue()}


def test_scores_that_changed_by_accident_are_seen(tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    doctored(path, checksum=False, **scaled_scores(path, 0.1))
    with pytest.raises(InputError, match="damaged or was changed .* does not match its checksum"):
        load_predictor(path)


def test_scores_out_of_order_are_refused_even_with_a_checksum(tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    doctored(path, **scaled_scores(path, -1.0))
    with pytest.raises(InputError, match="the calibration scores are not in order"):
        load_predictor(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_calibration_", 7),
        ("n_calibration_", "many"),
        ("classes_", [0, 1, 2]),
        ("estimator_", 3),
        ("calibration_", None),
        ("n_features_in_", -1),
        ("grouping_", 5),
        ("draw_seed_", 1.5),
    ],
)
def test_a_part_that_no_fit_leaves_is_refused(name, value, tmp_path):
    predictor = clone(PREDICTORS["lac"]).fit(X, Y)
    setattr(predictor, name, value)
    with pytest.raises(InputError, match="is damaged or was changed"):
        load_predictor(saved(tmp_path, predictor))


@pytest.mark.parametrize("name", ["nonconformity", "classes_", "estimator_", "draw_seed_"])
def test_a_part_that_is_missing_is_named(name, tmp_path):
    predictor = clone(PREDICTORS["lac"]).fit(X, Y)
    delattr(predictor, name)
    with pytest.raises(InputError, match=f"lacks (the setting )?'{name}'"):
        load_predictor(saved(tmp_path, predictor))


def test_a_file_without_a_checksum_is_read_with_a_warning(tmp_path):
    path = saved(tmp_path, PREDICTORS["lac"].fit(X, Y))
    with zipfile.ZipFile(path) as archive:
        note = json.loads(archive.read("calipers.json"))
    del note["sha256"]
    doctored(path, **{"calipers.json": json.dumps(note).encode()})
    with pytest.warns(DegradedResultWarning, match="has no checksum"):
        load_predictor(path)
