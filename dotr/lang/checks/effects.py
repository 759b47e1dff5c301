"""Warnings about what events state and delete: what it never changes, and chains that nothing ends.

Place:   `check_cycles` is called with the other checks of a program, `check_stated` by `dotr check`, which
         has read the background and, if one is given, a sample of the stream.
Method:  language.md, "Rules that write what lasts". A rule leads to another if a triple of its INSERT or
         DELETE, or a value that LATEST ends, may change an answer of the ISTREAM or DSTREAM that triggers the
         other, or if its event is the other's trigger. In a circle of such rules, none of which has a
         condition, each event makes the next one, moment after moment (D1515), if each of these answers is
         begun and ended again by rules of the circle, or new values are stated. A query without OPTIONAL,
         MINUS, EXISTS and aggregates begins only by what is stated and ends only by what is deleted; what
         Datalog derives may begin and end by any triple with a predicate of the bodies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.errors import Diagnostics
from dotr.lang.checks.scopes import has_aggregate
from dotr.program import (
    Atom,
    Attribute,
    Exists,
    Fresh,
    Hold,
    Minus,
    OptionalGroup,
    PatternTriple,
    Position,
    Program,
    RelationToStream,
    Rule,
    Select,
    TemplateTriple,
    TemplateVar,
    TriplePattern,
)
from dotr.rdf.terms import RDF_TYPE, Term, Triple
from dotr.source import PLACES

Shape: TypeAlias = tuple[Term | None, Term | None, Term | None]
"""The constants of a triple; None: any term."""

_BREAKS: Final = (OptionalGroup, Minus, Exists)


# -- chains without an end ---------------------------------------------------------------------------


def check_cycles(program: Program, found: Diagnostics) -> None:
    """Warn of rules whose effects trigger one another through ISTREAM and DSTREAM alone, D1515. O(rules²) of
    the rules with effects or such triggers.
    """
    if not program.has_effects or not program.standing:
        return
    rules = {rule.name: rule for rule in program.rules if _unconditional(program, rule)}
    links = {
        name: [other for other, to in rules.items() if _leads(program, rule, to)]
        for name, rule in rules.items()
    }
    reported: set[str] = set()
    for name, rule in rules.items():
        circle = [other for other in _reached(name, links) if name in _reached(other, links)]
        if name in reported or name not in circle or not rule.has_effects:
            continue
        if _rests(program, [rules[other] for other in rules if other in circle]):
            continue
        reported.update(circle)
        place = rule.inserts[0].span if rule.inserts else rule.deletes[0].span
        others = ", ".join(f"`{other}`" for other in rules if other in circle)
        found.warning(
            "D1515",
            f"the effects of {others} trigger one another without an end"
            if len(circle) > 1
            else f"the effects of {others} trigger it again without an end",
            place,
            hint="state what does not trigger the rule that undoes it, or give a rule of them a condition",
            notes=("each moment follows the one before; a run ends after 1,000 of them",),
        )


def _unconditional(program: Program, rule: Rule) -> bool:
    """Whether every fact of its trigger makes an event, and the trigger is another event or a change."""
    if rule.conjuncts or rule.where is not None or rule.delay or not isinstance(rule.triggering, Position):
        return False
    return rule.triggering.chained or rule.triggering.stream in program.standing


def _rests(program: Program, circle: list[Rule]) -> bool:
    """Whether a circle of rules makes no answer of one of its triggers twice: it is not ended, or not begun
    again, and no value is new.
    """
    if any(_makes_values(rule) for rule in circle):
        return False
    begins = [_shape(triple) for rule in circle for triple in rule.inserts]
    ends = [shape for rule in circle for shape in _ended(program, rule)]
    for rule in circle:
        assert isinstance(rule.triggering, Position)
        standing = program.standing.get(rule.triggering.stream)
        if standing is None or not _only_adds(standing.select):
            continue
        read, derived = _read(program, standing.select)
        again = [any(_meet(one, each) for one in shapes for each in read) for shapes in (begins, ends)]
        if not derived and not all(again):
            return True
    return False


def _makes_values(rule: Rule) -> bool:
    """Whether an INSERT has a new name, or a value that WITH computes."""
    computed = {one.variable for one in rule.bindings if not isinstance(one.expression, Attribute)}
    for triple in rule.inserts:
        for node in (triple.subject, triple.predicate, triple.object):
            if isinstance(node, Fresh) or (isinstance(node, TemplateVar) and node.name in computed):
                return True
    return False


def _reached(start: str, links: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(links[start])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += links[name]
    return found


def _leads(program: Program, rule: Rule, to: Rule) -> bool:
    """Whether an event of a rule may make one of another at the same moment or the next."""
    assert isinstance(to.triggering, Position)
    stream = to.triggering.stream
    if stream == rule.name:
        return True
    standing = program.standing.get(stream)
    if standing is None:
        return False
    begins = standing.operator is RelationToStream.ISTREAM
    both = not _only_adds(standing.select)
    stated, ended = [_shape(triple) for triple in rule.inserts], list(_ended(program, rule))
    shapes = [*(stated if begins or both else ()), *(ended if not begins or both else ())]
    read, derived = _read(program, standing.select)
    if any(_meet(shape, pattern) for shape in shapes for pattern in read):
        return True
    return any(_meet(shape, pattern) for shape in (*stated, *ended) for pattern in derived)


def _ended(program: Program, rule: Rule) -> Iterator[Shape]:
    """What a rule's events may end: DELETE, and the other values under LATEST."""
    latest = {hold.predicate for hold in program.holds if hold.latest}
    for ended in rule.deletes:
        yield _shape(ended)
    kept = {_shape(triple) for triple in rule.inserts}
    for subject, predicate, object_ in kept:
        if predicate in latest:
            yield subject, predicate, None if object_ is None else f"!{object_}"


def _shape(triple: TemplateTriple | PatternTriple | TriplePattern | Atom) -> Shape:
    subject, predicate, object_ = (
        node if isinstance(node, str) else None for node in (triple.subject, triple.predicate, triple.object)
    )
    return subject, predicate, object_


def _meet(effect: Shape, pattern: Shape) -> bool:
    """Whether a triple may have both shapes. `!term` in an effect: any other term."""
    for one, other in zip(effect, pattern, strict=True):
        if one is None or other is None:
            continue
        if one == f"!{other}" or (one != other and not one.startswith("!")):
            return False
    return True


def _read(program: Program, select: Select) -> tuple[list[Shape], list[Shape]]:
    """The shapes of a query's patterns, and of the bodies of Datalog rules that they follow from."""
    read = [_shape(pattern) for pattern in _below(select, TriplePattern)]
    derived: list[Shape] = []
    todo = list(read)
    used: set[int] = set()
    while todo:
        pattern = todo.pop()
        for number, rule in enumerate(program.datalog):
            if number in used or not any(_meet(_shape(head), pattern) for head in rule.heads):
                continue
            used.add(number)
            bodies = [_shape(atom) for atom in _below(rule.body, Atom)]
            derived += bodies
            todo += bodies
    return read, derived


def _only_adds(select: Select) -> bool:
    """Whether more triples never end an answer."""
    nested = [select, *_below(select.where, Select)]
    plain = all(one.limit is None and not one.group_by and not one.having for one in nested)
    totals = any(
        p.expression is not None and has_aggregate(p.expression) for one in nested for p in one.projection
    )
    return plain and not totals and not any(next(_below(select, kind), None) for kind in _BREAKS)


def _below(value: Any, kind: type[Any]) -> Iterator[Any]:
    """The nodes of a kind below a syntax node."""
    if isinstance(value, tuple):
        for one in value:
            yield from _below(one, kind)
    elif isinstance(value, Struct):
        if isinstance(value, kind):
            yield value
        for name in value.__struct_fields__:
            if name not in PLACES:
                yield from _below(getattr(value, name), kind)


# -- what the data say -------------------------------------------------------------------------------


def check_stated(
    program: Program,
    background: Collection[Triple],
    sample: Collection[Term],
    integer: bool,
    found: Diagnostics,
) -> None:
    """Warn of a DELETE of what only follows (D1513), of an INSERT beside background that LATEST does not end
    (D1514), and of values that graphs of integer time state, too (D1516).

    `sample`: the predicates of the stream's graphs; `integer`: whether its time is.
    """
    if not program.has_effects:
        return
    stated = {(predicate, object_ if predicate == RDF_TYPE else None) for _, predicate, object_ in background}
    predicates = {predicate for predicate, _ in stated}
    latest = {hold.predicate for hold in program.holds if hold.latest}
    follows = {_relation(head) for rule in program.datalog for head in rule.heads}
    for rule in program.rules:
        for ended in rule.deletes:
            one = _relation(ended)
            if one in follows and one not in stated and not _may_state(program, one):
                found.warning(
                    "D1513",
                    "this DELETE ends nothing: what it names only follows from rules",
                    ended.span,
                    hint="delete what it follows from",
                    notes=("no HOLD, INSERT or BACKGROUND states it",),
                )
        for triple in rule.inserts:
            if triple.predicate not in latest:
                continue
            if triple.predicate in predicates:
                found.warning(
                    "D1514",
                    "the background states other values, which LATEST does not end",
                    triple.span,
                    hint="state the first values by a message, or DELETE the old value",
                )
            if integer and triple.predicate in sample:
                found.warning(
                    "D1516",
                    "graphs of the stream state values, too, and those of the next moment hold beside this",
                    triple.span,
                    hint="use a finer --time-unit, or a predicate that only events state",
                    notes=("with integer time the next moment is one unit of time later",),
                )


def _may_state(program: Program, relation: tuple[Term | None, Term | None]) -> bool:
    """Whether a HOLD or an INSERT can state triples of a relation."""
    predicate, class_ = relation
    for hold in program.holds:
        if _covers(hold, predicate, class_):
            return True
    for rule in program.rules:
        for triple in rule.inserts:
            if _meet(_shape(triple), (None, predicate, class_)):
                return True
    return False


def _covers(hold: Hold, predicate: Term | None, class_: Term | None) -> bool:
    if hold.duration == 0:
        return False
    if hold.predicate is None:
        return True
    return hold.predicate == predicate and (hold.class_ is None or class_ is None or hold.class_ == class_)


def _relation(triple: PatternTriple | Atom) -> tuple[Term | None, Term | None]:
    """(predicate, class) of a triple, as far as it names them."""
    _, predicate, object_ = _shape(triple)
    return predicate, object_ if predicate == RDF_TYPE else None
