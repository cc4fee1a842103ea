"""Cards of data sets: read, checked against their data, and found where the package is."""

import hashlib
import re
from pathlib import Path

import pytest

from graphattn.data import card as card_file
from graphattn.data.card import DatasetCard, TargetColumn, dataset_names, load_card
from graphattn.errors import TableError

DATA = b"smiles,y,part\nC,1,train\nCC,2,test\n"
CARD = f"""
name = "tiny"
title = "Two alkanes"
task = "regression"
smiles_column = "smiles"
split_column = "part"
rows = 2
sha256 = "{hashlib.sha256(DATA).hexdigest()}"
url = "https://example.org"
license = "CC0-1.0"
citation = "Nobody 2026"
metric = "rmse"
known_faults = ["made up"]
targets = [{{ name = "y", unit = "kJ/mol" }}]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/card.toml").write_text(CARD)
    (tmp_path / "tiny/data.csv").write_bytes(DATA)
    return tmp_path / "tiny"


def test_a_card_is_read_with_its_data(folder):
    card = DatasetCard.read(folder)
    assert card.targets == (TargetColumn("y", "kJ/mol"),)
    assert card.known_faults == ("made up",)
    assert card.path == folder / "data.csv"
    assert card.table().numbers("y").tolist() == [1, 2]


def test_split_and_unit_may_be_left_out(folder):
    text = CARD.replace('split_column = "part"\n', "").replace(', unit = "kJ/mol"', "")
    (folder / "card.toml").write_text(text)
    card = DatasetCard.read(folder)
    assert card.split_column is None
    assert card.targets == (TargetColumn("y", ""),)
    assert len(card.table()) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'url = "https://example.org"',
            'link = "x"',
            "keys that are missing: ['url']; keys that mean nothing: ['link'].",
        ),
        ('unit = "kJ/mol"', 'units = "kJ/mol"', "a target has a name and a unit, got ['name', 'units']."),
        ('name = "y", ', "", "a target has a name and a unit, got ['unit']."),
        ("rows = 2", "rows = two", "card.toml is not valid TOML: "),
    ],
)
def test_cards_that_cannot_be(folder, old, new, words):
    assert old in CARD
    (folder / "card.toml").write_text(CARD.replace(old, new))
    with pytest.raises(TableError, match=re.escape(words)):
        DatasetCard.read(folder)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rows = 2", "rows = 3", "data.csv has 2 rows but its card says 3."),
        ('"part"', '"split"', "has no column 'split'"),
        ('"smiles"', '"SMILES"', "has no column 'SMILES'; did you mean 'smiles'?"),
        ('name = "y"', 'name = "z"', "has no column 'z'"),
    ],
)
def test_cards_that_differ_from_their_table(folder, old, new, words):
    assert old in CARD
    (folder / "card.toml").write_text(CARD.replace(old, new))
    card = DatasetCard.read(folder)
    with pytest.raises(TableError, match=re.escape(words)):
        card.table()


def test_changed_data_is_refused(folder):
    card = DatasetCard.read(folder)
    (folder / "data.csv").write_bytes(DATA.replace(b"CC,2", b"CC,3"))
    words = f"data.csv is not the file that its card describes: its SHA-256 is {'[0-9a-f]' * 64}, not {card.sha256}"
    with pytest.raises(TableError, match=words):
        DatasetCard.read(folder)
    with pytest.raises(TableError, match=words):
        card.table()


def test_missing_files_are_named(folder):
    (folder / "data.csv").unlink()
    with pytest.raises(TableError, match=re.escape("data.csv is missing; install graphattn again, or make the file")):
        DatasetCard.read(folder)
    (folder / "card.toml").unlink()
    with pytest.raises(TableError, match=re.escape(f"{folder} holds no card.toml, so it is no data set.")):
        DatasetCard.read(folder)


def test_a_name_that_is_not_there():
    listed = ", ".join(dataset_names())
    with pytest.raises(
        TableError, match=f"no data set 'Solubilty' comes with graphattn; there are: {listed}. Did you mean"
    ):
        load_card("Solubilty")
    with pytest.raises(TableError, match=f"no data set 'tox21' comes with graphattn; there are: {listed}.$"):
        load_card("tox21")


def test_data_sets_inside_the_package_come_first(folder, monkeypatch):
    """In a wheel they lie in ``graphattn/datasets``, in a checkout beside the package."""
    package = folder.parent / "graphattn"
    (package / "data").mkdir(parents=True)
    monkeypatch.setattr(card_file, "__file__", str(package / "data/card.py"))
    assert dataset_names() == ()
    with pytest.raises(TableError, match="no data set 'tiny' comes with graphattn; there are: none"):
        load_card("tiny")
    beside, inside = folder.parent / "datasets", package / "datasets"
    for home in (beside, inside):
        (home / "tiny").mkdir(parents=True)
        for file in folder.iterdir():
            (home / "tiny" / file.name).write_bytes(file.read_bytes())
        assert load_card("tiny").path == home / "tiny/data.csv"


def test_every_data_set_that_comes_with_the_package_is_whole():
    assert "solubility" in dataset_names()
    for name in dataset_names():
        card = load_card(name)
        assert card.name == name
        assert card.task in {"regression", "binary"}
        assert len(card.table()) == card.rows
        assert (card.path.parent / "README.md").is_file()
        for target in card.targets:
            card.table().numbers(target.name)
        assert all(isinstance(value, str) for value in (card.title, card.url, card.license, card.citation, card.metric))
        assert isinstance(card.path, Path)
