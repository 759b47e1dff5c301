"""The closures of compiled expressions: a row in, a term, a value or a truth value out.

Place:   evaluate.py combines them; operators and functions have their own modules.
Method:  each takes the closures of its operands and treats None (an error or an unbound value) by SPARQL 1.1,
         sec. 17.2: `&&`, `||`, IF, COALESCE and IN by their own rules, all others by propagation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dotr.expressions.value_operators import COMPARISONS, Truth
from dotr.rdf.data_values import data_values
from dotr.rdf.terms import FALSE, TRUE, Term
from dotr.rdf.values import Value, encode, to_double, values

Row: TypeAlias = Any
Getter: TypeAlias = Callable[[Row], Term | None]
Condition: TypeAlias = Callable[[Row], bool]
Valuer: TypeAlias = Callable[[Row], Value | None]
Tester: TypeAlias = Callable[[Row], Truth]

Comparisons: TypeAlias = Mapping[str, Callable[[Value, Value], Truth]]
"""Operator → its meaning: that of queries, or that of rules (rule_times.py)."""

MIRRORED = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def term_of_truth(test: Tester) -> Getter:
    def term(row: Row) -> Term | None:
        truth = test(row)
        return None if truth is None else TRUE if truth else FALSE

    return term


def term_of_value(valuer: Valuer) -> Getter:
    def term(row: Row) -> Term | None:
        value = valuer(row)
        return None if value is None else encode(value)

    return term


def value_of_term(get: Getter) -> Valuer:
    table = values

    def value(row: Row) -> Value | None:
        term = get(row)
        return None if term is None else table[term]

    return value


def truth_of_value(valuer: Valuer, effective: Callable[[Value | None], Truth]) -> Tester:
    return lambda row: effective(valuer(row))


def coalesce(getters: tuple[Getter, ...]) -> Getter:
    def first_bound(row: Row) -> Term | None:
        for get in getters:
            term = get(row)
            if term is not None:
                return term
        return None

    return first_bound


def choice(condition: Tester, then: Getter, otherwise: Getter) -> Getter:
    def choose(row: Row) -> Term | None:
        truth = condition(row)
        return None if truth is None else then(row) if truth else otherwise(row)

    return choose


def both(a: Tester, b: Tester) -> Tester:
    """`&&`: false if one side is false, whatever the other."""

    def conjunction(row: Row) -> Truth:
        left = a(row)
        if left is False:
            return False
        right = b(row)
        return right if left or right is False else None

    return conjunction


def either(a: Tester, b: Tester) -> Tester:
    """`||`: true if one side is true, whatever the other."""

    def disjunction(row: Row) -> Truth:
        left = a(row)
        if left:
            return True
        right = b(row)
        return right if left is False or right else None

    return disjunction


def negation(test: Tester) -> Tester:
    def negated(row: Row) -> Truth:
        truth = test(row)
        return None if truth is None else not truth

    return negated


def same_term(a: Getter, b: Getter) -> Tester:
    def same(row: Row) -> Truth:
        left, right = a(row), b(row)
        return None if left is None or right is None else left == right

    return same


def data_value(a: Getter) -> Getter:
    def found(row: Row) -> Term | None:
        term = a(row)
        return None if term is None or term[0] != '"' else data_values[term]

    return found


def comparison(holds: Callable[[Value, Value], Truth], a: Valuer, b: Valuer) -> Tester:
    def compare(row: Row) -> Truth:
        left = a(row)
        if left is None:
            return None
        right = b(row)
        return None if right is None else holds(left, right)

    return compare


def same_resource(get: Getter, constant: Term, wanted: bool) -> Condition:
    """`term = <iri>` or, if not `wanted`, `term != <iri>`: two IRIs are compared without decoding."""
    table, exact = values, values[constant]

    def holds(row: Row) -> bool:
        term = get(row)
        if term is None:
            return False
        if term[0] == "<":
            return (term == constant) is wanted
        return COMPARISONS["="](table[term], exact) is wanted

    return holds


def none_of_nothing(test: Tester) -> Tester:
    """`x IN ()`: false, but (like the full engine, against SPARQL 1.1) an error if x has no truth value."""
    return lambda row: None if test(row) is None else False


def threshold(
    comparison: str, get: Getter, constant: Term, comparisons: Comparisons = COMPARISONS
) -> Condition:
    """`term < number` and similar, the hot condition of rules: the constant is promoted beforehand."""
    passes, table = passing(comparison, constant, comparisons), values

    def holds(row: Row) -> bool:
        term = get(row)
        return term is not None and passes(table[term])

    return holds


def computed_threshold(
    comparison: str, valuer: Valuer, constant: Term, comparisons: Comparisons = COMPARISONS
) -> Condition:
    """The same for a computed value without a term."""
    passes = passing(comparison, constant, comparisons)

    def holds(row: Row) -> bool:
        value = valuer(row)
        return value is not None and passes(value)

    return holds


def promoted(constant: Term) -> tuple[Any, frozenset[type]]:
    """A number, and the types of the values with which it is compared directly."""
    exact: Any = values[constant]
    if isinstance(exact, (int, Decimal)):
        return exact, _EXACT
    return exact, _DOUBLE if exact == exact else frozenset()


_EXACT: Final = frozenset((int, Decimal))
_DOUBLE: Final = frozenset((float,))


def passing(comparison: str, constant: Term, comparisons: Comparisons = COMPARISONS) -> Callable[[Any], bool]:
    """Whether a value compares with a number by the operator, of which `comparisons` has the meaning."""
    order, general = ORDERS[comparison], comparisons[comparison]
    exact: Any = values[constant]
    double = to_double(exact)
    compared_exactly = (int, Decimal) if isinstance(exact, (int, Decimal)) else ()
    compared_as_double = (float,) if exact == exact else ()

    def passes(value: Any) -> bool:
        kind = type(value)
        if kind in compared_exactly:
            return order(value, exact)
        if kind in compared_as_double:
            return order(value, double)
        return general(value, exact) is True

    return passes


def with_constant(
    apply: Callable[..., Value | None], other: Valuer, constant: Term, *, first: bool
) -> Valuer:
    """Arithmetic with a constant number, which is promoted beforehand for double operands."""
    exact: Any = values[constant]
    double = to_double(exact)

    def calculate(row: Row) -> Value | None:
        value = other(row)
        if value is None:
            return None
        fixed = double if type(value) is float else exact
        return apply(fixed, value) if first else apply(value, fixed)

    return calculate


def member(tested: Valuer, options: tuple[Valuer, ...], equals: Callable[[Value, Value], Truth]) -> Tester:
    """`x IN (…)`: true if one option is equal, an error if none is and one could not be compared."""

    def found(row: Row) -> Truth:
        value = tested(row)
        if value is None:
            return None
        answer: Truth = False
        for option in options:
            other = option(row)
            same = None if other is None else equals(value, other)
            if same:
                return True
            if same is None:
                answer = None
        return answer

    return found


def strict(apply: Callable[..., Value | None], arguments: tuple[Valuer, ...]) -> Valuer:
    """Apply a function to values; any error in an argument is an error."""
    if len(arguments) == 1:
        (only,) = arguments

        def unary(row: Row) -> Value | None:
            value = only(row)
            return None if value is None else apply(value)

        return unary
    if len(arguments) == 2:
        first, second = arguments

        def binary(row: Row) -> Value | None:
            left = first(row)
            if left is None:
                return None
            right = second(row)
            return None if right is None else apply(left, right)

        return binary

    def call(row: Row) -> Value | None:
        given = [argument(row) for argument in arguments]
        return None if None in given else apply(*given)

    return call
