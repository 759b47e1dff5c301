"""Compile an expression into nested closures.

Place:   queries, Datalog filters, ON, WHERE and WITH; the caller defines how variables are read.
Method:  an expression compiles to one of three closures, each built from the native form of its operator: its
         term, its value or its truth value. None is an error or an unbound value in all three (SPARQL 1.1,
         sec. 17.2): `&&`, `||`, IF, COALESCE and IN treat it by their own rules, all other operators
         propagate it. Intermediate results stay Python values; text is made once, at the top.
Why not: generated Python source: closures cost one call per node, and conditions of rules have few nodes;
         joins/ generates source where that is worth it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct

from dotr.budget import EXPRESSION
from dotr.errors import ProgramError
from dotr.events import Clock
from dotr.expressions import operators as rule_times
from dotr.expressions.functions import CASTS, DATA_VALUE, FUNCTIONS, Signature
from dotr.expressions.operators import ARITHMETIC, COMPARISONS, IntegerTimes, Truth, effective
from dotr.program import Aggregate, Attribute, Call, Const, Exists, Expression, TimeOf, Var
from dotr.program.own_functions import OWN, OwnFunction
from dotr.rdf.terms import FALSE, TRUE, Term
from dotr.rdf.values import Value, data_values, encode, number, to_double, values

Row: TypeAlias = Any
Getter: TypeAlias = Callable[[Row], Term | None]
Condition: TypeAlias = Callable[[Row], bool]
Valuer: TypeAlias = Callable[[Row], Value | None]
Tester: TypeAlias = Callable[[Row], Truth]

Comparisons: TypeAlias = Mapping[str, Callable[[Value, Value], Truth]]
"""Operator → its meaning: that of queries, or that of rules (operators.py)."""

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


__all__ = [
    "Condition",
    "Getter",
    "Leaf",
    "Operators",
    "Row",
    "check_call",
    "compile_condition",
    "compile_expression",
    "is_time",
    "own_calls",
    "units",
]


class Operators(Struct, frozen=True, eq=False):
    """What operators and functions are, by their names in `Call`: values in, None an error."""

    arithmetic: Mapping[str, Callable[..., Value | None]]
    comparisons: Mapping[str, Callable[[Value, Value], Truth]]
    functions: Mapping[str, Signature]
    casts: Mapping[str, Callable[[Value], Value | None]]
    effective: Callable[[Value | None], Truth]
    called: Callable[[OwnFunction], Callable[..., Value | None]]
    """How functions of one's own are called."""


def _called(own: OwnFunction) -> Callable[..., Value | None]:
    from dotr.expressions.own_functions import called  # noqa: PLC0415  # start-up: few runs call one

    return called(own)


IN_QUERIES: Final = Operators(ARITHMETIC, COMPARISONS, FUNCTIONS, CASTS, effective, _called)
IN_RULES: Final = Operators(
    rule_times.TIME_ARITHMETIC,
    rule_times.TIME_COMPARISONS,
    FUNCTIONS,
    CASTS,
    effective,
    _called,
)
"""Those of ON, WHERE and WITH."""

Reading: TypeAlias = Callable[[Operators], Operators]


def _itself(operators: Operators) -> Operators:
    return operators


Leaf: TypeAlias = Callable[[Var | Attribute | TimeOf], Getter]

# name: least and most arguments of non-strict functions and operators
_FORMS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("!", "u-", "u+", "BOUND"), (1, 1)),
    **dict.fromkeys(("IN", "NOT-IN"), (1, None)),
    "IF": (3, 3),
    "COALESCE": (0, None),
    "NOW": (0, 0),
}


def check_call(function: str, arguments: int) -> str | None:
    """The error in calling `function` (as in `Call`) with this number of arguments, or None."""
    if function in FUNCTIONS:
        least, most = FUNCTIONS[function].least, FUNCTIONS[function].most
    elif function in _FORMS:
        least, most = _FORMS[function]
    elif function in CASTS or function == DATA_VALUE:
        least, most = 1, 1
    elif function in OWN:
        return OWN[function].wrong(arguments)
    else:
        return f"there is no function `{function}`"
    if arguments < least or (most is not None and arguments > most):
        wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        return f"`{function}` takes {wanted} argument{'' if wanted == '1' else 's'}, not {arguments}"
    return None


def compile_expression(
    expression: Expression,
    leaf: Leaf,
    *,
    clock: Clock,
    now: Getter | None = None,
    exists: Callable[[Exists], Condition] | None = None,
    seconds: bool = False,
    reading: Reading = _itself,
) -> Getter:
    """A function from a row to the expression's term, None for unbound or an error. It raises only Overlong.

    `leaf` reads a variable from a row, as a canonical term. `clock` defines what an integer time counts.
    `seconds`: as in ON, WHERE and WITH, where differences of times are seconds (operators.py). `reading`:
    of operators, a literal one. Raises ProgramError for a function that does not exist.
    """
    return _Compiler(leaf, clock, now, exists, seconds, reading).term(expression)


def compile_condition(
    expression: Expression,
    leaf: Leaf,
    *,
    clock: Clock,
    now: Getter | None = None,
    exists: Callable[[Exists], Condition] | None = None,
    seconds: bool = False,
    reading: Reading = _itself,
) -> Condition:
    """A function from a row to whether the expression's effective boolean value is true; errors: False."""
    return _Compiler(leaf, clock, now, exists, seconds, reading).condition(expression)


class _Compiler:
    """Owns only the meaning of leaves; one per compiled expression."""

    def __init__(
        self,
        leaf: Leaf,
        clock: Clock,
        now: Getter | None,
        exists: Callable[[Exists], Condition] | None,
        seconds: bool,
        reading: Reading,
    ) -> None:
        self._leaf = leaf
        self._clock = clock
        self._now = now
        self._exists = exists
        self._seconds = seconds
        self._shared = reading is _itself
        """Whether numbers may be compared in the ways of evaluate.py."""
        self._operators = reading(IN_RULES if seconds else IN_QUERIES)

    def term(self, expression: Expression) -> Getter:
        native = self._term(expression)
        if native is not None:
            return native
        test = self._truth(expression)
        if test is not None:
            return term_of_truth(test)
        return term_of_value(self._value(expression))

    def value(self, expression: Expression) -> Valuer:
        native = self._term(expression)
        if native is not None:
            return value_of_term(native)
        return self._truth(expression) or self._value(expression)

    def truth(self, expression: Expression) -> Tester:
        test = self._truth(expression)
        if test is not None:
            return test
        return truth_of_value(self.value(expression), self._operators.effective)

    def condition(self, expression: Expression) -> Condition:
        """Like truth with errors as false, which needs no third value outside `!`."""
        match expression:
            case Call("&&", (a, b)):
                left, right = self.condition(a), self.condition(b)
                return lambda row: left(row) and right(row)
            case Call("||", (a, b)):
                left, right = self.condition(a), self.condition(b)
                return lambda row: left(row) or right(row)
            case Call("=" | "<" | ">" | "<=" | ">=" as operator, (a, Const(term))) if self._compares(term):
                return self._threshold(operator, a, term)
            case Call("=" | "<" | ">" | "<=" | ">=" as operator, (Const(term), a)) if self._compares(term):
                return self._threshold(MIRRORED[operator], a, term)
            case Call("=" | "!=" as operator, (a, Const(term)) | (Const(term), a)) if term[0] == "<":
                return same_resource(self.term(a), term, operator == "=")
            case _:
                test = self.truth(expression)
                return lambda row: test(row) is True

    def _compares(self, term: Term) -> bool:
        return self._shared and _is_number(term)

    def _threshold(self, operator: str, compared: Expression, number: Term) -> Condition:
        native = self._term(compared)
        if native is not None:
            return threshold(operator, native, number, self._operators.comparisons)
        return computed_threshold(operator, self.value(compared), number, self._operators.comparisons)

    def _term(self, expression: Expression) -> Getter | None:
        """For leaves and for forms that pass a term through; None for all others."""
        match expression:
            case Const(term):
                return lambda row: term
            case Var() | Attribute() | TimeOf():
                return self._leaf(expression)
            case Call("NOW", ()):
                return self._now or (lambda row: None)
            case Call("COALESCE", arguments):
                return coalesce(tuple(self.term(a) for a in arguments))
            case Call("IF", (condition, then, otherwise)):
                return choice(self.truth(condition), self.term(then), self.term(otherwise))
            case Call(function, (a,)) if function == DATA_VALUE:
                return data_value(self.term(a))
            case Aggregate():
                raise AssertionError("aggregates are replaced by variables before compilation")
            case Call() | Exists():
                return None
            case _:
                assert_never(expression)

    def _truth(self, expression: Expression) -> Tester | None:
        """For what is a boolean or an error; None for all others."""
        match expression:
            case Exists():
                if self._exists is None:
                    raise ProgramError.of("D1206", "EXISTS has no graph to look at here", expression.span)
                found, wanted = self._exists(expression), not expression.negated
                return lambda row: found(row) is wanted
            case Call("&&", (a, b)):
                return both(self.truth(a), self.truth(b))
            case Call("||", (a, b)):
                return either(self.truth(a), self.truth(b))
            case Call("!", (a,)):
                return negation(self.truth(a))
            case Call("BOUND", (a,)):
                get = self.term(a)
                return lambda row: get(row) is not None
            case Call("SAMETERM", (a, b)):
                return same_term(self.term(a), self.term(b))
            case Call("=" | "!=" | "<" | ">" | "<=" | ">=" as operator, (a, b)):
                return self._comparison(operator, a, b)
            case Call("IN", (a,)):
                return none_of_nothing(self.truth(a))
            case Call("IN", (a, *options)):
                equal = self._operators.comparisons["="]
                return member(self.value(a), tuple(self.value(o) for o in options), equal)
            case Call("NOT-IN", arguments):
                return negation(self.truth(Call("IN", arguments)))
            case _:
                return None

    def _value(self, expression: Expression) -> Valuer:
        assert isinstance(expression, Call)
        function, arguments = expression.function, expression.arguments
        wrong = check_call(function, len(arguments))
        if wrong:
            raise ProgramError.of("D1215", wrong, expression.span)
        inner = tuple(self.value(a) for a in arguments)
        operators = self._operators
        if function in operators.arithmetic:
            if self._seconds and self._clock.integer and any(map(is_time, arguments)):
                of_times = self._of_integer_times(function, arguments)
                if of_times is not None:
                    return strict(of_times, inner)
            apply = operators.arithmetic[function]
            for place, argument in enumerate(arguments):
                if isinstance(argument, Const) and self._compares(argument.term) and len(arguments) == 2:
                    return with_constant(apply, inner[1 - place], argument.term, first=place == 0)
            return strict(apply, inner)
        if function in FUNCTIONS:
            return strict(operators.functions[function].apply, inner)
        if function in OWN:
            return strict(operators.called(OWN[function]), inner)
        return strict(operators.casts[function], inner)

    def _comparison(self, operator: str, a: Expression, b: Expression) -> Tester:
        return comparison(self._operators.comparisons[operator], self.value(a), self.value(b))

    def _of_integer_times(
        self, function: str, arguments: tuple[Expression, ...]
    ) -> Callable[..., Value | None] | None:
        """Their sum or difference; None for other operators."""
        times = IntegerTimes(self._clock.unit)
        match function, *map(is_time, arguments):
            case "-", _, True:
                return times.between
            case "-", True, False:
                return times.earlier
            case "+", True, False:
                return times.later
            case "+", False, True:
                return lambda by, time: times.later(time, by)
            case _:
                return None


def units(*expressions: Expression | None) -> int:
    """Units of work (budget.py) of evaluating expressions once; None costs nothing."""
    return EXPRESSION * sum(1 + own_calls(one) for one in expressions if one is not None)


def own_calls(expression: Expression) -> int:
    """Calls of functions of one's own; those inside EXISTS are charged where its pattern is matched."""
    match expression:
        case Call(function, arguments):
            return (function in OWN) + sum(map(own_calls, arguments))
        case Aggregate(argument=argument):
            return 0 if argument is None else own_calls(argument)
        case _:
            return 0


def is_time(expression: Expression) -> bool:
    """Whether an expression of a rule is a time by its form: `X.time`, NOW(), and such a time moved."""
    match expression:
        case TimeOf() | Call("NOW", ()):
            return True
        case Call("+", (a, b)):
            return is_time(a) is not is_time(b)
        case Call("-", (a, b)):
            return is_time(a) and not is_time(b)
        case Call("IF", (_, a, b)):
            return is_time(a) and is_time(b)
        case _:
            return False


def _is_number(term: Term) -> bool:
    return number(term) is not None
