"""The scikit-learn estimators: shapes as fitted, labels as given, and at home in scikit-learn's own tools."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from tiny_models import MOLECULES, made_up_values, tiny_predictor

import graphattn as ga
from graphattn.errors import GraphattnWarning, ModelFolderError, MoleculeError, SettingError, ShapeError, TableError
from graphattn.estimators import MoleculeClassifier, MoleculeRegressor
from graphattn.model.config import NetworkConfig
from graphattn.training.config import TrainingConfig

SMALL = {"channels": 8, "layers": 1, "heads": 2, "epochs": 2, "accelerator": "cpu", "random_state": 0}
LENGTHS = made_up_values()[:, 0]
LONG = LENGTHS > 6


@pytest.fixture(scope="module")
def regressor():
    return MoleculeRegressor(**SMALL).fit(list(MOLECULES), LENGTHS)


@pytest.fixture(scope="module")
def classifier():
    return MoleculeClassifier(**SMALL).fit(list(MOLECULES), np.where(LONG, "long", "brief"))


def test_the_defaults_are_those_of_the_settings():
    parameters = MoleculeRegressor().get_params()
    for config in (NetworkConfig(), TrainingConfig()):
        for name in parameters.keys() & vars(config).keys():
            assert parameters[name] == getattr(config, name)
    assert set(vars(NetworkConfig())) <= set(parameters)


@pytest.mark.parametrize("kind", [MoleculeRegressor, MoleculeClassifier])
def test_a_clone_has_the_same_settings_and_is_not_fitted(kind):
    model = kind(**SMALL, stereo=False)
    copy = clone(model.fit(list(MOLECULES), LONG))
    assert copy.get_params() == model.get_params()
    for use in (copy.predict, copy.save):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(["CCO"])


@pytest.mark.parametrize(
    "molecules",
    [
        list(MOLECULES),
        tuple(MOLECULES),
        np.array(MOLECULES),
        pd.Series(MOLECULES, index=range(100, 100 + len(MOLECULES))),
        pd.DataFrame({"smiles": MOLECULES}),
        np.array(MOLECULES, dtype=object)[:, None],
        [Chem.MolFromSmiles(smiles) for smiles in MOLECULES],
    ],
    ids=["list", "tuple", "array", "series", "data frame", "column", "Mol"],
)
def test_molecules_come_in_any_container(regressor, molecules):
    again = MoleculeRegressor(**SMALL).fit(molecules, pd.Series(LENGTHS, name="length"))
    assert np.array_equal(again.predict(molecules), regressor.predict(list(MOLECULES)))
    assert again.predictor_.targets[0].name == "length"


def test_predictions_have_the_shape_of_y(regressor):
    assert regressor.predict(["CCO"]).shape == (1,)
    both = pd.DataFrame({"length": LENGTHS, "half": LENGTHS / 2})
    both.iloc[0, 0] = both.iloc[1, 1] = np.nan
    model = MoleculeRegressor(**SMALL).fit(MOLECULES, both)
    assert model.predict(["CCO", "C"]).shape == (2, 2)
    assert [target.name for target in model.predictor_.targets] == ["length", "half"]
    column = MoleculeRegressor(**SMALL).fit(MOLECULES, LENGTHS[:, None])
    assert column.predict(["CCO", "C"]).shape == (2, 1)


def test_bad_rows_are_nan_with_one_warning_that_counts_and_names_them(regressor):
    with pytest.warns(GraphattnWarning) as caught:
        values = regressor.predict(["CCO", "C1CC", None, "C"])
    assert [str(warning.message) for warning in caught] == [
        "2 of 4 rows have no prediction (NaN) (1 unreadable, 1 not-a-string): row 2 'C1CC', row 3 None"
    ]
    assert caught[0].filename == __file__
    assert np.isnan(values).tolist() == [False, True, True, False]
    with pytest.raises(MoleculeError, match="row 2 of 2: 'C1CC' is unreadable"):
        regressor.predict(["CCO", "C1CC"], strict=True)


def test_bad_rows_are_left_out_of_fitting_with_a_warning_or_raise():
    molecules, values = [*MOLECULES, "C1CC"], [*LENGTHS, 4.0]
    with pytest.warns(GraphattnWarning, match=r"1 of 21 rows left out \(1 unreadable\): row 21 'C1CC'"):
        MoleculeRegressor(**SMALL).fit(molecules, values)
    with pytest.raises(MoleculeError, match="row 21 of 21: 'C1CC' is unreadable"):
        MoleculeRegressor(**SMALL).fit(molecules, values, strict=True)


def test_input_that_does_not_fit_is_refused(regressor):
    with pytest.raises(ShapeError, match="X is 'CCO'; pass a list of molecules, also for a single one"):
        regressor.predict("CCO")
    with pytest.raises(ShapeError, match=re.escape("X has shape (2, 3); pass one molecule per row")):
        regressor.predict(np.full((2, 3), "C"))
    with pytest.raises(ShapeError, match=re.escape("y has shape (1,); 2 molecules need (rows,) or (rows, targets)")):
        MoleculeRegressor(**SMALL).fit(["C", "CC"], [1.0])
    with pytest.raises(TableError, match="row 1 of 2: target 'y' is 'tall', which cannot be read as a number"):
        MoleculeRegressor(**SMALL).fit(["C", "CC"], ["tall", "short"])
    with pytest.raises(
        TableError, match=re.escape("target 'y' has 3 classes (1, 2, 3); a binary target needs exactly")
    ):
        MoleculeClassifier(**SMALL).fit(["C", "CC", "CCC"], [1, 2, 3])
    with pytest.raises(TableError, match=re.escape("target 'y' has 0 classes (none)")):
        MoleculeClassifier(**SMALL).fit(["C", "CC"], [np.nan, None])
    with pytest.raises(SettingError, match=re.escape("validation_fraction must be in (0, 1), got 1.5")):
        MoleculeRegressor(**SMALL, validation_fraction=1.5).fit(["C", "CC"], [1, 2])
    with pytest.raises(ShapeError, match="X has no rows; a model needs molecules to learn from"):
        MoleculeRegressor(**SMALL).fit([], [])
    with pytest.raises(SettingError, match="must be a multiple of heads"):
        MoleculeRegressor(**SMALL | {"heads": 3}).fit(list(MOLECULES), LENGTHS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ensemble": 1.5}, "ensemble must be a whole number, got 1.5"),
        ({"ensemble": True}, "ensemble must be a whole number, got True"),
        ({"ensemble": 0}, "ensemble must be at least 1, got 0"),
        ({"random_state": -1}, "random_state must be an int from 0 to 4294967295, a numpy.random.RandomState or None"),
        ({"random_state": 2**32}, "or None, got 4294967296"),
        ({"random_state": "seven"}, "or None, got 'seven'"),
        ({"random_state": True}, "or None, got True"),
        ({"validation_fraction": "half"}, "validation_fraction must be in (0, 1), got 'half'"),
        ({"stereo": "no"}, "stereo must be True or False, got 'no'"),
        ({"stereo": np.array([True, False])}, "stereo must be True or False, got array([ True, False])"),
        ({"self_loops": np.array([True])}, "self_loops must be True or False, got array([ True])"),
        ({"hydrogens": np.array(["add", "keep"])}, "hydrogens must be one of implicit, keep, add, got array(["),
        ({"channels": 2**15}, "channels must be between 1 and 16384, got 32768"),
        ({"layers": 1001}, "layers must be between 1 and 1000, got 1001"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        MoleculeRegressor(**SMALL | settings).fit(list(MOLECULES), LENGTHS)


def test_a_constant_target_is_predicted_exactly_also_when_loaded(tmp_path):
    y = np.column_stack([np.full(len(LENGTHS), 0.1), LENGTHS])
    with pytest.warns(GraphattnWarning, match="target 'y0' has the same value, 0.1, in all 18 training rows"):
        model = MoleculeRegressor(**SMALL, ensemble=3).fit(MOLECULES, y)
    for each in (model, loaded_again(model, tmp_path / "model")):
        values = each.predict(["CCO", "C", "CCCCCCCC"])
        assert (values[:, 0] == 0.1).all()
        assert len(set(values[:, 1])) == 3


def test_an_ensemble_may_be_a_number_of_numpy():
    assert len(MoleculeRegressor(**SMALL, ensemble=np.int64(2)).fit(MOLECULES, LENGTHS).predictor_.networks) == 2


def test_classes_are_the_labels_given(classifier):
    assert classifier.classes_.tolist() == ["brief", "long"]
    probabilities = classifier.predict_proba(MOLECULES)
    assert probabilities.shape == (len(MOLECULES), 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    expected = classifier.classes_[probabilities.argmax(1)]
    assert classifier.predict(MOLECULES).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("labels", "classes", "dtype_with_bad_row"),
    [(LONG, [False, True], float), (LONG * 2 - 1, [-1, 1], float), (np.where(LONG, "b", "a"), ["a", "b"], object)],
    ids=["bool", "int", "str"],
)
def test_a_class_keeps_its_type_until_a_row_has_none(labels, classes, dtype_with_bad_row):
    model = MoleculeClassifier(**SMALL).fit(MOLECULES, labels)
    assert model.classes_.tolist() == classes
    assert model.predict(MOLECULES).dtype == labels.dtype
    with pytest.warns(GraphattnWarning, match="1 of 2 rows have no prediction"):
        predicted = model.predict(["CCO", ""])
    assert predicted.dtype == dtype_with_bad_row
    assert predicted[1] != predicted[1]  # NaN
    with pytest.warns(GraphattnWarning, match="1 of 2 rows have no prediction"):
        assert np.isnan(model.predict_proba(["CCO", ""])[1]).all()


def test_several_classes_follow_scikit_learns_convention():
    labels = np.column_stack([LONG, LENGTHS % 2]).astype(float)
    labels[0, 0] = np.nan
    model = MoleculeClassifier(**SMALL).fit(MOLECULES, labels)
    assert [classes.tolist() for classes in model.classes_] == [[0, 1], [0, 1]]
    assert [probabilities.shape for probabilities in model.predict_proba(["C", "CC", "CO"])] == [(3, 2), (3, 2)]
    assert model.predict(["C", "CC", "CO"]).shape == (3, 2)


def test_the_seed_decides_and_none_asks_numpy():
    def predicted(random_state):
        settings = SMALL | {"random_state": random_state}
        return MoleculeRegressor(**settings).fit(MOLECULES, LENGTHS).predict(MOLECULES).tolist()

    assert predicted(0) == predicted(np.int64(0))
    assert predicted(0) != predicted(1)
    assert predicted(np.random.RandomState(3)) == predicted(np.random.RandomState(3))
    assert predicted(None) != predicted(None)


def test_history_is_a_table(regressor):
    history = pd.DataFrame(regressor.history_)
    assert history[["member", "epoch"]].to_numpy().tolist() == [[0, 1], [0, 2]]
    assert {"train_loss", "valid_loss", "learning_rate", "seconds"} <= set(history.columns)


def test_nothing_is_printed_unless_verbose(capfd):
    MoleculeRegressor(**SMALL).fit(MOLECULES, LENGTHS).predict(["CCO"])
    assert capfd.readouterr() == ("", "")
    MoleculeRegressor(**SMALL, verbose=True, ensemble=2).fit(MOLECULES, LENGTHS)
    assert "network 2 of 2: epoch 2/2" in capfd.readouterr().err


def test_cross_validation_grid_search_and_pipeline():
    scores = cross_val_score(MoleculeRegressor(**SMALL), list(MOLECULES), LENGTHS, cv=2, error_score="raise")
    assert np.isfinite(scores).all()
    accuracy = cross_val_score(MoleculeClassifier(**SMALL), list(MOLECULES), LONG, cv=2, error_score="raise")
    assert ((accuracy >= 0) & (accuracy <= 1)).all()
    strip = FunctionTransformer(lambda smiles: [text.strip() for text in smiles])
    pipeline = Pipeline([("strip", strip), ("model", MoleculeRegressor(**SMALL))])
    search = GridSearchCV(pipeline, {"model__layers": [1, 2]}, cv=2, error_score="raise")
    search.fit([f" {smiles} " for smiles in MOLECULES], LENGTHS)
    assert search.best_estimator_.predict([" CCO "]).shape == (1,)


@pytest.mark.parametrize(("kind", "y"), [(MoleculeRegressor, LENGTHS), (MoleculeClassifier, LONG)])
def test_scores_are_those_of_the_readable_rows_with_one_warning_of_the_others(kind, y):
    model = kind(**SMALL).fit(MOLECULES, y)
    weight = np.arange(1.0, len(y) + 1)
    wanted = [super(kind, model).score(list(MOLECULES), y, each) for each in (None, weight)]  # scikit-learn's own
    assert [model.score(MOLECULES, y), model.score(MOLECULES, y, weight)] == pytest.approx(wanted)
    dirty = ["C1CC", *MOLECULES, None]
    labels, weights = (np.concatenate([each[:1], each, each[:1]]) for each in (y, weight))
    with pytest.warns(GraphattnWarning) as caught:
        found = [model.score(dirty, labels.tolist()), model.score(dirty, labels, sample_weight=pd.Series(weights))]
    assert found == pytest.approx(wanted)
    assert [str(warning.message) for warning in caught] == [
        "2 of 22 rows have no prediction (NaN) (1 unreadable, 1 not-a-string): row 1 'C1CC', row 22 None"
    ] * 2
    assert {warning.filename for warning in caught} == {__file__}


def test_a_score_of_several_targets_is_the_mean_of_theirs():
    y = np.column_stack([LENGTHS, LENGTHS % 3])
    model = MoleculeRegressor(**SMALL).fit(MOLECULES, y)
    with pytest.warns(GraphattnWarning, match="1 of 21 rows have no prediction"):
        found = model.score([*MOLECULES, ""], np.vstack([y, y[:1]]))
    assert found == pytest.approx(r2_score(y, model.predict(MOLECULES)))


@pytest.mark.parametrize(("kind", "y"), [(MoleculeRegressor, LENGTHS), (MoleculeClassifier, LONG)])
@pytest.mark.filterwarnings("ignore:1 of 11 rows:graphattn.GraphattnWarning")
def test_cross_validation_leaves_unreadable_rows_out(kind, y):
    molecules, labels = [*MOLECULES[:5], "C1CC", *MOLECULES[5:], "C1CC"], np.insert(y, [5, len(y)], y[5])
    scores = cross_val_score(kind(**SMALL), molecules, labels, cv=2, error_score="raise")
    assert np.isfinite(scores).all()


def test_what_cannot_be_scored_is_refused(regressor):
    nothing = pytest.raises(MoleculeError, match="none of 2 rows is a molecule, so there is nothing to score")
    with nothing, pytest.warns(GraphattnWarning, match="2 of 2 rows"):
        regressor.score(["C1CC", ""], [1, 2])
    with pytest.raises(ShapeError, match=re.escape("got values of shape (3,) to score 2 molecules with")):
        regressor.score(["C", "CC"], [1, 2, 3])


@pytest.mark.parametrize("name", ["regressor", "classifier"])
def test_saved_and_loaded_it_is_the_same_estimator(name, request, tmp_path):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert np.array_equal(loaded.predict(MOLECULES), model.predict(MOLECULES))
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_


def loaded_again(model, folder):
    model.save(folder)
    return type(model).load(folder)


@pytest.mark.parametrize("y", [LENGTHS, LENGTHS[:, None], np.column_stack([LENGTHS, LENGTHS])], ids=np.shape)
def test_a_loaded_model_knows_the_shape_of_y_and_the_validation_fraction(y, tmp_path):
    model = MoleculeRegressor(**SMALL, validation_fraction=np.float32(0.25)).fit(MOLECULES, y)
    loaded = loaded_again(model, tmp_path / "model")
    assert loaded.predict(["C"]).shape == model.predict(["C"]).shape == (1, *y.shape[1:])
    assert loaded.validation_fraction == 0.25


def test_a_loaded_classifier_knows_the_shape_of_y(tmp_path):
    loaded = loaded_again(MoleculeClassifier(**SMALL).fit(MOLECULES, LONG[:, None]), tmp_path / "model")
    assert loaded.predict(["C"]).shape == (1, 1)
    assert [classes.tolist() for classes in loaded.classes_] == [[False, True]]


@pytest.mark.parametrize("single", [True, False], ids=["one target", "two targets"])
def test_a_model_that_does_not_say_the_shape_of_y_still_loads(single, tmp_path):
    """As folders of before, and those of the command line."""
    predictor = MoleculeRegressor(**SMALL).fit(MOLECULES, LENGTHS).predictor_ if single else tiny_predictor()
    own = {"flat_y", "validation_fraction"}
    training = {name: value for name, value in predictor.summary.training.items() if name not in own}
    ga.save_model(replace(predictor, summary=replace(predictor.summary, training=training)), tmp_path / "model")
    loaded = MoleculeRegressor.load(tmp_path / "model")
    assert loaded.predict(["C"]).shape == ((1,) if single else (1, 2))
    assert loaded.validation_fraction == MoleculeRegressor().validation_fraction


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LONG, [False, True]),
        (list(np.where(LONG, np.int8(7), np.int8(-7))), [-7, 7]),
        (np.where(LONG, 0.5, -0.5).astype(np.float32), [-0.5, 0.5]),
        ([np.str_("b" if long else "a") for long in LONG], ["a", "b"]),
        (pd.Series(np.where(LONG, "b", "a"), dtype="category"), ["a", "b"]),
        ([1 if long else 2.5 for long in LONG], [1.0, 2.5]),
    ],
    ids=["bool", "int8", "float32", "np.str_", "category", "int and float"],
)
def test_classes_are_sorted_and_survive_saving(labels, classes, tmp_path):
    model = MoleculeClassifier(**SMALL).fit(MOLECULES, labels)
    loaded = loaded_again(model, tmp_path / "model")
    for each in (model, loaded):
        assert each.classes_.tolist() == classes
        assert each.classes_.dtype.kind == np.array(classes).dtype.kind
    assert np.array_equal(loaded.predict(MOLECULES), model.predict(MOLECULES))


def test_a_model_of_the_other_kind_is_refused_with_the_right_name(regressor, classifier, tmp_path):
    regressor.save(tmp_path / "values")
    classifier.save(tmp_path / "classes")
    with pytest.raises(
        ModelFolderError, match=r"values holds a regression model; .* graphattn\.MoleculeRegressor\.load"
    ):
        MoleculeClassifier.load(tmp_path / "values")
    with pytest.raises(
        ModelFolderError, match=r"classes holds a classification model; .* graphattn\.MoleculeClassifier\.load"
    ):
        MoleculeRegressor.load(tmp_path / "classes")


def test_both_are_public_names():
    assert ga.MoleculeRegressor is MoleculeRegressor
    assert ga.MoleculeClassifier is MoleculeClassifier
