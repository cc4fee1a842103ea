"""Command-line options made from the fields of settings dataclasses, so that an option is written once."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from graphattn.errors import SettingError


def options_from_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each field of every parameter that is a settings dataclass.

    A field ``batch_size: Annotated[int, "graphs per step"] = 32`` becomes ``--batch-size`` with that type, default and
    help, in a help panel named after the parameter. Settings that do not fit each other are wrong usage: exit code 2.
    """
    signature = inspect.signature(command)
    settings: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters = [parameter for name, parameter in signature.parameters.items() if name not in settings]
    for name, kind in settings.items():
        hints = get_type_hints(kind, include_extras=True)
        parameters.extend(_option(field, hints[field.name], panel=name.capitalize()) for field in fields(kind))

    @functools.wraps(command)
    def with_settings(**arguments: Any) -> None:
        made = {name: _make(kind, arguments) for name, kind in settings.items()}
        command(**arguments, **made)

    with_settings.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_settings.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_settings


def _option(field: Field[Any], hint: Any, *, panel: str) -> inspect.Parameter:
    assert get_origin(hint) is Annotated, f"{field.name} needs Annotated[type, 'help'], since it is an option"
    kind, text = get_args(hint)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[kind, typer.Option(help=f"{text[:1].upper()}{text[1:]}.", rich_help_panel=panel)],
    )


def _make(kind: type[Any], arguments: dict[str, Any]) -> Any:
    """The settings out of the arguments, which lose them."""
    values: Mapping[str, Any] = {field.name: arguments.pop(field.name) for field in fields(kind)}
    try:
        return kind(**values)
    except SettingError as error:
        name, _, said = str(error).partition(" ")  # such a message begins with the field's name
        raise typer.BadParameter(f"--{name.replace('_', '-')} {said}" if name in values else str(error)) from error
