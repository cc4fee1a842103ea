"""One class per edge: the order of every bond, from a molecule's skeleton alone.

All the network is told: the element of each atom, its number of hydrogens, and who is connected to whom. It says which
bonds are single, double, triple or aromatic. Aromatic is a class of its own because the Kekulé structures of benzene
alternate: by symmetry its six bonds are alike, and nothing in the skeleton says which three are double. For the same
reason at least one of the two N-O bonds of each nitro group comes out wrong. The full run takes one to two minutes
on two cores. Run: python examples/17_bond_orders.py --output out
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from lesson import COLORS, count_parameters, figure, save, settings, shuffled, table, train
from matplotlib import image
from matplotlib.colors import to_rgb
from molecules import bundled, draw_confusion
from rdkit import Chem
from rdkit.Chem import BondType, rdDepictor
from rdkit.Chem.Draw import rdMolDraw2D
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Batch, Data

import graphattn as ga
from graphattn.data.packed import PackedGraphs

FEATURIZER = ga.MoleculeFeaturizer()
TOLD = ("element", "hydrogens")  # all that is known of an atom; of a bond, that it is there
TOLD_COLUMNS = [[column.name for column in FEATURIZER.node_columns].index(name) for name in TOLD]
ORDERS = {
    "single": BondType.SINGLE,
    "double": BondType.DOUBLE,
    "triple": BondType.TRIPLE,
    "aromatic": BondType.AROMATIC,
}
NITRO = Chem.MolFromSmarts("[N+](=O)[O-]")
DRAWN = ("cimetidine", "CNC(=NC#N)NCCSCc1[nH]cnc1C")  # one of the unseen


@dataclass(frozen=True)
class Results:
    """What came out on the unseen molecules."""

    right: dict[str, float]  # share of bonds, of each contestant
    whole: float  # share of molecules with every bond right
    confusion: Tensor  # (4, 4) bonds, a row per true and a column per predicted order


def main(output: Path, *, quick: bool) -> Results:
    """Strip molecules to skeletons, learn the orders of their bonds, judge on unseen ones, draw."""
    torch.manual_seed(0)
    smiles = [part[: 400 if quick else None] for part in bundled()]
    known, unseen = (pack([skeleton(each) for each in part]) for part in smiles)
    asked = unseen.to_batch()
    truth = asked.order[::2]  # a bond is two edges, one after the other
    print(f"{len(known)} molecules to learn from, {len(unseen)} unseen ones with {len(truth)} bonds to judge by")

    network = learn(known, epochs=6 if quick else 60)
    guess = {
        "the commonest of all": torch.zeros_like(truth) + known.edge_fields["order"].mode().values,
        "the commonest between such atoms": commonest(known.to_batch(), asked),
        "attention": predict(network, asked),
    }
    right = {name: float((each == truth).float().mean()) for name, each in guess.items()}
    table([{"order from": name, "bonds right": f"{share:.1%}"} for name, share in right.items()], "unseen molecules")
    confusion = torch.zeros(len(ORDERS), len(ORDERS), dtype=torch.long)
    confusion.index_put_((truth, guess["attention"]), torch.tensor(1), accumulate=True)
    rows = zip(ORDERS, confusion.tolist(), strict=True)
    table(
        [{"true order": name, **dict(zip(ORDERS, row, strict=True))} for name, row in rows],
        "attention: bonds by true (row) and predicted (column) order",
    )
    wrong = asked.edge_index[0, ::2][guess["attention"] != truth]  # an atom of each wrong bond
    whole = 1 - len(asked.batch[wrong].unique()) / len(unseen)
    nitro = sum(len(Chem.MolFromSmiles(each).GetSubstructMatches(NITRO)) for each in smiles[1])
    print(f"\nfor {nitro} nitro groups, at most {1 - nitro / len(truth):.1%} can be right")

    drawn, axes = figure(3, width=5, height=4.6)
    draw_orders(axes[0], confusion)
    graph, mol = skeleton(DRAWN[1]), FEATURIZER.molecule(DRAWN[1])
    shown, orders = predict(network, graph), graph.order[::2]
    draw_bonds(axes[1], mol, torch.zeros_like(orders), [])
    axes[1].set_title(f"{DRAWN[0]}, unseen: all that the network is told")
    draw_bonds(axes[2], mol, shown, (shown != orders).nonzero().flatten().tolist())
    axes[2].set_title("the orders it predicts (dashed: aromatic; orange: wrong)")
    save(drawn, output, "17_bond_orders.png")
    print(
        f"{right['attention']:.1%} of the bonds of unseen molecules are right, in {whole:.1%} of the molecules all of "
        f"them: {count_parameters(network):,} numbers learned from {len(known)} molecules"
    )
    return Results(right, whole, confusion)


def skeleton(smiles: str) -> Data:
    """Elements, hydrogens and connections; beside them, for the loss alone, the order of each bond."""
    (graph,), _ = FEATURIZER.rows([smiles])
    assert graph is not None
    column = [column.name for column in FEATURIZER.edge_columns].index("order")
    orders = [FEATURIZER.edge_columns[column].labels[code] for code in graph.edge_attr[:, column]]
    codes = torch.tensor([list(ORDERS).index(order) for order in orders], dtype=torch.long)
    return Data(x=graph.x[:, TOLD_COLUMNS], edge_index=graph.edge_index, order=codes)


def pack(graphs: Sequence[Data]) -> PackedGraphs:
    """Many skeletons in a few tensors."""
    return PackedGraphs.from_data(graphs, node_fields=("x",), edge_fields=("order",), graph_fields=())


def learn(known: PackedGraphs, epochs: int) -> ga.GraphTransformer:
    """Atoms in, one row per edge out, the same both ways. Without ``edge_channels`` it is told nothing of bonds."""
    network = ga.GraphTransformer(
        [FEATURIZER.node_columns[column].width for column in TOLD_COLUMNS],
        out_channels=len(ORDERS),
        channels=64,
        layers=6,
        readout="bond",
        dropout=0.1,
    )
    train(
        network,
        lambda: (known.batch(rows) for rows in shuffled(len(known), 64)),
        lambda batch: functional.cross_entropy(network(batch), batch.order),
        epochs=epochs,
        weight_decay=1e-2,
    )
    return network


def predict(network: ga.GraphTransformer, graphs: Data) -> Tensor:
    """(bonds,) the most probable order of each."""
    with torch.no_grad():
        order: Tensor = network(graphs)[::2].argmax(-1)
    return order


def commonest(known: Batch, asked: Batch) -> Tensor:
    """For each bond the commonest order between two atoms like its own; single, if there were none."""
    seen: dict[Any, Counter[int]] = defaultdict(Counter)
    for ends, order in zip(ends_of(known), known.order[::2].tolist(), strict=True):
        seen[ends][order] += 1
    return torch.tensor([seen[ends].most_common(1)[0][0] if ends in seen else 0 for ends in ends_of(asked)])


def ends_of(graphs: Data) -> list[tuple[tuple[int, ...], ...]]:
    """What is told of the two atoms of each bond, in an order of its own."""
    pairs = graphs.x[graphs.edge_index[:, ::2].T].tolist()
    return [tuple(sorted(map(tuple, pair))) for pair in pairs]


def draw_orders(axes: Any, confusion: Tensor) -> None:
    """Bonds by true and predicted order."""
    draw_confusion(axes, confusion.numpy(), tuple(ORDERS))
    axes.set(xlabel="predicted order", ylabel="true order", title=f"{int(confusion.sum())} bonds of unseen molecules")


def draw_bonds(axes: Any, mol: Chem.Mol, orders: Tensor, marked: list[int]) -> None:
    """The atoms with their hydrogens, joined by bonds of these orders, some of them marked."""
    drawn = Chem.RWMol(mol)
    rdDepictor.Compute2DCoords(drawn)
    for atom in drawn.GetAtoms():
        hydrogens = atom.GetTotalNumHs()
        count = f"<sub>{hydrogens}</sub>" if hydrogens > 1 else ""
        atom.SetProp("atomLabel", f"{atom.GetSymbol()}{'H' * (hydrogens > 0)}{count}")
    for bond, order in zip(drawn.GetBonds(), orders.tolist(), strict=True):
        bond.SetBondType([*ORDERS.values()][order])
    drawer = rdMolDraw2D.MolDraw2DCairo(1000, 760)
    options: Any = drawer.drawOptions()  # RDKit's stubs know it without its fields
    options.useBWAtomPalette()
    options.prepareMolsBeforeDrawing = False  # it would mend the bonds
    color = dict.fromkeys(marked, to_rgb(COLORS[1]))
    drawer.DrawMolecule(drawn, highlightAtoms=[], highlightBonds=marked, highlightBondColors=color)
    drawer.FinishDrawing()
    axes.imshow(image.imread(BytesIO(drawer.GetDrawingText())))
    axes.set_axis_off()


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
