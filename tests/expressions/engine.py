"""The judge of these tests: expressions printed as SPARQL and asked of pyoxigraph, numbers read literally."""

from __future__ import annotations

import pyoxigraph as ox

from dotr.extract.called_operators import FUNCTIONS, called, condition
from dotr.extract.rewriting import Rewriter
from dotr.program import Call, Const, Expression, Select, Var
from dotr.rdf.terms import Term

STORE = ox.Store()
_INFIX = ("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/")


def text(expression: Expression) -> str:
    """SPARQL text, every subexpression in brackets."""
    match expression:
        case Const(term):
            return term
        case Var(name):
            return f"?{name}"
        case Call("!" | "u-" | "u+" as sign, (only,)):
            return f"({sign.removeprefix('u')} {text(only)})"
        case Call("IN" | "NOT-IN" as word, (tested, *options)):
            return f"({text(tested)} {word.replace('-', ' ')} ({', '.join(map(text, options))}))"
        case Call(function, (a, b)) if function in _INFIX:
            return f"({text(a)} {function} {text(b)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})"
    raise AssertionError(expression)


def _no_query(select: Select) -> Select:
    raise AssertionError("no queries in expressions")


def answer(expression: Expression, row: dict[str, Term | None]) -> Term | None:
    """What pyoxigraph says, numbers read literally. Blank nodes cannot stand in VALUES: give none."""
    return native(Rewriter(called, _no_query, condition=condition).expression(expression), row)


def native(expression: Expression, row: dict[str, Term | None]) -> Term | None:
    """What pyoxigraph says: None, too, for numbers past its bits."""
    names = " ".join(f"?{name}" for name in row)
    cells = " ".join("UNDEF" if term is None else term for term in row.values())
    query = f"SELECT ({text(expression)} AS ?r) {{ VALUES ({names}) {{ ({cells}) }} }}"
    rows = STORE.query(query, custom_functions=FUNCTIONS)
    assert isinstance(rows, ox.QuerySolutions)
    found = next(rows)["r"]
    return None if found is None else str(found)
