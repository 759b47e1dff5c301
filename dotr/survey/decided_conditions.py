"""Conditions that a sample decides: never true, always true, and never of the right kind.

Place:   report.py hands in the filters of queries, ON and WHERE of rules, each with a table of the rows that
         it was asked about.
Method:  a condition is taken apart at `&&`; of a part that is true in no row the comparisons and sums inside
         are looked at first: one whose sides are never of kinds that go together is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dotr.errors import Diagnostics
from dotr.ir import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.lang.checks.kinds import NoValueError, comparable, result
from dotr.lang.checks.sorts import term_sort
from dotr.rdf.order import values_key
from dotr.rdf.terms import Term, is_literal, literal_parts
from dotr.rdf.values import number
from dotr.survey.kinds import TEXT, UNBOUND, Kinds, family, is_number, kind_of, kinds_of, listed
from dotr.survey.rows import SolutionTable, Truth, column_of, text_of, truth

ENOUGH: Final = 100
"""Rows from which on "true for all" says something."""

TYPE_ERROR: Final = "a type error"
_COMPARISONS: Final = frozenset(("=", "!=", "<", ">", "<=", ">="))
_SUMS: Final = frozenset(("+", "-", "*", "/"))


def judge(
    table: SolutionTable,
    conditions: Iterable[Expression],
    where: str,
    found: Diagnostics,
    *,
    chosen: bool = True,
) -> None:
    """Report what a sample decides of conditions that all have to hold; `where`: what they belong to. Not
    `chosen`: they are those of a NOT or an aggregate, where nothing is as good as something.
    """
    if not table.rows:
        return
    for condition in conditions:
        if not table.knows(condition) or not _varies(condition):
            continue
        outcome = truth(table, condition)
        if not outcome.true:
            if not report_kinds(table, condition, where, found) and (chosen or not outcome.false):
                _never(table, condition, outcome, where, found)
        elif chosen and outcome.true == outcome.total >= ENOUGH:
            _always(table, condition, where, found)


def report_kinds(table: SolutionTable, expression: Expression, where: str, found: Diagnostics) -> bool:
    """Whether a comparison or sum inside is of kinds that never go together; then it is reported."""
    return any(_report_kinds(table, call, where, found) for call in _calls(expression))


def _varies(condition: Expression) -> bool:
    """Whether it looks at anything: what is constant is reported without data."""
    return any(True for _ in operands(condition))


def operands(expression: Expression) -> Iterator[Var | Attribute | TimeOf]:
    """The variables of an expression."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from operands(argument)
    elif isinstance(expression, Var | Attribute | TimeOf):
        yield expression


def _never(
    table: SolutionTable, condition: Expression, outcome: Truth, where: str, found: Diagnostics
) -> None:
    error = outcome.error == outcome.total
    said = f"is an error in {table.counted('all ')}" if error else f"is true in none of {table.counted()}"
    report = found.warning if error or table.total >= ENOUGH else found.info
    notes, hint = tuple(_ranges(table, condition)), "compare with a value that the data have"
    if error:
        notes = tuple(
            f"`{text_of(leaf)}` is {listed(kinds_of(table.values(leaf)), table.what)}"
            for leaf in dict.fromkeys(operands(condition))
        )
        hint = "an error is not true: a function of texts takes texts, and STR(…) makes one"
    report(
        "D2512",
        f"`{text_of(condition)}` {said} of {where}",
        condition.span,
        notes=notes,
        hint=hint,
    )


def _always(table: SolutionTable, condition: Expression, where: str, found: Diagnostics) -> None:
    found.info(
        "D2513",
        f"`{text_of(condition)}` is true in {table.counted('all ')} of {where}",
        condition.span,
        notes=tuple(_ranges(table, condition)),
    )


def _calls(expression: Expression) -> Iterator[Call]:
    """Comparisons and sums, the innermost first."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _calls(argument)
        if expression.function in _COMPARISONS | _SUMS and len(expression.arguments) == 2:
            yield expression


def _report_kinds(table: SolutionTable, call: Call, where: str, found: Diagnostics) -> bool:
    """Whether the sides of a call are never of kinds that go together; then it is reported."""
    left, right = (table.values(argument) for argument in call.arguments)
    both = [(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    if not both or any(_agree(call.function, a, b, table.rule) for a, b in both):
        return False
    sides = zip(call.arguments, (left, right), strict=True)
    errors = truth(table, call).error
    notes = [f"it was {TYPE_ERROR} in {errors:,} of {table.counted()}"] if errors else []
    notes += [
        f"`{text_of(side)}` is {listed(kinds_of(values), table.what)}"
        for side, values in sides
        if not isinstance(side, Const)
    ]
    notes += [
        f"`{text_of(side)}` is {kind_of(side.term)}" for side in call.arguments if isinstance(side, Const)
    ]
    never = "is never true" if call.function in _COMPARISONS else "never has a value"
    found.warning(
        "D2511",
        f"`{text_of(call)}` {never} in {where}: its sides are of kinds that do not go together",
        call.span,
        notes=notes,
        hint=_mend(table, call, both),
    )
    return True


def _agree(function: str, a: Term, b: Term, rule: bool) -> bool:
    """Whether two terms can be compared, or added."""
    left, right = term_sort(a), term_sort(b)
    if function in _SUMS:
        try:
            return result(function, (left, right), rule=rule) is not None
        except NoValueError:
            return False
    if function == "!=":
        return True
    same = family(a) == family(b) or (
        left is not None and right is not None and comparable(left, right, rule=rule)
    )
    return same and (function == "=" or is_literal(a))


def _mend(table: SolutionTable, call: Call, both: list[tuple[Term, Term]]) -> str:
    """What would have been right, where the data say."""
    for side, other, place in (
        (call.arguments[0], call.arguments[1], 0),
        (call.arguments[1], call.arguments[0], 1),
    ):
        values = [pair[place] for pair in both]
        if isinstance(other, Const) and kind_of(other.term) == TEXT and all(map(is_number, values)):
            lexical = literal_parts(other.term)[0]
            if number(f'"{lexical}"^^<http://www.w3.org/2001/XMLSchema#decimal>') is not None:
                return f"write `{lexical}`, without quotation marks"
        if isinstance(other, Const) and is_number(other.term) and all(kind_of(v) == TEXT for v in values):
            return f"the data have texts: xsd:decimal({text_of(side)}) makes numbers of them"
    return _likely_partner(table, call)


def _likely_partner(table: SolutionTable, call: Call) -> str:
    """Another column that has the values of one side."""
    left, right = call.arguments
    if call.function != "=" or not (isinstance(left, Attribute) and isinstance(right, Attribute)):
        return ""
    for kept, wrong in ((left, right), (right, left)):
        values = set(table.values(kept)) - {None}
        for name, place in table.columns.items():
            other = name.startswith(f"{wrong.position}.?") and name != column_of(wrong)
            if other and values & {row[1][place] for row in table.rows}:
                return f"did you mean `{text_of(kept)} = {name}`? They have values in common"
    return ""


def _ranges(table: SolutionTable, condition: Expression) -> Iterator[str]:
    """Between which values the variables of a condition lie."""
    for leaf in dict.fromkeys(operands(condition)):
        values = [value for value in table.values(leaf) if value is not None]
        numbers = sorted((value for value in values if is_number(value)), key=lambda v: values_key((v,)))
        name = text_of(leaf)
        if not values:
            yield f"`{name}` never has a value"
        elif numbers and len(numbers) == len(values):
            low, high = (literal_parts(value)[0] for value in (numbers[0], numbers[-1]))
            yield f"`{name}` lies between {low} and {high}" if low != high else f"`{name}` is always {low}"
        else:
            distinct = sorted(set(values))
            shown = ", ".join(distinct[:3]) + (", …" if len(distinct) > 3 else "")
            yield (
                f"`{name}` is one of {len(distinct):,}: {shown}"
                if len(distinct) > 1
                else f"`{name}` is {shown}"
            )


def mixed(kinds: Kinds) -> bool:
    """Whether a column mixes what never compares: texts and numbers, IRIs and literals."""
    families = {_family(kind) for kind in kinds if kind != UNBOUND}
    return len(families) > 1


def _family(kind: str) -> str:
    numeric = ("integer", "decimal", "double", "float")
    return "a number" if kind.startswith("xsd:") and kind[4:] in numeric else kind
