"""One watched query: its answers over what lasts, as they begin and end.

Place:   used by `dotr watch`; core/pipeline.py runs the program it makes like any other.
Method:  language.md, "What lasts": DSTREAM and ISTREAM of the query, each with a rule, so that answers that
         end at an instant are reported before those that begin (signed answers of a continuous query over a
         dynamic graph: Gergatsoulis, Damigos 2021). Undeclared relations are held until deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from msgspec.structs import replace

from dotr import ir
from dotr.events import Composite, Time, Values
from dotr.rdf.terms import RDF_TYPE, TRUE

ENDED, BEGUN = "ended", "begun"

_SIGNS: Final = {ENDED: -1, BEGUN: 1}


class SignedAnswer(NamedTuple):
    """Equal rows, `change` of them, that begin (> 0) or end at a time. `values` in projection order."""

    time: Time
    change: int
    values: Values


def watching(program: ir.Program, select: ir.Select) -> ir.Program:
    """The prologue of `program` with nothing but the query, which has no NOW()."""
    query = _with_a_row(select)
    holds = program.holds
    if not any(hold.predicate is None and hold.class_ is None for hold in holds):
        holds = (*holds, ir.Hold())
    operators = {ENDED: ir.RelationToStream.DSTREAM, BEGUN: ir.RelationToStream.ISTREAM}
    return replace(
        program,
        queries={},
        rules=tuple(_rule(name, query) for name in operators),
        dependencies=tuple(range(len(operators))),
        holds=holds,
        standing={name: ir.StandingQuery(operator, query) for name, operator in operators.items()},
    )


def watched(program: ir.Program) -> ir.Select:
    """The query of a program of `watching`: for an ASK one that has a row while the answer is yes."""
    return program.standing[BEGUN].select


def signed(events: Sequence[Composite], ask: bool = False) -> Iterator[SignedAnswer]:
    """The events of one instant of a program of `watching` as answers: those that end, then those that begin,
    each in canonical order, equal rows merged. `ask`: the query was an ASK, whose row is empty.
    """
    for (rule, time, values), equal in groupby(events, _content):
        yield SignedAnswer(time, _SIGNS[rule] * len(list(equal)), () if ask else values)


def _content(event: Composite) -> tuple[str, Time, Values]:
    _, values, _, _ = event.facts[0]
    return event.rule, event.time, values


def _rule(name: str, select: ir.Select) -> ir.Rule:
    template = (ir.TemplateTriple(ir.Fresh("dotr_answer"), RDF_TYPE, f"<urn:dotr:{name}>"),)
    return ir.Rule(name, template, ir.Position(name, name, select.variables), (), None, (), ())


def _with_a_row(select: ir.Select) -> ir.Select:
    """An ASK as a SELECT that has one row where it is true."""
    if not select.ask:
        return select
    name, text = "yes", repr(select)
    while f"'{name}'" in text:
        name += "_"
    projection = (ir.Projection(ir.Var(name), ir.Const(TRUE)),)
    return replace(select, ask=False, distinct=True, projection=projection)
