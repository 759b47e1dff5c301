"""One question about a state: SELECT and ASK by dotr's own reading, CONSTRUCT and DESCRIBE by pyoxigraph's.

Place:   `dotr query` and `Engine.query`; the state is K(t), everything derived.
Method:  DESCRIBE gives concise bounded descriptions: what is said of a resource, and of its blank nodes.
Bad input: D1201 a query that cannot be read · D4178 a CONSTRUCT or DESCRIBE that asks for more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import pyoxigraph as ox

from dotr.errors import Diagnostic, ProgramError, UsageError
from dotr.events import Values
from dotr.ir import Select
from dotr.rdf.canonical import canonical
from dotr.rdf.terms import Term, Triple
from dotr.reference.enrich import quad
from dotr.sparql.full import FullQuery

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
    """The triples that a CONSTRUCT or DESCRIBE gives, in order. Raises ProgramError, UsageError."""
    more = _MORE.search(_NO_WORDS.sub(" ", text))
    if more is not None:
        raise UsageError(
            Diagnostic(
                "D4178",
                f"a CONSTRUCT or DESCRIBE cannot use {more[1].upper()} here",
                place=name,
                notes=("it is answered from the state at one time, and always alike",),
                hint="SELECT can use NOW()",
            )
        )
    store = ox.Store()
    store.bulk_extend(map(quad, state))
    try:
        found = store.query(text, prefixes=dict(prefixes))
        assert isinstance(found, ox.QueryTriples)
        return sorted((str(t.subject), str(t.predicate), canonical(str(t.object))) for t in found)
    except SyntaxError as error:
        message = str(error).splitlines()[0][:200]
        raise ProgramError(Diagnostic("D1201", f"this query cannot be read: {message}", place=name)) from None


def answer(select: Select, state: Iterable[Triple], now: Term) -> bool | list[Values]:
    """The answer of a SELECT or ASK; `now` is what NOW() is."""
    query = FullQuery(select)
    store = ox.Store()
    store.bulk_extend(map(quad, state))
    return query.ask(store, now) if select.ask else query.solutions(store, now)
