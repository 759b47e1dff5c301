"""Compile an expression into nested closures.

Place:   queries, Datalog filters, ON, WHERE and WITH all use it; what a variable means the caller says.
Method:  three closures an expression can become, each built from whichever its operator gives natively: its
         term, its value, its truth (SPARQL 1.1, sec. 17.2: errors propagate, `||` and `&&` recover from
         them). An error is None in all three, as an unbound variable is. Intermediate results stay Python
         values; text is made once, at the top.
Why not: generated Python source: closures cost a call per node, and conditions of rules have few nodes; the
         kernel in joins/ generates source where it pays.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias, assert_never

from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock
from dotr.expressions import arithmetic, operators
from dotr.expressions.casts import CASTS
from dotr.expressions.functions import FUNCTIONS
from dotr.expressions.operators import Truth, at_most, effective, equal, less
from dotr.ir import Aggregate, Attribute, Call, Const, Exists, Expression, TimeOf, Var
from dotr.rdf.terms import FALSE, TRUE, Term
from dotr.rdf.values import EXACT, DateTime, Value, encode, values

Row: TypeAlias = Any
Getter: TypeAlias = Callable[[Row], Term | None]
Condition: TypeAlias = Callable[[Row], bool]
Leaf: TypeAlias = Callable[[Var | Attribute | TimeOf], Getter]
Valuer: TypeAlias = Callable[[Row], Value | None]
Tester: TypeAlias = Callable[[Row], Truth]

# name: least and most arguments of what is not strict, or is an operator
_FORMS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("!", "u-", "u+", "BOUND"), (1, 1)),
    **dict.fromkeys(("IN", "NOT-IN"), (1, None)),
    "IF": (3, 3),
    "COALESCE": (0, None),
    "NOW": (0, 0),
}


def check_call(function: str, arguments: int) -> str | None:
    """What is wrong with calling `function` (as in `Call`) with so many arguments; None if nothing."""
    if function in FUNCTIONS:
        least, most = FUNCTIONS[function].least, FUNCTIONS[function].most
    elif function in _FORMS:
        least, most = _FORMS[function]
    elif function in CASTS:
        least, most = 1, 1
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
    dates: bool = True,
) -> Getter:
    """A function from a row to the expression's term, None for unbound or an error. It never raises.

    `leaf` says how a variable is read from a row; its terms are canonical. `clock` tells what an integer
    time counts. `dates` False (ON, WHERE, WITH): arithmetic on dateTimes is an error, but for a difference of
    two `Name.time`. Raises ProgramError for a function that does not exist.
    """
    return _Compiler(leaf, clock, now, exists, dates).term(expression)


def compile_condition(
    expression: Expression,
    leaf: Leaf,
    *,
    clock: Clock,
    now: Getter | None = None,
    exists: Callable[[Exists], Condition] | None = None,
    dates: bool = True,
) -> Condition:
    """A function from a row to whether the expression's effective boolean value is true; an error is not."""
    test = _Compiler(leaf, clock, now, exists, dates).truth(expression)
    return lambda row: test(row) is True


class _Compiler:
    """Owns nothing but the meaning of leaves; one per compiled expression."""

    def __init__(
        self,
        leaf: Leaf,
        clock: Clock,
        now: Getter | None,
        exists: Callable[[Exists], Condition] | None,
        dates: bool,
    ) -> None:
        self._leaf = leaf
        self._clock = clock
        self._now = now
        self._exists = exists
        self._dates = dates

    def term(self, expression: Expression) -> Getter:
        native = self._term(expression)
        if native is not None:
            return native
        test = self._truth(expression)
        if test is not None:
            return _term_of_truth(test)
        return _term_of_value(self._value(expression))

    def value(self, expression: Expression) -> Valuer:
        native = self._term(expression)
        if native is not None:
            return _value_of_term(native)
        return self._truth(expression) or self._value(expression)

    def truth(self, expression: Expression) -> Tester:
        test = self._truth(expression)
        if test is not None:
            return test
        return _truth_of_value(self.value(expression))

    def _term(self, expression: Expression) -> Getter | None:
        """For leaves and for forms that hand a term through; None for all others."""
        match expression:
            case Const(term):
                return lambda row: term
            case Var() | Attribute() | TimeOf():
                return self._leaf(expression)
            case Call("NOW", ()):
                return self._now or (lambda row: None)
            case Call("COALESCE", arguments):
                return _first(tuple(self.term(a) for a in arguments))
            case Call("IF", (condition, then, otherwise)):
                return _choice(self.truth(condition), self.term(then), self.term(otherwise))
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
                    raise ProgramError(
                        Diagnostic("D1206", "EXISTS has no graph to look at here", expression.span)
                    )
                found, wanted = self._exists(expression), not expression.negated
                return lambda row: found(row) is wanted
            case Call("&&", (a, b)):
                return _both(self.truth(a), self.truth(b))
            case Call("||", (a, b)):
                return _either(self.truth(a), self.truth(b))
            case Call("!", (a,)):
                return _not(self.truth(a))
            case Call("BOUND", (a,)):
                get = self.term(a)
                return lambda row: get(row) is not None
            case Call("SAMETERM", (a, b)):
                return _same(self.term(a), self.term(b))
            case Call("=" | "!=" | "<" | ">" | "<=" | ">=" as operator, (a, b)):
                return self._comparison(operator, a, b)
            case Call("IN", (a,)):
                return _none_of_nothing(self.truth(a))
            case Call("IN", (a, *options)):
                return _member(self.value(a), tuple(self.value(o) for o in options))
            case Call("NOT-IN", arguments):
                return _not(self.truth(Call("IN", arguments)))
            case _:
                return None

    def _value(self, expression: Expression) -> Valuer:
        assert isinstance(expression, Call)
        function, arguments = expression.function, expression.arguments
        wrong = check_call(function, len(arguments))
        if wrong:
            raise ProgramError(Diagnostic("D1215", wrong, expression.span))
        if function == "-" and all(isinstance(a, TimeOf) for a in arguments):
            return self._seconds_between(*(self.value(a) for a in arguments))
        inner = tuple(self.value(a) for a in arguments)
        if function in _ARITHMETIC:
            apply: Callable[..., Value | None] = _ARITHMETIC[function]
            return _strict(apply if self._dates else _dateless(apply), inner)
        if function in FUNCTIONS:
            return _strict(FUNCTIONS[function].apply, inner)
        return _strict(CASTS[function], inner)

    def _comparison(self, operator: str, a: Expression, b: Expression) -> Tester:
        return _compare(_COMPARISONS[operator], self.value(a), self.value(b))

    def _seconds_between(self, later: Valuer, earlier: Valuer) -> Valuer:
        micros = self._microseconds

        def difference(row: Row) -> Value | None:
            end, start = micros(later(row)), micros(earlier(row))
            if end is None or start is None:
                return None
            return EXACT.scaleb(Decimal(end - start), -6)

        return difference

    def _microseconds(self, value: Value | None) -> int | None:
        if isinstance(value, DateTime):
            return value.ticks // 10**12
        return value * self._clock.unit if type(value) is int else None


def _not_equal(a: Value, b: Value) -> Truth:
    same = equal(a, b)
    return None if same is None else not same


_COMPARISONS: dict[str, Callable[[Value, Value], Truth]] = {
    "=": equal,
    "!=": _not_equal,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
}
_ARITHMETIC: dict[str, Callable[..., Value | None]] = {
    "+": operators.add,
    "-": operators.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "u-": operators.negate,
    "u+": operators.plus,
}


def _dateless(apply: Callable[..., Value | None]) -> Callable[..., Value | None]:
    def guarded(*arguments: Value) -> Value | None:
        return None if any(isinstance(a, DateTime) for a in arguments) else apply(*arguments)

    return guarded


def _term_of_truth(test: Tester) -> Getter:
    def term(row: Row) -> Term | None:
        truth = test(row)
        return None if truth is None else TRUE if truth else FALSE

    return term


def _term_of_value(valuer: Valuer) -> Getter:
    def term(row: Row) -> Term | None:
        value = valuer(row)
        return None if value is None else encode(value)

    return term


def _value_of_term(get: Getter) -> Valuer:
    table = values

    def value(row: Row) -> Value | None:
        term = get(row)
        return None if term is None else table[term]

    return value


def _truth_of_value(valuer: Valuer) -> Tester:
    return lambda row: effective(valuer(row))


def _first(getters: tuple[Getter, ...]) -> Getter:
    def coalesce(row: Row) -> Term | None:
        for get in getters:
            term = get(row)
            if term is not None:
                return term
        return None

    return coalesce


def _choice(condition: Tester, then: Getter, otherwise: Getter) -> Getter:
    def choose(row: Row) -> Term | None:
        truth = condition(row)
        return None if truth is None else then(row) if truth else otherwise(row)

    return choose


def _both(a: Tester, b: Tester) -> Tester:
    def both(row: Row) -> Truth:
        left = a(row)
        if left is False:
            return False
        right = b(row)
        return right if left or right is False else None

    return both


def _either(a: Tester, b: Tester) -> Tester:
    def either(row: Row) -> Truth:
        left = a(row)
        if left:
            return True
        right = b(row)
        return right if left is False or right else None

    return either


def _not(test: Tester) -> Tester:
    def negated(row: Row) -> Truth:
        truth = test(row)
        return None if truth is None else not truth

    return negated


def _same(a: Getter, b: Getter) -> Tester:
    def same(row: Row) -> Truth:
        left, right = a(row), b(row)
        return None if left is None or right is None else left == right

    return same


def _compare(holds: Callable[[Value, Value], Truth], a: Valuer, b: Valuer) -> Tester:
    def compare(row: Row) -> Truth:
        left = a(row)
        if left is None:
            return None
        right = b(row)
        return None if right is None else holds(left, right)

    return compare


def _none_of_nothing(test: Tester) -> Tester:
    """`x IN ()`: false, but, against SPARQL 1.1 and with the full engine, an error where x has no truth."""
    return lambda row: None if test(row) is None else False


def _member(tested: Valuer, options: tuple[Valuer, ...]) -> Tester:
    def member(row: Row) -> Truth:
        value = tested(row)
        if value is None:
            return None
        answer: Truth = False
        for option in options:
            other = option(row)
            same = None if other is None else equal(value, other)
            if same:
                return True
            if same is None:
                answer = None
        return answer

    return member


def _strict(apply: Callable[..., Value | None], arguments: tuple[Valuer, ...]) -> Valuer:
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
