"""Small graphs whose targets a small network can learn, for the tests of the training layer."""

import torch
from torch import nn
from torch_geometric.data import Batch, Data

from graphattn.data.dataset import GraphDataset
from graphattn.data.packed import PackedGraphs

KINDS = 10  # node codes


def toy_dataset(num_graphs, *, seed=0, targets=2, task="regression"):
    """Graphs of 1 to 6 nodes in a path; target k is the scaled mean of code ** (k + 1) of its nodes."""
    generator = torch.Generator().manual_seed(seed)
    graphs, values = [], []
    for size in torch.randint(1, 7, (num_graphs,), generator=generator).tolist():
        x = torch.randint(0, KINDS, (size, 1), generator=generator)
        forward = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        graphs.append(Data(x=x, edge_index=torch.cat([forward, forward.flip(0)], dim=1)))
        code = x.float() / KINDS
        values.append([4 * (code ** (power + 1)).mean().item() - 1.5 for power in range(targets)])
    values = torch.tensor(values)
    return GraphDataset(PackedGraphs.from_data(graphs), values if task == "regression" else (values > 0).float())


class ToyNetwork(nn.Module):
    """Embedding, a hidden layer with norm and dropout, sum over nodes, one output per target.

    It has all that a checkpoint must carry: a table, matrices, vectors and, if asked for, buffers.
    """

    def __init__(self, targets=2, channels=16, *, dropout=0.1, batch_norm=False):
        super().__init__()
        self.embedding = nn.Embedding(KINDS, channels)
        self.hidden = nn.Linear(channels, channels)
        self.norm = nn.BatchNorm1d(channels) if batch_norm else nn.LayerNorm(channels)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(channels, targets)

    def forward(self, batch: Batch):
        h = self.dropout(torch.relu(self.norm(self.hidden(self.embedding(batch.x[:, 0])))))
        pooled = h.new_zeros(batch.num_graphs, h.shape[1]).index_add(0, batch.batch, h)
        return self.head(pooled / 4)


def toy_network(seed=0, **settings):
    """The same weights for the same seed, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ToyNetwork(**settings)


def without_seconds(history):
    """What must be equal in two runs: everything but the wall clock."""
    return [(record.epoch, record.train_loss, record.valid_loss, record.learning_rate) for record in history]
