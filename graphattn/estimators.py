"""scikit-learn estimators over molecules: SMILES or RDKit Mol in, measured values or classes out."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from graphattn.checks import LARGEST_SEED, whole_number
from graphattn.errors import GraphattnWarning, ModelFolderError, MoleculeError, SettingError, ShapeError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.fit import fit_molecules
from graphattn.inputs import as_classes, as_columns, as_molecules, as_numbers
from graphattn.model.config import NetworkConfig
from graphattn.model_folder import load_model, save_model
from graphattn.predict import Predictions, Predictor, Target
from graphattn.prepare import Labels, left_out_message, prepare_rows
from graphattn.training.config import Task, TrainingConfig
from graphattn.training.progress import choose_progress


class _MoleculeEstimator(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """What both estimators share: the settings, and the way from rows to a fitted predictor."""

    predictor_: Predictor

    def __init__(
        self,
        *,
        channels: int = NetworkConfig.channels,
        layers: int = NetworkConfig.layers,
        heads: int = NetworkConfig.heads,
        dropout: float = NetworkConfig.dropout,
        readout: str = NetworkConfig.readout,
        self_loops: bool = NetworkConfig.self_loops,
        epochs: int = TrainingConfig.epochs,
        batch_size: int = TrainingConfig.batch_size,
        learning_rate: float = TrainingConfig.learning_rate,
        weight_decay: float = TrainingConfig.weight_decay,
        patience: int = TrainingConfig.patience,
        accelerator: Literal["auto", "cpu", "cuda"] = TrainingConfig.accelerator,
        hydrogens: Literal["implicit", "keep", "add"] = MoleculeFeaturizer.hydrogens,
        stereo: bool = MoleculeFeaturizer.stereo,
        validation_fraction: float = 0.1,
        ensemble: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.channels = channels
        self.layers = layers
        self.heads = heads
        self.dropout = dropout
        self.readout = readout
        self.self_loops = self_loops
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.accelerator = accelerator
        self.hydrogens = hydrogens
        self.stereo = stereo
        self.validation_fraction = validation_fraction
        self.ensemble = ensemble
        self.random_state = random_state
        self.verbose = verbose

    @property
    @abstractmethod
    def _task(self) -> Task: ...

    @property
    def history_(self) -> list[dict[str, float]]:
        """One record per ensemble member and epoch: losses, learning rate, seconds; ``pandas.DataFrame`` takes it."""
        check_is_fitted(self)
        members = enumerate(self.predictor_.summary.histories)
        return [{"member": member, **asdict(record)} for member, history in members for record in history]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model as a folder, which :meth:`load` and ``graphattn predict`` read.

        Raises:
            NotFittedError: ``fit`` has not been called.
            ModelFolderError: something that is no model folder stands there.
        """
        check_is_fitted(self)
        save_model(self.predictor_, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The fitted estimator of a model folder, whether Python or the command line wrote it.

        Raises:
            ModelFolderError: the folder is damaged or foreign, or holds a model of the other kind.
        """
        predictor = load_model(folder)
        own = set(cls._get_param_names())
        training = dict(predictor.summary.training)
        settings = {field.name: getattr(predictor.network_config, field.name) for field in fields(NetworkConfig)}
        settings |= training
        settings |= {"hydrogens": predictor.featurizer.hydrogens, "stereo": predictor.featurizer.stereo}
        settings |= {"ensemble": len(predictor.networks), "random_state": training.get("seed")}
        model = cls(**{name: value for name, value in settings.items() if name in own})
        if predictor.task != model._task:
            kind, reader = {
                "regression": ("regression", "MoleculeRegressor"),
                "binary": ("classification", "MoleculeClassifier"),
            }[predictor.task]
            raise ModelFolderError(f"{folder} holds a {kind} model; read it with graphattn.{reader}.load")
        model.predictor_ = predictor
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def _flat(self) -> bool:
        """Whether y was (rows,), so that predictions are too; a model of the command line had one column of it."""
        one = len(self.predictor_.targets) == 1
        return one and bool(self.predictor_.summary.training.get("flat_y", True))

    def _fit(
        self, molecules: list[object], labels: Labels, targets: Sequence[Target], *, flat: bool, strict: bool
    ) -> None:
        fraction = self.validation_fraction
        if not isinstance(fraction, Real) or not 0 < fraction < 1:
            raise SettingError(f"validation_fraction must be in (0, 1), got {fraction!r}")
        ensemble = whole_number("ensemble", self.ensemble, at_least=1)
        network = NetworkConfig(**{field.name: getattr(self, field.name) for field in fields(NetworkConfig)})
        named = {field.name: getattr(self, field.name) for field in fields(TrainingConfig) if hasattr(self, field.name)}
        training = TrainingConfig(**named, seed=self._seed())
        prepared = prepare_rows(
            molecules,
            labels,
            targets,
            task=self._task,
            featurizer=MoleculeFeaturizer(hydrogens=self.hydrogens, stereo=self.stereo),
            fractions=(1 - fraction, fraction, 0.0),
            seed=training.seed,
            strict=strict,
        )
        predictor = fit_molecules(
            prepared,
            network=network,
            training=training,
            ensemble=ensemble,
            progress=lambda member: choose_progress(
                quiet=not self.verbose, label=f"network {member + 1} of {ensemble}" if ensemble > 1 else ""
            ),
        )
        settings = {**predictor.summary.training, "validation_fraction": float(fraction), "flat_y": flat}
        self.predictor_ = replace(predictor, summary=replace(predictor.summary, training=settings))

    def _seed(self) -> int:
        seed = self.random_state
        if seed is None or isinstance(seed, np.random.RandomState):
            return int(check_random_state(seed).randint(2**31 - 1))
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= LARGEST_SEED:
            raise SettingError(
                f"random_state must be an int from 0 to {LARGEST_SEED}, a numpy.random.RandomState or None, "
                f"got {seed!r}"
            )
        return int(seed)

    def _predict(self, X: object, *, strict: bool) -> Predictions:  # noqa: N803 (scikit-learn's name)
        check_is_fitted(self)
        molecules = as_molecules(X)
        predictions = self.predictor_.predict(molecules, strict=strict)
        bad = {position: predictions.rows[position].status for position in predictions.bad_rows}
        if bad:
            message = left_out_message(molecules, bad, "have no prediction (NaN)")
            warnings.warn(message, GraphattnWarning, stacklevel=3)
        return predictions


def _readable(
    predictions: Predictions, y: object, weight: object
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], npt.NDArray[Any] | None]:
    """``y``, predicted values and weights, if there are any, of the rows that have a prediction."""
    rows, bad = len(predictions.rows), predictions.bad_rows
    if len(bad) == rows:
        raise MoleculeError(f"none of {rows} rows is a molecule, so there is nothing to score")
    observed, weights = np.asarray(y), None if weight is None else np.asarray(weight)
    for array in (observed, weights):
        if array is not None and array.shape[:1] != (rows,):
            raise ShapeError(f"got values of shape {array.shape} to score {rows} molecules with")
    kept = np.delete(np.arange(rows), bad)
    return observed[kept], predictions.values[kept], None if weights is None else weights[kept]


class MoleculeRegressor(RegressorMixin, _MoleculeEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn measured values from molecules; a scikit-learn regressor whose X is a list of SMILES or RDKit Mol.

    >>> model = MoleculeRegressor(epochs=2, channels=8, layers=1, heads=2, random_state=0)
    >>> alcohols = ["CO", "CCO", "CCCO", "CCCCO", "CCCCCO", "CCCCCCO"]
    >>> model.fit(alcohols, [0.0, 0.0, -0.1, 0.0, -0.6, -1.2]).predict(["CC(C)O", "Oc1ccccc1"]).shape
    (2,)

    Args:
        channels: width of an atom's vector.
        layers: blocks of attention and feed-forward.
        heads: attention heads; divides ``channels``.
        dropout: on attention weights and on every residual branch, in [0, 1).
        readout: how the atoms become one vector: ``"attention"``, ``"sum"``, ``"mean"``, ``"max"``, or several joined
            by ``+``.
        self_loops: whether an atom attends to itself as well.
        epochs: passes over the training rows, at most.
        batch_size: molecules per optimizer step.
        learning_rate: the highest, reached after warm-up.
        weight_decay: of AdamW.
        patience: epochs without a better validation loss before training stops.
        accelerator: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU where there is one.
        hydrogens: ``"implicit"`` has no hydrogen atoms, ``"keep"`` those that were written, ``"add"`` all.
        stereo: whether stereochemistry counts.
        validation_fraction: of the rows, set aside to find the best epoch; a molecule that occurs twice stays together.
        ensemble: how many networks are trained; the prediction is their mean.
        random_state: decides everything random: an int for the same bits again, None for NumPy's global generator.
        verbose: show progress on the standard error.

    Attributes:
        predictor_: the trained :class:`graphattn.predict.Predictor`.
        history_: one record per ensemble member and epoch.
    """

    @property
    def _task(self) -> Task:
        return "regression"

    def fit(self, X: object, y: object, *, strict: bool = False) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn from molecules and their values.

        Args:
            X: SMILES or RDKit Mol: a list, array, series or single column.
            y: (rows,) or (rows, T) numbers, NaN where not measured. Column names are kept as target names.
            strict: raise for a row that is no molecule, instead of leaving it out with a warning.

        Raises:
            MoleculeError, ShapeError, TableError, TrainingError, SettingError: what cannot be used, and where.
        """
        molecules = as_molecules(X)
        columns, names, flat = as_columns(y, len(molecules))
        labels = np.column_stack([as_numbers(column, name) for column, name in zip(columns, names, strict=True)])
        self._fit(molecules, labels, [Target(name) for name in names], flat=flat, strict=strict)
        return self

    def predict(self, X: object, *, strict: bool = False) -> npt.NDArray[np.float64]:  # noqa: N803
        """The value of every molecule, (rows,) or (rows, T) as ``y`` was; NaN and one warning for unreadable rows.

        Raises:
            MoleculeError: ``strict``, and a row is no molecule.
            NotFittedError: ``fit`` has not been called.
        """
        values = self._predict(X, strict=strict).values
        return values[:, 0] if self._flat else values

    def score(self, X: object, y: object, sample_weight: object = None) -> float:  # noqa: N803
        """R², of several targets their mean, over the rows that are molecules; one warning names the others.

        ``cross_val_score`` calls this unless told otherwise; scikit-learn's scorers by name refuse the NaN of a row
        without a prediction.

        Raises:
            MoleculeError: no row is a molecule.
            ShapeError: ``y`` or ``sample_weight`` has another number of rows.
            ValueError: scikit-learn's, for a NaN in ``y``.
            NotFittedError: ``fit`` has not been called.
        """
        predictions = self._predict(X, strict=False)
        observed, values, weight = _readable(predictions, y, sample_weight)
        return float(r2_score(observed, values, sample_weight=weight))


class MoleculeClassifier(ClassifierMixin, _MoleculeEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn one or several yes-or-no properties of molecules; settings as in :class:`MoleculeRegressor`.

    Attributes:
        classes_: the two labels, sorted, (2,); for several targets a list of such arrays.
        predictor_: the trained :class:`graphattn.predict.Predictor`.
        history_: one record per ensemble member and epoch.
    """

    @property
    def _task(self) -> Task:
        return "binary"

    @property
    def classes_(self) -> npt.NDArray[Any] | list[npt.NDArray[Any]]:
        """The two labels of each target."""
        check_is_fitted(self)
        classes = [np.array(target.classes) for target in self.predictor_.targets]
        return classes[0] if self._flat else classes

    def fit(self, X: object, y: object, *, strict: bool = False) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn from molecules and their classes.

        Args:
            X: SMILES or RDKit Mol: a list, array, series or single column.
            y: (rows,) or (rows, T) labels, two different ones in each column; NaN or None where not measured.
            strict: raise for a row that is no molecule, instead of leaving it out with a warning.

        Raises:
            MoleculeError, ShapeError, TableError, TrainingError, SettingError: what cannot be used, and where.
        """
        molecules = as_molecules(X)
        columns, names, flat = as_columns(y, len(molecules))
        targets, labels = zip(*map(as_classes, columns, names), strict=True)
        self._fit(molecules, np.column_stack(labels), targets, flat=flat, strict=strict)
        return self

    def predict_proba(
        self,
        X: object,  # noqa: N803 (scikit-learn's name)
        *,
        strict: bool = False,
    ) -> npt.NDArray[np.float64] | list[npt.NDArray[np.float64]]:
        """The probability of each class, (rows, 2) in the order of ``classes_``; for several targets a list of these.

        Raises:
            MoleculeError: ``strict``, and a row is no molecule.
            NotFittedError: ``fit`` has not been called.
        """
        values = self._predict(X, strict=strict).values
        each = [np.column_stack([1 - column, column]) for column in values.T]
        return each[0] if self._flat else each

    def predict(self, X: object, *, strict: bool = False) -> npt.NDArray[Any]:  # noqa: N803 (scikit-learn's name)
        """The more probable class of every molecule, (rows,) or (rows, T) as ``y`` was.

        A row that is no molecule is NaN, with one warning for all of them; the array then has a dtype that can hold it.

        Raises:
            MoleculeError: ``strict``, and a row is no molecule.
            NotFittedError: ``fit`` has not been called.
        """
        return self._labels(self._predict(X, strict=strict).values)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:  # noqa: N803
        """The share of right classes over the rows that are molecules; else as :meth:`MoleculeRegressor.score`."""
        predictions = self._predict(X, strict=False)
        observed, values, weight = _readable(predictions, y, sample_weight)
        return float(accuracy_score(observed, self._labels(values), sample_weight=weight))

    def _labels(self, values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """(rows, T) probabilities -> the more probable class, NaN for NaN."""
        columns = []
        for target, probability in zip(self.predictor_.targets, values.T, strict=True):
            column = np.array(target.classes)[(probability >= 0.5).astype(int)]
            unknown = np.isnan(probability)
            if unknown.any():
                column = column.astype(float if column.dtype.kind in "biuf" else object)
                column[unknown] = np.nan
            columns.append(column)
        return columns[0] if self._flat else np.column_stack(columns)
