"""What became of one row of a list of molecules."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowStatus:
    """One word and, where there is more to say, a sentence.

    The words: ``ok``; ``empty`` (a blank cell, a molecule without atoms); ``not-a-string`` (None, NaN, a number);
    ``unreadable`` (RDKit refuses it); ``reaction`` (a reaction string where a molecule was wanted).
    """

    status: str
    reason: str = ""  # why it is not ok, in RDKit's own words where there are some; on an ok row, a remark or nothing


OK = RowStatus("ok")
