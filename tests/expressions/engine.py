"""The judge of these tests: expressions printed as SPARQL and asked of pyoxigraph.

Independent of sparql/, but for what pyoxigraph lacks: `duration_oracle.py`.
"""

from __future__ import annotations

import pyoxigraph as ox

from dotr.ir import Call, Const, Expression, Var
from dotr.rdf.terms import Term
from dotr.sparql.duration_oracle import CALLS
from dotr.sparql.oxigraph import FUNCTIONS

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
        case Call(function, arguments) if function in CALLS:
            return f"<urn:dotr:sparql:{CALLS[function][0]}>({', '.join(map(text, arguments))})"
        case Call(function, (a, b)) if function in _INFIX:
            return f"({text(a)} {function} {text(b)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})"
    raise AssertionError(expression)


def answer(expression: Expression, row: dict[str, Term | None]) -> Term | None:
    """What pyoxigraph says. Blank nodes cannot stand in VALUES: give none."""
    names = " ".join(f"?{name}" for name in row)
    cells = " ".join("UNDEF" if term is None else term for term in row.values())
    rows = STORE.query(
        f"SELECT ({text(expression)} AS ?r) {{ VALUES ({names}) {{ ({cells}) }} }}",
        custom_functions=FUNCTIONS,
    )
    assert isinstance(rows, ox.QuerySolutions)
    found = next(rows)["r"]
    return None if found is None else str(found)
