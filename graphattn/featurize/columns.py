"""A column of integer codes: its name and what each code means."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One integer code per node or edge.

    >>> column = Column("hydrogens", ("0", "1", "2 or more"))
    >>> column.width
    3
    """

    name: str
    labels: tuple[str, ...]  # meaning of each code; a code is a position in here

    @property
    def width(self) -> int:
        """How many codes there are: every code is in [0, width)."""
        return len(self.labels)


NO_YES = ("no", "yes")
OTHER = "other"


def counted(largest: int) -> tuple[str, ...]:
    """Labels for a count in which everything from ``largest`` on shares one code.

    >>> counted(2)
    ('0', '1', '2 or more')
    """
    return (*map(str, range(largest)), f"{largest} or more")
