"""Pictures of molecules with their atoms in color."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D

from graphattn.checks import whole_number
from graphattn.errors import SettingError

LONGEST_SIDE = 10_000  # pixels; a PNG takes 4 bytes of memory for each of width times height
FULL_COLOR = (0.835, 0.369, 0.0)  # Okabe and Ito's vermilion, told apart by every kind of eye


def draw_atoms(
    molecule: Chem.Mol, values: npt.NDArray[np.float64], path: Path, *, legend: str, size: tuple[int, int]
) -> None:
    """Draw ``molecule`` to an SVG or PNG file; an atom is white at 0 and in full color at the largest value.

    Args:
        molecule: N atoms.
        values: (N,), none below 0.
        path: ends in ``.svg`` or ``.png``.
        legend: stands below the drawing.
        size: width and height in pixels, 1 to 10,000.

    Raises:
        SettingError: ``path`` ends otherwise, its folder is not there, or the size is none.
    """
    drawers = {".svg": rdMolDraw2D.MolDraw2DSVG, ".png": rdMolDraw2D.MolDraw2DCairo}
    kind = path.suffix.lower()
    if kind not in drawers:
        raise SettingError(f"a picture is .svg or .png, got {path.name!r}")
    if not path.parent.is_dir():
        raise SettingError(f"there is no folder {path.parent} for {path.name}; make it, or name another place")
    if path.is_dir():
        raise SettingError(f"{path} is a folder; name a file to write")
    drawer = drawers[kind](*_sides(size))
    options: Any = drawer.drawOptions()  # RDKit's stubs know it without its fields
    options.legendFraction, options.legendFontSize = 0.14, 17
    options.useBWAtomPalette()
    share = values / values.max() if values.max() > 0 else np.zeros(len(values))
    colors = {atom: tuple(1 - float(part) * (1 - channel) for channel in FULL_COLOR) for atom, part in enumerate(share)}
    drawer.DrawMolecule(
        rdMolDraw2D.PrepareMolForDrawing(molecule, addChiralHs=False),
        highlightAtoms=list(colors),
        highlightAtomColors=colors,
        highlightAtomRadii=dict.fromkeys(colors, 0.38),
        highlightBonds=[],
        legend=legend,
    )
    drawer.FinishDrawing()
    picture = drawer.GetDrawingText()
    path.write_bytes(picture.encode() if isinstance(picture, str) else picture)


def _sides(size: object) -> tuple[int, int]:
    """Width and height out of what a caller gave as ``size``."""
    sides = tuple(size) if isinstance(size, Iterable) else ()
    if len(sides) != 2:
        raise SettingError(f"size must be width and height in pixels, such as (520, 420), got {size!r}")
    width, height = (whole_number("size", side, at_least=1, at_most=LONGEST_SIDE) for side in sides)
    return width, height
