"""One question about a state: SELECT and ASK by dotr, CONSTRUCT and DESCRIBE by pyoxigraph.

Place:   `dotr query` and `Engine.query`; the state is K(t), fully derived.
Method:  DESCRIBE gives concise bounded descriptions: the triples of a resource and of its blank nodes.
Bad input: D1201 an unreadable query · D4178 a CONSTRUCT or DESCRIBE with unsupported clauses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import pyoxigraph as ox

from dotr.budget import BUDGET, Exhausted, Meter, at_deployment
from dotr.core.query_units import much_work_of
from dotr.errors import EngineError, ProgramError, UsageError
from dotr.events import Clock, Time, Values
from dotr.ir import Select
from dotr.joins.store import TripleIndex
from dotr.rdf.background import Background
from dotr.rdf.canonical import canonical
from dotr.rdf.terms import Triple, literal
from dotr.reference.enrich import quad
from dotr.sparql.compiled_query import CompiledQuery
from dotr.sparql.foreseen import ForeseenQuery
from dotr.sparql.interpreter import InterpretedQuery
from dotr.sparql.operator_building import Builder
from dotr.sparql.translate import Refused, translate

_NO_WORDS: Final = re.compile(
    r'"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>"{}|^`\\\s]*>|#[^\n]*'
)
_FORM: Final = re.compile(r"(?<![:\w?$])(SELECT|ASK|CONSTRUCT|DESCRIBE)(?![:\w])", re.IGNORECASE)
_MORE: Final = re.compile(r"(?<![:\w?$])(SERVICE|FROM|NOW|RAND|UUID|STRUUID)(?![:\w])", re.IGNORECASE)


def makes_a_graph(text: str) -> bool:
    """Whether a query is a CONSTRUCT or DESCRIBE."""
    found = _FORM.search(_NO_WORDS.sub(" ", text))
    return found is not None and found[1].upper() in ("CONSTRUCT", "DESCRIBE")


def graph_of(text: str, name: str, prefixes: Mapping[str, str], state: Iterable[Triple]) -> list[Triple]:
    """The triples of a CONSTRUCT or DESCRIBE, in order. Raises ProgramError, UsageError."""
    more = _MORE.search(_NO_WORDS.sub(" ", text))
    if more is not None:
        raise UsageError.of(
            "D4178",
            f"a CONSTRUCT or DESCRIBE cannot use {more[1].upper()} here",
            place=name,
            notes=("it is answered from the state at one time, and always in the same way",),
            hint="SELECT can use NOW()",
        )
    store = ox.Store()
    store.bulk_extend(map(quad, state))
    try:
        found = store.query(text, prefixes=dict(prefixes))
        assert isinstance(found, ox.QueryTriples)
        return sorted((str(t.subject), str(t.predicate), canonical(str(t.object))) for t in found)
    except SyntaxError as error:
        message = str(error).splitlines()[0][:200]
        raise ProgramError.of("D1201", f"this query cannot be read: {message}", place=name) from None


def answer(
    select: Select,
    state: Collection[Triple],
    moment: tuple[Clock, Time] | None = None,
    budget: int = BUDGET,
    verify: bool = False,
) -> bool | list[Values]:
    """The answer of a SELECT or ASK: by the plans of a deployment if it has any, else interpreted.

    `moment`: the value of NOW(). `verify` compares with the full engine. Raises ProgramError D4132, D4133
    past the budget of a deployment, EngineError D4090.
    """
    store = TripleIndex(Background(state))
    if moment is not None:
        store.moment.clock, store.moment.time = moment
    limit = at_deployment(budget, len(state))
    try:
        rows = _solutions(select, store, Meter(limit))
    except Exhausted as exhausted:
        raise much_work_of(exhausted, "of the command", select, limit, "over what holds") from None
    if verify:
        _compare(select, state, moment, rows)
    return bool(rows) if select.ask else rows


def _solutions(select: Select, store: TripleIndex, meter: Meter) -> list[Values]:
    try:
        translated = translate(select)
    except Refused:
        return InterpretedQuery(select, store, meter).solutions()
    return CompiledQuery(translated, Builder(store, meter=meter)).solutions()


def _compare(
    select: Select, state: Collection[Triple], moment: tuple[Clock, Time] | None, rows: Sequence[Values]
) -> None:
    """Raise EngineError D4090 unless the full engine answers the same."""
    full, store = ForeseenQuery(select), ox.Store()
    store.bulk_extend(map(quad, state))
    now = literal("") if moment is None else moment[0].term(moment[1])
    same = full.ask(store, now) is bool(rows) if select.ask else full.solutions(store, now) == rows
    if not same:
        raise EngineError.of(
            "D4090",
            "engine and full SPARQL engine answer differently",
            select.span,
            hint="this is a bug of dotr: please report query, rules and input",
        )
