"""Rules as functions: joined with one new row, or as a whole, they add their heads.

Place:   inserters.py writes a few of them into its own functions and calls the others; strata run them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from dotr.codegen import Names, make
from dotr.datalog.bounds import Bounds
from dotr.datalog.clauses import Clause
from dotr.datalog.restrictions import Adder
from dotr.datalog.triggers import Trigger
from dotr.ir import Node
from dotr.joins.graph_relations import Relation
from dotr.joins.join_code import CodeBlock, Value
from dotr.joins.planner import JoinPlan, plan
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term


class Derive(Struct, frozen=True):
    """The sink of a clause: add every head that is a triple."""

    clause: Clause
    adder: Callable[[Relation], Adder]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, value: Value, names: Names) -> list[str]:
        lines = []
        for head in self.clause.heads:
            columns = [value(node) for node in head.pattern.columns]
            tests = []
            if head.checked_subject:
                tests.append(f"{columns[0]}[0] != '\"'")
            if head.checked_predicate:
                tests.append(f"{columns[1]}[0] == '<'")
            add = names.bind(self.adder(head.pattern.relation), "ADD")
            call = f"{add}({', '.join([*columns, annotation] if annotation else columns)})"
            lines.append(f"if {' and '.join(tests)}: {call}" if tests else call)
        return lines

    def tail(self, names: Names) -> list[str]:
        return []


class DeltaRules:
    """Makes the functions of clauses over one store. `adder`: relation → a function that adds a row."""

    def __init__(self, store: TripleIndex, adder: Callable[[Relation], Adder], bounds: Bounds | None) -> None:
        self._store = store
        self._adder = adder
        self._annotation = None if bounds is None else bounds.annotation

    def plan_of(self, trigger: Trigger) -> JoinPlan:
        """The plan of a clause triggered by a new row; the overlay gets the indexes it needs."""
        found = plan(trigger.rest, trigger.clause.outputs, self._store, trigger=trigger.atom, as_set=True)
        self._store.prepare(found)
        return found

    def delta_rule(self, trigger: Trigger) -> Callable[..., None]:
        """One triggered clause as a function of the row's columns, made on its first call."""
        made: list[Callable[..., None]] = []

        def start(*row: Term) -> None:
            if not made:
                made.append(self.function_of(self.plan_of(trigger), trigger.clause))
            made[0](*row)

        return start

    def function_of(self, found: JoinPlan, clause: Clause) -> Callable[..., None]:
        """A plan as a function that adds the clause's heads."""
        names = Names()
        width = len(found.given) if found.trigger is None else len(found.trigger.columns)
        columns = [f"r{i}" for i in range(width)]
        block = CodeBlock(
            self._store, names, Derive(clause, self._adder), self._annotation, source=clause.rule
        )
        block.write(found, columns)
        until = ["e0"] if self._annotation is not None and found.trigger is not None else []
        lines = [f"def run({', '.join([*columns, *until])}):", *(block.lines or ["    pass"])]
        return make("run", "\n".join(lines) + "\n", names)
