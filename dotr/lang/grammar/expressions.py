"""Expressions: one grammar for queries, Datalog filters, ON, WHERE and WITH, and the functions in it.

Place:   above cursor.py; used by sparql.py and dlog.py. `mode`: what a leaf may be.
Method:  SPARQL 1.1, sec. 19.8, rules 107-128, by precedence climbing: one call per level of brackets instead
         of eight, so that the nesting limit and not Python's stack ends deeply nested input. Functions:
         SPARQL 1.1, sec. 17.4, DAYS of a duration and those of calendars, with their numbers of arguments,
         and which no rule may use; casts and mathematics are those of expressions/functions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from typing import Final

from dotr.errors import UsageError
from dotr.expressions.aggregates import AGGREGATES, WITH_SHARE
from dotr.expressions.calendars import zone, zone_names
from dotr.expressions.functions import CASTS, DATA_VALUE, FUNCTIONS
from dotr.expressions.geometry import GEOF, GEOMETRY, available
from dotr.expressions.mathematics import MATH, MATHEMATICS
from dotr.lang.checks.comparisons import STAND_IN
from dotr.lang.grammar.cursor import DEEPEST, Cursor, Parameters, Skip, Token, nearest, string_value
from dotr.program import Aggregate, Attribute, Call, Const, Exists, Expression, GroupPattern, TimeOf, Var
from dotr.program.own_functions import OwnFunction, is_reserved, missing, own_function
from dotr.program.rules import COLLECT
from dotr.rdf.terms import Term, literal_parts
from dotr.rdf.values import number
from dotr.source import Span

MANY: Final = 1_000_000

_ONE: Final = (
    "STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY "
    "DAYS DAYOFWEEK DATE HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK "
    "ISLITERAL ISNUMERIC"
)
_TWO: Final = "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM LOCAL"
_NONE: Final = "NOW RAND UUID STRUUID"

ARGUMENTS: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(_ONE.split(), (1, 1)),
    **dict.fromkeys(_TWO.split(), (2, 2)),
    "SUBSTR": (2, 3),
    "REGEX": (2, 3),
    "REPLACE": (3, 4),
    "IF": (3, 3),
    "CONCAT": (0, MANY),
    "COALESCE": (0, MANY),
    **dict.fromkeys(_NONE.split(), (0, 0)),
    "BNODE": (0, 1),
}
"""Least and greatest number of arguments, by keyword."""

QUERY_AGGREGATES: Final = frozenset((*AGGREGATES, "SAMPLE", "GROUP_CONCAT"))

SYNONYMS: Final[Mapping[str, str]] = {"URI": "IRI", "ISURI": "ISIRI"}

FORBIDDEN: Final[Mapping[str, tuple[str, str]]] = {
    "RAND": ("a replay would give another answer", "take a number from the data"),
    **dict.fromkeys(
        ("UUID", "STRUUID"),
        (
            "a replay would give another answer",
            "in a template a fresh name `dotr_x` gives every event its IRI",
        ),
    ),
    "BNODE": ("blank nodes are scoped to their graph", 'build an IRI: IRI(CONCAT("urn:…", STR(?x)))'),
    **dict.fromkeys(
        ("FIRST", "LAST"),
        ("one instant has no first and no last", "use MIN or MAX, or aggregate over the events of a rule"),
    ),
    COLLECT: (
        "a list is no term: only events of rules in .dotr have lists",
        "select the values, one fact each; a rule collects them: AND COLLECT(X.?x) AS ?list OVER X …",
    ),
    "SAMPLE": ("which value it takes depends on an undefined order", "use MIN or MAX"),
    "GROUP_CONCAT": ("its string depends on an undefined order", "select the values, one fact each"),
}
"""Why a rule may not use it, and what to write instead."""


class Mode(Enum):
    """Where an expression is used."""

    QUERY = "an embedded query"
    RULE = "ON, WHERE and WITH"
    DATALOG = "a Datalog rule"


_OR, _AND, _COMPARE, _ADD, _MULTIPLY = range(1, 6)
_BINARY: Final = {
    "||": _OR,
    "&&": _AND,
    "=": _COMPARE,
    "!=": _COMPARE,
    "<": _COMPARE,
    ">": _COMPARE,
    "<=": _COMPARE,
    ">=": _COMPARE,
    "IN": _COMPARE,
    "NOT": _COMPARE,
    "+": _ADD,
    "-": _ADD,
    "*": _MULTIPLY,
    "/": _MULTIPLY,
}


class ExpressionParser:
    """Owns what depends on where an expression is used: its mode, and why an aggregate is not allowed there.

    `deployed`: whether the text will run as it is, so that an unknown function is an error.
    """

    def __init__(
        self, cursor: Cursor, mode: Mode, parameters: Parameters | None = None, *, deployed: bool = True
    ) -> None:
        self.cursor = cursor
        self.mode = mode
        self.parameters = Parameters(cursor) if parameters is None else parameters
        self.aggregates = ""  # empty where one may stand
        self.group: Callable[[], GroupPattern] | None = None  # reads the braces of EXISTS: set by sparql.py
        self.rows: Callable[[Token], Expression | None] | None = (
            None  # rows of sequences: set by sequences.py
        )
        self._deployed = deployed

    @contextmanager
    def place(self, aggregates: str, mode: Mode | None = None) -> Iterator[None]:
        """Where no aggregate is allowed, and why; "" where one is."""
        before = self.mode, self.aggregates
        self.mode, self.aggregates = mode or self.mode, aggregates
        try:
            yield
        finally:
            self.mode, self.aggregates = before

    def expression(self) -> Expression:
        """Take one expression, up to the first token that cannot go on with it."""
        start = self.cursor.token
        expression = self._binary(_OR)
        self._reject_foreign_operator()
        if _too_high(expression):
            self._report_height(start)
        return expression

    def _report_height(self, start: Token) -> None:
        self.cursor.error(
            "D1005",
            f"the expression is more than {DEEPEST} operators deep",
            self.cursor.since(start),
            hint="write a long list of alternatives with IN, a long sum in several steps",
        )

    def _reject_foreign_operator(self) -> None:
        """Words and signs of other languages, right after an operand."""
        right = {"OR": "||", "XOR": "!=", "IS": "=", "LIKE": "REGEX(…)"}.get(self.cursor.key)
        if right is None and self.cursor.key == "AND" and (self.mode is not Mode.RULE or self.cursor.depth):
            right = "&&"
        if right is not None:
            self.cursor.error(
                "D1010",
                f"`{self.cursor.token.text}` is not an operator",
                self.cursor.span(),
                hint=f"write `{right}`",
            )
            raise Skip

    def _binary(self, least: int) -> Expression:
        """Operands joined by operators of precedence `least` and up; comparisons do not chain."""
        start = self.cursor.token
        left = self._unary()
        operators = 0
        while True:
            operator = self.cursor.token
            level = self._level(operator)
            if level < least:
                return left
            operators += 1
            if operators > DEEPEST:
                self._report_height(start)
                raise Skip
            if operator.key in ("IN", "NOT"):
                left = self._membership(left, start)
            else:
                self.cursor.advance()
                if self.cursor.key == operator.key and operator.key == "=":
                    raise self.cursor.fail("an operand", "equality is a single `=`")
                left = Call(operator.key, (left, self._binary(level + 1)), self.cursor.since(start))
            if level == _COMPARE and self._level(self.cursor.token) >= _COMPARE:
                raise self.cursor.fail(
                    "the end of the comparison", "comparisons do not chain: write `a < b && b < c`"
                )

    def _level(self, token: Token) -> int:
        """The precedence of an operator, 0 for anything else."""
        if token.key == "NOT" and self.cursor.peek().key != "IN":
            return 0
        return _BINARY.get(token.key, 0)

    def _membership(self, left: Expression, start: Token) -> Expression:
        negated = self.cursor.accept("NOT") is not None
        self.cursor.expect("IN")
        with self.cursor.nested():
            arguments = self._arguments(0)
        return Call("NOT-IN" if negated else "IN", (left, *arguments), self.cursor.since(start))

    def _unary(self) -> Expression:
        start = self.cursor.token
        number = self.cursor.signed_number()
        if number is not None:
            return Const(number, self.cursor.since(start))
        if start.key in ("!", "-", "+"):
            self.cursor.advance()
            number = self.cursor.signed_number()
            operand = self.primary() if number is None else Const(number, self.cursor.since(start.end))
            return Call("!" if start.key == "!" else f"u{start.key}", (operand,), self.cursor.since(start))
        return self.primary()

    def primary(self) -> Expression:
        token = self.cursor.token
        kind = token.kind
        if kind == "var":
            self.cursor.advance()
            return self.variable_leaf(token)
        if kind == "attribute" or kind == "timeof":
            return self._attribute(token)
        if token.key == "(":
            self.cursor.advance()
            with self.cursor.nested():
                inner = self.expression()
                self.cursor.expect(")", "`)` or an operator")
            return inner
        if self.cursor.at_literal():
            term = self.cursor.literal_term()
            return Const(term, self.cursor.since(token))
        if self.cursor.at_iri():
            return self._iri_or_call(token)
        if kind == "name":
            return self._named(token)
        hint = ""
        if token.key == "end" or token.key in ("}", ")", ","):
            hint = "an operand is missing"
        elif token.key == "=":
            hint = "equality is a single `=`"
        raise self.cursor.fail("an expression", hint)

    def variable_leaf(self, token: Token) -> Expression:
        """`?x` in an expression: a variable, or the term that a parameter of this name stands for."""
        name = self.cursor.variable_name(token)
        term = self.parameters.term(name, token)
        return Var(name, self.cursor.span(token)) if term is None else Const(term, self.cursor.span(token))

    def _attribute(self, token: Token) -> Expression:
        if self.mode is not Mode.RULE:
            self.cursor.error(
                "D1204" if self.mode is Mode.QUERY else "D3022",
                f"`{token.text}` is not allowed in {self.mode.value}",
                self.cursor.span(),
                hint="compare events in ON or WHERE" if self.mode is Mode.QUERY else "write a variable",
            )
            raise Skip
        self.cursor.advance()
        position, rest = token.text.split(".", 1)
        if self.rows is not None and position.upper() == "PREV":
            position = "PREV"
        if token.kind == "timeof":
            return TimeOf(position, self.cursor.span(token))
        variable = rest[1:]
        return Attribute(position, variable, self.cursor.span(token))

    def _iri_or_call(self, token: Token) -> Expression:
        term = self.cursor.iri_term()
        if self.cursor.key != "(":
            return Const(term, self.cursor.since(token))
        with self.cursor.nested():
            arguments = self._arguments(0)
        if term in FUNCTIONS or term in CASTS or (term == DATA_VALUE and self.mode is Mode.DATALOG):
            wanted = FUNCTIONS[term].least if term in FUNCTIONS else 1
            if len(arguments) != wanted:
                self.cursor.error(
                    "D1215",
                    f"{token.text} takes {wanted} argument{'s' if wanted != 1 else ''}, not {len(arguments)}",
                    self.cursor.since(token),
                )
            elif term in GEOMETRY and not available():
                self.cursor.error(
                    "D1230",
                    f"{token.text} needs shapely and pyproj",
                    self.cursor.since(token),
                    hint="pip install 'dotr[geo]'",
                )
        elif (own := self._own(term, len(arguments), token)) is not None:
            return Call(term, tuple(arguments), self.cursor.since(token), own.version)
        elif term != "<urn:dotr:unresolved>":
            hint = _nearest_function(term)
            notes: tuple[str, ...] = ()
            if not hint and not is_reserved(term):
                hint, notes = missing(term)
            report = self.cursor.error if self._deployed else self.cursor.found.warning
            report(
                "D1216",
                f"there is no function {term}",
                self.cursor.since(token),
                hint=hint or "casts are xsd:integer, xsd:double, xsd:string, xsd:boolean, xsd:dateTime, …",
                notes=notes,
            )
        return Call(term, tuple(arguments), self.cursor.since(token))

    def _own(self, term: Term, arguments: int, token: Token) -> OwnFunction | None:
        """The function of one's own of this name; a wrong number of arguments is reported."""
        try:
            own = own_function(term)
        except UsageError as error:  # of a package
            first = error.diagnostics[0]
            self.cursor.error(
                first.code, first.message, self.cursor.since(token), hint=first.hint, notes=first.notes
            )
            return None
        wrong = None if own is None else own.wrong(arguments)
        if wrong is not None:
            self.cursor.error("D1215", wrong, self.cursor.since(token))
        return own

    def _arguments(self, least: int) -> list[Expression]:
        """Take `( e, … )`."""
        self.cursor.expect("(")
        found: list[Expression] = []
        if self.cursor.key == "DISTINCT":
            self.cursor.error("D1209", "DISTINCT is allowed only in an aggregate", self.cursor.span())
            self.cursor.advance()
        if not self.cursor.accept(")"):
            found.append(self.expression())
            while self.cursor.accept(","):
                found.append(self.expression())
            self.cursor.expect(")", "`,` or `)`")
        return found

    def _named(self, token: Token) -> Expression:
        """A keyword function, an aggregate, EXISTS; or a word that is not one of them."""
        key = token.key
        if self.rows is not None and (value := self.rows(token)) is not None:
            return value
        if key == "EXISTS" or (key == "NOT" and self.cursor.peek().key == "EXISTS"):
            return self._exists(token)
        if self.cursor.peek().key == "(" and (key in ARGUMENTS or key in QUERY_AGGREGATES):
            if key in QUERY_AGGREGATES:
                return self._aggregate(token)
            self.cursor.advance()
            with self.cursor.nested():
                arguments = self._arguments(0)
            return self._call(key, tuple(arguments), token)
        if self.mode is Mode.RULE and self.cursor.peek().key == "." and self.cursor.peek(2).kind == "name":
            attribute = self.cursor.peek(2)
            self.cursor.error(
                "D1014",
                f"`{token.text}.{attribute.text}` is not a value",
                Span(self.cursor.source, token.start, attribute.end),
                hint=f"write `{token.text}.?{attribute.text}`",
            )
            self.cursor.jump(self.cursor.at + 3)
            return Const('""', self.cursor.since(token))
        known = (*ARGUMENTS, *QUERY_AGGREGATES, "EXISTS")
        hint = ""
        if self.cursor.peek().key == "(":
            hint = _in_mathematics(token.text) or nearest(token.text, known)
        if not hint and self.mode is Mode.RULE and key not in ARGUMENTS:
            hint = f"an attribute is written `{token.text}.?x`, its time `{token.text}.time`"
        elif not hint and key not in ARGUMENTS:
            hint = f'a variable is written `?{token.text}`, a string `"{token.text}"`'
        raise self.cursor.fail("an expression", hint)

    def _call(self, key: str, arguments: tuple[Expression, ...], token: Token) -> Expression:
        """A keyword function, its arguments counted and the forbidden ones refused."""
        least, most = ARGUMENTS[key]
        if not least <= len(arguments) <= most:
            wanted = (
                str(least) if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
            )
            self.cursor.error(
                "D1215",
                f"{key} takes {wanted} argument{'s' if wanted != '1' else ''}, not {len(arguments)}",
                self.cursor.since(token),
            )
        elif key == "BOUND" and not isinstance(arguments[0], Var | Attribute):
            hint = "write `BOUND(?x)`"
            if isinstance(of := arguments[0], TimeOf):
                hint = f"give a time for none: `COALESCE({of.position}.time, …)`"
            self.cursor.error("D1215", "BOUND takes a variable", self.cursor.since(token), hint=hint)
        if key in FORBIDDEN:
            self.forbid(key, token)
        if key == "LOCAL":
            self._check_zone(arguments)
        name = SYNONYMS.get(key, key)
        if name == "IRI" and self.cursor.base is not None and self.mode is Mode.QUERY and len(arguments) == 1:
            arguments = (
                *arguments,
                Const(f"<{self.cursor.base}>"),
            )  # what a relative one is resolved against
        return Call(name, arguments, self.cursor.since(token))

    def _check_zone(self, arguments: tuple[Expression, ...]) -> None:
        """A zone that is written must be one."""
        match arguments:
            case (_, Const(term) as written) if not term.startswith(STAND_IN):
                name = literal_parts(term)[0] if term[0] == term[-1] == '"' else None
                if name is None or zone(name) is None:
                    nearby = nearest(name or "", zone_names())
                    self.cursor.error(
                        "D1225",
                        f"`{term if name is None else name}` is not a time zone",
                        written.span,
                        hint=nearby or 'write "Europe/Berlin", "UTC" or "+02:00"',
                    )

    def forbid(self, key: str, token: Token) -> None:
        """Report a word of FORBIDDEN."""
        why, instead = FORBIDDEN[key]
        self.cursor.error(
            "D1205", f"a rule may not use {key}", self.cursor.span(token), hint=instead, notes=(why,)
        )

    def _aggregate(self, token: Token) -> Expression:
        """`COUNT(DISTINCT ?x)` and its like inside an expression."""
        self.cursor.advance()
        key = token.key
        if self.aggregates or self.mode is not Mode.QUERY:
            why = self.aggregates or {
                Mode.RULE: "an aggregate over events is a conjunct of its own",
                Mode.DATALOG: "an aggregate over facts is an atom of its own",
            }.get(self.mode, "")
            hint = {
                Mode.RULE: f"write `AND {key}(…) AS ?v OVER Event WITHIN … FROM …` and use ?v",
                Mode.DATALOG: f"write `AGGREGATE(… ON ?group BIND {key}(…) AS ?v)` and use ?v",
            }.get(self.mode, "aggregates belong in SELECT, HAVING and ORDER BY")
            self.cursor.error(
                "D1209", f"{key} is not allowed here", self.cursor.span(token), hint=hint, notes=(why,)
            )
        if key in FORBIDDEN:
            self.forbid(key, token)
        with self.place("it is inside another aggregate"), self.cursor.nested():
            self.cursor.expect("(")
            distinct = self.cursor.accept("DISTINCT") is not None
            argument: Expression | None = None
            if self.cursor.key == "*" and key == "COUNT":
                self.cursor.advance()
            else:
                argument = self.expression()
                key = self.with_share(key)
            separator = self._separator() if key == "GROUP_CONCAT" else None
            self.cursor.expect(")")
        return Aggregate(key, argument, distinct, separator, self.cursor.since(token))

    def with_share(self, function: str) -> str:
        """The function of an aggregate whose argument has been read, with the share that PERCENTILE has."""
        if function != WITH_SHARE:
            return function
        named = self.cursor.accept(",") is not None
        start = self.cursor.token
        share = self.expression() if named else None
        if isinstance(share, Var) and self.parameters.symbolic:
            return f"{function} ?{share.name}"
        if isinstance(share, Const) and share.term.startswith(STAND_IN):
            return function
        value = number(share.term) if isinstance(share, Const) else None
        if value is None or not 0 <= value <= 1:
            self.cursor.error(
                "D1226",
                "the share of a PERCENTILE is a number from 0 to 1",
                self.cursor.since(start) if named else self.cursor.span(),
                hint=f"write `{WITH_SHARE}(?x, 0.95)`, for what 95 % do not exceed",
            )
            return function
        return f"{function} {Decimal(repr(float(value)) if isinstance(value, float) else value):f}"

    def _separator(self) -> str | None:
        if not self.cursor.accept(";"):
            return None
        self.cursor.expect("SEPARATOR")
        self.cursor.expect("=")
        if self.cursor.token.kind != "string":
            raise self.cursor.fail("a string")
        return string_value(self.cursor.advance(), self.cursor.source, self.cursor.found)

    def _exists(self, token: Token) -> Expression:
        negated = self.cursor.accept("NOT") is not None
        self.cursor.expect("EXISTS")
        if self.mode is not Mode.QUERY:
            hint = (
                "use EXISTS in the event's query, or write `AND NOT Event WITHIN …`"
                if self.mode is Mode.RULE
                else "write `NOT [?x, :p, ?y]` as an atom"
            )
            self.cursor.error(
                "D1206", f"EXISTS is not allowed in {self.mode.value}", self.cursor.since(token), hint=hint,
                notes=("there is no graph here",) if self.mode is Mode.RULE else (),
            )  # fmt: skip
            raise Skip
        assert self.group is not None, "where queries are read, somebody reads groups"
        with self.place("EXISTS is evaluated for one solution"):
            pattern = self.group()
        return Exists(pattern, negated, self.cursor.since(token))


def _in_mathematics(word: str) -> str:
    """What to write instead of a function of mathematics without its prefix; empty if it is none."""
    if f"<{MATH}{word.lower()}>" not in MATHEMATICS:
        return ""
    return f"write `math:{word.lower()}(…)` with `PREFIX math: <{MATH}>`"


def _nearest_function(term: Term) -> str:
    """The function of mathematics or geometries that was meant by an IRI of its namespace."""
    for prefix, space, functions in (("math", MATH, MATHEMATICS), ("geof", GEOF, GEOMETRY)):
        if term.startswith(f"<{space}"):
            known = [f"{prefix}:{name[1 + len(space) : -1]}" for name in functions]
            return nearest(f"{prefix}:{term[1 + len(space) : -1]}", known) or f"there are {', '.join(known)}"
    return ""


def _too_high(expression: Expression) -> bool:
    """Whether the tree is too high to walk safely. Iterative; EXISTS groups count by their own brackets."""
    level: list[Expression] = [expression]
    for _ in range(DEEPEST + 1):
        below: list[Expression] = []
        for node in level:
            if isinstance(node, Call):
                below.extend(node.arguments)
            elif isinstance(node, Aggregate) and node.argument is not None:
                below.append(node.argument)
        if not below:
            return False
        level = below
    return True
