"""The settings of a network, without torch: the command line reads them, ``build_network`` turns them into modules."""

from dataclasses import dataclass
from typing import Annotated

from graphattn.checks import number_from_0, whole_number, yes_or_no
from graphattn.errors import SettingError

# Past these nothing could be trained: one layer of so many channels takes gigabytes.
MOST_CHANNELS = 2**14
MOST_LAYERS = 1000

READOUTS = ("sum", "mean", "max", "attention")


def readout_parts(readout: str) -> tuple[str, ...]:
    """The readouts that a name joins.

    >>> readout_parts("attention+sum")
    ('attention', 'sum')

    Raises:
        SettingError: a part that is no readout, or stands there twice.
    """
    parts = tuple(str(readout).split("+"))
    if not set(parts) <= set(READOUTS) or len(set(parts)) < len(parts):
        raise SettingError(
            f"readout must be {', '.join(READOUTS)}, or several of them, each once, joined by +, got {readout!r}"
        )
    return parts


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Size and parts of a :class:`graphattn.GraphTransformer`. The defaults are the preset ``fast``.

    The text beside each type is the help of its command-line option.
    """

    channels: Annotated[int, "width of a node's vector"] = 128
    layers: Annotated[int, "blocks of attention and feed-forward"] = 4
    heads: Annotated[int, "attention heads; divides channels"] = 8
    dropout: Annotated[float, "on attention weights and on every residual branch"] = 0.0
    readout: Annotated[str, "how nodes become one vector: sum, mean, max, attention, or several joined by +"] = (
        "attention+sum"
    )
    self_loops: Annotated[bool, "whether a node attends to itself as well"] = True

    def __post_init__(self) -> None:
        kept: dict[str, object] = {
            name: whole_number(name, getattr(self, name), at_least=1, at_most=most)
            for name, most in {"channels": MOST_CHANNELS, "layers": MOST_LAYERS, "heads": MOST_CHANNELS}.items()
        }
        if self.channels % self.heads:
            raise SettingError(
                f"channels ({self.channels}) must be a multiple of heads ({self.heads}): every head gets a share"
            )
        kept["dropout"] = number_from_0("dropout", self.dropout, below=1)
        kept["self_loops"] = yes_or_no("self_loops", self.self_loops)
        readout_parts(self.readout)
        for name, value in kept.items():
            object.__setattr__(self, name, value)
