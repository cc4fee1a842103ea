"""A class per node of a citation graph: the field of a paper from its words and from whom it cites.

GAT's published network (Velickovic et al. 2018, arXiv:1710.10903, section 3.3), built of our layers, on Planetoid's
public split of Cora and Citeseer: 20 labeled papers per field, 1,000 papers to judge by, ten seeds. The raw files
ind.cora.* and ind.citeseer.* are published at https://github.com/kimiyoung/planetoid; they are pickles, and are read
without running them. About 15 minutes on two cores.
Run: python examples/14_citations.py --planetoid FOLDER --output out
"""

import statistics
from pathlib import Path

import torch
from lesson import COLORS, existing, figure, parser, save, table, told_plainly
from sklearn.manifold import TSNE
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

import graphattn as ga
from graphattn.data.planetoid import read_planetoid

PUBLISHED = {"cora": 0.830, "citeseer": 0.725}  # their table 2
PATIENCE = 100  # epochs without a better validation loss or accuracy


class GAT(nn.Module):
    """Two layers of attention along citations: eight heads of eight channels, then one with a channel per field."""

    def __init__(self, words: int, fields: int, dropout: float = 0.6) -> None:
        super().__init__()
        self.first = ga.GraphAttention(words, 64, 8, "gat", bias=False, output_bias=True, dropout=dropout)
        self.second = ga.GraphAttention(64, fields, 1, "gat", bias=False, output_bias=True, dropout=dropout)
        self.dropout = dropout

    def forward(self, papers: Tensor, citations: ga.Adjacency) -> Tensor:
        """(N, words) -> (N, fields)."""
        hidden = functional.elu(self.first(self.drop_words(papers), citations))
        out: Tensor = self.second(functional.dropout(hidden, self.dropout, self.training), citations)
        return out

    def drop_words(self, papers: Tensor) -> Tensor:
        """Dropout of the words that a paper has alone: the others are zero either way, and are nearly all."""
        if not self.training:
            return papers
        paper, word = papers.nonzero(as_tuple=True)
        return torch.zeros_like(papers).index_put((paper, word), functional.dropout(papers[paper, word], self.dropout))


def main(output: Path, planetoid: Path, *, quick: bool) -> dict[str, list[float]]:
    """Train and judge on both graphs; returns the test accuracy of every seed."""
    seeds, most_epochs = (1, 60) if quick else (10, 1000)
    accuracies, pictures = {}, {}
    for name in ("cora",) if quick else ("cora", "citeseer"):
        data = read_planetoid(planetoid, name)
        runs = [learn(data, seed, most_epochs) for seed in range(seeds)]
        accuracies[name] = [accuracy(scores, data, data.test_mask) for scores in runs]
        pictures[name] = (data, runs[0])
        print(f"{name}: {', '.join(f'{share:.1%}' for share in accuracies[name])}")
    table(
        [
            {
                "graph": name,
                "seeds": seeds,
                "mean test accuracy": f"{statistics.mean(shares):.1%}",
                "standard deviation": f"{statistics.pstdev(shares):.1%}",
                "published": f"{PUBLISHED[name]:.1%}",
            }
            for name, shares in accuracies.items()
        ]
    )
    draw(pictures, output)
    return accuracies


def learn(data: Data, seed: int, most_epochs: int) -> Tensor:
    """Train once with the published settings; (N, fields) scores of the best epoch on the validation nodes."""
    torch.manual_seed(seed)
    papers = data.x / data.x.sum(1, keepdim=True).clamp_min(1)
    citations = ga.Adjacency.from_edge_index(data.edge_index, len(papers)).with_self_loops()
    network = GAT(papers.shape[1], int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005, weight_decay=5e-4)
    lowest_loss, highest_accuracy, waited, best = float("inf"), 0.0, 0, torch.empty(0)
    for _ in range(most_epochs):
        network.train()
        scores = network(papers, citations)
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(scores[data.train_mask], data.y[data.train_mask]))
        optimizer.step()

        network.eval()
        with torch.no_grad():
            scores = network(papers, citations)
        loss = float(functional.cross_entropy(scores[data.val_mask], data.y[data.val_mask]))
        share = accuracy(scores, data, data.val_mask)
        if loss <= lowest_loss and share >= highest_accuracy:
            best = scores
        waited = 0 if loss <= lowest_loss or share >= highest_accuracy else waited + 1
        lowest_loss, highest_accuracy = min(loss, lowest_loss), max(share, highest_accuracy)
        if waited == PATIENCE:
            break
    return best


def accuracy(scores: Tensor, data: Data, nodes: Tensor) -> float:
    """Share of ``nodes`` whose highest score is that of their field."""
    return float((scores.argmax(-1) == data.y)[nodes].float().mean())


def draw(runs: dict[str, tuple[Data, Tensor]], output: Path) -> None:
    """The test papers on a plane, near each other where the network scores them alike, colored by their true field."""
    drawn, panels = figure(len(runs))
    for axes, (name, (data, scores)) in zip([panels] if len(runs) == 1 else panels, runs.items(), strict=True):
        place = TSNE(random_state=0, perplexity=40).fit_transform(scores[data.test_mask].numpy())
        fields = data.y[data.test_mask]
        for field in fields.unique().tolist():
            axes.scatter(*place[fields == field].T, s=6, color=COLORS[field], label=f"field {field}")
        axes.set(
            xticks=[], yticks=[], title=f"{name}: {accuracy(scores, data, data.test_mask):.1%} of 1,000 papers right"
        )
        axes.legend(fontsize=7, markerscale=2)
    save(drawn, output, "14_citations.png")


if __name__ == "__main__":
    command_line = parser(__doc__)
    command_line.add_argument(
        "--planetoid", type=existing, required=True, help="folder of the raw files ind.cora.* ..."
    )
    given = command_line.parse_args()
    with told_plainly(command_line):
        main(given.output, given.planetoid, quick=given.quick)
