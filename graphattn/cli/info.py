"""``graphattn info``: what a model folder holds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphattn.cli.messages import reported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphattn.predict import Predictor


def info(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The folder that train wrote.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything that model.json holds, training history included.")
    ] = False,
) -> None:
    """Say what a model predicts, how it was made and how good it was; every file of the folder is checked."""
    with reported(quiet=False):
        from graphattn.model_folder import load_model, read_model_file  # noqa: PLC0415 (heavy; --help must be quick)

        predictor = load_model(model)
        content = read_model_file(model)
        if as_json:
            typer.echo(json.dumps(content, indent=1))
            return
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(title=Text(str(model)), show_header=False, title_justify="left")
        for name, value in _lines(predictor):
            table.add_row(name, Text(value))
        made_with = ", ".join(f"{name} {number}" for name, number in content["written_with"].items())
        table.add_row("written by", Text(f"graphattn {content['library_version']} ({made_with})"))
        Console().print(table)


def _lines(predictor: "Predictor") -> "Iterator[tuple[str, str]]":
    summary, network = predictor.summary, predictor.network_config
    for target in predictor.targets:
        unit = f" ({target.unit})" if target.unit else ""
        kind = f"classification: the probability of {target.classes[1]!r}" if target.classes else "regression"
        yield "target", f"{target.name}{unit}, {kind}"
    weights = sum(parameter.numel() for parameter in predictor.networks[0].parameters())
    yield "networks", f"{len(predictor.networks)} of {weights:,} weights"
    yield "size", f"channels {network.channels}, layers {network.layers}, heads {network.heads}"
    yield "readout", network.readout
    yield (
        "molecules",
        f"hydrogens {predictor.featurizer.hydrogens}, stereo {'on' if predictor.featurizer.stereo else 'off'}",
    )
    left_out = ", ".join(f"{count} {reason}" for reason, count in summary.left_out.items())
    yield "rows", f"{summary.rows}{f', left out: {left_out}' if left_out else ''}"
    parts = ", ".join(f"{rows} {part}" for part, rows in summary.parts.items())
    yield "split", f"{summary.split}: {parts}"
    yield (
        "epochs",
        ", ".join(
            f"{len(history)} (best {best})"
            for history, best in zip(summary.histories, summary.best_epochs, strict=True)
        ),
    )
    for part, scores in summary.scores.items():
        for score in scores:
            values = ", ".join(f"{name} {value:.4g}" for name, value in score.values.items() if value is not None)
            yield f"{part} error", f"{score.target}: {values} ({score.labels} rows)"
