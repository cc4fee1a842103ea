"""From SMILES or RDKit molecules to PyG graphs of integer codes."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from rdkit import Chem
from torch_geometric.data import Data

from graphattn.checks import check_choice, yes_or_no
from graphattn.errors import GraphattnWarning, MoleculeError, SettingError
from graphattn.featurize.atoms import DEFAULT_ELEMENTS, AtomCodes, atom_columns
from graphattn.featurize.bonds import BOND_COLUMNS, BondCodes
from graphattn.featurize.columns import Column
from graphattn.featurize.quiet import quiet_rdkit
from graphattn.featurize.reading import read_molecule, shown
from graphattn.featurize.rows import RowStatus
from graphattn.featurize.settings import check_columns, check_settings, columns_as_json
from graphattn.featurize.stereo import StereoLabels, stereo_labels

HYDROGENS = ("implicit", "keep", "add")
LAYOUT_VERSION = 1  # of the columns and the meaning of their codes

_NO_LABELS = StereoLabels({}, {})


def _outside(what: str, names: list[str]) -> str:
    return f"{what} outside the table: {', '.join(names)}" if names else ""


@dataclass(frozen=True, kw_only=True)
class MoleculeFeaturizer:
    """Turns molecules into graphs: atoms are nodes, bonds are edges in both directions, traits are integer codes.

    Two spellings of one molecule give one graph, up to the order of its nodes and edges. With RDKit 2026.09 this held
    for all but one of 60,000 public molecules in random orders: where bonds to a metal break the rules of valence,
    RDKit's own mending depends on the order. (2026.03 has more exceptions: aromatic rings across a macrocycle,
    square-planar centers.)

    Args:
        elements: the elements with a code of their own. All others share the code ``other``, and the row says so.
        hydrogens: which hydrogens are atoms of the graph: ``implicit``, none but isotopes and those that carry
            meaning (molecular hydrogen, hydrides, the two sides of ``[H]/N=C/C``; RDKit's default); ``keep``, those
            written as atoms; ``add``, all.
        stereo: without it every code of chirality and of bond stereo is 0, "none".

    >>> featurizer = MoleculeFeaturizer()
    >>> featurizer("CCO")
    Data(x=[3, 16], edge_index=[2, 4], edge_attr=[4, 4])
    >>> [column.labels[code] for column, code in zip(featurizer.node_columns, featurizer("CCO").x[2])][:5]
    ['O', '1', '0', '1', 'sp3']
    >>> graphs, rows = featurizer.rows(["CCO", "C1CC", None])
    >>> [row.status for row in rows]
    ['ok', 'unreadable', 'not-a-string']
    """

    elements: tuple[str, ...] = DEFAULT_ELEMENTS
    hydrogens: Literal["implicit", "keep", "add"] = "implicit"
    stereo: bool = True
    _atoms: AtomCodes = field(init=False, repr=False, compare=False)
    _bonds: BondCodes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.elements, str):
            raise SettingError(f"elements is a tuple of symbols such as ('C', 'N', 'O'), got {self.elements!r}")
        check_choice("hydrogens", self.hydrogens, HYDROGENS)
        object.__setattr__(self, "stereo", yes_or_no("stereo", self.stereo))
        object.__setattr__(self, "elements", tuple(self.elements))
        object.__setattr__(self, "_atoms", AtomCodes(self.elements))
        object.__setattr__(self, "_bonds", BondCodes())

    @property
    def node_columns(self) -> tuple[Column, ...]:
        """What the columns of ``x`` mean."""
        return atom_columns(self.elements)

    @property
    def edge_columns(self) -> tuple[Column, ...]:
        """What the columns of ``edge_attr`` mean."""
        return BOND_COLUMNS

    def __call__(self, molecule: str | Chem.Mol) -> Data:
        """The graph of one molecule.

        Args:
            molecule: a SMILES or an RDKit molecule, which stays as it is.

        Returns:
            ``x`` (N, node columns), ``edge_index`` (2, E) and ``edge_attr`` (E, edge columns), all int64. The two
            directions of a bond follow one another.

        Raises:
            MoleculeError: it cannot be read; ``status`` has the word for it (see :class:`RowStatus`).

        Warns:
            GraphattnWarning: an element or bond type has no code of its own.
        """
        try:
            graph, remark = self._graph(molecule)
        except MoleculeError as error:
            raise MoleculeError(
                f"no graph for {shown(molecule)}: {error}. Mend it, or use rows() to go on without it.",
                status=error.status,
            ) from None
        if remark:
            warnings.warn(f"{shown(molecule)}: {remark}", GraphattnWarning, stacklevel=2)
        return graph

    def rows(self, molecules: Iterable[object]) -> tuple[list[Data | None], list[RowStatus]]:
        """The graphs of many molecules; a bad row has None and the reason why, and the others go on.

        Args:
            molecules: SMILES or RDKit molecules, or what stands in their place in a table (None, NaN, numbers).

        Returns:
            Two lists as long as ``molecules``, in its order. The ``reason`` of an ok row may hold a remark.

        Raises:
            MoleculeError: ``molecules`` is one molecule and no list.
        """
        if isinstance(molecules, str | Chem.Mol):
            raise MoleculeError(f"rows() takes a list of molecules, got {shown(molecules)}; put it in a list")
        graphs: list[Data | None] = []
        rows: list[RowStatus] = []
        for molecule in molecules:
            try:
                graph, remark = self._graph(molecule)
            except MoleculeError as error:
                graphs.append(None)
                rows.append(RowStatus(error.status, str(error)))
            else:
                graphs.append(graph)
                rows.append(RowStatus("ok", remark))
        return graphs, rows

    def molecule(self, molecule: str | Chem.Mol) -> Chem.Mol:
        """The RDKit molecule whose atom i is node i of the graph, and whose bond b is behind edges 2b and 2b + 1.

        Raises:
            MoleculeError: it cannot be read.
        """
        return self._read(molecule)[0]

    def _read(self, molecule: object) -> tuple[Chem.Mol, StereoLabels]:
        mol, marked = read_molecule(molecule, hydrogens=self.hydrogens, stereo=self.stereo)
        labels = stereo_labels(mol) if marked else _NO_LABELS
        if self.hydrogens == "add":
            with quiet_rdkit():
                mol = Chem.AddHs(mol)  # behind the other atoms and bonds, which keep their indices
                Chem.SetHybridization(mol)  # which the new ones lack
        return mol, labels

    def _graph(self, molecule: object) -> tuple[Data, str]:
        mol, labels = self._read(molecule)
        nodes = self._atoms.codes(mol, labels.atoms)
        edge_index, edges = self._bonds.codes(mol, labels.bonds)
        remarks = (
            _outside("elements", self._atoms.outside(mol, nodes)),
            _outside("bond types", self._bonds.outside(mol, edges)),
            labels.remark,
        )
        graph = Data(
            x=torch.from_numpy(nodes), edge_index=torch.from_numpy(edge_index), edge_attr=torch.from_numpy(edges)
        )
        return graph, "; ".join(filter(None, remarks))

    def settings(self) -> dict[str, object]:
        """Everything that decides the graphs, and the columns they have, as JSON can hold it."""
        return {
            "version": LAYOUT_VERSION,
            "elements": list(self.elements),
            "hydrogens": self.hydrogens,
            "stereo": self.stereo,
            "node_columns": columns_as_json(self.node_columns),
            "edge_columns": columns_as_json(self.edge_columns),
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> "MoleculeFeaturizer":
        """The featurizer that ``settings()`` came from.

        Raises:
            SettingError: keys are missing or unknown, or this version of graphattn would give other columns.
        """
        check_settings(settings, cls().settings())
        featurizer = cls(
            elements=tuple(settings["elements"]),  # type: ignore[arg-type]
            hydrogens=settings["hydrogens"],  # type: ignore[arg-type]
            stereo=settings["stereo"],  # type: ignore[arg-type]
        )
        check_columns(settings, featurizer.settings())
        return featurizer
