"""A molecule's property: learn solubility from a table, judge it on molecules held back, predict new ones, look inside.

The data come with the package: 1,282 molecules with measured solubility (Huuskonen 2000), 257 of them marked as test,
of which four stand among those to learn from as well, spelled otherwise. The full run takes about two minutes on two
cores. Run: python examples/19_molecule_property.py --output out
"""

import time
from pathlib import Path

import numpy as np
from lesson import figure, parser, save
from rdkit import Chem
from rdkit.Chem import Descriptors
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import RobustScaler

import graphattn as ga
from graphattn.data.card import load_card

NEW_MOLECULES = {"caffeine": "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "naphthalene": "c1ccc2ccccc2c1", "glycerol": "OCC(O)CO"}
DRAWN = ("ibuprofen", "CC(C)Cc1ccc(cc1)C(C)C(=O)O")


def main(output: Path, epochs: int | None = None, *, quick: bool = False) -> dict[str, float]:
    """Train, compare, predict, draw; returns the test RMSE of every contestant."""
    epochs = 4 if quick and epochs is None else epochs
    card = load_card("solubility")
    table = card.table()
    smiles, target = np.array(table.column(card.smiles_column)), card.targets[0]
    measured = table.numbers(target.name)
    test = np.array(table.column("split")) == "test"
    print(f"{card.title}: {sum(~test)} molecules to learn from, {sum(test)} to judge by; {target.name}, {target.unit}")

    start = time.perf_counter()
    model = ga.MoleculeRegressor(random_state=0).set_params(**({} if epochs is None else {"epochs": epochs}))
    model.fit(smiles[~test], measured[~test])
    print(f"trained for {len(model.history_)} epochs in {time.perf_counter() - start:.0f} s")
    predicted = model.predict(smiles[test])

    errors = {"graphattn": rmse(predicted, measured[test]), "the mean": rmse(measured[~test].mean(), measured[test])}
    descriptors = np.array([describe(each) for each in smiles])
    for name, baseline in baselines().items():
        baseline.fit(descriptors[~test], measured[~test])
        errors[name] = rmse(baseline.predict(descriptors[test]), measured[test])
    for name, error in sorted(errors.items(), key=lambda item: item[1]):
        print(f"  test RMSE {error:.3f} {target.unit}   {name}")

    for name, value in zip(NEW_MOLECULES, model.predict(list(NEW_MOLECULES.values())), strict=True):
        print(f"  {name}: {value:.2f} {target.unit}, that is {1000 * 10**value:.3g} mmol/L")

    scatter(measured[test], predicted, f"measured {target.name} ({target.unit})", output)
    name, drawn = DRAWN
    ga.explain(model, drawn).draw(output / f"{name}_attention.png")
    print(f"and, what was attended to in {name}, in {output / f'{name}_attention.png'}")
    return errors


def rmse(predicted: np.ndarray | float, measured: np.ndarray) -> float:
    """Root mean squared error, in the target's unit."""
    return float(np.sqrt(np.mean((predicted - measured) ** 2)))


def describe(smiles: str) -> list[float]:
    """RDKit's 200-odd descriptors; huge ones are clipped."""
    molecule = Chem.MolFromSmiles(smiles)
    return [min(max(float(function(molecule)), -1e5), 1e5) for _, function in Descriptors.descList]


def baselines() -> dict[str, Pipeline]:
    """What most people would try first, on RDKit descriptors."""
    ridge = make_pipeline(SimpleImputer(), RobustScaler(), RidgeCV(np.logspace(-1, 4, 11)))
    forest = make_pipeline(SimpleImputer(), RandomForestRegressor(300, max_features=0.33, random_state=0, n_jobs=2))
    return {"ridge regression on RDKit descriptors": ridge, "random forest on RDKit descriptors": forest}


def scatter(measured: np.ndarray, predicted: np.ndarray, label: str, output: Path) -> None:
    """Predicted against measured, with the line where both are equal."""
    drawn, axes = figure(width=5, height=5)
    axes.scatter(measured, predicted, s=14, alpha=0.6, color="#0072b2", edgecolor="none")
    ends = [min(measured.min(), predicted.min()) - 0.3, max(measured.max(), predicted.max()) + 0.3]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set(xlim=ends, ylim=ends, aspect="equal", xlabel=label, ylabel=label.replace("measured", "predicted"))
    axes.set_title(f"{len(measured)} molecules held back: RMSE {rmse(predicted, measured):.2f}")
    save(drawn, output, "predicted_against_measured.png")


if __name__ == "__main__":
    command_line = parser(__doc__)
    command_line.add_argument(
        "--epochs", type=int, help="passes over the molecules; the estimator's default if not given"
    )
    arguments = command_line.parse_args()
    main(arguments.output, arguments.epochs, quick=arguments.quick)
