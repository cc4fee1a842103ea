"""Columns: names, labels and widths, and that RDKit has nothing they do not know."""

from rdkit import Chem

from graphattn.featurize.atoms import DEFAULT_ELEMENTS, HYBRIDIZATIONS, AtomCodes, atom_columns
from graphattn.featurize.bonds import BOND_COLUMNS, BondCodes
from graphattn.featurize.columns import Column, counted


def test_width_is_the_number_of_codes():
    assert Column("aromatic", ("no", "yes")).width == 2
    assert counted(3) == ("0", "1", "2", "3 or more")


def test_the_columns():
    assert [column.name for column in atom_columns()] == [
        *("element", "degree", "charge", "hydrogens", "hybridization", "aromatic"),
        *(f"in ring of {size}" for size in (3, 4, 5, 6, 7, 8)),
        *("in ring of 9 or more", "radical electrons", "isotope", "chirality"),
    ]
    assert [column.name for column in BOND_COLUMNS] == ["order", "conjugated", "in ring", "stereo"]
    assert atom_columns()[0].labels == (*DEFAULT_ELEMENTS, "other")
    assert "Al" not in DEFAULT_ELEMENTS


def test_labels_are_distinct_and_codes_fit_a_byte():
    for column in (*atom_columns(), *BOND_COLUMNS):
        assert len(set(column.labels)) == column.width <= 256


def test_rdkit_has_no_other_hybridization():
    assert sorted(name.lower() for name in Chem.HybridizationType.names) == sorted(HYBRIDIZATIONS)


def test_every_bond_type_of_rdkit_has_a_code_in_both_directions():
    widths = [column.width for column in BOND_COLUMNS]
    for kind in Chem.BondType.names.values():
        rows = BondCodes()[kind, True, False, "E"]
        for row in (rows[:4], rows[4:]):
            assert all(code < width for code, width in zip(row, widths, strict=True))
        assert (rows[:4] == rows[4:]) == (kind != Chem.BondType.DATIVE)


def test_extreme_traits_have_codes():
    codes = AtomCodes(DEFAULT_ELEMENTS)
    widths = [column.width for column in atom_columns()]
    for charge in (-100, 0, 100):
        for count in (0, 100):
            row = codes[count, count, charge, count, Chem.HybridizationType.OTHER, True, 127, count, count, "other"]
            assert all(code < width for code, width in zip(row, widths, strict=True))
