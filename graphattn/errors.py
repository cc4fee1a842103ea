"""The exceptions of graphattn, all of them.

::

    ValueError
    └── GraphattnError         something given to graphattn does not fit
        ├── ShapeError         sizes or dtypes that do not belong together
        ├── GraphError         an adjacency, edge list or graph that cannot be, or a file of one
        ├── BackendError       a backend asked for by name cannot run this call
        ├── MoleculeError      a molecule that cannot be read or featurized
        ├── TableError         a file of rows: unreadable, a column missing, a cell that is no number
        ├── SplitError         a split that would leave a part empty or cannot be made
        ├── SettingError       a setting out of its range, or settings that exclude each other
        ├── TrainingError      a training run that cannot start, go on or finish
        └── ModelFolderError   a model folder that is damaged, foreign or from another version

    UserWarning
    └── GraphattnWarning       the work went on, but somebody should know
"""


class GraphattnError(ValueError):
    """Something given to graphattn does not fit; the message says what, where and what to do."""


class ShapeError(GraphattnError):
    """Sizes or dtypes that do not belong together."""


class GraphError(GraphattnError):
    """An adjacency, edge list or networkx graph that cannot be."""


class BackendError(GraphattnError):
    """A backend asked for by name cannot run this call."""


class MoleculeError(GraphattnError):
    """A molecule that cannot be read or featurized; ``status`` says in one word what is wrong with it.

    The words are those of :class:`graphattn.featurize.rows.RowStatus`.
    """

    def __init__(self, message: str, *, status: str = "unreadable") -> None:
        super().__init__(message)
        self.status = status


class TableError(GraphattnError):
    """A file of rows that is unreadable, lacks a column or holds a cell that is no number."""


class SplitError(GraphattnError):
    """A split that would leave a part empty or cannot be made."""


class SettingError(GraphattnError):
    """A setting out of its range, or settings that exclude each other."""


class TrainingError(GraphattnError):
    """A training run that cannot start, go on or finish."""


class ModelFolderError(GraphattnError):
    """A model folder that is damaged, foreign or from another version."""


class GraphattnWarning(UserWarning):
    """The work went on, but somebody should know."""
