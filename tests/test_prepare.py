"""From rows to a data set: which rows are used, what labels may be, where duplicates go, what is scaled by what."""

import re
import warnings

import numpy as np
import pytest
from tiny_models import MOLECULES, made_up_values

from graphattn.data.split import Split
from graphattn.errors import (
    GraphattnWarning,
    MoleculeError,
    SettingError,
    ShapeError,
    SplitError,
    TableError,
    TrainingError,
)
from graphattn.predict import Target
from graphattn.prepare import prepare_rows

NAN = np.nan
Y = [Target("y")]


def prepare(molecules, labels, **settings):
    labels = np.asarray(labels, dtype=float).reshape(len(molecules), -1)
    targets = [Target(name) for name in ("y", "z", "w")[: labels.shape[1]]]
    return prepare_rows(list(molecules), labels, targets, **settings)


def test_unreadable_and_unlabeled_rows_are_left_out_counted_and_named():
    molecules = ["CCO", "C1CC", *MOLECULES[5:], "", "CC"]
    labels = [1.0, 2.0, *made_up_values()[5:, 0], 3.0, NAN]
    with pytest.warns(GraphattnWarning, match="left out") as caught:
        prepared = prepare(molecules, labels)
    assert str(caught[0].message) == (
        "3 of 19 rows left out (1 unreadable, 1 empty, 1 unlabeled): row 2 'C1CC', row 18 '', row 19 'CC'"
    )
    assert prepared.kept == (0, *range(2, 17))
    assert prepared.left_out == {"unreadable": 1, "empty": 1, "unlabeled": 1}
    assert len(prepared.dataset) == 16
    assert sum(map(len, prepared.parts.values())) == 16


def test_strict_raises_for_the_first_row_that_is_no_molecule():
    with pytest.raises(MoleculeError, match="row 2 of 3: 'C1CC' is unreadable"):
        prepare(["CCO", "C1CC", "CC"], [1, 2, 3], strict=True)


def test_the_warning_names_three_rows_and_counts_the_others():
    with pytest.warns(GraphattnWarning, match=r"5 of 25 rows left out \(5 empty\): .*row 23 '' and 2 more$"):
        prepare([*MOLECULES, "", "", "", "", ""], [*made_up_values()[:, 0], 1, 2, 3, 4, 5])


def test_rows_with_some_of_their_labels_are_used():
    labels = np.hstack([made_up_values(), made_up_values()])
    labels[0] = (1, NAN)
    labels[1] = (NAN, 2)
    prepared = prepare(MOLECULES, labels)
    assert prepared.kept == tuple(range(len(MOLECULES)))
    np.testing.assert_array_equal(prepared.dataset.targets.numpy(), labels)


@pytest.mark.parametrize(
    ("labels", "task", "reason"),
    [
        ([0, 1, 1, NAN], "binary", "every label is 0 or 1"),
        ([0, 1, 2, NAN], "regression", "labels other than 0 and 1"),
        ([0.5, 1, 0, NAN], "regression", "labels other than 0 and 1"),
    ],
)
def test_the_task_follows_from_the_labels_and_is_said(labels, task, reason):
    split = Split((0, 1), (2,), ())
    with pytest.warns(GraphattnWarning, match="1 unlabeled"):
        prepared = prepare(["C", "CC", "CCC", "CCCC"], labels, split=split)
    assert (prepared.task, prepared.task_reason) == (task, reason)
    assert (prepared.scaler is None) == (task == "binary")
    with pytest.warns(GraphattnWarning, match="1 unlabeled"):
        asked = prepare(["C", "CC", "CCC", "CCCC"], labels, split=split, task="regression")
    assert (asked.task, asked.task_reason) == ("regression", "as asked")


def test_labels_that_cannot_be_are_refused_by_row_and_name():
    molecules = ["C", "CC", "CCC"]
    with pytest.raises(TableError, match=r"^row 3 of 3: target 'y' is 2; wanted 0 or 1, as in every binary target"):
        prepare(molecules, [0, 1, 2], task="binary")
    with pytest.raises(TableError, match=r"^row 2 of 3: target 'y' is inf; wanted a finite number"):
        prepare(molecules, [0, np.inf, 2])
    with pytest.raises(TableError, match=r"^line 7: target 'y' is -inf"):
        prepare(molecules, [0, -np.inf, 2], name_row=lambda row: f"line {row + 6}")


def test_sizes_that_do_not_belong_together_are_refused():
    with pytest.raises(ShapeError, match=re.escape("labels have shape (3, 1); 2 molecules and 1 targets need (2, 1)")):
        prepare_rows(["C", "CC"], np.zeros((3, 1)), Y)
    with pytest.raises(ShapeError, match="the split has 1 marks for 3 rows; give one mark per row"):
        prepare(["C", "CC", "CCC"], [1, 2, 3], split=["train"])


def test_a_table_without_one_usable_row_is_refused():
    wanted = "none of the 3 rows can be used: 1 are readable molecules, none of which has a label"
    with pytest.raises(TableError, match=wanted):
        prepare(["C", "", "C1"], [NAN, 2, 3])


def test_a_target_without_a_value_is_refused_by_name():
    labels = np.hstack([made_up_values(), np.full((len(MOLECULES), 1), NAN)])
    with pytest.raises(TrainingError, match="no training row has a value for 'z'"):
        prepare(MOLECULES, labels)


def test_a_constant_target_is_kept_with_a_warning_that_names_it():
    labels = np.hstack([made_up_values(), np.full((len(MOLECULES), 1), 7.0)])
    with pytest.warns(GraphattnWarning, match="target 'z' has the same value, 7, in all"):
        prepared = prepare(MOLECULES, labels)
    assert (prepared.scaler.mean[1], prepared.scaler.std[1]) == (7, 0)


def test_a_binary_target_needs_both_classes_in_the_training_part():
    wanted = (
        "target 'y' is 0 in all 2 labeled training rows; a binary target needs both classes there: "
        "leave it out, or split otherwise"
    )
    split = Split((0, 1), (2,), ())
    with pytest.raises(TrainingError, match=f"^{wanted}$"):
        prepare(["C", "CC", "CCC"], [0, 0, 1], split=split, task="binary")
    with pytest.raises(
        TrainingError, match=f"^{wanted}; or ask for task regression, if its values are amounts and not"
    ):
        prepare(["C", "CC", "CCC"], [0, 0, 1], split=split)


def test_duplicates_stay_together_and_their_conflict_is_named():
    molecules = ["CCO", "OCC", "C(O)C", *MOLECULES[5:]]
    labels = [1, 1, 9, *made_up_values()[5:, 0]]
    for seed in range(5):
        with pytest.warns(GraphattnWarning, match="occur more than once") as caught:
            prepared = prepare(molecules, labels, seed=seed)
        parts = {name for name, rows in prepared.parts.items() if set(rows) & {0, 1, 2}}
        assert len(parts) == 1
        assert prepared.conflicts == 1
    assert "1 molecules occur more than once with different labels: CCO (rows 1, 2, 3)" in str(caught[0].message)


def test_duplicates_that_agree_or_lack_a_label_are_no_conflict():
    labels = np.hstack([made_up_values(), made_up_values()])
    labels[1] = labels[0] = (3, NAN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = prepare(["CCO", "OCC", *MOLECULES[3:], "CCCCCC"], labels)
    assert prepared.conflicts == 0


@pytest.mark.parametrize("split", ["random", "scaffold"])
def test_splits_by_name_use_every_row_once(split):
    prepared = prepare(MOLECULES, made_up_values(), split=split, acyclic="apart" if split == "scaffold" else "together")
    assert sorted(row for rows in prepared.parts.values() for row in rows) == list(range(len(MOLECULES)))
    assert all(len(rows) for rows in prepared.parts.values())


def test_marks_and_positions_decide_the_parts_of_the_rows_given():
    marks = ["train"] * 15 + ["val"] * 3 + ["test"] * 3
    molecules = ["", *MOLECULES]  # the first row is left out, so positions in the data set differ from rows given
    labels = [0, *made_up_values()[:, 0]]
    with pytest.warns(GraphattnWarning, match="1 of 21 rows left out"):
        by_marks = prepare(molecules, labels, split=marks)
    positions = Split(tuple(range(15)), (15, 16, 17), (18, 19, 20))
    with pytest.warns(GraphattnWarning, match="1 of 21 rows left out"):
        by_positions = prepare(molecules, labels, split=positions)
    for prepared in (by_marks, by_positions):
        assert {name: [prepared.kept[row] for row in rows] for name, rows in prepared.parts.items()} == {
            "train": list(range(1, 15)),
            "valid": [15, 16, 17],
            "test": [18, 19, 20],
        }


def test_a_wrong_mark_is_refused_by_the_row_that_was_given():
    marks = ["train", "train", "val", "oops", "test"]
    with (
        pytest.warns(GraphattnWarning, match="2 of 5 rows left out"),
        pytest.raises(
            SplitError, match=r"^row 4 of 5 is marked 'oops' in the split column; mark every row with one of"
        ),
    ):
        prepare(["", "C", "C1", "CC", "CCC"], [1, 2, 3, 4, 5], split=marks)


@pytest.mark.parametrize("split", ["random", ["train"] * 20, Split((0, 1), (2,), ())])
def test_acyclic_without_a_scaffold_split_is_refused(split):
    with pytest.raises(SettingError, match="acyclic 'apart' is for a scaffold split, and this is another one"):
        prepare(MOLECULES, made_up_values(), split=split, acyclic="apart")


def test_a_split_of_another_name_is_refused():
    with pytest.raises(SplitError, match=r"split must be 'random', 'scaffold', .* got 'stratified'"):
        prepare(MOLECULES, made_up_values(), split="stratified")


def test_the_scale_comes_from_the_training_part_alone():
    labels = np.array([[1e6, 1e-3], [3e6, 3e-3], [9e9, 9e9], [-9e9, -9e9]])
    prepared = prepare(["C", "CC", "CCC", "CCCC"], labels, split=Split((0, 1), (2,), (3,)))
    np.testing.assert_allclose(prepared.scaler.mean, (2e6, 2e-3))
    np.testing.assert_allclose(prepared.scaler.std, (1e6, 1e-3))
