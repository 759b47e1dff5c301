"""Static checks of comparisons and of what can never hold; no data.

Place:   called by `check_program`; survey/ shares the kinds of values, for terms of a sample.
Method:  comparisons: both sides one expression, D1323; both sides constant, D1324 (not where a parameter was
         put in: a library may well compare one); a string that looks like a number or a time beside `<`,
         D1325.
         Sorts: of what sort the values of a variable can be, as far as a query's shape determines it. A
         subject or predicate is a resource; constants and functions have the sort of their result; everything
         else is unknown. A comparison or sum of sorts that do not go together is a type error, which
         SPARQL does not report.
         Kinds: which kinds of values go together in a sum, a product or a comparison (SPARQL 1.1, sec. 17.3,
         and XPath's functions and operators for dates and durations; in rules language.md, "Times and
         durations"). An unknown kind goes with everything.
         Single choices: LAST or FIRST chooses one event of all, and what follows asks about each. The rule of
         silence, written wrong: `AND LAST Beat … AND NOT Later := Beat … ON Later.?s = Beat.?s` reads one
         beat of all sensors, the last, which is rarely the silent one's. Reported where the choice is related
         to nothing before it, and every later conjunct that reads it equates an attribute, a NOT over the
         same facts among them.
         Impossible rules: rules that can never have an event, queries that can never have a fact, by the
         least fixpoint of "can happen". A query can unless a filter of its outermost group is false for every
         row; a rule can if its trigger and every event it must choose can, and none of its conditions is
         false for all. So rules that wait for each other, or for their own first event, never begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Final, NamedTuple, TypeGuard

from dotr import program
from dotr.budget import Overlong
from dotr.detect.analysis import names, parts
from dotr.errors import Diagnostics
from dotr.events import Clock
from dotr.expressions.aggregates import AGGREGATES, aggregator, word_of
from dotr.expressions.evaluate import Getter, compile_condition
from dotr.expressions.geometry import GEOF, RELATIONS
from dotr.expressions.mathematics import MATHEMATICS
from dotr.extract.printing import Writer
from dotr.program import (
    Absent,
    Attribute,
    Call,
    Choose,
    Conjunct,
    Const,
    Expression,
    FilterAtom,
    Program,
    Rule,
    Selection,
    Summarise,
    TimeOf,
)
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import TRUE, XSD, XSD_STRING, Term, is_literal, literal_parts
from dotr.rdf.values import number
from dotr.regex import regex
from dotr.source import Span


class Sort(Enum):
    RESOURCE = "an IRI or blank node"
    NUMBER = "a number"
    TEXT = "a string"
    BOOLEAN = "true or false"
    TIME = "a dateTime"
    DATE = "a date"
    CLOCK = "a time of day"
    STAMP = "a time"
    """`X.time` and NOW() in rules: a dateTime, or an integer where the stream has those."""
    SECONDS = "a dayTimeDuration"
    MONTHS = "a yearMonthDuration"
    DURATION = "a duration"
    AMOUNT = "a number or a duration"


ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "u-", "u+"))
_TIMES: Final = frozenset((Sort.TIME, Sort.DATE, Sort.CLOCK, Sort.STAMP))
_LENGTHS: Final = frozenset((Sort.SECONDS, Sort.MONTHS, Sort.DURATION))
_COUNTED: Final = frozenset((Sort.SECONDS, Sort.MONTHS))
"""Durations that can be multiplied and divided."""
_NEVER: Final = frozenset((Sort.RESOURCE, Sort.TEXT, Sort.BOOLEAN))
_OPEN: Final = frozenset((Sort.AMOUNT, None))


class NoValueError(Exception):
    """Operands of these kinds have no sum, difference, product or quotient."""


def result(function: str, operands: tuple[Sort | None, ...], *, rule: bool) -> Sort | None:
    """The kind of what an operator of ARITHMETIC gives, None where it is not known. `rule`: in ON, WHERE or
    WITH. Raises NoValueError where it is an error for all values of these kinds.
    """
    if not _NEVER.isdisjoint(operands):
        raise NoValueError
    if len(operands) == 1:
        if operands[0] in (Sort.TIME, Sort.DATE, Sort.CLOCK):
            raise NoValueError
        return operands[0] if operands[0] in (Sort.NUMBER, *_LENGTHS) else Sort.AMOUNT
    left, right = operands
    if left is right is Sort.NUMBER:
        return Sort.NUMBER
    if function in ("*", "/"):
        return _product(function, left, right)
    if function == "+" and right in _TIMES and left not in _TIMES:
        left, right = right, left
    if left in _TIMES:
        return _from_time(function, left, right, rule)
    if right in _TIMES:
        return _to_time(left, right)
    if left in _OPEN or right in _OPEN:
        return None
    if left is Sort.NUMBER or right is Sort.NUMBER:
        raise NoValueError
    return left if left is right else Sort.DURATION


def _product(function: str, left: Sort | None, right: Sort | None) -> Sort | None:
    """A product or quotient that is not one of two numbers."""
    known = {left, right} - {Sort.AMOUNT, None}
    if known & {Sort.TIME, Sort.DATE, Sort.CLOCK, Sort.DURATION}:
        raise NoValueError
    if left in _COUNTED and right in _COUNTED:
        if function == "*" or left is not right:
            raise NoValueError
        return Sort.NUMBER
    if right in _COUNTED and left is Sort.NUMBER:
        if function == "/":
            raise NoValueError
        return right
    if left in _COUNTED and right is Sort.NUMBER:
        return left
    return Sort.AMOUNT


def _from_time(function: str, left: Sort | None, right: Sort | None, rule: bool) -> Sort | None:
    """A time, and what is added to it or taken from it."""
    if right in _TIMES:
        if function == "+":
            raise NoValueError
        if left is not right and {left, right} != {Sort.TIME, Sort.STAMP}:
            raise NoValueError
        return Sort.NUMBER if rule else Sort.SECONDS
    if right is None:
        return None
    if right is Sort.NUMBER and not rule:
        raise NoValueError
    if left is Sort.CLOCK and right is Sort.MONTHS:
        raise NoValueError
    return left


def _to_time(left: Sort | None, right: Sort | None) -> Sort | None:
    """The difference of what is no time, as far as is known, and a time."""
    if left is None:
        return None
    if left is Sort.NUMBER and right is Sort.STAMP:
        return None  # a time of the stream's, where these are integers
    raise NoValueError


def comparable(left: Sort | None, right: Sort | None, *, rule: bool) -> bool:
    """Whether values of these kinds can be equal, or one less than the other."""
    if left is None or right is None or left is right:
        return True
    both = {left, right}
    if both <= _LENGTHS or (Sort.AMOUNT in both and both <= {Sort.AMOUNT, Sort.NUMBER, *_LENGTHS}):
        return True
    if both == {Sort.NUMBER, Sort.SECONDS}:
        return rule
    return Sort.STAMP in both and bool(both & {Sort.TIME, Sort.NUMBER, Sort.AMOUNT, Sort.TEXT})


def remedy(function: str, left: Sort | None, right: Sort | None, *, rule: bool) -> str:
    """What would be right instead of operands of these kinds; empty where that is not known."""
    both = {left, right}
    if Sort.TEXT in both:
        return "make a value of the string: xsd:decimal(…), or xsd:dateTime(…)"
    if Sort.RESOURCE in both:
        return "follow a property of the resource to its value: `?x :value ?v`"
    if function in ("+", "-") and Sort.NUMBER in both and both & _TIMES and not rule:
        return 'add a duration: "PT5S"^^xsd:dayTimeDuration'
    if Sort.DATE in both and both & {Sort.TIME, Sort.STAMP}:
        return 'a date without a zone begins at xsd:dateTime(CONCAT(STR(…), "T00:00:00Z"))'
    if both == {Sort.NUMBER, Sort.SECONDS}:
        return "take the seconds of the duration: xsd:decimal(…)"
    if function == "-" and right in _TIMES and left not in _TIMES:
        return "write the time first"
    if Sort.DURATION in both and function in ("*", "/"):
        return "make a dayTimeDuration of it: xsd:dayTimeDuration(STR(…))"
    return ""


def _each(words: str, kind: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), kind)


OF_DATATYPE: Final[Mapping[str, str]] = {
    XSD + name: kind
    for name, kind in {
        **{name: name for name in ("integer", "decimal", "double", "string", "boolean", "dateTime", "date")},
        **_each("float long int short byte nonNegativeInteger positiveInteger", "number"),
        **_each("nonPositiveInteger negativeInteger unsignedLong unsignedInt unsignedShort", "number"),
        **_each("unsignedByte", "number"),
        "time": "clock",
        "dayTimeDuration": "seconds",
        "yearMonthDuration": "months",
        "duration": "duration",
    }.items()
}
"""Datatype → kind."""

_OF_FUNCTION: Final[Mapping[str, str]] = {
    **_each("|| && ! = != < > <= >= IN NOT-IN BOUND SAMETERM ISIRI ISBLANK ISLITERAL ISNUMERIC", "boolean"),
    **_each("REGEX CONTAINS STRSTARTS STRENDS LANGMATCHES", "boolean"),
    **_each("STRLEN YEAR MONTH DAY HOURS MINUTES", "integer"),
    **_each("ABS CEIL FLOOR ROUND DAYS DAYOFWEEK SECONDS", "number"),
    **_each("STR LANG ENCODE_FOR_URI MD5 SHA1 SHA256 SHA384 SHA512 STRUUID", "string"),
    **_each("CONCAT SUBSTR UCASE LCASE REPLACE STRBEFORE STRAFTER TZ", "text"),
    **_each("IRI DATATYPE", "iri"),
    "LOCAL": "time",
    "DATE": "date",
    **dict.fromkeys(RELATIONS, "boolean"),
    **dict.fromkeys(MATHEMATICS, "number"),
    **_each(f"<{GEOF}distance> <{GEOF}metricDistance>", "number"),
}


def result_kind(function: str) -> str:
    """The kind of all values of a function, as a call names it: their datatype, or what is known of it; "" if
    that depends on the arguments, or is not known.
    """
    return _OF_FUNCTION.get(function) or OF_DATATYPE.get(function[1:-1], "")


_OF_KIND: Final = {
    **dict.fromkeys(("integer", "decimal", "double", "number"), Sort.NUMBER),
    **dict.fromkeys(("string", "text"), Sort.TEXT),
    **dict.fromkeys(("dateTime", "time"), Sort.TIME),
    "boolean": Sort.BOOLEAN,
    "date": Sort.DATE,
    "clock": Sort.CLOCK,
    "seconds": Sort.SECONDS,
    "months": Sort.MONTHS,
    "duration": Sort.DURATION,
    "iri": Sort.RESOURCE,
}
"""Kind → sort."""

_SORT_COMPARISONS: Final = frozenset(("=", "<", ">", "<=", ">="))

STAND_IN: Final = "<urn:dotr:parameter:"
"""How the term begins that stands for a parameter without a value while its file is checked alone."""

Leaves = Callable[[str], Sort | None]
"""`x` of a query variable ?x, or `Event.?x` → its sort, None when not known."""


def term_sort(term: Term) -> Sort | None:
    """The sort of a constant; None for literals of other types and for a parameter without a value."""
    if not is_literal(term):
        return None if term.startswith(STAND_IN) else Sort.RESOURCE
    _, datatype, language = literal_parts(term)
    return Sort.TEXT if language else _OF_KIND.get(OF_DATATYPE.get(datatype, ""))


def sort(expression: program.Expression, leaves: Leaves, *, rule: bool = False) -> Sort | None:
    """The sort of every value that an expression has, None when not known. `rule`: in ON, WHERE, WITH."""
    match expression:
        case program.Const(term):
            return term_sort(term)
        case program.Var(name):
            return leaves(name)
        case program.Attribute(position, variable):
            return leaves(f"{position}.?{variable}")
        case program.Aggregate(function):
            if function == "COUNT":
                return Sort.NUMBER
            known = word_of(function) in AGGREGATES and aggregator(function).number
            return Sort.AMOUNT if known else None
        case program.Exists():
            return Sort.BOOLEAN
        case program.Call(function, arguments):
            return _call_sort(function, arguments, leaves, rule)
        case program.TimeOf():
            return Sort.STAMP


def _call_sort(
    function: str, arguments: tuple[program.Expression, ...], leaves: Leaves, rule: bool
) -> Sort | None:
    if function in ARITHMETIC:
        try:
            return result(function, tuple(sort(a, leaves, rule=rule) for a in arguments), rule=rule)
        except NoValueError:
            return None
    if function == "NOW" and rule:
        return Sort.STAMP
    return _OF_KIND.get(result_kind(function))


def mismatch(
    expression: program.Call, leaves: Leaves, *, rule: bool = False
) -> tuple[Sort | None, Sort | None] | None:
    """The sorts of a comparison's sides if they imply that it never holds."""
    if expression.function not in _SORT_COMPARISONS:
        return None
    left, right = (sort(argument, leaves, rule=rule) for argument in expression.arguments)
    resources_in_order = expression.function != "=" and Sort.RESOURCE in (left, right)
    if comparable(left, right, rule=rule) and not resources_in_order:
        return None
    return left, right


def check_sorts(
    expression: program.Expression, leaves: Leaves, found: Diagnostics, *, rule: bool = False
) -> None:
    """Warn about every comparison and every sum inside an expression whose sides are of sorts that do not go
    together.
    """
    if not isinstance(expression, program.Call):
        return
    for argument in expression.arguments:
        check_sorts(argument, leaves, found, rule=rule)
    if expression.function in ARITHMETIC:
        _check_arithmetic(expression, leaves, found, rule)
    sides_apart = mismatch(expression, leaves, rule=rule)
    if sides_apart is None:
        return
    left, right = sides_apart
    pairs = zip(expression.arguments, (left, right), strict=True)
    sides = [f"`{_text(argument)}` is {known.value}" for argument, known in pairs if known is not None]
    hint = "compare resources with `=` only" if left is right or len(sides) == 1 else ""
    if Sort.TEXT in (left, right) and Sort.NUMBER in (left, right):
        hint = "write the number without quotation marks, or turn the string into one: xsd:decimal(…)"
    elif Sort.RESOURCE in (left, right) and not hint:
        hint = "follow a property of the resource to its value: `?x :value ?v`"
    elif not hint:
        hint = remedy(expression.function, left, right, rule=rule)
    found.warning(
        "D1219",
        f"this comparison with `{expression.function}` never holds",
        expression.span,
        hint=hint,
        notes=(" and ".join(sides),),
    )


def _check_arithmetic(call: program.Call, leaves: Leaves, found: Diagnostics, rule: bool) -> None:
    operands = tuple(sort(argument, leaves, rule=rule) for argument in call.arguments)
    try:
        result(call.function, operands, rule=rule)
    except NoValueError:
        sides = [
            f"`{_text(argument)}` is {known.value}"
            for argument, known in zip(call.arguments, operands, strict=True)
            if known is not None
        ]
        found.warning(
            "D1224",
            f"this `{call.function.removeprefix('u')}` never has a value",
            call.span,
            hint=remedy(call.function, operands[0], operands[-1], rule=rule),
            notes=(" and ".join(sides),),
        )


def _text(expression: program.Expression) -> str:
    """An expression as it was written."""
    span = expression.span
    return span.source.text[span.start : span.end] if span is not None else Writer().expression(expression)


def attribute_sorts(select: program.Select) -> dict[str, Sort]:
    """Projected variable → the sort of all its values, where it is known."""
    inner = variable_sorts(select.where)
    found: dict[str, Sort] = {}
    for projection in select.projection:
        expression = projection.expression or projection.variable
        known = sort(expression, inner.get)
        if known is not None:
            found[projection.variable.name] = known
    return found


def variable_sorts(group: program.GroupPattern) -> dict[str, Sort]:
    """Variable → sort, from the places it takes in a group and the groups inside."""
    found: dict[str, Sort] = {}
    for element in group.elements:
        match element:
            case program.Triples(patterns):
                for pattern in patterns:
                    for place in (pattern.subject, pattern.predicate):
                        if isinstance(place, program.Var):
                            found[place.name] = Sort.RESOURCE
            case program.Bind(expression, variable):
                known = sort(expression, found.get)
                if known is not None:
                    found.setdefault(variable.name, known)
            case program.GroupPattern():
                found |= variable_sorts(element)
            case _:
                continue
    return found


def expressions_of(select: program.Select) -> Iterator[tuple[program.Expression, dict[str, Sort]]]:
    """Every FILTER, BIND, HAVING, ORDER BY and selected expression, with the sorts of what it sees."""
    for group in _groups(select.where):
        sorts = variable_sorts(group)
        for element in group.elements:
            if isinstance(element, program.Filter):
                yield element.condition, sorts
            elif isinstance(element, program.Bind):
                yield element.expression, sorts
            elif isinstance(element, program.SubSelect):
                yield from expressions_of(element.select)
    sorts = variable_sorts(select.where)
    yield from ((p.expression, sorts) for p in select.projection if p.expression is not None)
    yield from ((having, sorts) for having in select.having)
    yield from ((key.expression, sorts) for key in select.order_by)


def _groups(group: program.GroupPattern) -> Iterator[program.GroupPattern]:
    """A group and all inside, without those of subqueries."""
    yield group
    for element in group.elements:
        match element:
            case program.OptionalGroup(inner) | program.Minus(inner):
                yield from _groups(inner)
            case program.GroupPattern():
                yield from _groups(element)
            case program.Union(branches):
                for branch in branches:
                    yield from _groups(branch)
            case _:
                continue


def filters_of(select: program.Select) -> Iterator[tuple[program.Expression, dict[str, Sort]]]:
    """Every FILTER of a query with the sorts of the variables that it sees."""
    yield from _filters(select.where)


def _filters(group: program.GroupPattern) -> Iterator[tuple[program.Expression, dict[str, Sort]]]:
    sorts = variable_sorts(group)
    for element in group.elements:
        match element:
            case program.Filter(condition):
                yield condition, sorts
            case program.OptionalGroup(inner) | program.Minus(inner):
                yield from _filters(inner)
            case program.GroupPattern():
                yield from _filters(element)
            case program.Union(branches):
                for branch in branches:
                    yield from _filters(branch)
            case program.SubSelect(select):
                yield from _filters(select.where)
            case _:
                continue


_ORDERS: Final = frozenset(("<", ">", "<=", ">="))
_COMPARISONS: Final = _ORDERS | {"=", "!="}
_NUMBER: Final = regex(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_TIME: Final = regex(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}.*)?\s*")


def check_comparisons(program: Program, found: Diagnostics) -> None:
    """Warn about every such comparison in queries, rules and Datalog."""
    reported = {str(d.span) for d in found.found if d.code == "D1219"}
    for condition in conditions(program):
        for comparison in _comparisons_of_rule(condition):
            if str(comparison.span) not in reported:
                reported.add(str(comparison.span))
                _check(comparison, found)


def conditions(program: Program) -> Iterator[Expression]:
    """Every condition of a program."""
    for select in program.written.values():
        yield from (condition for condition, _ in filters_of(select))
        yield from select.having
    for rule in program.rules:
        yield from rule_expressions(rule)
    for clause in program.datalog:
        yield from (atom.condition for atom in clause.body if isinstance(atom, FilterAtom))


def rule_expressions(rule: Rule) -> Iterator[Expression]:
    """ON, WHERE and WITH of a rule or sequence, and what its aggregates are over."""
    if isinstance(rule.trigger, RowPattern):
        yield from (element.on for element in rule.trigger.elements if element.on is not None)
        yield from (total.argument for _, total in rule.trigger.totals if total.argument is not None)
    for conjunct in rule.conjuncts:
        if isinstance(conjunct, Summarise) and conjunct.argument is not None:
            yield conjunct.argument
        if conjunct.on is not None:
            yield conjunct.on
    if rule.where is not None:
        yield rule.where
    yield from (binding.expression for binding in rule.bindings)


def _comparisons_of_rule(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        if expression.function in _COMPARISONS and len(expression.arguments) == 2:
            yield expression
        for argument in expression.arguments:
            yield from _comparisons_of_rule(argument)


def _check(comparison: Call, found: Diagnostics) -> None:
    left, right = comparison.arguments
    operator = comparison.function
    if isinstance(left, Const) and isinstance(right, Const):
        if not _is_parameter(left) and not _is_parameter(right):
            found.warning(
                "D1324",
                "both sides of this comparison are constants",
                comparison.span,
                hint="compare a variable: `?v`, or `Event.?v`",
            )
    elif left == right:
        found.warning(
            "D1323",
            f"both sides of `{operator}` are the same",
            comparison.span,
            hint="compare with the other event's attribute",
        )
    else:
        for text, other in ((left, right), (right, left)):
            if isinstance(text, Const):
                _check_text(comparison, text, other, found)


def _check_text(comparison: Call, text: Const, other: Expression, found: Diagnostics) -> None:
    lexical = _plain_text(text)
    if lexical is None or not (comparison.function in _ORDERS or isinstance(other, TimeOf)):
        return
    if _TIME.fullmatch(lexical):
        kind, meant = "a time", f'"{lexical.strip()}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    elif _NUMBER.fullmatch(lexical):
        kind, meant = "a number", lexical.strip()
    else:
        return
    found.warning(
        "D1325",
        f"`{lexical}` in quotation marks is a string, not {kind}",
        text.span,
        hint=f"write `{meant}`",
        notes=(
            f"a string is never greater or less than {kind}: the comparison is an error, counted as false",
        ),
    )


def _plain_text(constant: Const) -> str | None:
    if not is_literal(constant.term):
        return None
    lexical, datatype, language = literal_parts(constant.term)
    return lexical if datatype == XSD_STRING and not language else None


def _is_parameter(constant: Const) -> bool:
    """Whether the value of a parameter stands there."""
    span = constant.span
    return span is not None and span.source.text[span.start : span.start + 1] in ("?", "$")


def check_choices(program: Program, found: Diagnostics) -> None:
    """Warn where EACH is meant, D1327; not where it is reported already that nothing relates the choice."""
    reported = {d.span for d in found.found if d.code == "D1321"}
    for rule in program.rules:
        for place, conjunct in enumerate(rule.conjuncts):
            already = conjunct.position.span in reported
            if _takes_one(conjunct) and not already:
                variable = _treated_as_each(rule, conjunct, rule.conjuncts[place + 1 :])
                if variable:
                    _report(conjunct, variable, found)


def _takes_one(conjunct: Conjunct) -> TypeGuard[Choose]:
    return isinstance(conjunct, Choose) and conjunct.selection is not Selection.EACH and conjunct.k == 1


def _treated_as_each(rule: Rule, choice: Choose, later: tuple[Conjunct, ...]) -> str:
    """The variable by which later conjuncts go on with a choice of one event among all; empty if they do
    not, and where `ON true` says that one of all is meant.
    """
    own = choice.position.name
    if choice.on == Const(TRUE) or any(
        own in looked_at and len(looked_at) > 1 for looked_at in map(names, parts(choice.on))
    ):
        return ""
    variable = ""
    for conjunct in later:
        if conjunct.on is None or own not in names(conjunct.on):
            continue
        equated = [v for part in parts(conjunct.on) if (v := _equated(part, conjunct.position.name, own))]
        if not equated:
            return ""
        if isinstance(conjunct, Absent) and conjunct.position.stream == choice.position.stream:
            variable = variable or equated[0]
    return variable


def _equated(part: Expression, candidate: str, chosen: str) -> str:
    """`v` where a part says `candidate.?v = chosen.?v`."""
    if not (isinstance(part, Call) and part.function == "=" and len(part.arguments) == 2):
        return ""
    left, right = part.arguments
    if not (isinstance(left, Attribute) and isinstance(right, Attribute)):
        return ""
    same = left.variable == right.variable and {left.position, right.position} == {candidate, chosen}
    return left.variable if same else ""


def _report(choice: Choose, variable: str, found: Diagnostics) -> None:
    own, word = choice.position.name, choice.selection
    found.warning(
        "D1327",
        f"{word} takes one `{own}` of all, so what follows is about its `?{variable}` only",
        choice.position.span,
        hint=f"write `AND EACH {own}`: a match for every `?{variable}`",
        notes=(f"`{own}` is equated with nothing before it: one event, whatever its `?{variable}`",),
    )


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


class _Reason(NamedTuple):
    """Why something can never happen; whether another check reports that at its place."""

    text: str
    known: bool = False


def check_possible(program: program.Program, found: Diagnostics) -> None:
    """Warn about each rule that can never have an event, D1328, unless its reason is reported in the rule."""
    never = {name: why for name, select in program.selects.items() if (why := _never_a_fact(select))}
    sorts = {name: attribute_sorts(select) for name, select in program.selects.items()}
    own = {rule.name: why for rule in program.rules if (why := _false_for_all(rule, sorts))}
    if any(d.code == "D1307" for d in found.errors):  # rules in a circle: reported as that
        return
    possible = _possible(program, never, own)
    for rule in program.rules:
        if rule.name in possible:
            continue
        why = own.get(rule.name) or _missing(rule, never, possible)
        if why is not None and not why.known:
            found.warning(
                "D1328",
                f"`{rule.name}` can never have an event",
                _first_word(rule.span),
                hint="correct the cause, or delete the rule",
                notes=(why.text,),
            )


def _possible(program: program.Program, never: Mapping[str, _Reason], own: Mapping[str, _Reason]) -> set[str]:
    """The rules that can have an event: the least set that is closed under "all that it needs can come".
    A rule that could not be read may. Linear in the references.
    """
    known = {rule.name for rule in program.rules}
    waiting: dict[str, set[str]] = {}
    readers: dict[str, list[str]] = {}
    for rule in program.rules:
        needs = {position.stream for position in _needed(rule)}
        if rule.name not in own and not needs & never.keys():
            waiting[rule.name] = needs & known
            for stream in needs & known:
                readers.setdefault(stream, []).append(rule.name)
    possible = {position.stream for rule in program.rules for position in rule.positions} - known
    ready = [name for name, needs in waiting.items() if not needs]
    while ready:
        name = ready.pop()
        possible.add(name)
        for reader in readers.get(name, ()):
            waiting[reader].discard(name)
            if not waiting[reader]:
                ready.append(reader)
    return possible


def _needed(rule: program.Rule) -> Iterator[program.Position]:
    """The events without which the rule has none: its trigger's, and those it chooses."""
    if isinstance(rule.triggering, program.Position):
        yield rule.triggering
    yield from (choice.position for choice in rule.required)


def _first_word(span: Span | None) -> Span | None:
    """RULE, or PRIVATE: the whole span of a rule may be many lines."""
    if span is None:
        return None
    length = next((n for n, c in enumerate(span.source.text[span.start : span.end]) if not c.isalpha()), 0)
    return Span(span.source, span.start, span.start + length)


def _missing(rule: program.Rule, never: Mapping[str, _Reason], possible: set[str]) -> _Reason | None:
    """Why an event that the rule needs can never come."""
    for position in _needed(rule):
        stream, name = position.stream, position.name
        if position.chained and stream not in possible:
            if stream == rule.name:
                return _Reason(f"`{name}` is an earlier event of the rule itself, so there is no first one")
            return _Reason(f"it needs an event of `{stream}`, which can never have one")
        if not position.chained and stream in never:
            inline = stream.startswith(f"{rule.name}.")
            return _Reason(f"`{name}` never has a fact: {never[stream].text}", inline and never[stream].known)
    return None


def _false_for_all(rule: program.Rule, sorts: Mapping[str, Mapping[str, Sort]]) -> _Reason | None:
    """Why a condition of the rule is false for every match."""
    streams = {position.name: position.stream for position in rule.positions}

    def sort_of(leaf: str) -> Sort | None:
        position, _, variable = leaf.partition(".?")
        return sorts.get(streams.get(position, ""), {}).get(variable)

    for choice in rule.required:
        window = choice.window
        if isinstance(window, program.Within) and window.before and not window.duration:
            return _Reason("its window is empty", known=True)
        if why := _falsehood(parts(choice.on), sort_of, rule=True):
            return _Reason(f"no `{choice.position.name}` matches: {why.text}", why.known)
    why = _falsehood(parts(rule.where), sort_of, rule=True)
    return why and _Reason(f"WHERE is never true: {why.text}", why.known)


def _never_a_fact(select: program.Select) -> _Reason | None:
    """Why a query has no answer whatever the data. (One that counts has an answer over nothing.)"""
    if select.group_by or select.having or any(_aggregates(p.expression) for p in select.projection):
        return None
    if select.limit == 0:
        return _Reason("LIMIT 0")
    sorts = variable_sorts(select.where)
    filters = [
        part for e in select.where.elements if isinstance(e, program.Filter) for part in parts(e.condition)
    ]
    return _falsehood(filters, sorts.get)


def _aggregates(expression: program.Expression | None) -> bool:
    if isinstance(expression, program.Call):
        return any(map(_aggregates, expression.arguments))
    return expression is not None and not isinstance(
        expression, program.Const | program.Var | program.Attribute | program.TimeOf
    )


def _falsehood(
    conditions: Sequence[program.Expression], leaves: Leaves, *, rule: bool = False
) -> _Reason | None:
    """Why conditions are never all true: one is false by itself, or two of them contradict each other."""
    for condition in conditions:
        if isinstance(condition, program.Call) and mismatch(condition, leaves, rule=rule):
            return _Reason(f"`{_impossible_text(condition)}` never holds", known=True)
        if _is_false(condition, rule):
            return _Reason(f"`{_impossible_text(condition)}` is false", known=_compares(condition))
    return _contradiction(conditions)


def _compares(condition: program.Expression) -> bool:
    return isinstance(condition, program.Call) and condition.function in _MIRRORED


def _is_false(condition: program.Expression, rule: bool) -> bool:
    """Whether a condition that looks at nothing is false or an error. One with a parameter is let be."""
    if names(condition) or not _constant(condition):
        return False
    try:
        return not compile_condition(condition, _no_leaf, clock=Clock(), seconds=rule)(())
    except Overlong:
        return False  # reported by whoever evaluates it


def _constant(expression: program.Expression) -> bool:
    match expression:
        case program.Const(term):
            return not term.startswith(STAND_IN)
        case program.Call(function, arguments):
            return function != "NOW" and all(map(_constant, arguments))
        case _:
            return False


def _no_leaf(leaf: program.Var | program.Attribute | program.TimeOf) -> Getter:
    raise AssertionError(f"a constant condition looks at {leaf}")


# -- bounds ------------------------------------------------------------------------------------------


def _contradiction(conditions: Sequence[program.Expression]) -> _Reason | None:
    """Two bounds of one variable between which no number lies."""
    lower: dict[program.Expression, tuple[Decimal, bool, program.Expression]] = {}
    upper: dict[program.Expression, tuple[Decimal, bool, program.Expression]] = {}
    for condition in conditions:
        for leaf, operator, limit in _bounds(condition):
            strict = operator in ("<", ">")
            if operator in (">", ">=", "="):
                best = lower.get(leaf)
                if best is None or (limit, strict) > best[:2]:
                    lower[leaf] = limit, strict, condition
            if operator in ("<", "<=", "="):
                best = upper.get(leaf)
                if best is None or (limit, not strict) < (best[0], not best[1]):
                    upper[leaf] = limit, strict, condition
    for leaf in lower.keys() & upper.keys():
        (least, above, one), (most, below, two) = lower[leaf], upper[leaf]
        if least > most or (least == most and (above or below)):
            return _Reason(f"`{_impossible_text(one)}` and `{_impossible_text(two)}` are never both true")
    return None


def _bounds(condition: program.Expression) -> Iterator[tuple[program.Expression, str, Decimal]]:
    """(variable, operator, number) of a comparison between them, the variable on the left."""
    if not (isinstance(condition, program.Call) and condition.function in _MIRRORED):
        return
    left, right = condition.arguments
    for leaf, constant, operator in (
        (left, right, condition.function),
        (right, left, _MIRRORED[condition.function]),
    ):
        if isinstance(leaf, program.Var | program.Attribute) and isinstance(constant, program.Const):
            value = number(constant.term)
            if isinstance(value, int | Decimal) and not isinstance(value, bool):
                yield leaf, operator, Decimal(value)


def _impossible_text(expression: program.Expression) -> str:
    span = expression.span
    return " ".join(span.source.text[span.start : span.end].split()) if span is not None else "a condition"
