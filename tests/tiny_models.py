"""Small models, quickly trained, for the tests of everything that a trained model goes through."""

from functools import cache

import numpy as np

from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.fit import fit_molecules
from graphattn.model.config import NetworkConfig
from graphattn.predict import Predictor, Target
from graphattn.prepare import prepare_rows
from graphattn.training.config import TrainingConfig

MOLECULES = (
    *("C", "CO", "CCO", "CCCO", "CCCCO", "CC(C)O", "c1ccccc1", "Cc1ccccc1", "Oc1ccccc1", "Nc1ccccc1"),
    *("CC(=O)O", "CCC(=O)O", "CC#N", "C1CCCCC1", "ClC(Cl)Cl", "CCN", "CCOCC", "C[C@H](N)C(=O)O", "FC=CF", "CSC"),
)
NETWORK = NetworkConfig(channels=8, layers=1, heads=2)
TRAINING = TrainingConfig(epochs=2, batch_size=8, accelerator="cpu")


def made_up_values(count: int = len(MOLECULES)) -> np.ndarray:
    """One number per molecule, (rows, 1): the length of its SMILES, in no unit."""
    return np.array([[float(len(smiles))] for smiles in MOLECULES[:count]])


@cache
def tiny_predictor(task: str = "regression", ensemble: int = 1, **featurizer: object) -> Predictor:
    """A trained model of two targets; the same arguments give the same object, which no test changes."""
    values = made_up_values()
    labels = np.hstack([values, values > 6]) if task == "regression" else np.hstack([values > 6, values % 2])
    classes = () if task == "regression" else (0, 1)
    prepared = prepare_rows(
        MOLECULES,
        labels.astype(float),
        [Target("length", "letters", classes), Target("odd", "", classes)],
        task=task,
        featurizer=MoleculeFeaturizer(**featurizer),
        fractions=(0.7, 0.15, 0.15),
    )
    return fit_molecules(prepared, network=NETWORK, training=TRAINING, ensemble=ensemble)
