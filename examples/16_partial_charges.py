"""One number per vector: the partial charge of every atom, for molecules the network has never seen.

Gasteiger and Marsili (1980) let charge flow along each bond toward the more electronegative atom, again and again,
half as much each time, so that it stops before the atoms are equal. A network of attention along bonds learns the
outcome from molecules alone. One sees what an atom's own description is worth, and what each block of attention adds:
it lets an atom hear from one bond farther away. The full run takes about a minute on two cores.
Run: python examples/16_partial_charges.py --output out
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from lesson import COLORS, count_parameters, figure, save, settings, shuffled, table, train
from matplotlib import image
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from molecules import bundled
from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D
from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges
from sklearn.metrics import mean_absolute_error, r2_score
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Batch, Data

import graphattn as ga
from graphattn.data.packed import PackedGraphs

FEATURIZER = ga.MoleculeFeaturizer()
COLUMNS = [column.name for column in FEATURIZER.node_columns]
DRAWN = ("benazolin", "OC(=O)CN1C(=O)Sc2cccc(Cl)c12")  # one of the unseen


@dataclass(frozen=True)
class Results:
    """What came out on the unseen molecules."""

    r2: dict[str, float]  # of each contestant
    left_out: int  # molecules with an element that the rules do not know


def main(output: Path, *, quick: bool) -> Results:
    """Compute charges, learn them at several depths, compare on unseen molecules, draw."""
    torch.manual_seed(0)
    graphs = [[charged(each) for each in part[: 500 if quick else None]] for part in bundled()]
    left_out = sum(part.count(None) for part in graphs)
    known, unseen = (pack([graph for graph in part if graph is not None]) for part in graphs)
    asked = unseen.to_batch()
    print(f"{len(known)} molecules to learn from, {len(unseen)} unseen ones with {len(asked.x)} atoms to judge by")
    print(f"molecules left out, for an element without parameters in Gasteiger's rules: {left_out}")

    guess = {
        "atoms of its element": mean_of_kind(known.to_batch(), asked, ["element"]),
        "atoms described alike": mean_of_kind(known.to_batch(), asked, COLUMNS),
    }
    networks = {layers: learn(known, layers, epochs=8 if quick else 40) for layers in ((1, 3) if quick else (1, 2, 4))}
    guess |= {f"attention, depth {layers}": predict(network, asked) for layers, network in networks.items()}
    r2 = {name: float(r2_score(asked.charge, each)) for name, each in guess.items()}
    error = {name: mean_absolute_error(asked.charge, each) for name, each in guess.items()}
    rows = [{"charge from": name, "R2": f"{r2[name]:.4f}", "mean error (e)": f"{error[name]:.4f}"} for name in guess]
    table(rows, "atoms of unseen molecules")

    deepest, name = networks[max(networks)], list(guess)[-1]
    drawn, axes = figure(2, width=5.5, height=5)
    scatter(axes[0], asked.charge, guess[name], f"{len(asked.x)} atoms of unseen molecules: R² {r2[name]:.4f}")
    draw_charges(axes[1], FEATURIZER.molecule(DRAWN[1]), predict(deepest, FEATURIZER(DRAWN[1])))
    axes[1].set_title(f"{DRAWN[0]}, unseen: predicted charges")
    save(drawn, output, "16_partial_charges.png")
    print(
        f"{max(networks)} blocks, {count_parameters(deepest):,} numbers learned from {len(known)} molecules: "
        f"charges of unseen molecules with R2 {r2[name]:.4f}, {error[name]:.4f} e off on average"
    )
    return Results(r2, left_out)


def charged(smiles: str) -> Data | None:
    """A molecule's graph with the charge of each heavy atom, in elementary charges; None if there are no parameters."""
    (graph,), _ = FEATURIZER.rows([smiles])
    assert graph is not None
    mol = FEATURIZER.molecule(smiles)  # its atom i is node i
    ComputeGasteigerCharges(mol)
    graph.charge = torch.tensor([atom.GetDoubleProp("_GasteigerCharge") for atom in mol.GetAtoms()])
    return graph if bool(graph.charge.isfinite().all()) else None


def pack(graphs: Sequence[Data]) -> PackedGraphs:
    """Many charged graphs in a few tensors."""
    return PackedGraphs.from_data(graphs, node_fields=("x", "charge"), edge_fields=("edge_attr",), graph_fields=())


def mean_of_kind(known: Batch, asked: Batch, columns: Sequence[str]) -> Tensor:
    """For each atom the mean charge of known atoms with the same codes in these columns; of all, if there are none."""
    picked = [COLUMNS.index(name) for name in columns]
    known_kind, asked_kind = (pd.Series([*map(tuple, batch.x[:, picked].tolist())]) for batch in (known, asked))
    charge = pd.Series(known.charge.numpy())
    return torch.tensor(asked_kind.map(charge.groupby(known_kind).mean()).fillna(charge.mean()).to_numpy())


def learn(known: PackedGraphs, layers: int, epochs: int) -> ga.GraphTransformer:
    """Atoms and bonds in, one number per atom out: a network without a readout."""
    network = ga.GraphTransformer(
        [column.width for column in FEATURIZER.node_columns],
        out_channels=1,
        channels=64,
        layers=layers,
        edge_channels=[column.width for column in FEATURIZER.edge_columns],
        readout=None,
    )
    spread = known.node_fields["charge"].var()
    train(
        network,
        lambda: (known.batch(rows) for rows in shuffled(len(known), 32)),
        lambda batch: functional.mse_loss(network(batch)[:, 0], batch.charge) / spread,
        epochs=epochs,
    )
    return network


def predict(network: ga.GraphTransformer, graphs: Data) -> Tensor:
    """(N,) the charge of every atom, in elementary charges."""
    with torch.no_grad():
        charge: Tensor = network(graphs)[:, 0]
    return charge


def scatter(axes: Any, computed: Tensor, predicted: Tensor, title: str) -> None:
    """Predicted against computed, with the line where both are equal."""
    axes.scatter(computed, predicted, s=8, alpha=0.4, color=COLORS[0], edgecolor="none")
    axes.axline((0, 0), slope=1, color="black", linewidth=0.8)
    axes.set(aspect="equal", xlabel="computed charge (e)", ylabel="predicted charge (e)", title=title)


def draw_charges(axes: Any, mol: Chem.Mol, charges: Tensor) -> None:
    """The molecule with its charges as numbers and colors: red for negative, blue for positive, white for neutral."""
    limit = 1.5 * float(charges.abs().max())  # the darkest colors would hide the letters
    colors = ScalarMappable(Normalize(-limit, limit), cmap="RdBu")
    for atom, charge in zip(mol.GetAtoms(), charges.tolist(), strict=True):
        atom.SetProp("atomNote", f"{charge:+.2f}")
    drawer = rdMolDraw2D.MolDraw2DCairo(1000, 900)
    options: Any = drawer.drawOptions()  # RDKit's stubs know it without its fields
    options.useBWAtomPalette()
    options.annotationFontScale = 0.7
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer,
        mol,
        highlightAtoms=[*range(len(charges))],
        highlightAtomColors={atom: colors.to_rgba(charge)[:3] for atom, charge in enumerate(charges.tolist())},
        highlightBonds=[],
    )
    drawer.FinishDrawing()
    axes.imshow(image.imread(BytesIO(drawer.GetDrawingText())))
    axes.set_axis_off()
    axes.figure.colorbar(colors, ax=axes, label="charge (e)", shrink=0.7)


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
