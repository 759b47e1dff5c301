"""What counting work costs: the same streams with the budget's charges and without any.

Place:   the scenario `budget` of __main__.py; the figures of a whole run are in BUDGET.md.
Method:  `uncharged` takes the charges out of what writes generated code and out of what is called at every
         loop; two engines, one made and run so, take turns over one stream and must write the same events.
         Table 1, CityBench and EACH × EACH over rooms are end to end; the other cases do little but loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from dotr.budget import Meter
from dotr.detect.scope import RuleWork
from dotr.extract import operators, query
from dotr.extract import operators as unary_operators
from dotr.joins.filters import Charges, _Entry

from . import citybench, runners, workloads
from .harness import Timing, compare
from .runners import Documents, Run
from .workloads import Workload

END_TO_END, KERNEL = 1.03, 1.15
"""As many times as long as without charges, at most."""

_EACH = """RULE R DEFINE { dotr_r :n ?n } FROM H := { SELECT ?n { ?o :val ?n } }
AND EACH A := { SELECT ?v { ?o :val ?v } } WITHIN 40 s FROM H ON true
AND EACH B := { SELECT ?w { ?o :val ?w } } WITHIN 40 s FROM H ON true
WHERE A.?v + B.?w + H.?n < 3 WITH ?n := H.?n
"""
_PREFIX = f"PREFIX : <{workloads.NAMESPACE}>\n"


def _nothing(*_: object, **__: object) -> None:
    """No charge."""


def _settled(self: Charges, indent: str) -> None:
    for entry in self._entries:
        self._lines[entry.line] += "pass"


def _listed(rows: Iterable[Any], *_: object) -> list[Any]:
    return rows if isinstance(rows, list) else list(rows)


@contextmanager
def uncharged() -> Iterator[None]:
    """Whatever is compiled and run meanwhile has no end to its work and counts none.

    What is left: two subtractions a round of Datalog, and one for each node that a path is walked from.
    """
    with ExitStack() as stack:
        for owner, name in (
            (Meter, "charge"),
            (Meter, "spent"),
            (Charges, "listed"),
            (Charges, "early"),
            (RuleWork, "begin"),
            (RuleWork, "listed"),
            (RuleWork, "count_matches"),
            (RuleWork, "settle"),
        ):
            stack.enter_context(patch.object(owner, name, _nothing))
        stack.enter_context(patch.object(Charges, "settle", _settled))
        stack.enter_context(patch.object(_Entry, "text", lambda _: "pass"))
        for module in (query, operators, unary_operators):
            stack.enter_context(patch.object(module, "counted", _listed))
        yield


def without(
    prepare: Callable[[], Run], left_out: Callable[[], AbstractContextManager[None]] = uncharged
) -> Run:
    """A runner that is made and run without something."""
    with left_out():
        run = prepare()

    def quietly(documents: Documents) -> list[str]:
        with left_out():
            return run(documents)

    return quietly


def fan_out(name: str, body: str, graphs: int, datalog: str = "") -> Workload:
    """A rule over one query of graphs with 60 readings and a chain of 60 nodes."""
    rules = f"{_PREFIX}RULE R DEFINE {{ dotr_r :n ?n }} FROM Q := {{ {body} }} WITH ?n := Q.?n\n"
    triples = "".join(f":s{i} :val {i} ; :next :s{i + 1} .\n" for i in range(60))
    graph = f"@prefix : <{workloads.NAMESPACE}> .\n{triples}"
    return Workload(name, rules, datalog, "", [(second, graph) for second in range(graphs)])


def each(graphs: int) -> Workload:
    """Two EACH over forty readings: 1,600 pairs at every trigger fact, of which some hold."""
    rules = _PREFIX + _EACH
    graph = f"@prefix : <{workloads.NAMESPACE}> . :s :val "
    documents = [(second, f"{graph}{second % 37} .") for second in range(graphs)]
    return Workload("detection: EACH × EACH", rules, "", "", documents)


_CLOSED = _PREFIX + ":reach(?x, ?y) :- :next(?x, ?y) .\n:reach(?x, ?z) :- :reach(?x, ?y), :next(?y, ?z) .\n"


def kernels(graphs: int) -> tuple[Workload, ...]:
    """Cases that do hardly anything but loops."""
    count = "SELECT (COUNT(*) AS ?n) "
    return (
        fan_out("join: 60 × 60 rows", count + "{ ?x :val ?v . ?y :next ?z }", graphs),
        fan_out("join with FILTER", count + "{ ?x :val ?v . ?y :val ?w FILTER(?v < ?w) }", graphs),
        fan_out(
            "NOT EXISTS", count + "{ ?x :val ?v FILTER NOT EXISTS { ?y :val ?w FILTER(?w > ?v) } }", graphs
        ),
        fan_out("path: :next+", count + "{ ?x :next+ ?y }", graphs),
        fan_out("Datalog: closure", count + "{ ?x :reach ?y }", max(2, graphs // 4), _CLOSED),
        each(10 * graphs),
    )


def measured(
    workload: Workload, repeats: int, left_out: Callable[[], AbstractContextManager[None]] = uncharged
) -> Mapping[str, Timing]:
    """With and without something, in turns. Raises DifferenceError."""
    prepare = partial(runners.prepare_dotr, workload)
    pair = {"with": prepare, "without": partial(without, prepare, left_out)}
    length = len(workload.documents)
    return compare(pair, workload.documents, repeats, warm_up=length // 10, turn=max(1, length // 20))


def overheads(ends: int, graphs: int, repeats: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """(row, whether it holds) of each case; `ends` graphs end to end, `graphs` in each kernel."""
    end_to_end = [workloads.default(ends), citybench.citybench("q1", ends, 10)]
    end_to_end.append(workloads.sequence(ends, 3, "EACH"))
    for most, cases in ((END_TO_END, end_to_end), (KERNEL, kernels(graphs))):
        for workload in cases:
            yield compared(workload, measured(workload, repeats), most)


def compared(workload: Workload, timings: Mapping[str, Timing], most: float) -> tuple[dict[str, Any], bool]:
    """(row, whether it holds)."""
    given, free = timings["with"], timings["without"]
    turns = sorted(a / b for a, b in zip(given.seconds, free.seconds, strict=True))
    ratio = turns[len(turns) // 2]
    row = {
        "case": workload.name,
        "µs a graph": given.best,
        "without": free.best,
        "ratio": f"{ratio:.3f}",
        "most": most,
    }
    return row, ratio <= most
