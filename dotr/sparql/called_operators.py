"""Operators on numbers as functions that the full engine calls, since its own integers end at 64 bits.

Place:   oxigraph.py rewrites a query with `called`, and full.py gives pyoxigraph FUNCTIONS.
Method:  every operator, comparison, cast and function that may take a number, and every place where a number
         has an effective boolean value, becomes a call. Arguments that are all numbers are read and computed
         literally (expressions/literal_numbers.py); for durations there is duration_oracle.py; for all others
         the engine is asked for its own answer. So
         an overflow of the engine is never taken for an error of the query.
Why not: `COALESCE(?a + ?b, …)` around the engine's own operators: a text of twice the length for each level.
         Only where a large integer occurs: nobody knows before where one will be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyoxigraph as ox

from dotr import ir
from dotr.budget import Overlong
from dotr.expressions.dialect import ask
from dotr.expressions.literal_numbers import INTEGER, OPERATORS, TRUTH, operands, read, write
from dotr.rdf.terms import FALSE, TRUE, Term, is_iri, to_oxigraph
from dotr.sparql.duration_oracle import CALLS

_SPACE: Final = "urn:dotr:sparql:"
_NAMES: Final = {
    **{name: f"<{_SPACE}{own}>" for name, (own, _) in CALLS.items()},
    **{name: f"<{_SPACE}number{i}>" for i, name in enumerate(OPERATORS)},
}
_CONDITIONS: Final = frozenset(("=", "!=", "<", ">", "<=", ">="))
_BOOLEAN: Final = frozenset(
    {"&&", "||", "!", "BOUND", "SAMETERM", "IN", "NOT-IN", "LANGMATCHES", "REGEX", "CONTAINS", "STRSTARTS"}
    | {"STRENDS", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", *(_NAMES[name] for name in _CONDITIONS)}
)
"""What has a boolean value, or none."""


def called(expression: ir.Expression) -> ir.Expression:
    """One expression, whose parts are rewritten already."""
    match expression:
        case ir.Call("IN", (tested, first, *others)) if not all(map(_is_iri, (first, *others))):
            found = called(ir.Call("=", (tested, first)))
            for other in others:
                found = ir.Call("||", (found, called(ir.Call("=", (tested, other)))))
            return found
        case ir.Call("NOT-IN", (tested, first, *others)) if not all(map(_is_iri, (first, *others))):
            return ir.Call("!", (called(ir.Call("IN", (tested, first, *others))),))
        case ir.Call("=" | "!=", (a, b)) if _is_iri(a) or _is_iri(b):
            return expression
        case ir.Call("&&" | "||" | "!" as function, arguments, span):
            return ir.Call(function, tuple(map(condition, arguments)), span)
        case ir.Call("IF", (tested, *ways), span):
            return ir.Call("IF", (condition(tested), *ways), span)
        case ir.Call(function, arguments, span) if function in _NAMES:
            return ir.Call(_NAMES[function], arguments, span)
        case _:
            return expression


def condition(expression: ir.Expression) -> ir.Expression:
    """An expression, rewritten already, whose effective boolean value is taken."""
    match expression:
        case ir.Exists():
            return expression
        case ir.Call(function) if function in _BOOLEAN:
            return expression
        case _:
            return ir.Call(_NAMES[TRUTH], (expression,))


def _is_iri(expression: ir.Expression) -> bool:
    return isinstance(expression, ir.Const) and is_iri(expression.term)


OxTerm = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


def _function(name: str) -> Callable[..., OxTerm | None]:
    """The function of an operator: None is an error, as is what it raises."""
    own, question = OPERATORS[name], _question(name)
    otherwise = CALLS[name][1] if name in CALLS else None

    def answer(*terms: Term) -> Term | None:
        numbers = operands(name, terms)
        if numbers is None:
            nodes = any(term[0] == "_" for term in terms)
            return _of_nodes(name, *terms) if nodes else ask(question, *map(_within_its_bits, terms))
        found = own(*numbers)
        if found is None or isinstance(found, bool):
            return None if found is None else TRUE if found else FALSE
        return write(found)

    def function(*given: OxTerm) -> OxTerm | None:
        try:
            if otherwise is not None and operands(name, list(map(str, given))) is None:
                return otherwise(*given)
            found = answer(*map(str, given))
        except Overlong:  # an error that only an engine reports
            return None
        return None if found is None else to_oxigraph(found)

    return function


def _within_its_bits(term: Term) -> Term:
    """A number that the engine has in place of one that it has not: beside what is no number, any will do."""
    number = read(term)
    if number is None or not isinstance(number.value, int):
        return term
    bits = 63 if number.kind == INTEGER else 127
    known = abs(number.value) < 2**bits and write(number) == term
    return term if known else write(number._replace(value=1))


def _question(name: str) -> str:
    if name == TRUTH:
        return "!!(?a)"
    if name in ("u-", "u+"):
        return f"{name[1]}(?a)"
    return f"{name}(?a)" if (name[0] == "<" and name[-1] == ">") or name.isalpha() else f"?a {name} ?b"


def _of_nodes(name: str, *terms: Term) -> Term | None:
    """An operator where an argument is a blank node, which cannot be written in a query."""
    if name not in _CONDITIONS:
        return FALSE if name == "ISNUMERIC" else None
    same = terms[0] == terms[1]
    if name in ("=", "!="):
        return TRUE if same is (name == "=") else FALSE
    return (TRUE if name[-1] == "=" else FALSE) if same else None


FUNCTIONS: Mapping[ox.NamedNode, Callable[..., OxTerm | None]] = {
    ox.NamedNode(iri[1:-1]): _function(name) if name in OPERATORS else CALLS[name][1]
    for name, iri in _NAMES.items()
}
