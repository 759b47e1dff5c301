"""Is every variable of a rule bound by something? (language.md, section 4)

Place:   first of the checks that strata.py runs over rules.
Method:  range restriction (Ullman 1988): positive atoms and aggregates bind; a BIND binds once everything it
         reads is bound; heads and filters only read; what only a NOT mentions is existential in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from dotr import ir
from dotr.errors import Diagnostics
from dotr.joins.variables import atom_variables, expression_variables
from dotr.rdf.terms import is_literal
from dotr.source import Span

# A closed background has no time, and K(t) must not depend on who computes it.
_REFUSED = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})


def check_safety(rule: ir.DatalogRule, found: Diagnostics) -> None:
    """Report unsafe variables, variables bound twice, and terms in invalid places."""
    bound = _bound_by(rule.body, found)
    for head in rule.heads:
        for name in atom_variables(head):
            if name not in bound:
                _unsafe(name, "the head", head.span or rule.span, rule, bound, found)
        _check_terms(head, True, found)


def _bound_by(body: Sequence[ir.BodyAtom], found: Diagnostics) -> set[str]:
    bound: set[str] = set()
    for item in body:
        if isinstance(item, ir.Atom):
            bound.update(atom_variables(item))
            _check_terms(item, False, found)
        elif isinstance(item, ir.NotAtom):
            _check_terms(item.atom, False, found)
        elif isinstance(item, ir.AggregateAtom):
            _check_aggregate(item, found)
            bound.update(v.name for v in item.group)
            bound.update(t.variable.name for t in item.totals)
    _check_binds([item for item in body if isinstance(item, ir.BindAtom)], body, bound, found)
    for item in body:
        if isinstance(item, ir.FilterAtom):
            check_functions(item.condition, item.span, found)
            for name in expression_variables(item.condition):
                if name not in bound:
                    _unsafe(name, "FILTER", item.span, None, bound, found)
    return bound


def _check_binds(
    binds: list[ir.BindAtom], body: Sequence[ir.BodyAtom], bound: set[str], found: Diagnostics
) -> None:
    for bind in binds:
        check_functions(bind.expression, bind.span, found)
        if bind.variable.name in bound:
            bound_twice(bind.variable.name, bind.span, found)
    left = [bind for bind in binds if bind.variable.name not in bound]
    progress = True
    while progress:
        progress = False
        for bind in list(left):
            if all(name in bound for name in expression_variables(bind.expression)):
                left.remove(bind)
                progress = True
                if bind.variable.name in bound:
                    bound_twice(bind.variable.name, bind.span, found)
                bound.add(bind.variable.name)
    targets = {bind.variable.name for bind in left}
    for bind in left:
        missing = [name for name in expression_variables(bind.expression) if name not in bound]
        for name in missing:
            if name not in targets:
                _unsafe(name, "BIND", bind.span, None, bound, found)
        if all(name in targets for name in missing):
            found.error(
                "D3001",
                f"unsafe rule: `?{bind.variable.name}` is computed from itself",
                bind.span,
                notes=("each of these BINDs waits for another one: " + _names(targets),),
            )
    bound.update(targets)  # reported once


def _check_aggregate(item: ir.AggregateAtom, found: Diagnostics) -> None:
    inner = _bound_by(item.body, found)
    for variable in item.group:
        if variable.name not in inner:
            _unsafe(variable.name, "ON", variable.span or item.span, None, inner, found)
    seen: set[str] = set()
    for total in item.totals:
        name = total.variable.name
        if name in inner or name in seen:
            bound_twice(name, total.variable.span or item.span, found)
        seen.add(name)
        if total.argument is not None:
            check_functions(total.argument, item.span, found)
            for used in expression_variables(total.argument):
                if used not in inner:
                    _unsafe(used, f"{total.function}", item.span, None, inner, found)


def _check_terms(atom: ir.Atom, head: bool, found: Diagnostics) -> None:
    if not isinstance(atom.subject, ir.Var) and is_literal(atom.subject):
        message = "a literal cannot be a subject"
        if head:
            found.error("D3009", message, atom.span, atom.subject, "swap subject and object")
        else:
            found.warning("D3009", message + ": this atom never holds", atom.span, atom.subject)
    if not isinstance(atom.predicate, ir.Var) and is_literal(atom.predicate):
        found.error("D3009", "a predicate must be an IRI", atom.span, atom.predicate)


class Language(NamedTuple):
    """A language of rules without clock and chance: the code of an expression that it does not allow, its
    name, the reason, and what to write instead of EXISTS and of an aggregate.
    """

    code: str
    name: str
    why: str
    exists: str
    aggregate: str


_DATALOG: Final = Language(
    "D3008",
    "Datalog",
    "what the background entails must not depend on when or where it is computed",
    "write NOT atom, or AGGREGATE(…)",
    "write NOT atom, or AGGREGATE(…)",
)


def check_functions(
    expression: ir.Expression, span: Span | None, found: Diagnostics, language: Language = _DATALOG
) -> None:
    """Report the parts of an expression that a language of rules does not allow."""
    todo: list[ir.Expression] = [expression]
    while todo:
        part = todo.pop()
        if isinstance(part, ir.Call):
            if part.function in _REFUSED:
                message = f"`{part.function}` is not allowed in {language.name}"
                found.error(language.code, message, part.span or span, notes=(language.why,))
            todo.extend(part.arguments)
        elif isinstance(part, ir.Exists | ir.Aggregate | ir.Attribute | ir.TimeOf):
            hint = language.exists if isinstance(part, ir.Exists) else ""
            hint = language.aggregate if isinstance(part, ir.Aggregate) else hint
            message = f"this expression is not allowed in {language.name}"
            found.error(language.code, message, part.span or span, hint=hint)


def _unsafe(
    name: str,
    where: str,
    span: Span | None,
    rule: ir.DatalogRule | None,
    bound: Iterable[str],
    found: Diagnostics,
) -> None:
    notes = ["a variable must be bound by an atom that is not negated, by BIND, or by AGGREGATE"]
    if rule is not None and any(
        isinstance(i, ir.NotAtom) and name in atom_variables(i.atom) for i in rule.body
    ):
        notes.append(f"`?{name}` occurs only in a NOT, which binds nothing")
    found.error(
        "D3001", f"unsafe rule: `?{name}` of {where} is not bound", span, "", near(name, bound), notes
    )


def bound_twice(name: str, span: Span | None, found: Diagnostics, code: str = "D3007") -> None:
    hint = f"use a new variable and compare: FILTER(?new = ?{name})"
    found.error(code, f"`?{name}` already has a value", span, hint=hint)


def near(name: str, known: Iterable[str]) -> str:
    """A hint that names the most similar variable; "" if none is similar."""
    close = get_close_matches(name, sorted(known), 1)
    return f"did you mean `?{close[0]}`?" if close else ""


def _names(names: Iterable[str]) -> str:
    return " ".join(f"?{name}" for name in sorted(names))
