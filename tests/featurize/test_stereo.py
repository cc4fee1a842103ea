"""Stereo labels: known molecules, arrangements without a name, and the limit on comparisons."""

import pytest
from graphs import column
from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

from graphattn.featurize import stereo
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.stereo import stereo_labels

# A drug or textbook molecule, and its labels in the order of its atoms, as its name has them.
NAMED = {
    "(S)-ibuprofen": ("CC(C)Cc1ccc(cc1)[C@H](C)C(=O)O", "S"),
    "L-cysteine, R for its sulfur": ("N[C@@H](CS)C(=O)O", "R"),
    "(1R,2S)-ephedrine": ("CN[C@@H](C)[C@H](O)c1ccccc1", "SR"),
    "(R)-thalidomide": ("O=C1CC[C@@H](N2C(=O)c3ccccc3C2=O)C(=O)N1", "R"),
    "D-glucose, open": ("OC[C@@H](O)[C@@H](O)[C@H](O)[C@@H](O)C=O", "RRSR"),
    "cis-1,4-dimethylcyclohexane, (1s,4s)": ("C[C@H]1CC[C@@H](C)CC1", "ss"),
    "trans-1,4-dimethylcyclohexane, (1r,4r)": ("C[C@H]1CC[C@H](C)CC1", "rr"),
    "ribitol, (2R,3s,4S), from its other end": ("OC[C@H](O)[C@H](O)[C@H](O)CO", "SsR"),
    "xylitol, (2R,3r,4S), from its other end": ("OC[C@H](O)[C@@H](O)[C@H](O)CO", "SrR"),
    "esomeprazole, a sulfoxide": ("COc1ccc2[nH]c([S@@](=O)Cc3ncc(C)c(OC)c3C)nc2c1", "S"),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_centers(name):
    smiles, labels = NAMED[name]
    found = stereo_labels(Chem.MolFromSmiles(smiles))
    assert "".join(label for _, label in sorted(found.atoms.items())) == labels
    assert found.remark == ""


@pytest.mark.parametrize(
    ("smiles", "label"),
    [
        ("OC(=O)/C=C/C(=O)O", "E"),  # fumaric acid
        ("OC(=O)/C=C\\C(=O)O", "Z"),  # maleic acid
        ("C/C(F)=C(/Cl)C", "Z"),  # the neighbors named first are trans, those of the highest rank Z
        ("C/C=N/O", "E"),
        ("C/C=C/C=O", "E"),
    ],
)
def test_named_double_bonds(smiles, label):
    assert list(stereo_labels(Chem.MolFromSmiles(smiles)).bonds.values()) == [label]


@pytest.mark.parametrize("smiles", ["C[C@H](C)O", "C1CC/C=C/C1", "F/C=C/F".replace("/", ""), "C[N@](F)Cl"])
def test_what_is_no_center_has_no_label(smiles):
    assert stereo_labels(Chem.MolFromSmiles(smiles)) == ({}, {}, "")


def test_a_geometry_without_a_name_is_other():
    octahedral = stereo_labels(Chem.MolFromSmiles("O[Co@OH1](Cl)(C)(N)(F)P"))
    assert octahedral.atoms == {1: "other"}
    either = Chem.MolFromSmiles("CC=CC")
    either.GetBondWithIdx(1).SetStereo(Chem.BondStereo.STEREOANY)
    assert stereo_labels(either).bonds == {1: "other"}


def test_axial_bonds_are_m_or_p():
    """A hindered biaryl drawn flat, one bond beside the axis drawn towards the reader or away."""
    drawn = (
        "Cc1cccc(O)c1-c1c(N)cccc1Br |(0.8,-2.6,;1.5,-1.3,;3,-1.3,;3.8,0,;3,1.3,;1.5,1.3,;0.8,2.6,;0.7,0,;"
        "-0.8,0,;-1.5,1.3,;-0.8,2.6,;-3,1.3,;-3.8,0,;-3,-1.3,;-1.5,-1.3,;-0.8,-2.6,),{}:7.6|"
    )
    labels = [stereo_labels(Chem.MolFromSmiles(drawn.format(wedge))).bonds for wedge in ("wU", "wD")]
    assert labels == [{7: "M"}, {7: "P"}]


def test_mirror_images_swap_r_and_s():
    for smiles in ("CC[C@H](C)O", "C[C@H](N)C(=O)O", "C[C@@H]1CCCO1"):
        mirrored = smiles.replace("@@", "?").replace("@", "@@").replace("?", "@")
        label = stereo_labels(Chem.MolFromSmiles(smiles)).atoms
        other = stereo_labels(Chem.MolFromSmiles(mirrored)).atoms
        assert {**label, **other} == other
        assert sorted([*label.values(), *other.values()]) == ["R", "S"]


def test_past_the_limit_centers_are_other_and_the_row_says_so(monkeypatch):
    monkeypatch.setattr(stereo, "COMPARISONS_LIMIT", 1)
    smiles = "C[C@H]1CC[C@@H](C/C=C/F)CC1"
    expected = {1: "other", 4: "other"}
    assert stereo_labels(Chem.MolFromSmiles(smiles)) == (expected, {6: "other"}, stereo.GAVE_UP)
    featurizer = MoleculeFeaturizer()
    (graph,), (row,) = featurizer.rows([smiles])
    assert column(featurizer, graph, "chirality") == [expected.get(atom, "none") for atom in range(11)]
    assert row.status == "ok"
    assert row.reason == "more than 400,000 comparisons would name its stereo centers: they are coded 'other'"


def test_a_molecule_past_the_limit_takes_less_than_seconds():
    """A fullerene with two marked centers: its branches are alike until the very end."""
    smiles = (
        "C[C@@]12C3=C4C5=C6C7=C8C9=C%10C%11=C%12C%13=C%14C%15=C%11C9=C9C%11=C%15C%15=C%14C%14=C%16C%13=C%13C%12=C%12"
        "C%10=C%10C8=C6C6=C8C%10=C%12C%10=C%13C%12=C%16C%13=C%14C%14=C%15C%15=C%11C(=C97)C5=C3C%15=C%14C1=C%13C1=C%12"
        "C%10=C8C(=C64)[C@]12O"
    )
    (graph,), (row,) = MoleculeFeaturizer().rows([smiles])
    assert graph.num_nodes == 62
    assert row.reason == stereo.GAVE_UP


def test_another_failure_of_the_labeler_is_not_hidden(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("Invariant Violation")

    monkeypatch.setattr(rdCIPLabeler, "AssignCIPLabels", fails)
    with pytest.raises(RuntimeError, match="Invariant Violation"):
        stereo_labels(Chem.MolFromSmiles("C[C@H](F)Cl"))
