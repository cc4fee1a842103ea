"""What a command says besides its result: notes and warnings on the standard error, a failure in one message."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from graphattn.errors import GraphattnError, GraphattnWarning, SettingError

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130  # what a shell reports for a program that was interrupted from the keyboard


def note(text: str, *, quiet: bool) -> None:
    """Say something on the standard error, which is not part of the result."""
    if not quiet:
        typer.echo(text, err=True)


@contextmanager
def reported(*, quiet: bool, when_interrupted: str = "interrupted") -> Iterator[None]:
    """Turn failures inside into one message and exit code 1 (2 for a wrong setting), and our own warnings into lines.

    Args:
        quiet: leave the warnings out; failures are always said.
        when_interrupted: what to say when the user stops the command; the exit code is then 130.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", GraphattnWarning)
        show_other = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, GraphattnWarning):
                note(f"warning: {message}", quiet=quiet)
            else:
                show_other(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        try:
            yield
        except SettingError as error:  # one that shows only beside the data or on this machine
            _fail(str(error), WRONG_USAGE)
        except GraphattnError as error:
            _fail(str(error))
        except BrokenPipeError:  # whoever reads our output has seen enough; typer ends quietly
            raise
        except OSError as error:
            _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except KeyboardInterrupt:
            typer.echo(f"\n{when_interrupted}", err=True)
            sys.exit(INTERRUPTED)


def _fail(text: str, code: int = FAILED) -> None:
    typer.echo(f"error: {text}", err=True)
    sys.exit(code)
