"""Splits: every row in one part, whole groups, the same for the same seed, and scaffolds as OGB splits them."""

import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from shared_data import shared_file

from graphattn.data.split import PARTS, Split, column_split, random_split, scaffold_split
from graphattn.data.table import read_table
from graphattn.errors import SettingError, SplitError
from graphattn.featurize.identity import canonical_smiles


def parts_of(split):
    return {part: list(getattr(split, part)) for part in PARTS}


def assert_partition(split, rows):
    """Every row is in exactly one part."""
    assert sorted(row for part in parts_of(split).values() for row in part) == sorted(rows)


def assert_groups_whole(split, groups):
    """No key has rows in two parts."""
    sides = defaultdict(set)
    for part, rows in parts_of(split).items():
        for row in rows:
            sides[groups[row]].add(part)
    assert [key for key, found in sides.items() if len(found) > 1] == []


# ---------------------------------------------------------------- random


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("rows", [10, 642, 1128, 4200])
def test_distinct_molecules_split_as_the_plain_permutation(rows, seed):
    """The protocol of published comparisons: 80 / 10 / 10 of numpy's permutation."""
    order = np.random.default_rng(seed).permutation(rows)
    train_end, valid_end = int(0.8 * rows), int(0.9 * rows)
    wanted = Split(order[:train_end], order[train_end:valid_end], order[valid_end:])
    assert random_split([f"molecule {row}" for row in range(rows)], seed=seed) == wanted


def test_the_seed_decides():
    """Case D17."""
    groups = list(range(100))
    assert random_split(groups, seed=3) == random_split(groups, seed=3)
    assert random_split(groups, seed=3) != random_split(groups, seed=4)


def test_spellings_of_one_molecule_stay_together():
    """Case D12, among other molecules."""
    smiles = ["CCO", "OCC", "C(O)C", "CC", "CCC", "c1ccccc1", "CN", "CCN", "CF", "CCl"]
    groups = [canonical_smiles(one) for one in smiles]
    for seed in range(20):
        split = random_split(groups, seed=seed)
        assert_partition(split, range(10))
        assert_groups_whole(split, groups)


def test_one_molecule_cannot_be_split():
    """Case D12, alone."""
    groups = [canonical_smiles(smiles) for smiles in ("CCO", "OCC", "C(O)C")]
    words = "3 rows of 1 different molecules cannot fill train and valid and test, one at least in each; give more"
    with pytest.raises(SplitError, match=re.escape(words)):
        random_split(groups, seed=0)


GROUPS = st.lists(st.none() | st.integers(0, 12), max_size=60)
FRACTIONS = st.sampled_from(
    [(0.8, 0.1, 0.1), (0.5, 0.25, 0.25), (0.9, 0.1, 0.0), (0.1, 0.1, 0.8), (0.7, 0.0, 0.3), (1.0, 0.0, 0.0)]
)


@settings(deadline=None, max_examples=200)
@given(groups=GROUPS, fractions=FRACTIONS, seed=st.integers(0, 5))
def test_a_random_split_is_a_partition_of_whole_groups(groups, fractions, seed):
    wanted = [part for part, share in zip(PARTS, fractions, strict=True) if share]
    if len(set(groups) - {None}) < len(wanted):
        with pytest.raises(SplitError, match=f"cannot fill {' and '.join(wanted)}, one at least in each"):
            random_split(groups, fractions, seed=seed)
        return
    split = random_split(groups, fractions, seed=seed)
    assert_partition(split, [row for row, key in enumerate(groups) if key is not None])
    assert_groups_whole(split, groups)
    assert [part for part, rows in parts_of(split).items() if rows] == wanted


def test_a_group_too_large_to_hold_out_trains():
    groups = ["often"] * 40 + list(range(60))
    for seed in range(10):
        split = random_split(groups, seed=seed)
        assert set(range(40)) <= set(split.train)
        assert (len(split.train), len(split.valid), len(split.test)) == (80, 10, 10)


def test_shares_are_rows_not_groups():
    groups = [group for group in range(100) for _ in range(1 + group % 3)]
    split = random_split(groups, seed=0)
    for rows, share in zip(parts_of(split).values(), (0.8, 0.1, 0.1), strict=True):
        assert abs(len(rows) - share * len(groups)) <= 3


def test_shares_are_not_lost_to_binary_fractions():
    """0.7 + 0.1 is a little below 0.8, and 0.8 * 10 must still hold 8 rows."""
    wanted = [7, 1, 2]
    for split in (
        random_split(range(10), (0.7, 0.1, 0.2), seed=0),
        scaffold_split(["C" * length for length in range(1, 11)], (0.7, 0.1, 0.2), acyclic="apart"),
    ):
        assert [len(rows) for rows in parts_of(split).values()] == wanted


@pytest.mark.parametrize("rows", [3, 4, 5, 9])
def test_few_rows_fill_every_part(rows):
    assert all(parts_of(random_split(range(rows), seed=0)).values())


@pytest.mark.parametrize(
    ("fractions", "words"),
    [
        (
            (0.8, 0.1),
            "fractions must be three numbers of at least 0 that add up to 1 (train, valid, test), got (0.8, 0.1)",
        ),
        ((0.8, 0.1, 0.2), "that add up to 1 (train, valid, test), got (0.8, 0.1, 0.2)."),
        ((1.1, -0.1, 0.0), "three numbers of at least 0 that add up to 1 (train, valid, test), got (1.1, -0.1, 0.0)."),
        ((float("nan"), 0.5, 0.5), "got (nan, 0.5, 0.5)."),
        ((0.0, 0.5, 0.5), "fractions must leave something to train on, got (0.0, 0.5, 0.5)."),
    ],
)
def test_fractions_that_cannot_be(fractions, words):
    for split in (lambda: random_split(range(9), fractions, seed=0), lambda: scaffold_split(["C"] * 9, fractions)):
        with pytest.raises(SettingError, match=re.escape(words)):
            split()


# ---------------------------------------------------------------- scaffold


@pytest.mark.parametrize(
    ("table", "splits"),
    [
        ("molnet/delaney-processed.csv", "splits/delaney-processed_splits.csv.gz"),
        ("molnet/SAMPL.csv", "splits/SAMPL_splits.csv.gz"),
        ("molnet/Lipophilicity.csv", "splits/Lipophilicity_splits.csv.gz"),
        ("molnet/clintox.csv.gz", "splits/clintox_splits.csv.gz"),
    ],
)
def test_scaffold_split_is_the_published_one(table, splits):
    """Row for row the OGB split of ESOL and FreeSolv, and the same rule on the others; refused SMILES in no part."""
    smiles = read_table(shared_file(table)).column("smiles")
    wanted = read_table(shared_file(splits)).column("scaffold_chiral")
    marks = [""] * len(smiles)
    for part, rows in parts_of(scaffold_split(smiles)).items():
        for row in rows:
            marks[row] = part
    assert marks == wanted


def test_scaffolds_stay_whole_and_big_ones_train():
    benzenes = ["c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "Clc1ccccc1", "Brc1ccccc1"]
    smiles = ["C1CC1", "C1CCC1", *benzenes, "not a molecule", "CCO"]
    assert scaffold_split(smiles, (0.7, 0.15, 0.15)) == Split(train=range(2, 7), valid=(8,), test=(0, 1))


@pytest.mark.parametrize(
    "spellings",
    [
        (
            "CCCSc1ncccc1C(=O)N(C)[C@H]2[C@@H]3CC4C[C@H]2C[C@@](O)(C4)C3",
            "[C@@]12(O)C[C@H]3[C@@H](N(C(c4c(SCCC)nccc4)=O)C)[C@@H](C1)CC(C3)C2",
        ),
        (
            r"CC(C)(C)C(O)\C(=C/c1ccc(Cl)cc1Cl)\n2cncn2",
            r"c1c(ccc(c1Cl)/C=C(\C(O)C(C)(C)C)n1ncnc1)Cl",
        ),
    ],
)
def test_spellings_of_one_molecule_share_a_scaffold(spellings):
    """RDKit gives each of these molecules another scaffold for another spelling."""
    smiles = [*spellings, "C1CC1", "C1CCC1"]
    groups = [canonical_smiles(one) for one in smiles]
    assert len(set(groups)) == 3
    split = scaffold_split(smiles, (0.5, 0.25, 0.25))
    assert split == Split((0, 1), (3,), (2,))


def test_molecules_may_be_rdkits():
    smiles = ["c1ccccc1", "c1ccccc1C", "C1CC1", "CCO"]
    fractions = (0.5, 0.25, 0.25)
    assert scaffold_split([Chem.MolFromSmiles(one) for one in smiles], fractions) == scaffold_split(smiles, fractions)


def test_molecules_without_rings_together():
    """Case T24: all scaffolds are "", one group, which no part but test has room for."""
    words = (
        "a scaffold split of 3 molecules leaves nothing for train and valid: the largest of 1 groups, of molecules "
        "without rings, holds 3; ask for acyclic 'apart', which makes each molecule without rings a group of its own, "
        "or use a random split or other fractions."
    )
    with pytest.raises(SplitError, match=re.escape(words)):
        scaffold_split(["CC", "CCC", "CCCO"])


def test_molecules_without_rings_apart():
    """Case T24, each its own group; one molecule under two spellings stays on one side."""
    smiles = ["CC", "CCC", "CCCO", "OCCC"]
    split = scaffold_split(smiles, (0.5, 0.25, 0.25), acyclic="apart")
    assert_partition(split, range(4))
    assert_groups_whole(split, [canonical_smiles(one) for one in smiles])
    assert all(parts_of(split).values())
    many = scaffold_split(["C" * length for length in range(1, 11)], acyclic="apart")
    assert [len(rows) for rows in parts_of(many).values()] == [8, 1, 1]


def test_a_scaffold_too_large_says_so():
    words = (
        "a scaffold split of 10 molecules leaves nothing for valid: the largest of 2 groups, of scaffold 'c1ccccc1', "
        "holds 8; use a random split or other fractions."
    )
    with pytest.raises(SplitError, match=re.escape(words)):
        scaffold_split(["c1ccccc1"] * 8 + ["C1CC1"] * 2)


def test_no_readable_molecule():
    words = "a scaffold split of 0 molecules leaves nothing for train and valid and test"
    with pytest.raises(SplitError, match=re.escape(words)):
        scaffold_split(["nonsense", ""])


def test_parts_that_nobody_wants_may_be_empty():
    assert parts_of(scaffold_split(["c1ccccc1"] * 3, (1.0, 0.0, 0.0))) == {"train": [0, 1, 2], "valid": [], "test": []}


def test_acyclic_is_one_of_two_words():
    with pytest.raises(SettingError, match="acyclic must be 'together' or 'apart', got 'alone'"):
        scaffold_split(["C"], acyclic="alone")


# ---------------------------------------------------------------- column


def test_marks_in_any_case_and_spelling():
    marks = ["Train", "val", "VALID", " validation ", "TEST", "train"]
    assert column_split(marks, seed=0) == Split(train=(0, 5), valid=(1, 2, 3), test=(4,))


def test_no_test_part_is_needed():
    assert column_split(["train", "val"], seed=0) == Split(train=(0,), valid=(1,), test=())


def test_a_validation_part_is_cut_from_train():
    marks = ["train"] * 100 + ["test"] * 20
    groups = [row // 2 for row in range(120)]
    split = column_split(marks, seed=0, groups=groups)
    assert_partition(split, range(120))
    assert_groups_whole(split, groups)
    assert (len(split.train), len(split.valid)) == (90, 10)
    assert split.test == tuple(range(100, 120))
    assert split == column_split(marks, seed=0, groups=groups)
    assert split.valid != column_split(marks, seed=1, groups=groups).valid


def test_unreadable_molecules_belong_to_no_part():
    marks = ["train", "train", "val", "test", "train"]
    assert column_split(marks, seed=0, groups=["a", None, "b", None, "c"]) == Split((0, 4), (2,), ())


@pytest.mark.parametrize("mark", ["", "dev", "0", "nan"])
def test_marks_that_mean_nothing(mark):
    words = (
        f"row 2 of 3 is marked {mark!r} in the split column; "
        "mark every row with one of train, val, valid, validation, test."
    )
    with pytest.raises(SplitError, match=re.escape(words)):
        column_split(["train", mark, "test"], seed=0)
    with pytest.raises(SplitError, match=f"^line 3 is marked {mark!r}"):
        column_split(["train", mark, "test"], seed=0, name_row=lambda row: f"line {row + 2}")


def test_one_mark_per_row():
    with pytest.raises(SplitError, match="the split column has 2 marks for 3 rows; give one mark per row"):
        column_split(["train", "test"], seed=0, groups=["a", "b", "c"])


def test_nothing_to_train_on():
    words = "leaves no row to train on: of 3 rows, 1 usable ones are marked validation and 1 test; mark some with"
    with pytest.raises(SplitError, match=re.escape(words)):
        column_split(["val", "test", "train"], seed=0, groups=["a", "b", None])


def test_one_molecule_to_train_on_leaves_none_for_validation():
    words = "2 rows of 1 different molecules cannot fill train and valid, one at least in each"
    with pytest.raises(SplitError, match=re.escape(words)):
        column_split(["train", "train", "test"], seed=0, groups=["a", "a", "b"])


# ---------------------------------------------------------------- the record


def test_rows_are_sorted_and_plain():
    split = Split(train=np.array([4, 2]), valid=[1], test=())
    assert split == Split((2, 4), (1,), ())
    assert Counter(type(row) for row in split.train) == {int: 2}


def test_a_row_in_two_parts():
    with pytest.raises(
        SplitError, match=re.escape("row 7 (counted from 0) is in a split twice; each row belongs to one")
    ):
        Split(train=(1, 7), valid=(7,), test=())
