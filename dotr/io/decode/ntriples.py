"""N-Triples and N-Quads as pyoxigraph writes them, split into canonical terms.

Place:   under documents.py and quad_lines.py, which let pyoxigraph write what it has parsed.
Method:  one statement a line, single blanks, no comments, line ends in strings escaped: so " .\\n" parts
         statements and a blank parts terms, but for blanks in literals. Neighbours of one named graph share
         their graph's text, which is compared instead of looked for.
Why not: a regular expression: half as fast again as splitting. Terms of pyoxigraph asked one by one: twice.
Bad input: D2004 RDF 1.2 terms · D2409 a number of too many digits.
"""

from __future__ import annotations

from typing import NoReturn, TypeAlias

from msgspec.structs import replace

from dotr.errors import DataError
from dotr.rdf.canonical import canonical, canonical_literal, canonical_literals
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term, Triple
from dotr.regex import regex

Run: TypeAlias = tuple[Term, list[Triple]]
"""Quads that stand together: the name of their graph ("" is the default graph) and their triples."""

_DIRECTION = regex(r'"@[A-Za-z0-9-]+--(?:ltr|rtl)$')


def _literal(term: Term) -> Term:
    """A literal with a language or datatype in canonical form, "" if it has none or a base direction."""
    if term[-1] != ">" and _DIRECTION.search(term):
        return ""
    try:
        return canonical_literal(term)
    except DataError:
        return ""


literals: Memo[Term, Term] = Memo(_literal)
"""A literal with a language or datatype → its canonical form; "" for one that `refuse` is to refuse."""


def distinct_triples(text: str, name: str) -> list[Triple]:
    """The triples of N-Triples text in order, objects canonical, no repeats.

    Raises DataError D2004, D2409.
    """
    terms = text.split(" ", 4)
    if len(terms) != 4:
        return several_triples(text, name)
    s, p, o, _ = terms  # one triple, without a blank in its object
    return [(s, p, o if o[0] != '"' or o[-1] == '"' else literals[o] or refuse(o, name))]


def several_triples(text: str, name: str) -> list[Triple]:
    """As `distinct_triples` where there is more than one, as a rule."""
    if "<<(" in text:
        for line in text.split(" .\n")[:-1]:
            object_ = line.split(" ", 2)[2]
            if object_.startswith("<<"):
                refuse(object_, name)
    rows = text.split(" .\n")
    rows.pop()
    found = {
        (s, p, o if o[0] != '"' or o[-1] == '"' else literals[o] or refuse(o, name)): None
        for row in rows
        for s, p, o in [row.split(" ", 2)]
    }
    return list(found)


def split_triples(text: str) -> list[Triple]:
    """As `distinct_triples` for text that was accepted before; repeats stay."""
    rows = text.split(" .\n")
    rows.pop()
    memo = canonical_literals
    return [
        (s, p, o if o[0] != '"' or o[-1] == '"' else memo[o])
        for row in rows
        for s, p, o in [row.split(" ", 2)]
    ]


def quad_runs(text: str, name: str) -> list[Run]:
    """The quads of N-Quads text in order, objects canonical. Raises DataError D2004, D2409.

    All neighbours of one named graph are one run; each triple of the default graph is one of its own.
    """
    runs: list[Run] = []
    graph = ""  # of the run that may go on
    triples: list[Triple] = []
    rows = text.split(" .\n")
    rows.pop()
    for row in rows:
        terms = row.split(" ", 3)
        if len(terms) == 4:
            s, p, o, g = terms
            if g != graph and (" " in g or '"' in g):  # of a literal with blanks
                o, g = _object_and_graph(row[len(s) + len(p) + 2 :], name)
        else:
            s, p, o = terms
            g = ""
        if o[0] == '"' and o[-1] != '"':
            o = literals[o] or refuse(o, name)
        if g and g == graph:
            triples.append((s, p, o))
        else:
            graph, triples = g, [(s, p, o)]
            runs.append((g, triples))
    return runs


def _object_and_graph(rest: str, name: str) -> tuple[Term, Term]:
    """What follows a predicate: the object, then the graph's name if there is one."""
    if rest.startswith("<<"):
        refuse(rest, name)
    cut = rest.find(" ", rest.rindex('"')) if rest[0] == '"' else rest.find(" ")
    return (rest, "") if cut < 0 else (rest[:cut], rest[cut + 1 :])


def refuse(term: Term, name: str) -> NoReturn:
    """Raise DataError D2409 for a number that is too long; else D2004: a triple term, or a string with a base
    direction.
    """
    try:
        canonical(term)
    except DataError as error:
        raise DataError([replace(one, place=name) for one in error.diagnostics]) from None
    what = "a triple term" if term[0] == "<" else "a string with a base direction"
    raise DataError.of(
        "D2004",
        f"`{name}` has {what} of RDF 1.2, which dotr does not read",
        place=name,
        label=term if len(term) < 200 else term[:200] + "…",
        hint="write RDF 1.1: give the statement a node of its own, leave the direction out; "
        "or read only what is RDF 1.1 in it: --rdf12 plain",
    )
