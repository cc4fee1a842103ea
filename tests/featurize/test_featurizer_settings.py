"""Settings of the featurizer: to JSON and back, and the refusals."""

import json

import pytest
from graphs import same

from graphattn.errors import SettingError
from graphattn.featurize.molecule import LAYOUT_VERSION, MoleculeFeaturizer


@pytest.mark.parametrize(
    "featurizer",
    [
        MoleculeFeaturizer(),
        MoleculeFeaturizer(elements=("C", "N", "O", "H", "Al"), hydrogens="add", stereo=False),
        MoleculeFeaturizer(hydrogens="keep"),
    ],
)
def test_there_and_back(featurizer):
    again = MoleculeFeaturizer.from_settings(json.loads(json.dumps(featurizer.settings())))
    assert again == featurizer
    assert again.settings() == featurizer.settings()
    assert same(again("[H]OC([H])([H])[H]"), featurizer("[H]OC([H])([H])[H]"))


def test_the_settings_name_every_column_and_label():
    featurizer = MoleculeFeaturizer()
    settings = featurizer.settings()
    assert settings["version"] == LAYOUT_VERSION
    for kind in ("node_columns", "edge_columns"):
        columns = getattr(featurizer, kind)
        assert settings[kind] == [{"name": column.name, "labels": list(column.labels)} for column in columns]
        assert len({column.name for column in columns}) == len(columns)


def changed(**settings: object) -> dict[str, object]:
    return MoleculeFeaturizer().settings() | settings


def columns_with(kind: str, place: int, column: object) -> dict[str, object]:
    settings = MoleculeFeaturizer().settings()
    settings[kind][place] = column
    return settings


REFUSED = {
    "an unknown key": (changed(kekulize=True), "featurizer settings with unknown kekulize; this version .* reads edge"),
    "a key missing": (
        {key: value for key, value in changed().items() if key != "stereo"},
        "featurizer settings with no stereo; this version of graphattn reads edge_columns, elements, hydrogens",
    ),
    "a later layout": (
        changed(version=2),
        "featurizer settings of layout version 2, this version of graphattn has 1; use the graphattn that wrote them",
    ),
    "elements as text": (changed(elements="CNO"), "setting elements must be a list of symbols, got 'CNO'"),
    "elements as numbers": (changed(elements=[6, 7]), r"setting elements must be a list of symbols, got \[6, 7\]"),
    "stereo as text": (changed(stereo="no"), "stereo must be True or False, got 'no'"),
    "hydrogens unheard of": (changed(hydrogens="all"), "hydrogens must be one of implicit, keep, add, got 'all'"),
    "an element unheard of": (changed(elements=["Xx"]), "elements holds 'Xx', which is no element symbol"),
    "other elements than columns": (
        changed(elements=["C", "N"]),
        r"as column 0 of node_columns, .* has \{'name': 'element', 'labels': \['C', 'N', 'other'\]\}",
    ),
    "another label": (
        columns_with("edge_columns", 2, {"name": "in ring", "labels": ["no", "maybe"]}),
        r"settings have \{'name': 'in ring', 'labels': \['no', 'maybe'\]\} as column 2 of edge_columns",
    ),
    "a column too few": (changed(edge_columns=[]), "settings have 0 columns as edge_columns"),
    "columns of no kind": (changed(node_columns=None), "settings have None as node_columns"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what):
    settings, message = REFUSED[what]
    with pytest.raises(SettingError, match=message):
        MoleculeFeaturizer.from_settings(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stereo": "no"}, "stereo must be True or False, got 'no'"),
        ({"stereo": None}, "stereo must be True or False, got None"),
        ({"hydrogens": "all"}, "hydrogens must be one of implicit, keep, add, got 'all'"),
        ({"hydrogens": True}, "hydrogens must be one of implicit, keep, add, got True"),
    ],
    ids=str,
)
def test_a_featurizer_refuses_what_is_no_choice(settings, message):
    with pytest.raises(SettingError, match=message):
        MoleculeFeaturizer(**settings)
