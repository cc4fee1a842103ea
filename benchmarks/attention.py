"""How fast attention along edges is: our backends, PyG's layers, padded attention, and the bare projections.

    python benchmarks/attention.py --memory --json attention.json      # every case but the huge one, width and score
    python benchmarks/attention.py --cases molecules-256 --widths 64 128 256 --scores dot additive --edges with
    python benchmarks/attention.py --cases huge --widths 64 --scores dot --edges with --rounds 3
    python benchmarks/attention.py --growth --plot growth.png

A wrong answer is not timed: all contestants of a score have the same weights, and each is first held to float64, its
output and its gradients. Then they take turns, for several rounds; a ratio is the median over rounds.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import torch
from attention_cases import CASES, GROWTH, QUICK, Case, Graph
from attention_contestants import (
    BARE,
    EDGE_DIM,
    HEADS,
    KINDS,
    LEVELS,
    OURS,
    OWN,
    PYG,
    SCORES,
    Contestant,
    Declined,
    Problem,
    WrongAnswer,
)
from attention_measure import Alone, Times, interleaved, measured_alone, median_ratio
from attention_results import Result, growth_plot, growth_table, summary, table
from machine import machine

from graphattn.errors import BackendError

NOTES = f"""\
Times in ms, medians. Layers have {HEADS} heads and, with edge features, {KINDS} kinds of edge: ours by edge_types,
PyG's by an embedding of width {EDGE_DIM} given as edge features. "x": how many times faster than PyG's layer of that
score (core: than sparse), "floor": how many times the bare projections (dot 3 x width, additive 2 x width, gat 1 x
width) by nn.Linear take; "own floor": the same by the product that our layer takes. Medians of the ratios of rounds.
Ours is given an Adjacency made beforehand, as padded SDPA its mask: the layers of a model share it. What making it took
stands above each table and is in no time of ours; PyG is given edge_index, from which it computes at every call.
Extra memory: the high-water mark of forward and backward above the state before, in a process of its own."""
GROWTH_WIDTH = 64


@dataclass(frozen=True)
class Question:
    """One table: a case at a width, with a score, with or without edge features."""

    case: Case
    width: int
    score: str
    edges: bool

    def common(self, graph: Graph) -> dict[str, Any]:
        """What all rows of the table share."""
        return {
            "case": self.case.name,
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "width": self.width,
            "score": self.score,
            "edge_features": self.edges,
        }

    def alone(self, level: str, name: str, cap_gib: float, **settings: Any) -> Alone:
        """The order for a process that measures one contestant."""
        return Alone(
            case=self.case.name,
            width=self.width,
            score=self.score,
            edges=self.edges,
            level=level,
            name=name,
            threads=torch.get_num_threads(),
            cap_gib=cap_gib,
            **settings,
        )


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    rounds: int
    levels: Sequence[str] = LEVELS
    ours: Sequence[str] = OURS  # backends
    memory: bool = False
    cap_gib: float = 20.0  # extra memory that a process may ask for


def measure(question: Question, graph: Graph, plan: Plan) -> list[Result]:
    """Check all contestants of one question, then time them side by side, then weigh each alone.

    Raises:
        WrongAnswer: a contestant computes something else.
    """
    problem = Problem(graph, question.width, question.score, question.edges)
    common = question.common(graph)
    skipped: list[Result] = []
    checked: list[tuple[Contestant, float | None]] = []
    for level, name, found in problem.contestants(plan.levels, plan.ours):
        try:
            if isinstance(found, Declined):
                raise found
            checked.append((found, problem.check(found)))
        except (Declined, BackendError) as why:
            skipped.append(Result(**common, level=level, contestant=name, skipped=str(why)))
    times = interleaved([contestant for contestant, _ in checked], plan.rounds)
    by_name = {(one.level, one.name): own for (one, _), own in zip(checked, times, strict=True)}
    results = []
    for one, error in checked:
        own = by_name[one.level, one.name]
        weighed: Mapping[str, Any] = {}
        if plan.memory:
            weighed = measured_alone(question.alone(one.level, one.name, plan.cap_gib))
        memory: dict[str, Any] = {name: weighed.get(name) for name in ("extra_mib", "peak_mib", "passed_gib")}
        results.append(
            Result(
                **common,
                level=one.level,
                contestant=one.name,
                error=error,
                adjacency_ms=round(graph.adjacency_ms, 3),
                **memory,
                **_medians(own),
                **_ratios(one.level, own, by_name),
            )
        )
    return results + skipped


def measure_alone(question: Question, graph: Graph, names: Sequence[str], plan: Plan) -> Iterator[Result]:
    """Check, time and weigh layers each in a process of its own, where few would fit beside the others."""
    for name in names:
        order = question.alone("layer", name, plan.cap_gib, rounds=plan.rounds, check=True)
        found = measured_alone(order)
        memory: dict[str, Any] = {
            key: found.get(key) for key in ("extra_mib", "peak_mib", "passed_gib", "error", "adjacency_ms")
        }
        yield Result(
            **question.common(graph),
            level="layer",
            contestant=name,
            skipped=found.get("declined", found.get("failed")),
            interleaved=False,
            **memory,
            **_medians(Times(tuple(found.get("forward", ())), tuple(found.get("both", ())))),
        )


def _medians(times: Times) -> dict[str, Any]:
    found: dict[str, Any] = {"rounds": len(times.both)}
    for name, seconds in (("forward", times.forward), ("both", times.both)):
        if seconds:
            quartiles = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
            low, middle, high = (round(value * 1e3, 4) for value in quartiles)
            found |= {f"{name}_ms": middle, f"{name}_spread_ms": (low, high)}
    return found


def _ratios(level: str, own: Times, times: Mapping[tuple[str, str], Times]) -> dict[str, Any]:
    """Against all others of the level that are no candidates for the fastest, and against the floor."""
    others = {
        "PyG" if name.startswith("PyG") else name.removeprefix("ours "): other
        for (of_level, name), other in times.items()
        if of_level == level and name not in ("ours auto", "ours fused_cpu", BARE)
    }
    floor = times.get((level, BARE))
    found: dict[str, Any] = {}
    for part in ("forward", "both"):
        mine = getattr(own, part)
        found[f"faster_{part}"] = {
            name: round(median_ratio(getattr(other, part), mine), 3) for name, other in others.items()
        }
        if floor is not None:
            found[f"floors_{part}"] = round(median_ratio(mine, getattr(floor, part)), 3)
    return found


def grow(plan: Plan) -> Iterator[Result]:
    """How time and memory grow with the edges at one width, without edge features."""
    for case in GROWTH:
        graph = case.make()
        names = ("ours auto", "ours sparse", PYG["dot"])
        for result in measure_alone(Question(case, GROWTH_WIDTH, "dot", edges=False), graph, names, plan):
            print(f"{case.name}: {result.contestant} done", file=sys.stderr)
            yield result


def answers(questions: Sequence[Question], plan: Plan, missing: dict[str, str]) -> Iterator[list[Result]]:
    """A table's results for each question whose graph can be made; why others cannot goes into ``missing``."""
    graphs: dict[str, Graph] = {}
    for number, question in enumerate(questions, 1):
        name = question.case.name
        if name not in graphs and name not in missing:
            graphs.clear()  # one at a time
            try:
                graphs[name] = question.case.make()
            except (FileNotFoundError, ValueError) as why:
                missing[name] = str(why)
        if name in missing:
            continue
        print(f"question {number} of {len(questions)}: {name}", file=sys.stderr)
        if question.case.huge:
            names = ("ours auto", "ours sparse", PYG[question.score], BARE, OWN)
            yield list(measure_alone(question, graphs[name], names, plan))
        else:
            yield measure(question, graphs[name], plan)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", choices=names, help="all but the huge one where left out")
    parser.add_argument("--huge", action="store_true", help="the huge case as well (minutes, and up to --cap GiB)")
    parser.add_argument("--widths", nargs="+", type=int, default=[32, 64, 128, 256])
    parser.add_argument("--scores", nargs="+", choices=SCORES, default=list(SCORES))
    parser.add_argument("--edges", nargs="+", choices=("with", "without"), default=["with", "without"])
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS), help="whole layer, or its core")
    parser.add_argument("--ours", nargs="+", choices=OURS, default=list(OURS), help="backends of ours")
    parser.add_argument("--rounds", type=int, default=15, help="that count, after the warm-up")
    parser.add_argument("--threads", type=int, help="PyTorch's own choice where left out")
    parser.add_argument(
        "--memory", action="store_true", help="peak extra memory too, by a process for each contestant (5 s or more)"
    )
    parser.add_argument("--cap", type=float, default=20.0, help="GiB of extra memory that such a process may ask for")
    parser.add_argument("--quick", action="store_true", help="one small graph, for a test that all this runs")
    parser.add_argument("--growth", action="store_true", help="time and memory by edges, instead of the cases")
    parser.add_argument("--plot", type=Path, help="with --growth: draw it there")
    parser.add_argument("--json", type=Path, help="write all rows there, with the machine and versions")
    arguments = parser.parse_args(words)
    if arguments.plot and not arguments.growth:
        parser.error("--plot draws what --growth measures; give both")
    return arguments


def _questions(arguments: argparse.Namespace) -> list[Question]:
    if arguments.quick:
        return [Question(case, 64, "dot", edges) for case in QUICK for edges in (True, False)]
    cases = [
        case
        for case in CASES
        if (case.name in arguments.cases if arguments.cases else not case.huge) or (case.huge and arguments.huge)
    ]
    edges = [choice == "with" for choice in arguments.edges]
    return [Question(*choice) for choice in product(cases, arguments.widths, arguments.scores, edges)]


def main(words: Sequence[str] | None = None) -> None:
    """Measure what the arguments name, print it, and write it where they say."""
    arguments = _arguments(words)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rounds = min(arguments.rounds, 3) if arguments.quick else arguments.rounds
    plan = Plan(rounds, arguments.levels, arguments.ours, arguments.memory, arguments.cap)
    on = machine() | {"numba": version("numba")}
    missing: dict[str, str] = {}
    results: list[Result] = []

    def write() -> None:
        if arguments.json:
            found = {"machine": on, "rounds": rounds, "rows": [asdict(one) for one in results], "missing": missing}
            arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    print(", ".join(f"{name} {value}" for name, value in on.items()))
    try:
        if arguments.growth:
            for result in grow(plan):
                results.append(result)
                write()
            print(growth_table(results))
            if arguments.plot:
                growth_plot(results, arguments.plot)
        else:
            for found in answers(_questions(arguments), plan, missing):
                results += found
                print(f"\n{table(found)}", flush=True)
                write()
            print(f"\n{summary(results)}")
    except WrongAnswer as wrong:
        raise SystemExit(f"error: {wrong}") from wrong
    write()
    for name, why in missing.items():
        print(f"left out: {name}: {why}")
    print(f"\n{NOTES}")


if __name__ == "__main__":
    main()
