"""Reading molecules: what is accepted, the words of a refusal, and RDKit's log."""

import sys
import threading

import pytest
from graphs import same
from rdkit import Chem, rdBase

from graphattn.errors import MoleculeError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.quiet import quiet_rdkit
from graphattn.featurize.reading import read_molecule, shown


@pytest.mark.parametrize("smiles", ["CCO ", " CCO", "\tCCO\r\n", "CCO |$_AV:a;b;c$|", "CCO\t||", "\u00a0CCO"])
def test_blanks_and_extensions_are_read(smiles):
    featurizer = MoleculeFeaturizer()
    assert same(featurizer(smiles), featurizer("CCO"))


def test_an_extension_counts():
    assert read_molecule("CC |^1:0|").mol.GetAtomWithIdx(0).GetNumRadicalElectrons() == 1
    assert read_molecule("CC |C:0.0|").mol.GetBondWithIdx(0).GetBondType() == Chem.BondType.DATIVE


REFUSED = {
    # text that RDKit would drop
    "CCO ethanol": ("unreadable", r"text follows the SMILES 'CCO': 'ethanol'"),
    "CCO |$a;b;c$| ethanol": ("unreadable", r"text follows the SMILES 'CCO': '\|\$a;b;c\$\| ethanol'"),
    "not a molecule": ("unreadable", "text follows the SMILES 'not': 'a molecule'"),
    "C1CC1\u00e9": ("unreadable", r"character 6 is 'é' \(U\+00E9\), which no SMILES holds"),
    # text that RDKit refuses
    "C\u2013C": ("unreadable", r"character 2 is '\u2013' \(U\+2013\), which no SMILES holds"),
    "C\x00C": ("unreadable", r"character 2 is '\\x00' \(U\+0000\), which no SMILES holds"),
    "\ud800": ("unreadable", r"character 1 is '\\ud800' \(U\+D800\), which no SMILES holds"),
    "C1CC": ("unreadable", "RDKit: SMILES Parse Error: unclosed ring"),
    "C(C": (
        "unreadable",
        "RDKit: SMILES Parse Error: extra open parentheses, check for mistakes around position 2",
    ),
    "[Xx]": ("unreadable", "RDKit: SMILES Parse Error: syntax error, check for mistakes around position 2"),
    "c1cccc1": ("unreadable", "RDKit: Can't kekulize mol.  Unkekulized atoms: 0 1 2 3 4"),
    "C[C@](C)(C)(C)(C)C": ("unreadable", "RDKit: Explicit valence for atom # 1 C, 6, is greater than permitted"),
    "CCO |garbage|": ("unreadable", r"RDKit cannot read the extension behind the SMILES, '\|garbage\|'"),
    "F/C=C/F |w:0.1|": ("unreadable", r"RDKit cannot read the extension behind the SMILES, '\|w:0.1\|'"),
    "C(" * 100_000: ("unreadable", "100000 parentheses are opened and not closed"),
    # other languages
    "InChI=1S/CH4/h1H4": ("unreadable", "it is an InChI; turn it into a molecule first, with rdkit.Chem.MolFromInchi"),
    "CCO>>CC=O": ("reaction", r"it looks like a reaction \('>' parts its sides\); a molecule is wanted"),
    "CC>O>CO": ("reaction", "it looks like a reaction"),
    "CCO >> CC=O": ("reaction", "it looks like a reaction"),
    "CN->[Fe]>>C": ("reaction", "it looks like a reaction"),
    "CCO>>CC=O |$a>b$|": ("reaction", "it looks like a reaction"),
    "[#6]~[#8]": ("unreadable", "it holds query atoms or bonds, as a SMARTS does; a molecule is wanted"),
    "*C |$Q_e;$|": ("unreadable", "it holds query atoms or bonds"),
    # nothing
    "": ("empty", "the text is blank"),
    " \n": ("empty", "the text is blank"),
}


@pytest.mark.parametrize("smiles", REFUSED, ids=lambda smiles: ascii(smiles[:30]))
def test_refusals(smiles):
    status, reason = REFUSED[smiles]
    with pytest.raises(MoleculeError, match=rf"^{reason}") as caught:
        read_molecule(smiles)
    assert caught.value.status == status


@pytest.mark.parametrize("value", [None, 5, float("nan"), b"CCO", ["CCO"], Chem.MolFromSmiles("C").GetAtomWithIdx(0)])
def test_what_is_neither_text_nor_molecule(value):
    with pytest.raises(MoleculeError, match=f"is wanted, got .* of type {type(value).__name__}$") as caught:
        read_molecule(value)
    assert caught.value.status == "not-a-string"


def test_arrows_of_dative_bonds_are_no_reaction():
    assert read_molecule("[NH3]->[Pt](Cl)(Cl)<-[NH3]").mol.GetNumAtoms() == 5


def test_long_things_are_cut_when_shown():
    assert shown("C" * 121) == "'" + "C" * 79 + "..." + "C" * 29 + "'"
    assert shown("C" * 118) == "'" + "C" * 118 + "'"


def test_a_refused_molecule_is_let_go():
    """The error holds no reference to RDKit's exception, which would keep the molecule alive."""
    with pytest.raises(MoleculeError) as caught:
        read_molecule("CN(C)(C)C")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_rdkit_speaks_again_afterwards(capfd):
    with quiet_rdkit() as log:
        assert Chem.MolFromSmiles("C1CC") is None
    assert "unclosed ring" in log.messages
    assert capfd.readouterr().err == ""
    assert Chem.MolFromSmiles("C1CC") is None
    assert "unclosed ring" in capfd.readouterr().err


def test_a_log_that_was_off_stays_off(capfd):
    before = rdBase.LogStatus()
    rdBase.DisableLog("rdApp.error")
    try:
        off = rdBase.LogStatus()
        with pytest.raises(MoleculeError, match="unclosed ring"):
            read_molecule("C1CC")
        assert rdBase.LogStatus() == off
        Chem.MolFromSmiles("C1CC")
        assert capfd.readouterr().err == ""
    finally:
        rdBase.EnableLog("rdApp.error")
    assert rdBase.LogStatus() == before


def test_one_thread_at_a_time_has_the_log():
    """RDKit's log is one for the process: what a thread reads in it must be its own molecule's."""
    reasons: list[str] = []
    thread = threading.Thread(target=lambda: reasons.append(MoleculeFeaturizer().rows(["C1CC"])[1][0].reason))
    with quiet_rdkit() as log:
        thread.start()
        thread.join(timeout=0.1)
        assert thread.is_alive()
    thread.join()
    assert log.messages == ""
    assert reasons == ["RDKit: SMILES Parse Error: unclosed ring"]


def test_threads_get_their_own_words():
    featurizer = MoleculeFeaturizer()
    wrong: list[str] = []

    def work(atoms: int) -> None:
        rows = featurizer.rows(["C" * atoms + "N(C)(C)C", "C" * atoms + "Q", "C" * atoms] * 50)[1]
        valence = f"RDKit: Explicit valence for atom # {atoms} N, 4, is greater than permitted"
        syntax = f"RDKit: SMILES Parse Error: syntax error, check for mistakes around position {atoms + 1}"
        wrong.extend(row.reason for row in rows if row.reason not in (valence, syntax, ""))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # let the threads interrupt each other wherever they can
    try:
        threads = [threading.Thread(target=work, args=(atoms,)) for atoms in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
