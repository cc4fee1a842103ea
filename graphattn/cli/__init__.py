"""The command line: one small file per command; what is heavy is imported where a command begins its work."""

from typing import Annotated

import typer

from graphattn import __version__
from graphattn.cli.info import info
from graphattn.cli.predict import predict
from graphattn.cli.train import train

app = typer.Typer(
    name="graphattn",
    help="Learn properties of molecules from a table, with self-attention along their bonds, and predict new ones.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(train)
app.command()(predict)
app.command()(info)


def _print_version(asked: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if asked:
        typer.echo(f"graphattn {__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of no command in particular."""


def main() -> None:
    """Run the command that the arguments ask for; exit code 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    app()
