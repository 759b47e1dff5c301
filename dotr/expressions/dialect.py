"""The full engine's answer for a function of constants that is rare or engine-specific.

Place:   below functions.py and operators.py; the only module of expressions/ that calls pyoxigraph.
Method:  the full engine defines REGEX and REPLACE (language.md, sec. 1), and casts, comparison and arithmetic
         of dates and durations. A fixed query text runs with the arguments in its VALUES; they are written
         from their parts, so that no user text can become query text.
Why not: variable substitution: pyoxigraph 0.5 then answers `=` by identity
         ("00:00:00Z" = "14:00:00+14:00" is false by substitution, true by VALUES).
Cost:    40 µs for a new call, one table look-up for a repeated one.
"""

from __future__ import annotations

import re

import pyoxigraph as ox

from dotr.rdf.terms import Memo, Term, literal, literal_parts
from dotr.regex import regex

_STORE = ox.Store()
_NAMES = ("?a", "?b", "?c", "?d")
_IRI = regex(r"<[^\x00-\x20<>\"{}|^`\\]*>")


def ask(expression: str, *terms: Term, base: Term = "") -> Term | None:
    """The term of `expression` over ?a, ?b, ?c, ?d bound to the given terms; None for an error.

    `expression` is a string of this package, never a user's. Blank nodes cannot be in VALUES: None. `base`:
    for IRI(), an IRI of a program.
    """
    if base:
        return _answer((expression, *terms), base)
    if sum(map(len, terms)) > 1_000:
        return _answer((expression, *terms))
    return _memo[(expression, *terms)]


def _answer(question: tuple[str, ...], base: Term = "") -> Term | None:
    expression, *terms = question
    written = [_written(term) for term in terms]
    if None in written:
        return None
    names = " ".join(_NAMES[: len(terms)])
    head = f"BASE {base} " if base else ""
    row = " ".join(w for w in written if w)
    rows = _STORE.query(f"{head}SELECT ({expression} AS ?r) {{ VALUES ({names}) {{ ({row}) }} }}")
    assert isinstance(rows, ox.QuerySolutions)
    found = next(rows)["r"]
    return None if found is None else str(found)


def _written(term: Term) -> str | None:
    """The term as SPARQL text, built from its parts; None if it cannot be written."""
    if term[0] != '"':
        return term if _IRI.fullmatch(term) else None
    lexical, datatype, language = literal_parts(term)
    text = literal(lexical, datatype, language)
    suffix = text[text.rindex('"') + 1 :]
    well_formed = not suffix or _IRI.fullmatch(suffix[2:]) or re.fullmatch(r"@[A-Za-z0-9-]+", suffix)
    return text if well_formed else None


_memo: Memo[tuple[str, ...], Term | None] = Memo(_answer, limit=1 << 13)
