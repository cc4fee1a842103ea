"""``graphattn train``: from a table of molecules and measured values to a model folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphattn.cli.messages import note, reported
from graphattn.cli.options import options_from_settings
from graphattn.model.config import NetworkConfig
from graphattn.training.config import Task, TrainingConfig

if TYPE_CHECKING:
    from graphattn.cli.sources import Source
    from graphattn.predict import Predictor
    from graphattn.prepare import PreparedRows

TASKS: dict[str, Literal["auto"] | Task] = {"auto": "auto", "regression": "regression", "classification": "binary"}
TASK_WORDS = {task: word for word, task in TASKS.items()}

Preset = Literal["fast"]
NETWORKS: dict[Preset, int] = {"fast": 1}  # that each preset trains

MOST_REMARKS = 5  # of the featurizer that are shown; info --json has all


@options_from_settings
def train(
    *,
    table: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="Molecules and their values: CSV, CSV.gz or TSV.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model folder to write.")],
    dataset: Annotated[str | None, typer.Option(help="A bundled data set instead of DATA, such as solubility.")] = None,
    smiles_column: Annotated[
        str | None, typer.Option(help="Column with the molecules; the one named smiles if not given.")
    ] = None,
    target_column: Annotated[
        list[str] | None, typer.Option(help="Column to learn; give it once for each. Empty cells are missing values.")
    ] = None,
    task: Annotated[
        Literal["auto", "regression", "classification"],
        typer.Option(help="What the targets are; auto takes classification where every value is 0 or 1."),
    ] = "auto",
    split: Annotated[
        Literal["random", "scaffold"] | None,
        typer.Option(help="How rows are set aside for validation and test, 80/10/10; random if not given."),
    ] = None,
    split_column: Annotated[
        str | None, typer.Option(help="Column that says train, valid (or val, validation) or test, row by row.")
    ] = None,
    acyclic: Annotated[
        Literal["together", "apart"],
        typer.Option(help="With --split scaffold: molecules without rings are one group, or each its own."),
    ] = "together",
    hydrogens: Annotated[
        Literal["implicit", "keep", "add"],
        typer.Option(help="Hydrogen atoms: none of their own, those written in the SMILES, or all."),
    ] = "implicit",
    stereo: Annotated[bool, typer.Option(help="Whether stereochemistry counts.")] = True,
    preset: Annotated[Preset, typer.Option(help="What is trained; fast is one graph network.")] = "fast",
    ensemble: Annotated[
        int | None,
        typer.Option(min=1, help="Networks to train; the prediction is their mean. As the preset says if not given."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the same command was stopped, to the same result.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail, before work starts, if any row is no molecule.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    network: NetworkConfig,
    training: TrainingConfig,
) -> None:
    """Learn one or several properties of molecules from a table, and write a model folder.

    While it works, an unfinished run is kept in OUTPUT.partial. A model folder that stands at OUTPUT is replaced when
    the new one is done; anything else there is left alone.
    """
    networks = ensemble or NETWORKS[preset]
    if table is not None and dataset is not None:
        raise typer.BadParameter("DATA and --dataset exclude each other")
    if split is not None and split_column is not None:
        raise typer.BadParameter("--split and --split-column exclude each other")
    if acyclic == "apart" and split != "scaffold":
        raise typer.BadParameter("--acyclic apart is for --split scaffold; leave one out or add the other")
    if task == "classification" and training.loss != "auto":
        raise typer.BadParameter(
            f"--loss {training.loss} is for regression; leave it out, or ask for --task regression"
        )
    place = output if output.name else output.resolve()  # "." has no name; checkpoints must not lie inside of it
    unfinished = place.with_name(f"{place.name}.partial")
    stopped = f"interrupted; the same command with --resume goes on from {unfinished}"
    with reported(quiet=quiet, when_interrupted=stopped):
        from graphattn.cli import sources  # noqa: PLC0415 (heavy; --help must answer at once)
        from graphattn.featurize.molecule import MoleculeFeaturizer  # noqa: PLC0415
        from graphattn.fit import CHECKPOINT_FILE, discard_checkpoints, fit_molecules  # noqa: PLC0415
        from graphattn.model_folder import check_place, save_model  # noqa: PLC0415
        from graphattn.prepare import prepare_rows  # noqa: PLC0415
        from graphattn.training.progress import choose_progress  # noqa: PLC0415

        check_place(output)
        if table is not None:
            source = sources.from_table(table, smiles_column, target_column, split_column)
        elif dataset is not None:
            source = sources.from_dataset(dataset, smiles_column, target_column, split_column)
        else:
            raise typer.BadParameter("give a table, DATA, or --dataset NAME")
        prepared = prepare_rows(
            source.molecules,
            source.labels,
            source.targets,
            task=TASKS[task],
            featurizer=MoleculeFeaturizer(hydrogens=hydrogens, stereo=stereo),
            split=source.split_rule(split),
            acyclic=acyclic,
            seed=training.seed,
            strict=strict,
            name_row=source.table.where,
        )
        note(_describe(source, prepared), quiet=quiet)
        if not resume:
            discard_checkpoints(unfinished)
        elif not (unfinished / CHECKPOINT_FILE.format(0)).exists():
            note(f"nothing to resume in {unfinished}; training starts anew", quiet=quiet)
        predictor = fit_molecules(
            prepared,
            network=network,
            training=training,
            ensemble=networks,
            checkpoints=unfinished,
            resume=resume,
            progress=lambda member: choose_progress(
                quiet=quiet, label=f"network {member + 1} of {networks}" if networks > 1 else ""
            ),
        )
        save_model(predictor, output)
        discard_checkpoints(unfinished)
        if not quiet:
            typer.echo(_result(predictor))
        note(f"model written to {output}; predict with: graphattn predict {output} INPUT -o OUTPUT.csv", quiet=quiet)


def _describe(source: "Source", prepared: "PreparedRows") -> str:
    targets = ", ".join(f"{target.name} ({target.unit})" if target.unit else target.name for target in source.targets)
    parts = ", ".join(f"{len(rows)} {part}" for part, rows in prepared.parts.items())
    used = f"{len(prepared.kept)} of {len(prepared.rows)} rows used"
    lines = [
        f"{source.table.path}: {used}; molecules in {source.smiles_column!r}",
        *(f"{count} rows: {remark}" for remark, count in list(prepared.remarks.items())[:MOST_REMARKS]),
        f"{TASK_WORDS[prepared.task]} of {targets} ({prepared.task_reason})",
        f"split: {prepared.split_reason}: {parts}",
    ]
    return "\n".join(lines)


def _result(predictor: "Predictor") -> str:
    """One line for each part and target, with its metrics."""
    lines = []
    for part, scores in predictor.summary.scores.items():
        for score in scores:
            values = (
                f"{name} {'undefined' if value is None else f'{value:.4g}'}" for name, value in score.values.items()
            )
            lines.append(f"{part:5}  {score.target}  {'  '.join(values)}  ({score.labels} rows)")
    return "\n".join(lines)
