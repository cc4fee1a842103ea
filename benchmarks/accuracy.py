"""How exact predictions are on public data, on fixed splits and seeds, beside the bounds that the project sets itself.

    python benchmarks/accuracy.py                              # all sets, seeds 0 1 2, default settings
    python benchmarks/accuracy.py --sets esol --seeds 0 --setting epochs=50

Every (contestant, set, protocol, seed, settings) is one row of a results file, written as soon as it is there: a run
that was stopped goes on where it was.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from machine import machine
from public_data import public_file

from graphattn.data.split import Split
from graphattn.data.table import read_table
from graphattn.errors import GraphattnWarning, SettingError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.fit import fit_molecules
from graphattn.model.config import NetworkConfig
from graphattn.predict import Target
from graphattn.prepare import Labels, prepare_rows
from graphattn.training.config import TrainingConfig

RESULTS = Path(__file__).parent / "results" / "accuracy.jsonl"


@dataclass(frozen=True)
class Problem:
    """A public set to learn, and the mean test RMSE over seeds 0, 1, 2 that is good enough."""

    name: str
    file: str
    target: Target
    bound: float  # RMSE, in the target's unit, on the random split
    smiles_column: str = "smiles"

    def load(self) -> tuple[list[str], Labels]:
        """The molecules that can be read, in file order, and their labels (rows, 1)."""
        table = read_table(public_file(self.file))
        molecules = table.column(self.smiles_column)
        labels = table.numbers(self.target.name)[:, None]
        graphs, _ = MoleculeFeaturizer().rows(molecules)
        readable = [row for row, graph in enumerate(graphs) if graph is not None]
        return [molecules[row] for row in readable], labels[readable]


PROBLEMS = (
    Problem(
        "esol",
        "molnet/delaney-processed.csv",
        Target("measured log solubility in mols per litre", "log10 mol/L"),
        bound=0.58,
    ),
    Problem("freesolv", "molnet/SAMPL.csv", Target("expt", "kcal/mol"), bound=1.25),
    Problem("lipophilicity", "molnet/Lipophilicity.csv", Target("exp", "logD"), bound=0.66),
)


def random_80_10_10(rows: int, seed: int) -> Split:
    """The first 80 % of a seeded permutation train, the next 10 % validate, the rest test."""
    order = np.random.default_rng(seed).permutation(rows)
    first, second = int(0.8 * rows), int(0.9 * rows)
    return Split(*(tuple(sorted(part.tolist())) for part in np.split(order, [first, second])))


PROTOCOLS: dict[str, Callable[[int, int], Split]] = {"random": random_80_10_10}


@dataclass(frozen=True)
class Settings:
    """What a contestant is told: the defaults, but for what the command line changed."""

    network: NetworkConfig
    training: TrainingConfig
    ensemble: int = 1

    @classmethod
    def changed(cls, changes: Sequence[str], seed: int) -> "Settings":
        """The defaults with ``name=value`` changes, such as ``epochs=50`` or ``ensemble=5``.

        Raises:
            SettingError: no such setting, or a value that it cannot have.
        """
        texts = dict(change.split("=", 1) for change in changes)
        ensemble = int(texts.pop("ensemble", "1"))
        network = _changed(NetworkConfig, texts)
        training = _changed(TrainingConfig, texts | {"seed": str(seed)})
        unknown = texts.keys() - {field.name for kind in (NetworkConfig, TrainingConfig) for field in fields(kind)}
        if unknown:
            raise SettingError(f"there is no setting {', '.join(sorted(unknown))}")
        return cls(network, training, ensemble)


def _changed(kind: type[Any], texts: Mapping[str, str]) -> Any:
    hints = get_type_hints(kind)
    read: dict[type, Callable[[str], Any]] = {bool: lambda text: text == "True", int: int, float: float}
    values = {name: read.get(hints[name], str)(text) for name, text in texts.items() if name in hints}
    return kind(**values)


def graphattn_rmse(molecules: Sequence[str], labels: Labels, target: Target, split: Split, settings: Settings) -> float:
    """The test RMSE of this library, by the way that the command line and the estimators take."""
    prepared = prepare_rows(molecules, labels, [target], task="regression", split=split)
    predictor = fit_molecules(
        prepared, network=settings.network, training=settings.training, ensemble=settings.ensemble
    )
    rmse = predictor.summary.scores["test"][0].values["rmse"]
    assert rmse is not None
    return rmse


CONTESTANTS = {"graphattn": graphattn_rmse}


@dataclass(frozen=True)
class Run:
    """One number to find: who, on what, split how, with which seed and settings."""

    contestant: str
    problem: Problem
    protocol: str
    seed: int
    settings: Settings

    @property
    def key(self) -> dict[str, Any]:
        """What names the run in the results file."""
        return {
            "contestant": self.contestant,
            "set": self.problem.name,
            "protocol": self.protocol,
            "seed": self.seed,
            "settings": asdict(self.settings),
        }

    def row(self) -> dict[str, Any]:
        """Train on the train part, stop by the validation part, score on the test part."""
        molecules, labels = self.problem.load()
        split = PROTOCOLS[self.protocol](len(molecules), self.seed)
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphattnWarning)  # these sets hold known duplicates of different values
            rmse = CONTESTANTS[self.contestant](molecules, labels, self.problem.target, split, self.settings)
        seconds = round(time.perf_counter() - begun, 1)
        return {
            **self.key,
            "rmse": rmse,
            "seconds": seconds,
            "rows": len(molecules),
            "test_rows": len(split.test),
            "machine": machine(),
        }


def find_row(rows: Iterable[Mapping[str, Any]], run: Run) -> Mapping[str, Any] | None:
    """The newest row of this very run, if it was done before."""
    found = [row for row in rows if all(row[name] == value for name, value in run.key.items())]
    return found[-1] if found else None


def summary(rows: Sequence[Mapping[str, Any]], problems: Sequence[Problem]) -> str:
    """One line for each set: mean test RMSE, the bound beside it, each seed, and the time."""
    lines = [f"{'set':15}{'mean RMSE':>10}{'bound':>8}   each seed"]
    for problem in problems:
        own = [row for row in rows if row["set"] == problem.name]
        mean = statistics.mean(row["rmse"] for row in own)
        verdict = "met" if mean <= problem.bound else "MISSED"
        each = "  ".join(f"{row['seed']}: {row['rmse']:.3f}" for row in own)
        seconds = sum(row["seconds"] for row in own)
        lines.append(f"{problem.name:15}{mean:10.3f}{problem.bound:8.2f}   {verdict}   {each}   ({seconds:.0f} s)")
    return "\n".join(lines)


def main() -> None:
    """Do the runs that are not in the results file yet, and print the table of all that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [problem.name for problem in PROBLEMS]
    parser.add_argument("--sets", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="change a default")
    parser.add_argument("--results", type=Path, default=RESULTS, help="rows are appended there, one JSON object a line")
    arguments = parser.parse_args()
    problems = [problem for problem in PROBLEMS if problem.name in arguments.sets]
    try:
        runs = [
            Run("graphattn", problem, "random", seed, Settings.changed(arguments.setting, seed))
            for problem in problems
            for seed in arguments.seeds
        ]
        rows = [_done(run, arguments.results) for run in runs]
    except (FileNotFoundError, SettingError) as error:
        raise SystemExit(f"error: {error}") from error
    print(summary(rows, problems))


def _done(run: Run, results: Path) -> Mapping[str, Any]:
    """The row of a run, out of the results file or freshly made and appended to it."""
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []
    row = find_row(rows, run)
    if row is None:
        row = run.row()
        results.parent.mkdir(parents=True, exist_ok=True)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{run.problem.name}, seed {run.seed}: RMSE {row['rmse']:.3f} in {row['seconds']:.0f} s", flush=True)
    return row


if __name__ == "__main__":
    main()
