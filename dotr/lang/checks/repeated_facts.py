"""Facts that come again: what lasts at every graph, and the twin of a fact at its own instant.

Place:   a static check; no data.
Method:  a query over held triples alone has all its answers at every graph, so that EACH, COUNT, SUM and AVG
         over a window of more than an instant meet an old answer once a graph, D1329. Of two equal facts of
         one instant each is a candidate of the other's `NOT … WITHIN d FROM`, so that neither has an event,
         D1330; it is not reported where a part of ON is false for twins, nor where DISTINCT leaves one fact
         for what ON equates.
Why not: a look at derived and background triples one by one: a query that also reads what is not held is not
         reported, since an answer then needs a triple of the instant or of the background.
"""

from __future__ import annotations

from typing import Final

from dotr.errors import Diagnostics
from dotr.ir import (
    Absent,
    Atom,
    Attribute,
    Call,
    Choose,
    Conjunct,
    Expression,
    Operator,
    Program,
    Rule,
    Summarise,
    TimeOf,
    Within,
)
from dotr.joins.graph_relations import ALL, Relation, class_relation, relation_of
from dotr.sparql.queried_relations import relations_of
from dotr.tesla.conditions import names, parts

_REPEATABLE: Final = frozenset(("MIN", "MAX"))
"""Aggregates that are the same whether a value comes once or twice."""
_UNEQUAL: Final = frozenset(("<", ">", "!="))


def check_repeats(program: Program, found: Diagnostics) -> None:
    """Warn about both."""
    for rule in program.rules:
        for conjunct in rule.conjuncts:
            if _meets_again(conjunct) and _lasts(program, conjunct.position.stream):
                _report_again(conjunct, found)
            elif isinstance(conjunct, Absent) and _cancels(program, rule, conjunct):
                _report_twins(rule, conjunct, found)


# -- what lasts --------------------------------------------------------------------------------------


def _meets_again(conjunct: Conjunct) -> bool:
    window = conjunct.window
    if isinstance(window, Within) and window.duration == 0:
        return False
    if isinstance(conjunct, Choose):
        return conjunct.operator is Operator.EACH
    return isinstance(conjunct, Summarise) and not conjunct.distinct and conjunct.function not in _REPEATABLE


def _lasts(program: Program, stream: str) -> bool:
    """Whether a stream is a plain query over held triples alone."""
    select = program.selects.get(stream)
    if not program.holds or select is None or stream in program.standing:
        return False
    read = relations_of(select)
    held = _Held(program)
    return bool(read) and all(map(held.lasts, read))


class _Held:
    """Owns which relations last, and which follow from these alone."""

    def __init__(self, program: Program) -> None:
        lines = {_relation(hold.predicate, hold.class_): hold.duration != 0 for hold in program.holds}
        self._rest = lines.pop(ALL, False)
        self._lines = lines
        self._derived: set[Relation] = set()
        heads = {_of(head) for rule in program.datalog for head in rule.heads}
        self._heads = heads - lines.keys()
        before = -1
        while before < len(self._derived):
            before = len(self._derived)
            for rule in program.datalog:
                body = [_of(atom) for atom in rule.body if isinstance(atom, Atom)]
                if body and all(map(self.lasts, body)):
                    self._derived.update(map(_of, rule.heads))

    def lasts(self, relation: Relation) -> bool:
        if relation in self._lines:
            return self._lines[relation]
        if relation in self._heads:
            return relation in self._derived
        return self._rest


def _relation(predicate: str | None, class_: str | None) -> Relation:
    if class_ is not None:
        return class_relation(class_)
    return ALL if predicate is None else predicate


def _of(atom: Atom) -> Relation:
    return relation_of(atom.subject, atom.predicate, atom.object)


def _report_again(conjunct: Conjunct, found: Diagnostics) -> None:
    name, stream = conjunct.position.name, conjunct.position.stream
    query = "{ … }" if "." in stream else stream  # written where it is used
    what = f"{conjunct.function} counts" if isinstance(conjunct, Summarise) else "EACH takes"
    found.warning(
        "D1329",
        f"{what} what lasts again at every graph",
        conjunct.position.span,
        hint=f"take an answer once, as it begins: `Begun := ISTREAM {query}`; or what holds now: WITHIN 0 s",
        notes=(f"`{name}` asks for held triples: at each graph in the window it has all its answers",),
    )


# -- twins -------------------------------------------------------------------------------------------


def _cancels(program: Program, rule: Rule, absent: Absent) -> bool:
    """Whether two facts of one instant can each be what the other must not have."""
    window, own = absent.window, absent.position
    if not isinstance(window, Within) or window.before or own.chained:
        return False
    reference = next((p for p in rule.positions if p.name == window.reference), None)
    if reference is None or reference.stream != own.stream:
        return False
    equated: set[str] = set()
    for part in parts(absent.on):
        if not names(part) <= {own.name, reference.name}:
            return False  # what another event says may be true of one twin alone
        sides = _sides(part, own.name, reference.name)
        if sides is None:
            continue
        if sides[0] in _UNEQUAL:
            return False
        if sides[0] == "=":
            equated.add(sides[1])
    select = program.selects.get(own.stream)
    return select is None or not (select.distinct and equated >= set(own.variables))


def _sides(part: Expression, own: str, reference: str) -> tuple[str, str] | None:
    """(operator, attribute) where a part compares one attribute, or the time ("."), of the two facts."""
    if not (isinstance(part, Call) and len(part.arguments) == 2):
        return None
    found = []
    for side in part.arguments:
        if isinstance(side, TimeOf):
            found.append((side.position, "."))
        elif isinstance(side, Attribute):
            found.append((side.position, side.variable))
    if len(found) != 2 or found[0][1] != found[1][1] or {found[0][0], found[1][0]} != {own, reference}:
        return None
    return part.function, found[0][1]


def _report_twins(rule: Rule, absent: Absent, found: Diagnostics) -> None:
    name = absent.position.name
    assert isinstance(absent.window, Within)
    reference = absent.window.reference
    found.warning(
        "D1330",
        f"two facts of one instant cancel each other: each is the other's `{name}`",
        absent.position.span,
        hint=f"look back with `BEFORE {reference}`, and select DISTINCT what makes one fact of both",
        notes=(f"WITHIN … FROM includes the instant of `{reference}`, without that very fact alone",),
    )
