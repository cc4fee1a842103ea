"""A sequence out of a graph: a molecule goes in, its formula comes out, symbol by symbol and digit by digit.

An atom knows its element and how many hydrogens it carries; the formula, in Hill order and with all hydrogens, has to
be counted together from all atoms. Softmax attention takes means over the atoms, and a mean does not grow with the
molecule; ReLU attention takes sums, and so can count. One sees a decoder of either kind judged on unseen molecules, by
table and by size, and in a picture at which atoms each written symbol looked. The full run takes about 20 minutes on
two cores. Run: python examples/18_formulas.py --output out --molecules zinc.csv.gz Lipophilicity.csv

Without --molecules it learns from those of the solubility set that comes with the package: a thousand, too few to learn
every count from. From tens of thousands, such as ZINC's, it learns to be right nearly always.
"""

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from lesson import COLORS, count_parameters, existing, figure, parser, save, shuffled, table, told_plainly, train
from rdkit import Chem
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Batch, Data

import graphattn as ga
from graphattn.attention.normalizers import Normalizer
from graphattn.data.card import load_card
from graphattn.data.packed import PackedGraphs
from graphattn.data.table import read_table
from graphattn.featurize.quiet import quiet_rdkit
from graphattn.featurize.vectors import Vocabulary
from graphattn.model.decoder import next_tokens

PERIODIC_TABLE = tuple(Chem.GetPeriodicTable().GetElementSymbol(number) for number in range(1, 119))
FEATURIZER = ga.MoleculeFeaturizer(elements=PERIODIC_TABLE, stereo=False)
NAMES = [column.name for column in FEATURIZER.node_columns]
COLUMNS = [NAMES.index("element"), NAMES.index("hydrogens")]  # all that the network is told of an atom
TOLD = [FEATURIZER.node_columns[column] for column in COLUMNS]
LABELS: dict[Normalizer, str] = {"relu": "sums (ReLU)", "softmax": "means (softmax)"}
START, END = 1, 2
CHANNELS, HEADS, BATCH = 64, 4, 32
UNSEEN, MOST_UNSEEN = 0.1, 1000  # of each table: a tenth of its molecules, at most a thousand
SIZES = (1, 11, 21, 31, 41, 61)  # heavy atoms: 1 to 10, 11 to 20, ...
MOST_DRAWN, MOST_QUICK = 14, 8  # heavy atoms of a molecule in the picture, and of any in quick mode


@dataclass(frozen=True, eq=False)
class Molecule:
    """What the network is given, and what it shall write."""

    smiles: str  # canonical, without stereo, which a formula does not show
    counts: Counter[str]  # atoms of each element
    graph: Data  # x (atoms, 2): codes of the element and of the number of hydrogens

    @property
    def formula(self) -> str:
        """Hill order: carbon, hydrogen, then the alphabet; without carbon the alphabet alone. No charge, no isotope.

        Source: Hill 1900, doi:10.1021/ja02046a005.
        """
        first = ("C", "H") if self.counts["C"] else ()
        order = sorted(+self.counts, key=lambda element: (element not in first, element))
        return "".join(element + (str(count) if (count := self.counts[element]) > 1 else "") for element in order)


@dataclass(frozen=True)
class Judged:
    """An unseen molecule, and what each decoder wrote."""

    table: str
    molecule: Molecule
    novel: bool  # whether its formula was not among those to learn from
    written: Mapping[Normalizer, str]

    def is_right(self, contestant: Normalizer) -> bool:
        """Whether every symbol is right."""
        return self.written[contestant] == self.molecule.formula


def symbols(formula: str) -> list[str]:
    """Elements and single digits.

    >>> symbols("C10H7Cl")
    ['C', '1', '0', 'H', '7', 'Cl']
    """
    return re.findall(r"[A-Z][a-z]?|\*|\d", formula)


def count_atoms(mol: Chem.Mol) -> Counter[str]:
    """Atoms of each element, hydrogens included."""
    counts = Counter(atom.GetSymbol() for atom in mol.GetAtoms())
    counts["H"] += sum(atom.GetTotalNumHs() for atom in mol.GetAtoms())  # those that are no atoms of the graph
    return counts


def read_molecules(smiles: Sequence[str]) -> list[Molecule]:
    """Every molecule once, however it is spelled; what RDKit cannot read is left out."""
    with quiet_rdkit():
        read = [mol for mol in map(Chem.MolFromSmiles, smiles) if mol is not None and mol.GetNumAtoms()]
    unique = {Chem.MolToSmiles(mol, isomericSmiles=False): mol for mol in read}
    molecules = []
    for (name, mol), graph in zip(unique.items(), FEATURIZER.rows(unique.values())[0], strict=True):
        if graph is not None:
            atoms = Data(x=graph.x[:, COLUMNS], edge_index=graph.edge_index)
            molecules.append(Molecule(name, count_atoms(mol), atoms))
    return molecules


def split(
    tables: Mapping[str, Sequence[Molecule]], draw: random.Random
) -> tuple[list[Molecule], dict[str, list[Molecule]]]:
    """Molecules to learn from, and unseen ones of each table; a molecule of two tables is on one side."""
    unseen = {
        name: draw.sample(molecules, min(math.ceil(UNSEEN * len(molecules)), MOST_UNSEEN))
        for name, molecules in tables.items()
    }
    held_back = {molecule.smiles for molecules in unseen.values() for molecule in molecules}
    known = {molecule.smiles: molecule for molecules in tables.values() for molecule in molecules}
    return [molecule for smiles, molecule in known.items() if smiles not in held_back], unseen


def mixtures(known: Sequence[Molecule], count: int, draw: random.Random) -> list[Molecule]:
    """Two molecules side by side as one graph: larger counts than most molecules have, and new pairs of counts."""
    made = []
    for first, second in (draw.sample(known, 2) for _ in range(count)):
        pair = Batch.from_data_list([first.graph, second.graph])
        graph = Data(x=pair.x, edge_index=pair.edge_index)
        made.append(Molecule(f"{first.smiles}.{second.smiles}", first.counts + second.counts, graph))
    return made


@dataclass(frozen=True, eq=False)
class Lesson:
    """Some molecules with their formulas as tokens."""

    graphs: Batch
    inputs: Tensor  # (M,) each formula's start first
    targets: Tensor  # (M,) the token that follows each
    ptr: Tensor  # (G + 1,) boundaries of the formulas


class Corpus:
    """Molecules packed, of which any can be taken as a lesson."""

    def __init__(self, molecules: Sequence[Molecule], vocabulary: Vocabulary) -> None:
        self.graphs = PackedGraphs.from_data([molecule.graph for molecule in molecules])
        self.codes = [vocabulary.codes(symbols(molecule.formula)).tolist() for molecule in molecules]

    def lesson(self, rows: Sequence[int]) -> Lesson:
        """The molecules of these rows."""
        return Lesson(self.graphs.batch(rows), *next_tokens([self.codes[row] for row in rows], START, END))


class Writer(nn.Module):
    """Molecules to formulas: an encoder of the graph and a decoder of the sequence."""

    def __init__(self, vocabulary: Vocabulary, normalizer: Normalizer) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.encoder = ga.GraphTransformer(
            [column.width for column in TOLD], CHANNELS, channels=CHANNELS, layers=1, heads=HEADS, readout=None
        )
        self.decoder = ga.SequenceDecoder(
            len(vocabulary), channels=CHANNELS, layers=2, heads=HEADS, cross_normalizer=normalizer
        )

    def forward(self, lesson: Lesson) -> Tensor:
        """(M, tokens) scores of the token that follows each."""
        memory = self.encoder(lesson.graphs)
        out: Tensor = self.decoder(lesson.inputs, lesson.ptr, memory, lesson.graphs.ptr)
        return out

    @torch.no_grad()
    def write(self, molecules: Sequence[Molecule]) -> list[str]:
        """The formulas, by greedy search."""
        graphs = PackedGraphs.from_data([molecule.graph for molecule in molecules]).to_batch()
        written = self.decoder.generate(self.encoder(graphs), graphs.ptr, start=START, end=END)
        return ["".join(self.vocabulary.words(each.tokens)) for each in written]

    @torch.no_grad()
    def looks(self, molecule: Molecule) -> Tensor:
        """(symbols and the end, atoms) how much each symbol looks at each atom, in the last layer, sum of the heads."""
        lesson = Corpus([molecule], self.vocabulary).lesson([0])
        memory = self.encoder(lesson.graphs)
        last = self.decoder.cross_attention_weights(lesson.inputs, lesson.ptr, memory, lesson.graphs.ptr)[-1]
        return last.edges.sum(1).view(-1, len(molecule.graph.x))


def learn(network: Writer, known: Sequence[Molecule], steps: int) -> None:
    """Train for about that many batches."""
    corpus = Corpus(known, network.vocabulary)

    def epoch() -> Iterator[Lesson]:
        return (corpus.lesson(rows.tolist()) for rows in shuffled(len(known), BATCH))

    def loss_of(lesson: Lesson) -> Tensor:
        return functional.cross_entropy(network(lesson), lesson.targets)

    train(network, epoch, loss_of, epochs=max(1, round(steps * BATCH / len(known))), learning_rate=4e-3)


def judge(
    networks: Mapping[Normalizer, Writer], unseen: Mapping[str, Sequence[Molecule]], known: Sequence[Molecule]
) -> list[Judged]:
    """Have every network write the formula of every unseen molecule."""
    formulas = {molecule.formula for molecule in known}
    judged = []
    for name, molecules in unseen.items():
        written = zip(*(network.write(molecules) for network in networks.values()), strict=True)
        judged += [
            Judged(name, molecule, molecule.formula not in formulas, dict(zip(networks, each, strict=True)))
            for molecule, each in zip(molecules, written, strict=True)
        ]
    return judged


def share(judged: Sequence[Judged], contestant: Normalizer) -> float:
    """Share of the formulas that are right; NaN without any."""
    return sum(each.is_right(contestant) for each in judged) / len(judged) if judged else math.nan


def by_size(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The molecules by their number of heavy atoms; sizes that none has are left out."""
    sorted_in = {}
    for low, high in itertools.pairwise((*SIZES, math.inf)):
        name = f"{low} or more" if high == math.inf else f"{low} to {high - 1}"
        sorted_in[name] = [each for each in judged if low <= len(each.molecule.graph.x) < high]
    return {name: chosen for name, chosen in sorted_in.items() if chosen}


def report(judged: Sequence[Judged]) -> None:
    """Print the shares by table and by size, and some mistakes of the sums."""
    by_table = {name: list(each) for name, each in itertools.groupby(judged, lambda one: one.table)}
    for heading, groups in (("table", by_table), ("heavy atoms", by_size(judged))):
        table(
            [
                {
                    heading: name,
                    "unseen": len(group),
                    **{LABELS[contestant]: f"{share(group, contestant):.1%}" for contestant in LABELS},
                    "new formulas": len(novel := [each for each in group if each.novel]),
                    "of them, sums": f"{share(novel, 'relu'):.1%}",
                }
                for name, group in groups.items()
            ],
            f"Formulas of unseen molecules without a mistake, by {heading}",
        )
    wrong = [each for each in judged if not each.is_right("relu")]
    print(f"\nmistakes of the sums: {len(wrong) or 'none'}{', of which ten:' if len(wrong) > 10 else ''}")
    for each in wrong[:10]:
        print(f"  {each.written['relu']}  instead of  {each.molecule.formula}   {each.molecule.smiles}")


def picture(network: Writer, judged: Sequence[Judged], output: Path) -> None:
    """Shares by size, and where each symbol of one formula looked."""
    drawn, (shares, looks) = figure(2, width=6, height=4.6)
    sizes = by_size(judged)
    for place, (contestant, label) in enumerate(LABELS.items()):
        heights = [share(group, contestant) for group in sizes.values()]
        shares.plot([*sizes], heights, "o-", color=COLORS[place], label=label)
    shares.set(xlabel="heavy atoms", ylabel="formulas without a mistake", ylim=(-0.03, 1.03))
    shares.set(title=f"{len(judged):,} unseen molecules")
    shares.legend()
    fitting = [each.molecule for each in judged if len(each.molecule.graph.x) <= MOST_DRAWN]
    shown = max(fitting, key=lambda molecule: len(symbols(molecule.formula)))
    looked, atoms = network.looks(shown), range(len(shown.graph.x))
    shades = looks.imshow(looked.numpy(), cmap="Blues", vmin=0, aspect="auto")
    names = [TOLD[0].labels[code] + ("", "H", "H2", "H3", "H4")[count] for code, count in shown.graph.x.tolist()]
    looks.set(xticks=atoms, xticklabels=names, xlabel=f"atom of {shown.smiles}")
    looks.set(
        yticks=range(len(looked)), yticklabels=[*symbols(shown.formula), "(end)"], ylabel="symbol that comes next"
    )
    drawn.colorbar(shades, ax=looks, label="weight, sum of the heads")
    save(drawn, output, "18_formulas.png")


def main(output: Path, tables: Mapping[str, Sequence[str]], *, quick: bool) -> list[Judged]:
    """Train both decoders on the SMILES of the tables, judge, print and draw."""
    torch.manual_seed(0)
    molecules = {
        name: [molecule for molecule in read_molecules(smiles) if len(molecule.graph.x) <= MOST_QUICK or not quick]
        for name, smiles in tables.items()
    }
    draw = random.Random(0)  # noqa: S311 (no secret)
    known, unseen = split(molecules, draw)
    to_learn = known + mixtures(known, 0 if quick else len(known) // 3, draw)
    vocabulary = Vocabulary.of([symbols(molecule.formula) for molecule in to_learn], reserved=("<start>", "<end>"))
    networks = {contestant: Writer(vocabulary, contestant) for contestant in LABELS}
    print(
        f"{len(known):,} molecules to learn from, and {len(to_learn) - len(known):,} mixtures of two; "
        f"{count_parameters(networks['relu']):,} parameters"
    )
    for network in networks.values():
        learn(network, to_learn, steps=240 if quick else 10_000)
    judged = judge(networks, unseen, to_learn)
    report(judged)
    picture(networks["relu"], judged, output)
    print(f"Sums write {share(judged, 'relu'):.1%} of the formulas, means {share(judged, 'softmax'):.1%}.")
    return judged


def read_tables(files: Sequence[Path], column: str) -> dict[str, list[str]]:
    """The SMILES of each file; without files, of the solubility set."""
    if files:
        return {str(file): read_table(file).column(column) for file in files}
    card = load_card("solubility")
    return {card.name: card.table().column(card.smiles_column)}


if __name__ == "__main__":
    command_line = parser(__doc__)
    command_line.add_argument(
        "--molecules", type=existing, nargs="*", default=[], help="tables of molecules, CSV or TSV"
    )
    command_line.add_argument("--smiles-column", default="smiles", help="their column of SMILES (default: smiles)")
    given = command_line.parse_args()
    with told_plainly(command_line):
        tables = read_tables(given.molecules, given.smiles_column)
    main(given.output, tables, quick=given.quick)
