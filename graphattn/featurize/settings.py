"""The settings of a featurizer as JSON holds them, and the checks before they are believed."""

from collections.abc import Mapping

from graphattn.errors import SettingError
from graphattn.featurize.columns import Column


def columns_as_json(columns: tuple[Column, ...]) -> list[dict[str, object]]:
    """Names and labels of columns as lists and dicts."""
    return [{"name": column.name, "labels": list(column.labels)} for column in columns]


def check_settings(settings: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Refuse settings that have not the keys, the layout version and the types of ``known``, those of this version.

    Raises:
        SettingError: names what is wrong.
    """
    for problem, keys in (("unknown", settings.keys() - known.keys()), ("no", known.keys() - settings.keys())):
        if keys:
            raise SettingError(
                f"featurizer settings with {problem} {', '.join(sorted(keys))}; "
                f"this version of graphattn reads {', '.join(sorted(known))}"
            )
    if settings["version"] != known["version"]:
        raise SettingError(
            f"featurizer settings of layout version {settings['version']!r}, this version of graphattn has "
            f"{known['version']!r}; use the graphattn that wrote them, or train again"
        )
    elements = settings["elements"]
    if not isinstance(elements, list) or not all(isinstance(name, str) for name in elements):
        raise SettingError(f"featurizer setting elements must be a list of symbols, got {elements!r}")


def check_columns(settings: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Refuse settings whose columns are not those that this version gives for them.

    Raises:
        SettingError: names the first column that differs.
    """
    for kind in ("node_columns", "edge_columns"):
        stored, current = settings[kind], now[kind]
        if stored == current:
            continue
        if not isinstance(stored, list) or not isinstance(current, list) or len(stored) != len(current):
            what = f"{len(stored)} columns" if isinstance(stored, list) else repr(stored)
            raise SettingError(f"featurizer settings have {what} as {kind}, this version of graphattn has {current!r}")
        here = next(place for place, column in enumerate(stored) if column != current[place])
        raise SettingError(
            f"featurizer settings have {stored[here]!r} as column {here} of {kind}, this version of graphattn has "
            f"{current[here]!r}; use the graphattn that wrote them, or train again"
        )
