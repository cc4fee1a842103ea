"""From a cell of a table, or an RDKit molecule, to a sanitized RDKit molecule; or the reason why not."""

import re
from functools import cache
from typing import Literal, NamedTuple

from rdkit import Chem

from graphattn.errors import MoleculeError
from graphattn.featurize.quiet import quiet_rdkit

Hydrogens = Literal["implicit", "keep", "add"]


@cache
def _parser_params(*, sanitize: bool, remove_hydrogens: bool) -> Chem.SmilesParserParams:
    params = Chem.SmilesParserParams()
    params.sanitize = sanitize  # type: ignore[assignment]  # RDKit's stubs are wrong
    params.removeHs = remove_hydrogens  # type: ignore[assignment]
    return params


_PLAIN = re.compile(r"[!-=?-~]+")  # printable ASCII without blanks and '>'
_STEREO_MARK = re.compile(r"[@/\\|]")  # a SMILES without any of these names no arrangement in space
_HYDROGEN_ATOM = re.compile(r"\[\d*(?:H(?![a-z])|#)|\|")  # or what may be one: [#1], something in an extension
_EXTENSION = re.compile(r"\|[^\ud800-\udfff]*\|")  # CXSMILES
_FOREIGN_CHARACTER = re.compile(r"[^!-~]")  # SMILES are written in printable ASCII; RDKit drops some others silently
_TIME = re.compile(r"^\[\d\d:\d\d:\d\d\] ", re.MULTILINE)
_PARSE_ERROR = re.compile(r"^(SMILES Parse Error: .*?)(?: while parsing:.*| for input:.*)?$", re.MULTILINE)
_POSITION = re.compile(r"^SMILES Parse Error: (check for mistakes around position \d+):?$", re.MULTILINE)


def shown(molecule: object) -> str:
    """What was given, as a message shows it; long ones are cut in the middle."""
    if isinstance(molecule, Chem.Mol):
        return f"a molecule of {molecule.GetNumAtoms()} atoms"
    text = repr(molecule)
    return text if len(text) <= 120 else f"{text[:80]}...{text[-30:]}"


class Reading(NamedTuple):
    """A sanitized molecule, and whether anything in it may have a stereo label."""

    mol: Chem.Mol
    marked: bool


def read_molecule(molecule: object, *, hydrogens: Hydrogens = "implicit", stereo: bool = True) -> Reading:
    """Read and sanitize a molecule, whatever state the given one is in (which stays as it is).

    Args:
        molecule: a SMILES, which may have blanks around it and a CXSMILES extension behind it, or an RDKit molecule.
        hydrogens: ``keep`` leaves them as they are written; otherwise they are taken away as RDKit does by default
            (isotopes, and those that carry meaning, stay).
        stereo: without it, marks of stereo are dropped before anything can depend on them.

    Raises:
        MoleculeError: with the reason, and one word for it in ``status``.

    >>> read_molecule("C1CC")
    Traceback (most recent call last):
    graphattn.errors.MoleculeError: RDKit: SMILES Parse Error: unclosed ring
    """
    if isinstance(molecule, str):
        reading = _from_smiles(molecule.strip(), hydrogens, stereo=stereo)
    elif isinstance(molecule, Chem.Mol):
        reading = _from_mol(molecule, hydrogens, stereo=stereo)
    else:
        raise MoleculeError(
            f"a SMILES string or an RDKit molecule is wanted, got {shown(molecule)} of type {type(molecule).__name__}",
            status="not-a-string",
        )
    if reading.mol.GetNumAtoms() == 0:
        raise MoleculeError("there is no atom in it", status="empty")
    if reading.mol.HasQuery():
        raise MoleculeError("it holds query atoms or bonds, as a SMARTS does; a molecule is wanted")
    return reading


def _from_smiles(text: str, hydrogens: Hydrogens, *, stereo: bool) -> Reading:
    if not text:
        raise MoleculeError("the text is blank", status="empty")
    if not _PLAIN.fullmatch(text):
        _check_is_one_smiles(text)
    unclosed = text.count("(") - text.count(")")
    if unclosed > 20:  # RDKit repeats the whole SMILES for each of them, gigabytes for a long one
        raise MoleculeError(f"{unclosed} parentheses are opened and not closed")
    marked = _STEREO_MARK.search(text) is not None
    remove_hydrogens = hydrogens != "keep" and _HYDROGEN_ATOM.search(text) is not None
    with quiet_rdkit() as log:
        if marked and stereo:
            mol = Chem.MolFromSmiles(text, _parser_params(sanitize=True, remove_hydrogens=remove_hydrogens))
        else:  # MolFromSmiles would look for stereo as well, which takes as long as all the rest
            mol = Chem.MolFromSmiles(text, _parser_params(sanitize=False, remove_hydrogens=False))
        if mol is None:
            raise MoleculeError(_reason(text, log.messages))
        if not (marked and stereo):
            mol = _sanitized(mol, remove_hydrogens=remove_hydrogens, drop_stereo=marked)
    return Reading(mol, marked and stereo)


def _from_mol(given: Chem.Mol, hydrogens: Hydrogens, *, stereo: bool) -> Reading:
    with quiet_rdkit():
        mol = _sanitized(Chem.Mol(given), remove_hydrogens=hydrogens != "keep", drop_stereo=not stereo)
        if stereo:
            Chem.AssignStereochemistry(mol, cleanIt=True)
    return Reading(mol, stereo)


def _sanitized(mol: Chem.Mol, *, remove_hydrogens: bool, drop_stereo: bool) -> Chem.Mol:
    try:
        if drop_stereo:
            Chem.RemoveStereochemistry(mol)
        if remove_hydrogens:
            return Chem.RemoveHs(mol)  # sanitizes too
        Chem.SanitizeMol(mol)
    except Chem.MolSanitizeException as error:
        raise MoleculeError(f"RDKit: {error}") from None
    return mol


def _check_is_one_smiles(text: str) -> None:
    """Refuse what RDKit would read as something else than the whole of it."""
    smiles, *behind = text.split(maxsplit=1)
    extension = _EXTENSION.fullmatch(behind[0]) if behind else None
    written = smiles if extension else text
    if ">" in written.replace("->", ""):
        raise MoleculeError("it looks like a reaction ('>' parts its sides); a molecule is wanted", status="reaction")
    if behind and not extension:
        raise MoleculeError(f"text follows the SMILES {shown(smiles)}: {shown(behind[0])}")
    foreign = _FOREIGN_CHARACTER.search(smiles)
    if foreign:
        raise MoleculeError(
            f"character {foreign.start() + 1} is {foreign[0]!r} (U+{ord(foreign[0]):04X}), which no SMILES holds"
        )


def _reason(text: str, messages: str) -> str:
    """RDKit's own words for why it does not read ``text``, without the time and the repeated SMILES."""
    if text.startswith("InChI="):
        return "it is an InChI; turn it into a molecule first, with rdkit.Chem.MolFromInchi"
    words = _TIME.sub("", messages)
    error = _PARSE_ERROR.search(words)
    if error:
        position = _POSITION.search(words)
        return f"RDKit: {error[1]}" + (f", {position[1]}" if position else "")
    lines = words.strip().splitlines()
    if lines:
        return f"RDKit: {lines[0]}"
    return f"RDKit cannot read the extension behind the SMILES, {shown(text.split(maxsplit=1)[-1])}"
