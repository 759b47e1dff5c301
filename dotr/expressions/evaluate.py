"""Compile an expression into nested closures.

Place:   queries, Datalog filters, ON, WHERE and WITH all use it; the caller defines how variables are read.
Method:  an expression compiles to one of three closures, each built from the form that its operator has
         natively: its term, its value, its truth value (SPARQL 1.1, sec. 17.2: errors propagate, `||` and
         `&&` recover from them). Errors and unbound variables are None in all three. Intermediate results
         stay Python values; text is made once, at the top.
Why not: generated Python source: closures cost a call per node, and conditions of rules have few nodes;
         joins/ generates source where that is worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from dotr.errors import ProgramError
from dotr.events import Clock
from dotr.expressions import closures as make
from dotr.expressions import rule_times
from dotr.expressions.casts import CASTS, DATA_VALUE
from dotr.expressions.closures import MIRRORED, Condition, Getter, Row, Tester, Valuer
from dotr.expressions.functions import FUNCTIONS, Signature
from dotr.expressions.rule_times import IntegerTimes
from dotr.expressions.value_operators import ARITHMETIC, COMPARISONS, Truth, effective
from dotr.ir import Aggregate, Attribute, Call, Const, Exists, Expression, TimeOf, Var
from dotr.rdf.terms import Term
from dotr.rdf.values import Value, number

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
]


class Operators(Struct, frozen=True, eq=False):
    """What operators and functions are, by their names in `Call`: values in, None an error."""

    arithmetic: Mapping[str, Callable[..., Value | None]]
    comparisons: Mapping[str, Callable[[Value, Value], Truth]]
    functions: Mapping[str, Signature]
    casts: Mapping[str, Callable[[Value], Value | None]]
    effective: Callable[[Value | None], Truth]


IN_QUERIES: Final = Operators(ARITHMETIC, COMPARISONS, FUNCTIONS, CASTS, effective)
IN_RULES: Final = Operators(rule_times.ARITHMETIC, rule_times.COMPARISONS, FUNCTIONS, CASTS, effective)
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
    `seconds`: as in ON, WHERE and WITH, where differences of times are seconds (rule_times.py). `reading`:
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
        """Whether numbers may be compared in the ways of closures.py."""
        self._operators = reading(IN_RULES if seconds else IN_QUERIES)

    def term(self, expression: Expression) -> Getter:
        native = self._term(expression)
        if native is not None:
            return native
        test = self._truth(expression)
        if test is not None:
            return make.term_of_truth(test)
        return make.term_of_value(self._value(expression))

    def value(self, expression: Expression) -> Valuer:
        native = self._term(expression)
        if native is not None:
            return make.value_of_term(native)
        return self._truth(expression) or self._value(expression)

    def truth(self, expression: Expression) -> Tester:
        test = self._truth(expression)
        if test is not None:
            return test
        return make.truth_of_value(self.value(expression), self._operators.effective)

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
                return make.same_resource(self.term(a), term, operator == "=")
            case _:
                test = self.truth(expression)
                return lambda row: test(row) is True

    def _compares(self, term: Term) -> bool:
        return self._shared and _is_number(term)

    def _threshold(self, operator: str, compared: Expression, number: Term) -> Condition:
        native = self._term(compared)
        if native is not None:
            return make.threshold(operator, native, number, self._operators.comparisons)
        return make.computed_threshold(operator, self.value(compared), number, self._operators.comparisons)

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
                return make.coalesce(tuple(self.term(a) for a in arguments))
            case Call("IF", (condition, then, otherwise)):
                return make.choice(self.truth(condition), self.term(then), self.term(otherwise))
            case Call(function, (a,)) if function == DATA_VALUE:
                return make.data_value(self.term(a))
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
                return make.both(self.truth(a), self.truth(b))
            case Call("||", (a, b)):
                return make.either(self.truth(a), self.truth(b))
            case Call("!", (a,)):
                return make.negation(self.truth(a))
            case Call("BOUND", (a,)):
                get = self.term(a)
                return lambda row: get(row) is not None
            case Call("SAMETERM", (a, b)):
                return make.same_term(self.term(a), self.term(b))
            case Call("=" | "!=" | "<" | ">" | "<=" | ">=" as operator, (a, b)):
                return self._comparison(operator, a, b)
            case Call("IN", (a,)):
                return make.none_of_nothing(self.truth(a))
            case Call("IN", (a, *options)):
                equal = self._operators.comparisons["="]
                return make.member(self.value(a), tuple(self.value(o) for o in options), equal)
            case Call("NOT-IN", arguments):
                return make.negation(self.truth(Call("IN", arguments)))
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
                    return make.strict(of_times, inner)
            apply = operators.arithmetic[function]
            for place, argument in enumerate(arguments):
                if isinstance(argument, Const) and self._compares(argument.term) and len(arguments) == 2:
                    return make.with_constant(apply, inner[1 - place], argument.term, first=place == 0)
            return make.strict(apply, inner)
        if function in FUNCTIONS:
            return make.strict(operators.functions[function].apply, inner)
        return make.strict(operators.casts[function], inner)

    def _comparison(self, operator: str, a: Expression, b: Expression) -> Tester:
        return make.comparison(self._operators.comparisons[operator], self.value(a), self.value(b))

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
