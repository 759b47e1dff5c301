"""Expressions: the same grammar in queries, Datalog guards, ON, WHERE and WITH.

Place:   between base.py and sparql.py; what a leaf may be depends on the parser's `mode`.
Method:  SPARQL 1.1, sec. 19.8, rules 107-128, by precedence climbing: one call a level of brackets instead of
         eight, so that the nesting limit and not Python's stack ends a deep text.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from dotr.errors import Diagnostics
from dotr.expressions.casts import CASTS
from dotr.ir import Aggregate, Attribute, Call, Const, Exists, Expression, TimeOf, Var
from dotr.lang.grammar.base import DEEPEST, Cursor, Skip, nearest
from dotr.lang.grammar.functions import ARGUMENTS, FORBIDDEN, MANY, QUERY_AGGREGATES, SYNONYMS
from dotr.lang.grammar.tokens import Token, string_value
from dotr.rdf.terms import Term
from dotr.source import Source, Span


class Mode(Enum):
    """Where an expression stands."""

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


class ExpressionParser(Cursor):
    """Owns, besides the cursor, the mode and the values that parameters stand for."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        super().__init__(source, found)
        self.mode = Mode.QUERY
        self.deployed = False  # whether the text will run as it is, so that an unknown function is an error
        self.aggregates = ""  # why an aggregate may not stand here; empty where it may
        self.parameters: dict[str, Term] = {}
        self.not_terms: set[str] = set()  # parameters that are durations

    def expression(self) -> Expression:
        """Take one expression, up to the first token that cannot go on with it."""
        start = self.token
        expression = self._binary(_OR)
        self._reject_foreign_operator()
        if _too_high(expression):
            self._report_height(start)
        return expression

    def _report_height(self, start: Token) -> None:
        self.error(
            "D1005",
            f"the expression is more than {DEEPEST} operators deep",
            self.since(start),
            hint="write a long list of alternatives with IN, a long sum in several steps",
        )

    def _reject_foreign_operator(self) -> None:
        """Words and signs of other languages, right behind an operand."""
        right = {"OR": "||", "XOR": "!=", "IS": "=", "LIKE": "REGEX(…)"}.get(self.key)
        if right is None and self.key == "AND" and (self.mode is not Mode.RULE or self._depth):
            right = "&&"
        if right is not None:
            self.error(
                "D1010",
                f"`{self.token.text}` is not an operator",
                self.span(),
                hint=f"write `{right}`",
            )
            raise Skip

    def _binary(self, least: int) -> Expression:
        """Operands joined by operators of precedence `least` and up; comparisons do not chain."""
        start = self.token
        left = self._unary()
        operators = 0
        while True:
            operator = self.token
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
                self.advance()
                if self.key == operator.key and operator.key == "=":
                    raise self.fail("an operand", "equality is a single `=`")
                left = Call(operator.key, (left, self._binary(level + 1)), self.since(start))
            if level == _COMPARE and self._level(self.token) >= _COMPARE:
                raise self.fail(
                    "the end of the comparison", "comparisons do not chain: write `a < b && b < c`"
                )

    def _level(self, token: Token) -> int:
        """The precedence of an operator, 0 for anything else."""
        if token.key == "NOT" and self.peek().key != "IN":
            return 0
        return _BINARY.get(token.key, 0)

    def _membership(self, left: Expression, start: Token) -> Expression:
        negated = self.accept("NOT") is not None
        self.expect("IN")
        with self.nested():
            arguments = self._arguments(0)
        return Call("NOT-IN" if negated else "IN", (left, *arguments), self.since(start))

    def _unary(self) -> Expression:
        start = self.token
        number = self.signed_number()
        if number is not None:
            return Const(number, self.since(start))
        if start.key in ("!", "-", "+"):
            self.advance()
            number = self.signed_number()
            operand = self._primary() if number is None else Const(number, self.since(start.end))
            return Call("!" if start.key == "!" else f"u{start.key}", (operand,), self.since(start))
        return self._primary()

    def _primary(self) -> Expression:
        token = self.token
        kind = token.kind
        if kind == "var":
            self.advance()
            return self.variable_leaf(token)
        if kind == "attribute" or kind == "timeof":
            return self._attribute(token)
        if token.key == "(":
            self.advance()
            with self.nested():
                inner = self.expression()
                self.expect(")", "`)` or an operator")
            return inner
        if self.at_literal():
            term = self.literal_term()
            return Const(term, self.since(token))
        if self.at_iri():
            return self._iri_or_call(token)
        if kind == "name":
            return self._named(token)
        hint = ""
        if token.key == "end" or token.key in ("}", ")", ","):
            hint = "an operand is missing"
        elif token.key == "=":
            hint = "equality is a single `=`"
        raise self.fail("an expression", hint)

    def variable_leaf(self, token: Token) -> Expression:
        """`?x` in an expression: a variable, or the term that a parameter of this name stands for."""
        name = self.variable_name(token)
        term = self.parameter(name, token)
        return Var(name, self.span(token)) if term is None else Const(term, self.span(token))

    def parameter(self, name: str, token: Token) -> Term | None:
        """The term that a parameter stands for; None for any other variable."""
        term = self.parameters.get(name)
        if term is None and name in self.not_terms:
            self.error("D1113", f"`?{name}` is a duration and no term", self.span(token),
                       hint="durations stand behind WITHIN and EVERY")  # fmt: skip
        return term

    def _attribute(self, token: Token) -> Expression:
        if self.mode is not Mode.RULE:
            self.error(
                "D1204" if self.mode is Mode.QUERY else "D3022",
                f"`{token.text}` stands in {self.mode.value}",
                self.span(),
                hint="compare events in ON or WHERE" if self.mode is Mode.QUERY else "write a variable",
            )
            raise Skip
        self.advance()
        position, rest = token.text.split(".", 1)
        if token.kind == "timeof":
            return TimeOf(position, self.span(token))
        variable = rest[1:]
        return Attribute(position, variable, self.span(token))

    def _iri_or_call(self, token: Token) -> Expression:
        term = self.iri_term()
        if self.key != "(":
            return Const(term, self.since(token))
        with self.nested():
            arguments = self._arguments(0)
        if term in CASTS:
            if len(arguments) != 1:
                self.error("D1215", f"{token.text} takes 1 argument, not {len(arguments)}", self.since(token))
        elif term != "<urn:dotr:unresolved>":
            report = self.error if self.deployed else self.warning
            report(
                "D1216",
                f"there is no function {term}",
                self.since(token),
                hint="casts are xsd:integer, xsd:double, xsd:string, xsd:boolean, xsd:dateTime, …",
            )
        return Call(term, tuple(arguments), self.since(token))

    def _arguments(self, least: int) -> list[Expression]:
        """Take `( e, … )`."""
        self.expect("(")
        found: list[Expression] = []
        if self.key == "DISTINCT":
            self.error("D1209", "DISTINCT stands only in an aggregate", self.span())
            self.advance()
        if not self.accept(")"):
            found.append(self.expression())
            while self.accept(","):
                found.append(self.expression())
            self.expect(")", "`,` or `)`")
        return found

    def _named(self, token: Token) -> Expression:
        """A keyword function, an aggregate, EXISTS; or a word that is not one of them."""
        key = token.key
        if key == "EXISTS" or (key == "NOT" and self.peek().key == "EXISTS"):
            return self._exists(token)
        if self.peek().key == "(" and (key in ARGUMENTS or key in QUERY_AGGREGATES):
            if key in QUERY_AGGREGATES:
                return self._aggregate(token)
            self.advance()
            with self.nested():
                arguments = self._arguments(0)
            return self._call(key, tuple(arguments), token)
        if self.mode is Mode.RULE and self.peek().key == "." and self.peek(2).kind == "name":
            attribute = self.peek(2)
            self.error(
                "D1014",
                f"`{token.text}.{attribute.text}` is not a value",
                Span(self.source, token.start, attribute.end),
                hint=f"write `{token.text}.?{attribute.text}`",
            )
            self.jump(self.at + 3)
            return Const('""', self.since(token))
        known = (*ARGUMENTS, *QUERY_AGGREGATES, "EXISTS")
        hint = nearest(token.text, known) if self.peek().key == "(" else ""
        if not hint and self.mode is Mode.RULE and key not in ARGUMENTS:
            hint = f"an attribute is written `{token.text}.?x`, its time `{token.text}.time`"
        elif not hint and key not in ARGUMENTS:
            hint = f'a variable is written `?{token.text}`, a text `"{token.text}"`'
        raise self.fail("an expression", hint)

    def _call(self, key: str, arguments: tuple[Expression, ...], token: Token) -> Expression:
        """A keyword function, its arguments counted and the forbidden ones refused."""
        least, most = ARGUMENTS[key]
        if not least <= len(arguments) <= most:
            wanted = (
                str(least) if least == most else f"{least} or more" if most == MANY else f"{least} to {most}"
            )
            self.error(
                "D1215",
                f"{key} takes {wanted} argument{'s' if wanted != '1' else ''}, not {len(arguments)}",
                self.since(token),
            )
        elif key == "BOUND" and not isinstance(arguments[0], Var | Attribute):
            self.error("D1215", "BOUND asks about a variable", self.since(token), hint="write `BOUND(?x)`")
        if key in FORBIDDEN:
            self._forbid(key, token)
        name = SYNONYMS.get(key, key)
        if name == "IRI" and self.base is not None and self.mode is Mode.QUERY and len(arguments) == 1:
            arguments = (*arguments, Const(f"<{self.base}>"))  # what a relative one is resolved against
        return Call(name, arguments, self.since(token))

    def _forbid(self, key: str, token: Token) -> None:
        why, instead = FORBIDDEN[key]
        self.error("D1205", f"a rule may not use {key}", self.span(token), hint=instead, notes=(why,))

    def _aggregate(self, token: Token) -> Expression:
        """`COUNT(DISTINCT ?x)` and its like inside an expression."""
        self.advance()
        key = token.key
        if self.aggregates or self.mode is not Mode.QUERY:
            why = self.aggregates or {
                Mode.RULE: "an aggregate over events is a conjunct of its own",
                Mode.DATALOG: "an aggregate over facts is an atom of its own",
            }.get(self.mode, "")
            hint = {
                Mode.RULE: f"write `AND {key}(…) AS ?v OVER Event WITHIN … FROM …` and use ?v",
                Mode.DATALOG: f"write `AGGREGATE(… ON ?group BIND {key}(…) AS ?v)` and use ?v",
            }.get(self.mode, "aggregates stand in SELECT, HAVING and ORDER BY")
            self.error("D1209", f"{key} cannot stand here", self.span(token), hint=hint, notes=(why,))
        if key in FORBIDDEN:
            self._forbid(key, token)
        before, self.aggregates = self.aggregates, "it stands inside another aggregate"
        with self.nested():
            self.expect("(")
            distinct = self.accept("DISTINCT") is not None
            argument: Expression | None = None
            if self.key == "*" and key == "COUNT":
                self.advance()
            else:
                argument = self.expression()
            separator = self._separator() if key == "GROUP_CONCAT" else None
            self.expect(")")
        self.aggregates = before
        return Aggregate(key, argument, distinct, separator, self.since(token))

    def _separator(self) -> str | None:
        if not self.accept(";"):
            return None
        self.expect("SEPARATOR")
        self.expect("=")
        if self.token.kind != "string":
            raise self.fail("a string")
        return string_value(self.advance(), self.source, self.found)

    def _exists(self, token: Token) -> Expression:
        negated = self.accept("NOT") is not None
        self.expect("EXISTS")
        if self.mode is not Mode.QUERY:
            hint = (
                "ask in the event's query, or write `AND NOT Event WITHIN …`"
                if self.mode is Mode.RULE
                else "write `NOT [?x, :p, ?y]` as an atom"
            )
            self.error(
                "D1206", f"EXISTS stands in {self.mode.value}", self.since(token), hint=hint,
                notes=("there is no graph to ask here",) if self.mode is Mode.RULE else (),
            )  # fmt: skip
            raise Skip
        return self.exists_pattern(negated, token)

    def exists_pattern(self, negated: bool, token: Token) -> Exists:
        """The group of EXISTS; overridden by the parser that knows groups."""
        raise NotImplementedError


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
