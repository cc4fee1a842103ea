"""How many molecules a second training takes, and how much memory: one process, default settings, real molecules.

python benchmarks/training_speed.py                       # Lipophilicity, 4,200 drug-like molecules
python benchmarks/training_speed.py molecules.csv --target-column logD --json speed.json
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from machine import machine, peak_memory_mib
from public_data import public_file

from graphattn.data.table import read_table
from graphattn.errors import GraphattnWarning
from graphattn.fit import fit_molecules
from graphattn.predict import Target
from graphattn.prepare import prepare_rows
from graphattn.training.config import TrainingConfig
from graphattn.training.history import EpochRecord


class Stopwatch:
    """A progress that takes the time of each epoch's training steps, validation left out."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._begun = self._last_step = 0.0

    def start(self, *, epochs: int, steps_per_epoch: int, epochs_done: int) -> None:  # noqa: ARG002 (the protocol's)
        """The first epoch begins."""
        self._begun = time.perf_counter()

    def step(self) -> None:
        """One step is done."""
        self._last_step = time.perf_counter()

    def epoch(self, record: EpochRecord, best: EpochRecord) -> None:  # noqa: ARG002 (the protocol's)
        """One epoch is done, the next begins."""
        self.seconds.append(self._last_step - self._begun)
        print(f"epoch {record.epoch}: {self.seconds[-1]:.2f} s training", file=sys.stderr)
        self._begun = time.perf_counter()

    def stop(self) -> None:
        """Nothing."""


def measure(path: Path, smiles_column: str, target_column: str, epochs: int) -> dict[str, object]:
    """Train and take the time; the first epoch warms up and does not count."""
    table = read_table(path)
    molecules = table.column(smiles_column)
    labels = table.numbers(target_column)[:, None]
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphattnWarning)
        prepared = prepare_rows(molecules, labels, [Target(target_column)])
    featurizing = time.perf_counter() - begun
    watch = Stopwatch()
    training = TrainingConfig(epochs=epochs + 1, patience=epochs + 1)
    predictor = fit_molecules(prepared, training=training, progress=lambda _: watch)
    rates = [len(prepared.split.train) / seconds for seconds in watch.seconds[1:]]
    losses = [record.train_loss for record in predictor.summary.histories[0]]
    if not np.isfinite(losses).all() or min(losses[1:]) >= losses[0]:
        raise SystemExit(f"training does not learn (losses {losses}); a wrong program is not timed")
    return {
        "file": path.name,
        "molecules": len(prepared.kept),
        "training_molecules": len(prepared.split.train),
        "atoms_per_molecule": round(prepared.dataset.graphs.node_counts.double().mean().item(), 1),
        "epochs": epochs,
        "molecules_per_second": round(statistics.median(rates), 1),
        "slowest_epoch": round(min(rates), 1),
        "fastest_epoch": round(max(rates), 1),
        "prepared_per_second": round(len(molecules) / featurizing, 1),
        "peak_memory_mib": round(peak_memory_mib(), 1),
        "machine": machine(),
    }


def main() -> None:
    """Measure what the arguments name, print it, and write it where they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", type=Path, help="CSV; MoleculeNet's Lipophilicity when not given")
    parser.add_argument("--smiles-column", default="smiles")
    parser.add_argument("--target-column", default="exp")
    parser.add_argument("--epochs", type=int, default=3, help="epochs that count, after one to warm up")
    parser.add_argument("--json", type=Path, help="write the measurement there")
    arguments = parser.parse_args()
    try:
        path = arguments.table or public_file("molnet/Lipophilicity.csv")
    except FileNotFoundError as missing:
        raise SystemExit(f"error: {missing}, or give a table as the first argument") from missing
    result = measure(path, arguments.smiles_column, arguments.target_column, arguments.epochs)
    for name, value in result.items():
        print(f"{name:22} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
