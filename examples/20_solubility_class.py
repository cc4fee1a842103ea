"""One class per set: is a molecule hardly, moderately or well soluble in water?

The classes of the measured values: low below 1 mmol/L (log10 of mol/L below -3), medium up to 100 mmol/L (-1), high
from there on. The library's classifier answers yes-or-no questions, so it is asked two at once: does the molecule reach
-3, does it reach -1? The yeses, counted, are the class (Frank and Hall 2001). Beside it stand the same network trained
on the values, which say more than their classes, and cut afterwards; random forests; and a guess that always names the
commonest class. The full run takes about six minutes on two cores.
Run: python examples/20_solubility_class.py --output out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from lesson import figure, save, settings, table
from molecules import bundled, draw_confusion
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.Chem.rdMolDescriptors import Properties
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix

import graphattn as ga
from graphattn.data.card import load_card

BORDERS = (-3.0, -1.0)  # log10 of mol/L
NAMES = ("low", "medium", "high")
FULL = {"ensemble": 3}  # everything else as the estimators have it
QUICK = {"epochs": 20, "channels": 32, "layers": 2}
DRAWN = ("attention, classes", "attention, values", "forest on descriptors, classes")

Numbers = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]  # 0 is low, 2 is high


@dataclass(frozen=True)
class Results:
    """What came out on the test molecules."""

    right: dict[str, float]  # share of molecules in their class, of each contestant
    confusion: dict[str, Classes]  # (3, 3) molecules by true class and class given


def main(output: Path, *, quick: bool) -> Results:
    """Learn on the train part, judge on the test part, draw what is taken for what."""
    molecules = measured()[:: 3 if quick else 1]
    known, asked = (molecules[molecules.part == part] for part in ("train", "test"))
    told, truth = reached(known.value), reached(asked.value).sum(1)
    counts = ", ".join(f"{count} {name}" for count, name in zip(np.bincount(truth), NAMES, strict=True))
    print(f"{len(known)} molecules to learn from, {len(asked)} to judge by: {counts}")

    size = QUICK if quick else FULL
    classifier = ga.MoleculeClassifier(random_state=0).set_params(**size).fit(known.smiles, told)
    regressor = ga.MoleculeRegressor(random_state=0).set_params(**size).fit(known.smiles, known.value)
    given = {
        "the commonest class": np.full(len(asked), np.bincount(told.sum(1)).argmax()),
        "attention, classes": classifier.predict(asked.smiles).sum(1),
        "attention, values": reached(regressor.predict(asked.smiles)).sum(1),
    }
    trees: dict[str, Any] = {"n_estimators": 50 if quick else 500, "random_state": 0, "n_jobs": 2}
    for name, describe in {"fingerprints": fingerprints, "descriptors": descriptors}.items():
        x, new = describe(known.smiles), describe(asked.smiles)
        given[f"forest on {name}, classes"] = RandomForestClassifier(**trees).fit(x, told.sum(1)).predict(new)
        values = RandomForestRegressor(**trees, max_features=1 / 3).fit(x, known.value).predict(new)
        given[f"forest on {name}, values"] = reached(values).sum(1)

    right = {name: float(accuracy_score(truth, each)) for name, each in given.items()}
    rows = [
        {
            "class from": name,
            "right": f"{share:.1%} ± {np.sqrt(share * (1 - share) / len(asked)):.1%}",
            "mean of classes": f"{balanced_accuracy_score(truth, given[name]):.1%}",
            "two classes off": int((abs(given[name] - truth) == 2).sum()),
        }
        for name, share in right.items()
    ]
    table(rows, f"{len(asked)} test molecules (±: the standard error of a share)")
    confusion = {name: confusion_matrix(truth, given[name]) for name in DRAWN}
    drawn, axes = figure(len(DRAWN), width=4.2, height=4.8)
    for panel, name in zip(axes, DRAWN, strict=True):
        draw_confusion(panel, confusion[name], NAMES)
        panel.set(xlabel="class given", ylabel="true class")
        panel.set_title(f"{name}: {right[name]:.1%} right", fontsize=10)
    save(drawn, output, "20_solubility_class.png")
    said = ", ".join(f"{name} {right[name]:.1%}" for name in ("the commonest class", *DRAWN))
    print(f"test molecules put into their class: {said}")
    return Results(right, confusion)


def measured() -> pd.DataFrame:
    """SMILES, measured solubility in log10 of mol/L, and train or test; a molecule of both parts is in train only."""
    card = load_card("solubility").table()
    columns = {"smiles": card.column("smiles"), "part": card.column("split"), "value": card.numbers("log_solubility")}
    rows = pd.DataFrame(columns)
    _, unseen = bundled()
    return rows[(rows.part == "train") | rows.smiles.map(Chem.CanonSmiles).isin(unseen)]


def reached(value: "pd.Series[float] | Numbers") -> Classes:
    """(molecules, 2) 1 for each border that a value reaches, else 0; their sum is the class."""
    return (np.asarray(value)[:, None] >= np.array(BORDERS)).astype(np.int64)


def fingerprints(smiles: "pd.Series[str]") -> Numbers:
    """(molecules, 2048) ECFP4: how often each pattern of up to two bonds around an atom occurs."""
    made = GetMorganGenerator(radius=2, fpSize=2048)
    return np.array([made.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(each)) for each in smiles], dtype=np.float64)


def descriptors(smiles: "pd.Series[str]") -> Numbers:
    """(molecules, 43) what RDKit computes of a whole molecule: estimated logP, polar surface, hydrogen bonds, ..."""
    computed = Properties()
    return np.array([computed.ComputeProperties(Chem.MolFromSmiles(each)) for each in smiles])


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
