"""What the attention benchmark found: rows, and the tables and the picture made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was found out about one contestant; a row of the JSON file."""

    case: str
    nodes: int
    edges: int
    width: int
    score: str
    edge_features: bool
    level: str  # "layer" or "core"
    contestant: str
    skipped: str | None = None  # why it took no part
    passed_gib: float | None = None  # asked for more extra memory than this, and was stopped
    interleaved: bool = True  # else timed in a process of its own
    rounds: int = 0
    forward_ms: float | None = None  # medians
    forward_spread_ms: tuple[float, float] | None = None  # quartiles
    both_ms: float | None = None  # forward and backward
    both_spread_ms: tuple[float, float] | None = None
    faster_forward: Mapping[str, float] = field(default_factory=dict)  # than "PyG", "sparse", ...: times
    faster_both: Mapping[str, float] = field(default_factory=dict)
    floors_forward: float | None = None  # times the bare projection
    floors_both: float | None = None
    error: float | None = None  # of float32 against float64, relative
    extra_mib: float | None = None  # peak, above the state before
    peak_mib: float | None = None  # of the whole process, the graph included
    adjacency_ms: float | None = None  # to make it; not in the times

    @property
    def question(self) -> tuple[str, int, str, bool]:
        """What names the table that this is a line of."""
        return self.case, self.width, self.score, self.edge_features


HEADER = ("forward", "fwd+bwd", "x forward", "x fwd+bwd", "floor fwd", "floor f+b", "extra MiB", "peak MiB", "error")


def table(results: Sequence[Result]) -> str:
    """The contestants of one question, a line each."""
    first = results[0]
    made = next((one.adjacency_ms for one in results if one.adjacency_ms is not None), None)
    lines = [
        f"{first.case}: {first.nodes} nodes, {first.edges} edges; width {first.width}, {first.score}, "
        f"{'with' if first.edge_features else 'without'} edge features"
        + ("" if made is None else f"; Adjacency made in {made:.2f} ms")
        + ("" if first.interleaved else "; each in a process of its own"),
        f"{'':26}" + "".join(f"{name:>11}" for name in HEADER),
    ]
    return "\n".join(lines + [_line(result) for result in results])


def _line(result: Result) -> str:
    name = f"{'core: ' if result.level == 'core' else ''}{result.contestant}"
    if result.skipped is not None:
        return f"{name:26} no part: {result.skipped}"
    passed = None if result.passed_gib is None else f">{result.passed_gib * 1024:.0f}"
    if passed and result.both_ms is None:
        return f"{name:26} asked for more than {result.passed_gib:.1f} GiB of extra memory, and was stopped"
    other = "PyG" if result.level == "layer" else "sparse"
    numbers = (
        _two_digits(result.forward_ms),
        _two_digits(result.both_ms),
        _two_digits(result.faster_forward.get(other)),
        _two_digits(result.faster_both.get(other)),
        _two_digits(result.floors_forward),
        _two_digits(result.floors_both),
        passed or ("" if result.extra_mib is None else f"{result.extra_mib:.1f}"),
        "" if result.peak_mib is None else f"{result.peak_mib:.0f}",
        "" if result.error is None else f"{result.error:.0e}",
    )
    return f"{name:26}" + "".join(f"{number:>11}" for number in numbers)


def summary(results: Sequence[Result]) -> str:
    """One line for each question: ours by ``auto`` beside PyG's layer and the floors, its core beside ``sparse``."""
    head = f"{'ours auto':16}{'width':>6}{'score':>10}{'edges':>9}"
    columns = ("x PyG fwd", "x PyG f+b", "floor f+b", "own floor", "core x sparse", "memory/PyG's")
    lines = [head + "".join(f"{name:>15}" for name in columns)]
    for question in dict.fromkeys(result.question for result in results):
        own = {(one.level, one.contestant.split()[0]): one for one in results if one.question == question}
        own |= {
            (one.level, "ours"): one for one in results if one.question == question and one.contestant == "ours auto"
        }
        ours, pyg, core = own.get(("layer", "ours")), own.get(("layer", "PyG")), own.get(("core", "ours"))
        if ours is None or ours.both_ms is None:
            continue
        own_floor = ours.faster_both.get("own projection")
        share = ours.extra_mib / pyg.extra_mib if pyg and pyg.extra_mib and ours.extra_mib is not None else None
        numbers = (
            ours.faster_forward.get("PyG"),
            ours.faster_both.get("PyG"),
            ours.floors_both,
            None if own_floor is None else 1 / own_floor,
            core.faster_both.get("sparse") if core else None,
            share,
        )
        case, width, score, edge_features = question
        line = f"{case:16}{width:6}{score:>10}{'with' if edge_features else 'without':>9}"
        lines.append(line + "".join(f"{_two_digits(number):>15}" for number in numbers))
    return "\n".join(lines)


def growth_table(results: Sequence[Result]) -> str:
    """Edges down, contestants across: forward+backward in ms and extra memory in MiB."""
    names = list(dict.fromkeys(result.contestant for result in results))
    lines = [
        f"growth of fwd+bwd (ms) and of peak extra memory (MiB); width {results[0].width}, {results[0].score}",
        f"{'edges':>10}" + "".join(f"{name + ' ms':>26}{'MiB':>10}" for name in names),
    ]
    for edges in sorted({result.edges for result in results}):
        line = f"{edges:10}"
        for name in names:
            one = next(each for each in results if (each.edges, each.contestant) == (edges, name))
            time = "stopped" if one.passed_gib else one.skipped or _two_digits(one.both_ms)
            memory = (
                f">{one.passed_gib * 1024:.0f}" if one.passed_gib else "" if one.skipped else f"{one.extra_mib:.1f}"
            )
            line += f"{time:>26}{memory:>10}"
        lines.append(line)
    return "\n".join(lines)


def growth_plot(results: Sequence[Result], path: Path) -> None:
    """The same as a picture, both axes logarithmic."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (wanted for the picture only)

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name in dict.fromkeys(result.contestant for result in results):
        own = [one for one in results if one.contestant == name and one.both_ms is not None]
        left.plot([one.edges for one in own], [one.both_ms for one in own], marker="o", label=name)
        right.plot([one.edges for one in own], [one.extra_mib for one in own], marker="o", label=name)
    for axes, what in ((left, "forward and backward, ms"), (right, "peak extra memory, MiB")):
        axes.set(xscale="log", yscale="log", xlabel="edges", ylabel=what)
        axes.grid(visible=True, alpha=0.3)
    left.legend()
    figure.savefig(path, dpi=150)


def _two_digits(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}" if number < 1000 else f"{number:.0f}"
