"""Is every variable of a LARS rule bound by something?

Place:   called by lars.py with every rule whose names are known.
Method:  range restriction, as datalog/safety.py: atoms that are not negated bind their variables, and the
         time variable of AT; an aggregate binds its group and its value; a BIND binds once what it reads is
         bound. Time variables are a sort of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dotr import ir
from dotr.datalog.safety import Language, bound_twice, check_functions, near
from dotr.errors import Diagnostics
from dotr.joins.variables import expression_variables
from dotr.source import Span

_LARS = Language(
    "D1614",
    "a .lars file",
    "rules are read at every time point, also while nothing comes",
    "",
    "write `COUNT(…) AS ?n OVER …`",
)


def check_lars_rule(rule: ir.LarsRule, found: Diagnostics) -> None:
    """Report variables that nothing binds or two things do, and what cannot stand in a rule."""
    bound, times = _bound(rule, found)
    for name in atom_variables(rule.head.atom):
        if name not in bound and name not in times:
            _unsafe(name, "the head", rule.head.atom.span, rule, bound, found)
    for literal in rule.body:
        if isinstance(literal, ir.FilterAtom):
            check_functions(literal.condition, literal.span, found, _LARS)
            for name in expression_variables(literal.condition):
                if name not in bound and name not in times:
                    _unsafe(name, "FILTER", literal.span, rule, bound, found)
    _check_times(rule, times, found)


def atom_variables(atom: ir.NamedAtom) -> list[str]:
    """Names of the variables of an atom, in order of first appearance."""
    return list(dict.fromkeys(a.name for a in atom.arguments if isinstance(a, ir.Var)))


def _bound(rule: ir.LarsRule, found: Diagnostics) -> tuple[set[str], set[str]]:
    """What the body binds: variables, and time variables."""
    bound: set[str] = set()
    times: set[str] = set()
    for literal in rule.body:
        if isinstance(literal, ir.WindowAtom) and not literal.negated:
            bound.update(atom_variables(literal.atom))
            if literal.at is not None:
                times.add(literal.at)
        elif isinstance(literal, ir.WindowAggregate):
            bound.update(variable.name for variable in literal.group)
    for literal in rule.body:
        if isinstance(literal, ir.WindowAggregate):
            bound.update(_check_aggregate(literal, rule, found))
            if literal.variable.name in bound:
                bound_twice(literal.variable.name, literal.variable.span or literal.span, found, "D1605")
            bound.add(literal.variable.name)
    _check_binds(
        [literal for literal in rule.body if isinstance(literal, ir.BindAtom)], rule, bound, times, found
    )
    return bound, times


def _check_binds(
    binds: list[ir.BindAtom], rule: ir.LarsRule, bound: set[str], times: set[str], found: Diagnostics
) -> None:
    for bind in binds:
        check_functions(bind.expression, bind.span, found, _LARS)
    left = list(binds)
    while ready := [b for b in left if all(n in bound for n in expression_variables(b.expression))]:
        for bind in ready:
            left.remove(bind)
            if bind.variable.name in bound:
                bound_twice(bind.variable.name, bind.span, found, "D1605")
            bound.add(bind.variable.name)
    targets = {bind.variable.name for bind in left}
    for bind in left:
        missing = [n for n in expression_variables(bind.expression) if n not in bound]
        for name in missing:
            if name not in targets and name not in times:
                _unsafe(name, "BIND", bind.span, rule, bound, found)
        if all(name in targets for name in missing):
            found.error("D1605", f"unsafe rule: `?{bind.variable.name}` is computed from itself", bind.span)
    bound.update(targets)  # reported once


def _check_aggregate(total: ir.WindowAggregate, rule: ir.LarsRule, found: Diagnostics) -> list[str]:
    """Report what is wrong with an aggregate; its variables that should stand in PER."""
    own = atom_variables(total.atom)
    group = {variable.name for variable in total.group}
    for variable in total.group:
        if variable.name not in own:
            found.error(
                "D1612",
                f"`{total.atom.name}` has no `?{variable.name}`",
                variable.span or total.span,
                hint=near(variable.name, own) or "PER names variables of the atom",
            )
    if total.argument is not None:
        check_functions(total.argument, total.span, found, _LARS)
        for name in expression_variables(total.argument):
            if name not in own:
                _unsafe(name, total.function, total.span, rule, own, found)
    elsewhere = set(atom_variables(rule.head.atom))
    for literal in rule.body:
        if literal is not total:
            elsewhere.update(literal_variables(literal))
    elsewhere.discard(total.variable.name)
    shared = [name for name in own if name in elsewhere and name not in group]
    if shared:
        listed = ", ".join("?" + name for name in [*(v.name for v in total.group), *shared])
        found.error(
            "D1612",
            f"`?{shared[0]}` stands outside of this aggregate, too, and is not in PER",
            total.span,
            hint=f"write `PER ({listed})`, or another name in the atom",
        )
    return shared


def literal_variables(literal: ir.LarsLiteral) -> Iterator[str]:
    """Names that a literal mentions where others see them: of an aggregate its group and its value."""
    match literal:
        case ir.WindowAtom(atom):
            yield from atom_variables(atom)
        case ir.WindowAggregate(variable=variable, group=group):
            yield variable.name
            yield from (v.name for v in group)
        case ir.FilterAtom(condition):
            yield from expression_variables(condition)
        case ir.BindAtom(expression, variable):
            yield variable.name
            yield from expression_variables(expression)


def _check_times(rule: ir.LarsRule, times: set[str], found: Diagnostics) -> None:
    """Time variables stand behind AT only, and a head's is bound."""
    mentioned = set(times) | {b.at for b in rule.body if isinstance(b, ir.WindowAtom) and b.at is not None}
    if rule.head.at is not None:
        mentioned.add(rule.head.at)
        if rule.head.at not in times:
            span = rule.head.span or rule.span
            found.error(
                "D1605",
                f"unsafe rule: no literal binds the time `?{rule.head.at}` of the head",
                span,
                hint=near(rule.head.at, times) or f"write `AT ?{rule.head.at} WITHIN …` in the body",
                notes=("a time is bound behind AT, by an atom that is not negated",),
            )
    for literal in rule.body:
        inner = set(literal_variables(literal))
        if isinstance(literal, ir.WindowAggregate):
            inner.update(atom_variables(literal.atom))
        _refuse_times(inner & mentioned, literal.span, found)
    _refuse_times(set(atom_variables(rule.head.atom)) & mentioned, rule.head.atom.span, found)


def _refuse_times(names: Iterable[str], span: Span | None, found: Diagnostics) -> None:
    for name in sorted(names):
        found.error(
            "D1613",
            f"`?{name}` is a time point, not a term",
            span,
            hint="select the time as an attribute in the query, or choose another name",
            notes=("it stands behind AT",),
        )


def _unsafe(
    name: str, where: str, span: Span | None, rule: ir.LarsRule, bound: Iterable[str], found: Diagnostics
) -> None:
    notes = ["a variable is bound by an atom that is not negated, by BIND, or by an aggregate"]
    negated = (b for b in rule.body if isinstance(b, ir.WindowAtom) and b.negated)
    if any(name in atom_variables(literal.atom) for literal in negated):
        notes.append(f"`?{name}` occurs only in a NOT, which binds nothing")
    found.error(
        "D1605", f"unsafe rule: `?{name}` of {where} is not bound", span, "", near(name, bound), notes
    )
