"""What the examples about molecules share: those that come with the package, and a picture of a confusion matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit import Chem

from graphattn.data.card import load_card


def bundled() -> tuple[list[str], list[str]]:
    """The molecules to learn from, and those of the test part that are not among them."""
    given = load_card("solubility").table()
    rows = [*zip(map(Chem.CanonSmiles, given.column("smiles")), given.column("split"), strict=True)]
    known, asked = (dict.fromkeys(smiles for smiles, part in rows if part == wanted) for wanted in ("train", "test"))
    return list(known), [smiles for smiles in asked if smiles not in known]


def draw_confusion(axes: Any, counts: npt.NDArray[np.int64], names: Sequence[str]) -> None:
    """How many of each true class (rows) were given which (columns); deeper is a larger share of the row."""
    share = counts / counts.sum(1, keepdims=True).clip(min=1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), part in np.ndenumerate(share):
        color = "white" if part > 0.5 else "black"
        axes.text(column, row, counts[row, column], ha="center", va="center", color=color)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names, rotation=90, va="center")
