"""``graphattn predict``: what a trained model says about the molecules of a table."""

from pathlib import Path
from typing import Annotated

import typer

from graphattn.cli.messages import note, reported


def predict(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The folder that train wrote.")],
    table: Annotated[Path, typer.Argument(metavar="INPUT", help="Molecules to predict: CSV, CSV.gz or TSV.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: every row of INPUT in order, its own columns first, then one column per target "
            "(<name>_predicted where INPUT has that column), status and reason. Ends in .tsv for tabs, .gz compressed.",
        ),
    ],
    smiles_column: Annotated[
        str | None, typer.Option(help="Column with the molecules; the one named smiles if not given.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail, before work starts, if any row is no molecule.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Predict for every row of a table; a row that is no molecule keeps its place, with a status and a reason."""
    with reported(quiet=quiet):
        from graphattn.cli import tables  # noqa: PLC0415 (heavy; --help must answer at once)
        from graphattn.data.table import read_table  # noqa: PLC0415
        from graphattn.model_folder import load_model  # noqa: PLC0415

        tables.check_output(output, table=table, model=model)
        rows = read_table(table)
        molecules = rows.column(tables.smiles_column(rows, smiles_column))
        predictor = load_model(model)
        predictions = predictor.predict(molecules, strict=strict, name_row=rows.where)
        tables.write_predictions(output, rows, predictions, predictor.targets, predictor.scaler)
        bad = predictions.bad_rows
        for row in bad[: tables.MOST_NAMED]:
            note(f"warning: {rows.where(row)}: no prediction: {predictions.rows[row].reason}", quiet=quiet)
        more = f" (see status and reason in {output})" if bad else ""
        note(f"{output}: {len(molecules) - len(bad)} of {len(molecules)} rows predicted{more}", quiet=quiet)
