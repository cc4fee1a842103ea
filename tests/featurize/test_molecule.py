"""The molecule featurizer: graphs worked out by hand, the awkward molecules, and lists of rows."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import torch
from graphs import bonds, column, in_place, reordered, same, traits
from rdkit import Chem
from torch_geometric.data import Batch

from graphattn.errors import GraphattnWarning, MoleculeError, SettingError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.rows import RowStatus

FEATURIZER = MoleculeFeaturizer()
WITHOUT_STEREO = MoleculeFeaturizer(stereo=False)
PLAIN = {
    "element": "C",
    "degree": "1",
    "charge": "0",
    "hydrogens": "3",
    "hybridization": "sp3",
    "aromatic": "no",
    **{f"in ring of {size}": "no" for size in range(3, 9)},
    "in ring of 9 or more": "no",
    "radical electrons": "0",
    "isotope": "natural",
    "chirality": "none",
}
SINGLE = {"order": "single", "conjugated": "no", "in ring": "no", "stereo": "none"}
AROMATIC = {"order": "aromatic", "conjugated": "yes", "in ring": "yes", "stereo": "none"}


def graph(molecule, **settings):
    """The graph of a molecule that may hold elements outside the table."""
    graphs, rows = MoleculeFeaturizer(**settings).rows([molecule])
    assert rows[0].status == "ok"
    return graphs[0]


# Worked out by hand.


def test_ethanol():
    ethanol = FEATURIZER("CCO")
    assert traits(FEATURIZER, ethanol) == [
        PLAIN,
        PLAIN | {"degree": "2", "hydrogens": "2"},
        PLAIN | {"element": "O", "hydrogens": "1"},
    ]
    assert ethanol.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert bonds(FEATURIZER, ethanol) == dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1)], SINGLE)
    assert sorted(ethanol.keys()) == ["edge_attr", "edge_index", "x"]
    assert {ethanol[key].dtype for key in ("x", "edge_index", "edge_attr")} == {torch.int64}


@pytest.mark.parametrize("smiles", ["c1ccccc1", "C1=CC=CC=C1", "C1C=CC=CC=1", "[cH]1[cH][cH][cH][cH][cH]1"])
def test_benzene(smiles):
    benzene = FEATURIZER(smiles)
    carbon = {"degree": "2", "hydrogens": "1", "hybridization": "sp2", "aromatic": "yes", "in ring of 6": "yes"}
    assert traits(FEATURIZER, benzene) == [PLAIN | carbon] * 6
    assert list(bonds(FEATURIZER, benzene).values()) == [AROMATIC] * 12


def test_alanine():
    """L-alanine is S: nitrogen, then the acid, then methyl, then hydrogen."""
    left, right = FEATURIZER("N[C@@H](C)C(=O)O"), FEATURIZER("N[C@H](C)C(=O)O")
    assert column(FEATURIZER, left, "chirality") == ["none", "S", "none", "none", "none", "none"]
    assert column(FEATURIZER, right, "chirality") == ["none", "R", "none", "none", "none", "none"]
    assert bonds(FEATURIZER, left)[3, 4] == SINGLE | {"order": "double", "conjugated": "yes"}
    assert bonds(FEATURIZER, left)[3, 5] == SINGLE | {"conjugated": "yes"}
    acid = PLAIN | {"degree": "3", "hydrogens": "0", "hybridization": "sp2"}
    assert traits(FEATURIZER, left)[3] == acid
    assert same(WITHOUT_STEREO("N[C@@H](C)C(=O)O"), WITHOUT_STEREO("NC(C)C(=O)O"))


def test_dative_bonds_have_a_direction():
    """Case T11. The arrow goes from ammonia to platinum."""
    cisplatin = graph("[NH3]->[Pt](Cl)(Cl)<-[NH3]")
    platinum = traits(FEATURIZER, cisplatin)[1]
    assert platinum == PLAIN | {
        "element": "other",
        "degree": "4",
        "hydrogens": "0",
        "hybridization": "unspecified",
    }
    by_ends = {ends: bond["order"] for ends, bond in bonds(FEATURIZER, cisplatin).items()}
    assert by_ends == {
        (0, 1): "dative along",
        (1, 0): "dative against",
        (4, 1): "dative along",
        (1, 4): "dative against",
        **dict.fromkeys([(1, 2), (2, 1), (1, 3), (3, 1)], "single"),
    }


def test_other_bond_orders():
    assert bonds(FEATURIZER, FEATURIZER("C#N"))[0, 1]["order"] == "triple"
    assert bonds(FEATURIZER, FEATURIZER("CC |Z:0|"))[0, 1]["order"] == "zero"
    assert bonds(FEATURIZER, graph("[U]$[C]"))[0, 1]["order"] == "quadruple"


def test_charges_radicals_isotopes_and_counts_past_the_last_label():
    assert column(FEATURIZER, FEATURIZER("[NH4+].[O-]C"), "charge") == ["+1", "-1", "0"]
    assert column(FEATURIZER, graph("[Al+3].[Ti+4].[N-3].[Si-4]"), "charge") == [
        *("+3 or more", "+3 or more", "-3 or less", "-3 or less"),
    ]
    assert column(FEATURIZER, FEATURIZER("[CH3].[CH2].[C]"), "radical electrons") == ["1", "2", "3 or more"]
    assert column(FEATURIZER, FEATURIZER("[13CH4].C"), "isotope") == ["labeled", "natural"]
    assert column(FEATURIZER, FEATURIZER("C.[NH4+]"), "hydrogens") == ["4 or more", "4 or more"]
    assert column(FEATURIZER, FEATURIZER("FS(F)(F)(F)(F)F"), "degree")[1] == "6"
    assert column(FEATURIZER, graph("[Zr](F)(F)(F)(F)(F)(F)(F)F"), "degree")[0] == "7 or more"


def test_ring_sizes():
    spiro = FEATURIZER("C1CC12CCCC2")  # a three-membered ring, a shared atom, a five-membered ring
    assert column(FEATURIZER, spiro, "in ring of 3") == ["yes"] * 3 + ["no"] * 4
    assert column(FEATURIZER, spiro, "in ring of 5") == ["no"] * 2 + ["yes"] * 5
    assert column(FEATURIZER, FEATURIZER("C1CCCCCCC1"), "in ring of 8") == ["yes"] * 8
    for size in (9, 12, 100):
        large = FEATURIZER(f"C1{'C' * (size - 1)}1")
        assert column(FEATURIZER, large, "in ring of 9 or more") == ["yes"] * size
        assert "yes" not in column(FEATURIZER, large, "in ring of 8")


# The awkward ones.


def test_one_atom_and_no_bonds():
    """Case T1."""
    methane, ethanol, salt = FEATURIZER.rows(["C", "CCO", "[Na+].[Cl-]"])[0]
    assert methane.x.shape == (1, len(FEATURIZER.node_columns))
    assert methane.edge_index.shape == (2, 0)
    assert methane.edge_attr.shape == (0, len(FEATURIZER.edge_columns))
    assert methane.edge_index.dtype == methane.edge_attr.dtype == torch.int64
    batch = Batch.from_data_list([methane, ethanol, salt])
    assert batch.batch.tolist() == [0, 1, 1, 1, 2, 2]
    assert same(batch[0], methane)
    assert same(batch[2], salt)


@pytest.mark.parametrize(
    ("smiles", "atoms"),
    [("[H][H]", "HH"), ("[H]", "H"), ("[H+]", "H"), ("[2H]OC", "HOC"), ("[Na+].[Cl-]", ["Na", "Cl"]), ("C", "C")],
)
def test_nothing_vanishes_with_the_hydrogens(smiles, atoms):
    """Cases T6 and T8."""
    assert column(FEATURIZER, FEATURIZER(smiles), "element") == list(atoms)


def test_helium_is_an_atom_of_an_element_outside_the_table():
    assert FEATURIZER.rows(["[He]"])[1] == [RowStatus("ok", "elements outside the table: He")]


@pytest.mark.parametrize(
    ("smiles", "hydrogens", "atoms"),
    [
        ("[H]OC([H])([H])[H]", "implicit", 2),
        ("[H]OC([H])([H])[H]", "keep", 6),
        ("[H]OC([H])([H])[H]", "add", 6),
        ("CO", "implicit", 2),
        ("CO", "keep", 2),
        ("CO", "add", 6),
    ],
)
def test_hydrogens(smiles, hydrogens, atoms):
    """Case T7."""
    featurizer = MoleculeFeaturizer(hydrogens=hydrogens)
    for molecule in (smiles, Chem.MolFromSmiles(smiles, sanitize=False)):
        methanol = featurizer(molecule)
        assert methanol.num_nodes == atoms
        assert methanol.num_edges == 2 * (atoms - 1)
        heavy = sorted((a["element"], a["hydrogens"]) for a in traits(featurizer, methanol) if a["element"] != "H")
        assert heavy == [("C", "3"), ("O", "1")]  # all hydrogens, whether they are atoms of the graph or not


def test_added_hydrogens_equal_written_ones():
    written = MoleculeFeaturizer(hydrogens="keep")("C([H])([H])([H])[C@]([H])(N([H])[H])C(=O)O[H]")
    added = MoleculeFeaturizer(hydrogens="add")("C[C@H](N)C(=O)O")
    order = [0, 6, 7, 8, 1, 9, 2, 10, 11, 3, 4, 5, 12]  # written atom -> added atom
    assert same(reordered(written, order), in_place(added))


def test_stereo_off_drops_the_hydrogens_that_only_it_keeps():
    on, off = MoleculeFeaturizer(), MoleculeFeaturizer(stereo=False)
    assert on("[H]/N=C(/F)Cl").num_nodes == 5
    assert same(off("[H]/N=C(/F)Cl"), off("N=C(F)Cl"))
    assert same(off(Chem.MolFromSmiles("[H]/N=C(/F)Cl")), off("N=C(F)Cl"))


@pytest.mark.parametrize(
    ("one", "other"), [("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"), ("F/C=C/F", "F/C=C\\F"), ("F/C=C/F", "FC=CF")]
)
def test_stereo_on_and_off(one, other):
    """Case T19."""
    assert not same(FEATURIZER(one), FEATURIZER(other))
    assert same(WITHOUT_STEREO(one), WITHOUT_STEREO(other))
    assert same(WITHOUT_STEREO(Chem.MolFromSmiles(one)), WITHOUT_STEREO(other))
    assert not WITHOUT_STEREO(one).x[:, -1].any()
    assert not WITHOUT_STEREO(one).edge_attr[:, -1].any()


def test_kekule_and_aromatic_spelling_are_one_molecule():
    """Case T20."""
    kekule, aromatic = FEATURIZER("C1=CC=CC=C1C"), FEATURIZER("Cc1ccccc1")
    assert same(reordered(kekule, [2, 3, 4, 5, 6, 1, 0]), in_place(aromatic))


def test_a_far_fetched_cage_is_read():
    """Case T14."""
    cage = FEATURIZER("C123C45C61C24C356")
    assert (cage.num_nodes, cage.num_edges) == (5, 20)
    assert column(FEATURIZER, cage, "in ring of 3") == ["yes"] * 5


def test_elements_outside_the_table_are_reported():
    """Case T10."""
    molecule = "[Al].[OH2+]c1ccccc1"
    graphs, rows = FEATURIZER.rows([molecule])
    assert (graphs[0].num_nodes, graphs[0].num_edges) == (8, 14)
    assert rows == [RowStatus("ok", "elements outside the table: Al")]
    with pytest.warns(GraphattnWarning, match=r"'\[Al\]\.\[OH2\+\]c1ccccc1': elements outside the table: Al"):
        assert column(FEATURIZER, FEATURIZER(molecule), "element")[0] == "other"


def test_bond_types_outside_the_table_are_reported():
    mol = Chem.RWMol(Chem.MolFromSmiles("[Fe].O"))
    mol.AddBond(0, 1, Chem.BondType.IONIC)
    graphs, rows = FEATURIZER.rows([mol])
    assert rows == [RowStatus("ok", "elements outside the table: Fe; bond types outside the table: IONIC")]
    assert bonds(FEATURIZER, graphs[0])[0, 1]["order"] == "other"


def test_elements_are_chosen():
    halogens = MoleculeFeaturizer(elements=("F", "Cl", "*"))
    assert halogens.node_columns[0].labels == ("F", "Cl", "*", "other")
    graphs, rows = halogens.rows(["FC(Cl)*"])
    assert graphs[0].x[:, 0].tolist() == [0, 3, 1, 2]
    assert rows == [RowStatus("ok", "elements outside the table: C")]


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ((), "elements is empty; name at least one"),
        (("C", "Xx"), "elements holds 'Xx', which is no element symbol"),
        (("C", "cl"), "elements holds 'cl', which is no element symbol"),
        (("C", "D"), "elements holds 'D', which is no element symbol"),
        (("C", "N", "C"), "elements holds 'C' twice"),
        ("CNO", r"elements is a tuple of symbols such as \('C', 'N', 'O'\), got 'CNO'"),
    ],
)
def test_elements_that_cannot_be(elements, message):
    with pytest.raises(SettingError, match=message):
        MoleculeFeaturizer(elements=elements)


def test_hydrogens_that_cannot_be():
    with pytest.raises(SettingError, match="hydrogens must be one of implicit, keep, add, got 'all'"):
        MoleculeFeaturizer(hydrogens="all")


# Lists of rows.

BAD = {
    "": RowStatus("empty", "the text is blank"),
    " \t\n": RowStatus("empty", "the text is blank"),
    None: RowStatus("not-a-string", "a SMILES string or an RDKit molecule is wanted, got None of type NoneType"),
    5: RowStatus("not-a-string", "a SMILES string or an RDKit molecule is wanted, got 5 of type int"),
    "CC1=CC=C[NH+2]([O-])C1": RowStatus(
        "unreadable", "RDKit: Explicit valence for atom # 5 N, 4, is greater than permitted"
    ),
    "CCO>>CC=O": RowStatus("reaction", "it looks like a reaction ('>' parts its sides); a molecule is wanted"),
}


@pytest.mark.parametrize(("molecule", "status"), BAD.items(), ids=repr)
def test_a_bad_row_keeps_its_place(molecule, status):
    """Cases T3, T4, T15 and T23."""
    molecules = ["CCO", molecule, "C"]
    graphs, rows = FEATURIZER.rows(iter(molecules))
    assert rows == [RowStatus("ok"), status, RowStatus("ok")]
    assert graphs[1] is None
    assert same(graphs[0], FEATURIZER("CCO"))
    assert same(graphs[2], FEATURIZER("C"))


def test_nan_is_not_a_string():
    assert FEATURIZER.rows([float("nan")])[1][0].status == "not-a-string"
    assert FEATURIZER.rows([np.nan])[1][0].reason.endswith("got nan of type float")
    assert FEATURIZER.rows(np.array(["CCO"]))[1] == [RowStatus("ok")]


@pytest.mark.parametrize(("molecule", "status"), BAD.items(), ids=repr)
def test_one_bad_molecule_raises(molecule, status):
    with pytest.raises(MoleculeError, match=r"no graph for .* use rows\(\) to go on without it") as caught:
        FEATURIZER(molecule)
    assert repr(molecule) in str(caught.value)
    assert status.reason in str(caught.value)
    assert caught.value.status == status.status


def test_a_long_smiles_is_cut_in_messages():
    with pytest.raises(MoleculeError) as caught:
        FEATURIZER("C" * 5000 + "Q")
    assert len(str(caught.value)) < 400


def test_no_rows():
    assert FEATURIZER.rows([]) == ([], [])


@pytest.mark.parametrize("molecule", ["CCO", Chem.MolFromSmiles("CCO")], ids=["text", "mol"])
def test_one_molecule_is_no_list_of_rows(molecule):
    with pytest.raises(MoleculeError, match=r"rows\(\) takes a list of molecules, got .*; put it in a list"):
        FEATURIZER.rows(molecule)


# Molecules instead of SMILES.


def test_a_given_molecule_stays_as_it_is():
    mol = Chem.AddHs(Chem.MolFromSmiles("C[C@H](N)C(=O)O"))
    before = mol.ToBinary(Chem.PropertyPickleOptions.AllProps)
    for hydrogens in ("implicit", "keep", "add"):
        for stereo in (True, False):
            MoleculeFeaturizer(hydrogens=hydrogens, stereo=stereo)(mol)
    assert mol.ToBinary(Chem.PropertyPickleOptions.AllProps) == before


def test_the_state_of_a_given_molecule_does_not_matter():
    smiles = "C[C@H](N)C(=O)Oc1ccccc1/C=C/F"
    expected = FEATURIZER(smiles)
    mol = Chem.MolFromSmiles(smiles)
    kekulized = Chem.Mol(mol)
    Chem.Kekulize(kekulized, clearAromaticFlags=True)
    states = {
        "as read": mol,
        "not sanitized": Chem.MolFromSmiles(smiles, sanitize=False),
        "with hydrogens": Chem.AddHs(mol),
        "Kekule": kekulized,
        "writable": Chem.RWMol(mol),
        "through a mol block": Chem.MolFromMolBlock(Chem.MolToMolBlock(mol)),
        "pickled": pickle.loads(pickle.dumps(mol)),  # noqa: S301
    }
    for state, molecule in states.items():
        assert same(in_place(FEATURIZER(molecule)), in_place(expected)), state


def test_a_molecule_without_atoms_is_empty():
    assert FEATURIZER.rows([Chem.Mol()])[1] == [RowStatus("empty", "there is no atom in it")]
    with pytest.raises(MoleculeError, match="no graph for a molecule of 0 atoms: there is no atom in it"):
        FEATURIZER(Chem.Mol())


def test_a_molecule_that_cannot_be_is_unreadable():
    mol = Chem.MolFromSmiles("CN(C)(C)C", sanitize=False)
    reason = "RDKit: Explicit valence for atom # 1 N, 4, is greater than permitted"
    for hydrogens in ("implicit", "keep"):
        assert MoleculeFeaturizer(hydrogens=hydrogens).rows([mol])[1] == [RowStatus("unreadable", reason)]


def test_a_query_is_no_molecule():
    reason = "it holds query atoms or bonds, as a SMARTS does; a molecule is wanted"
    assert FEATURIZER.rows([Chem.MolFromSmarts("[#6]~[#8]"), "[#6]~[#8]"])[1] == [RowStatus("unreadable", reason)] * 2


# The featurizer as a value.


def test_featurizers_compare_copy_and_travel():
    one, other = MoleculeFeaturizer(hydrogens="add"), MoleculeFeaturizer(hydrogens="add")
    one("CCO")  # has filled its tables
    assert one == other
    assert hash(one) == hash(other)
    assert one != FEATURIZER
    assert repr(one).endswith("hydrogens='add', stereo=True)")
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301
        assert again == one
        assert same(again("CCO"), one("CCO"))
    assert dataclasses.replace(one, stereo=False) == MoleculeFeaturizer(hydrogens="add", stereo=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.stereo = False


def test_graphs_share_no_memory():
    first, second = FEATURIZER("CCO"), FEATURIZER("CCO")
    first.x.zero_()
    first.edge_attr.fill_(7)
    first.edge_index.zero_()
    assert same(second, FEATURIZER("CCO"))


def test_the_molecule_behind_a_graph():
    adding = MoleculeFeaturizer(hydrogens="add")
    mol = adding.molecule("C[C@H](F)/C=C/F")
    methyl = adding("C[C@H](F)/C=C/F")
    assert [atom.GetSymbol() for atom in mol.GetAtoms()] == column(adding, methyl, "element")
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    assert [tuple(pair) for pair in methyl.edge_index[:, 0::2].T.tolist()] == ends
    with pytest.raises(MoleculeError, match="unclosed ring"):
        FEATURIZER.molecule("C1CC")


def test_nothing_is_printed(capfd):
    rows = ["C1CC", "CN(C)(C)C", "c1cccc1", "[H].C", "CCO |x|", "C[Pt@SP1](F)(Cl)[H]", "not", None]
    for hydrogens in ("implicit", "keep", "add"):
        for stereo in (True, False):
            MoleculeFeaturizer(hydrogens=hydrogens, stereo=stereo).rows(rows)
    assert capfd.readouterr() == ("", "")
