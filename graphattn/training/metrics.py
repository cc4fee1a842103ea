"""How good predictions are, target by target, with scikit-learn's definitions; what is undefined says so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphattn.errors import SettingError, ShapeError
from graphattn.training.config import TASKS, Task

Values = NDArray[np.float64]


@dataclass(frozen=True)
class TargetScore:
    """The metrics of one target; never averaged over targets here, so that none can hide."""

    target: str
    labels: int  # rows with a label and a prediction: those that were scored
    unpredicted: int  # rows with a label but without a prediction (NaN); not in the metrics
    values: Mapping[str, float | None]  # metric -> value in the target's unit; None where undefined
    undefined: Mapping[str, str]  # metric -> why it has no value, for each that is None


@dataclass(frozen=True)
class _Metric:
    compute: Callable[[Values, Values], float]  # (observed, predicted) -> value
    why_not: Callable[[Values], str | None]  # observed -> why the metric is undefined; None where it is defined


def score(predicted: Values, observed: Values, *, task: Task, names: Sequence[str]) -> tuple[TargetScore, ...]:
    """Score predictions against labels.

    Args:
        predicted: (G, T), in the targets' units, or the probability of class 1; NaN for a row without a prediction.
        observed: (G, T), NaN where the label is missing; 0 and 1 for a binary task.
        task: ``"regression"`` gives rmse, mae, r2; ``"binary"`` gives roc_auc, pr_auc (average precision), accuracy
            (threshold 0.5) and log_loss.
        names: T names of the targets.

    Returns:
        One record per target, in order.

    Raises:
        ShapeError: the shapes of the three do not belong together.
        SettingError: no such task.

    >>> only, = score(np.array([[1.0], [3.0]]), np.array([[2.0], [np.nan]]), task="regression", names=["y"])
    >>> only.labels, only.values["rmse"], only.values["r2"], only.undefined["r2"]
    (1, 1.0, None, 'needs two different labels, there is only 2')
    """
    if task not in TASKS:
        raise SettingError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    if predicted.shape != observed.shape or observed.ndim != 2 or observed.shape[1] != len(names):
        raise ShapeError(
            f"predictions have shape {predicted.shape}, labels {observed.shape}, and there are {len(names)} target "
            "names; both arrays must be (rows, targets)."
        )
    metrics = _regression_metrics() if task == "regression" else _binary_metrics()
    return tuple(
        _score_target(name, predicted[:, column], observed[:, column], metrics) for column, name in enumerate(names)
    )


def _score_target(name: str, predicted: Values, observed: Values, metrics: Mapping[str, _Metric]) -> TargetScore:
    labeled = ~np.isnan(observed)
    scored = labeled & ~np.isnan(predicted)
    observed, predicted = observed[scored], predicted[scored]
    no_rows = None if scored.any() else "no row has both a label and a prediction"
    undefined = {key: why for key, metric in metrics.items() if (why := no_rows or metric.why_not(observed))}
    return TargetScore(
        target=name,
        labels=int(scored.sum()),
        unpredicted=int(labeled.sum() - scored.sum()),
        values={
            key: None if key in undefined else float(metric.compute(observed, predicted))
            for key, metric in metrics.items()
        },
        undefined=undefined,
    )


def _always(_: Values) -> None:
    return None


def _unless_constant(observed: Values) -> str | None:
    return None if len(np.unique(observed)) > 1 else f"needs two different labels, there is only {observed[0]:g}"


def _unless_all_negative(observed: Values) -> str | None:
    return None if observed.any() else "needs a label of class 1, there is none"


def _class_of(probability: Values) -> Values:
    return (probability >= 0.5).astype(np.float64)


def _regression_metrics() -> dict[str, _Metric]:
    # Here and below: scikit-learn takes 1 s to import, which a process that scores nothing is spared.
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error  # noqa: PLC0415

    return {
        "rmse": _Metric(root_mean_squared_error, _always),
        "mae": _Metric(mean_absolute_error, _always),
        "r2": _Metric(r2_score, _unless_constant),
    }


def _binary_metrics() -> dict[str, _Metric]:
    from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score  # noqa: PLC0415

    return {
        "roc_auc": _Metric(roc_auc_score, _unless_constant),
        "pr_auc": _Metric(average_precision_score, _unless_all_negative),
        "accuracy": _Metric(lambda observed, predicted: accuracy_score(observed, _class_of(predicted)), _always),
        "log_loss": _Metric(partial(log_loss, labels=[0, 1]), _always),
    }
