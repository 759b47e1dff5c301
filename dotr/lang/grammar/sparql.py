"""SELECT and ASK queries: text → `ir.Select`.

Place:   between expressions.py with triples.py and the .dotr parser; scopes.py says afterwards what the query
         means.
Method:  SPARQL 1.1, sec. 19.8, one method a rule of the grammar. What is grammatical but forbidden in rules
         (language.md, sec. 1) is recorded and parsed on.
"""

from __future__ import annotations

from typing import Final

from dotr.errors import Diagnostics
from dotr.ir import (
    Bind,
    Element,
    Exists,
    Expression,
    Filter,
    GroupKey,
    GroupPattern,
    Minus,
    OptionalGroup,
    OrderKey,
    Projection,
    Select,
    SubSelect,
    Union,
    Values,
    Var,
)
from dotr.lang.checks.scopes import check_select
from dotr.lang.grammar.base import Skip
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.functions import ARGUMENTS, QUERY_AGGREGATES
from dotr.lang.grammar.tokens import Token
from dotr.lang.grammar.triples import TriplesParser
from dotr.rdf.terms import Term
from dotr.source import Source, Span
from dotr.sparql.bound_variables import visible

_OTHER_FORMS: Final = {
    "CONSTRUCT": "a rule builds its graph in DEFINE",
    "DESCRIBE": "a rule builds its graph in DEFINE",
    "INSERT": "nothing can be changed from here",
    "DELETE": "nothing can be changed from here",
    "LOAD": "there is no door to the outside: name files with BACKGROUND",
    "CLEAR": "nothing can be changed from here",
    "DROP": "nothing can be changed from here",
    "CREATE": "nothing can be changed from here",
    "ADD": "nothing can be changed from here",
    "MOVE": "nothing can be changed from here",
    "COPY": "nothing can be changed from here",
    "WITH": "nothing can be changed from here",
}


class SparqlParser(ExpressionParser):
    """Owns, besides the cursor, what is scoped to one query."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        super().__init__(source, found)
        self._triples = TriplesParser(self)
        self.canonical = False  # whether answers that nobody orders have an order all the same

    # -- whole queries ------------------------------------------------------------

    def query(self, *, ask: bool) -> Select:
        """Take a query with its prologue and trailing VALUES. Prefixes it declares end with it."""
        prefixes, base, code, mode = dict(self.prefixes), self.base, self.code, self.mode
        aggregates = self.aggregates
        used, self.used = self.used, set()
        self._triples = TriplesParser(self)
        self.code, self.mode, self.aggregates = "D1201", Mode.QUERY, ""
        try:
            own: dict[str, Span] = {}
            while self.key in ("PREFIX", "BASE"):
                if self.key == "BASE":
                    self.declare_base()
                else:
                    self.declare_prefix(own)
            select = self._form(ask)
            check_select(select, self.found, self.parameters)
            self.report_unused(own)
            self.used -= own.keys()
            return select
        finally:
            self.used |= used
            self.held = self.prefixes
            self.prefixes, self.base, self.code, self.mode = prefixes, base, code, mode
            self.aggregates = aggregates

    def _form(self, ask: bool) -> Select:
        if self.key == "SELECT":
            return self._select(outermost=True)
        if self.key == "ASK" and ask:
            return self._ask()
        wanted = "SELECT or ASK" if ask else "SELECT"
        why = _OTHER_FORMS.get(self.key)
        if self.key == "ASK":
            why = "write `SELECT * WHERE { … }`: it has a fact for every solution"
        if why is not None:
            self.error("D1202", f"`{self.token.text}` is not {wanted}", self.span(), hint=why)
            raise Skip
        raise self.fail(wanted)

    def _ask(self) -> Select:
        start = self.expect("ASK")
        self._dataset()
        self.accept("WHERE")
        where = self.group()
        return self._modifiers(Select((), where, ask=True), start, outermost=True)

    def _select(self, *, outermost: bool) -> Select:
        start = self.expect("SELECT")
        distinct = self.accept("DISTINCT") is not None
        reduced = not distinct and self.accept("REDUCED") is not None
        star = self.accept("*") is not None
        projection = () if star else self._projections()
        if outermost:
            self._dataset()
        elif self.key == "FROM":
            raise self.fail("WHERE")
        self.accept("WHERE")
        where = self.group()
        bare = Select(projection, where, distinct, reduced, star)
        return self._modifiers(bare, start, outermost=outermost)

    def _projections(self) -> tuple[Projection, ...]:
        found: list[Projection] = []
        while True:
            if self.token.kind == "var":
                found.append(Projection(self.variable()))
            elif self.key == "(":
                self.advance()
                with self.nested():
                    expression = self.expression()
                    self.expect("AS")
                    found.append(Projection(self.variable(), expression))
                    self.expect(")")
            elif self.key == ",":
                raise self.fail("a variable", "projected variables stand side by side, without commas")
            elif found:
                return tuple(found)
            else:
                hint = "an expression stands in brackets: `(… AS ?x)`" if self.token.kind == "name" else ""
                raise self.fail("a variable, `(expression AS ?x)` or `*`", hint)

    def _dataset(self) -> None:
        while self.key == "FROM":
            start = self.advance()
            self.accept("NAMED")
            self.iri_term()
            self.error(
                "D1203",
                "a query may not choose its graph with FROM",
                self.since(start),
                hint="name files with BACKGROUND",
                notes=(
                    "it sees what holds at one instant: background, stream graph and what follows from them",
                ),
            )

    def _modifiers(self, bare: Select, start: Token, *, outermost: bool) -> Select:
        """GROUP BY … LIMIT, VALUES; `bare` is the query without them."""
        group_by: list[GroupKey] = []
        having: list[Expression] = []
        order_by: list[OrderKey] = []
        if self.accept("GROUP"):
            self.expect("BY")
            self.aggregates = "groups are made before anything is counted"
            while not group_by or self._at_constraint() or self.token.kind == "var":
                group_by.append(self._group_key())
            self.aggregates = ""
        if self.accept("HAVING"):
            while not having or self._at_constraint():
                having.append(self._constraint())
        if self.accept("ORDER"):
            self.expect("BY")
            while (
                not order_by
                or self._at_constraint()
                or self.token.kind == "var"
                or self.key in ("ASC", "DESC")
            ):
                order_by.append(self._order_key())
        limit, offset = self._cut(bool(order_by), outermost)
        values = self._values() if self.key == "VALUES" else None
        projection = bare.projection
        if bare.star:
            names = visible(bare.where if values is None else GroupPattern((bare.where, values)))
            projection = tuple(Projection(Var(name, self.span(start))) for name in names)
        return Select(
            projection, bare.where, bare.distinct, bare.reduced, bare.star, bare.ask,
            tuple(group_by), tuple(having), tuple(order_by), limit, offset, values, self.since(start),
        )  # fmt: skip

    def _cut(self, ordered: bool, outermost: bool) -> tuple[int | None, int]:
        """LIMIT and OFFSET, in either order, each once."""
        limit: int | None = None
        offset: int | None = None
        start = self.token
        while (self.key == "LIMIT" and limit is None) or (self.key == "OFFSET" and offset is None):
            word = self.advance()
            if self.token.kind != "integer":
                raise self.fail("a number")
            number = self.advance()
            value = int(number.text) if len(number.text) < 19 else 10**18
            if word.key == "LIMIT":
                limit = value
            else:
                offset = value
        fixed = outermost and (ordered or self.canonical)
        if (limit is not None or offset is not None) and not fixed:
            where = "in a subquery" if not outermost else "without ORDER BY"
            self.error(
                "D1207",
                f"LIMIT and OFFSET {where} keep answers by an order that nobody fixed",
                self.since(start),
                hint="use MIN or MAX in the subquery" if not outermost else "add ORDER BY before it",
            )
        return limit, offset or 0

    def _at_constraint(self) -> bool:
        key = self.key
        if key == "(" or self.at_iri():
            return True
        if key in ARGUMENTS or key in QUERY_AGGREGATES:
            return self.peek().key == "("
        return key == "EXISTS" or (key == "NOT" and self.peek().key == "EXISTS")

    def _constraint(self) -> Expression:
        """A bracketed expression, a function call, or EXISTS."""
        if not self._at_constraint():
            raise self.fail(
                "a condition in brackets", "write `FILTER(…)`" if self.token.kind == "var" else ""
            )
        if self.at_iri() and self.peek().key != "(":
            raise self.fail("a condition in brackets")
        return self._primary()

    def _group_key(self) -> GroupKey:
        if self.token.kind == "var":
            token = self.advance()
            return GroupKey(self.variable_leaf(token))
        if self.key == "(":
            self.advance()
            with self.nested():
                expression = self.expression()
                variable = self.variable() if self.accept("AS") else None
                self.expect(")")
            return GroupKey(expression, variable)
        return GroupKey(self._constraint())

    def _order_key(self) -> OrderKey:
        if self.key in ("ASC", "DESC"):
            descending = self.advance().key == "DESC"
            if self.key != "(":
                raise self.fail("`(`", "write `DESC(?x)`")
            return OrderKey(self._primary(), descending)
        if self.token.kind == "var":
            return OrderKey(self.variable_leaf(self.advance()))
        return OrderKey(self._constraint())

    # -- groups ------------------------------------------------------------

    def group(self) -> GroupPattern:
        """Take `{ … }`."""
        start = self.token
        self.expect("{")
        before = self._triples.pattern
        self._triples.new_pattern()
        with self.nested():
            if self.key == "SELECT":
                elements: tuple[Element, ...] = (SubSelect(self._subselect()),)
            else:
                elements = self._elements()
            self.expect("}", "`}` or another pattern")
        self._triples.pattern = before
        return GroupPattern(elements, self.since(start))

    def _subselect(self) -> Select:
        aggregates, self.aggregates = self.aggregates, ""
        select = self._select(outermost=False)
        self.aggregates = aggregates
        return select

    def _elements(self) -> tuple[Element, ...]:
        found: list[Element] = []
        while self.key != "}":
            if self.token.kind in ("attribute", "timeof"):
                self.split_attribute()
            if self._triples.begins():
                found.append(self._triples.block())
                continue
            element = self._not_triples()
            found.append(element)
            if not isinstance(element, Filter):
                self._triples.new_pattern()
            self.accept(".")
        return tuple(found)

    def _not_triples(self) -> Element:
        start = self.token
        match start.key:
            case "{":
                return self._group_or_union()
            case "OPTIONAL":
                self.advance()
                return OptionalGroup(self.group())
            case "MINUS":
                self.advance()
                return Minus(self.group())
            case "FILTER":
                self.advance()
                aggregates, self.aggregates = self.aggregates, "a FILTER is asked of one solution"
                condition = self._constraint()
                self.aggregates = aggregates
                return Filter(condition, self.since(start))
            case "BIND":
                return self._bind()
            case "VALUES":
                return self._values()
            case "GRAPH" | "SERVICE":
                return self._other_graph()
            case "SELECT":
                raise self.fail("a pattern", "a subquery stands in braces of its own: `{ SELECT … }`")
            case _:
                hint = ""
                if start.kind == "name":
                    if start.text.lower() == "a":
                        hint = "a subject is missing before `a`, or it is a variable: `?a`"
                    elif start.key in ("QUERY", "RULE") or self.peek().key == ":=":
                        hint = "a `}` is missing"
                    elif start.key == "AND":
                        hint = "patterns stand side by side, with `.` between triples"
                    elif start.key == "NOT":
                        hint = "write `FILTER NOT EXISTS { … }`"
                    elif start.key in ("LIMIT", "OFFSET", "ORDER", "GROUP", "HAVING"):
                        hint = "it stands behind the closing `}` of WHERE"
                    elif self.peek().text.startswith(":"):
                        hint = "a prefixed name has no blank before the colon"
                    else:
                        hint = f"a variable is written `?{start.text}`"
                elif start.kind == "end":
                    hint = "a `}` is missing"
                raise self.fail("a pattern or `}`", hint)

    def _group_or_union(self) -> Element:
        first = self.group()
        if self.key != "UNION":
            return first
        branches = [first]
        while self.accept("UNION"):
            branches.append(self.group())
        return Union(tuple(branches))

    def _bind(self) -> Bind:
        start = self.advance()
        aggregates, self.aggregates = self.aggregates, "a BIND is asked of one solution"
        self.expect("(")
        with self.nested():
            expression = self.expression()
            self.expect("AS")
            variable = self.variable()
            self.expect(")")
        self.aggregates = aggregates
        return Bind(expression, variable, self.since(start))

    def _other_graph(self) -> Element:
        """GRAPH and SERVICE: read, refused, and their group taken as if it stood alone."""
        start = self.advance()
        if start.key == "SERVICE":
            self.accept("SILENT")
        if self.token.kind == "var":
            self.advance()
        else:
            self.iri_term()
        door = start.key == "SERVICE"
        self.error(
            "D1203",
            f"a query may not use {start.key}",
            self.since(start),
            hint="fetch the data beforehand and name them with BACKGROUND"
            if door
            else "write the pattern itself",
            notes=("rules have no door to the outside",)
            if door
            else ("at an instant there is one graph: background, stream graph and what follows from them",),
        )
        return self.group()

    def _values(self) -> Values:
        start = self.expect("VALUES")
        variables: list[Var] = []
        single = self.token.kind == "var"
        if single:
            variables.append(self.variable())
        else:
            self.expect("(", "a variable or `(`")
            while self.token.kind == "var":
                variables.append(self.variable())
            self.expect(")", "a variable or `)`")
        self.expect("{")
        rows: list[tuple[Term | None, ...]] = []
        while not self.accept("}"):
            row_start = self.token
            if single:
                row = [self._cell()]
            else:
                self.expect("(", "`(` or `}`")
                row = []
                while not self.accept(")"):
                    row.append(self._cell())
            if len(row) != len(variables):
                self.error(
                    "D1213",
                    f"this row has {len(row)} values for {len(variables)} variables",
                    self.since(row_start),
                    hint="write UNDEF where there is none",
                )
            rows.append(tuple(row))
        return Values(tuple(variables), tuple(rows), self.since(start))

    def _cell(self) -> Term | None:
        if self.accept("UNDEF"):
            return None
        if self.at_iri():
            return self.iri_term()
        if self.token.kind == "var" and self.token.text[1:] in self.parameters:
            return self.parameters[self.advance().text[1:]]
        number = self.signed_number()
        if number is not None:
            return number
        if self.at_literal():
            return self.literal_term()
        raise self.fail("a constant or UNDEF", "VALUES holds constants" if self.token.kind == "var" else "")

    def exists_pattern(self, negated: bool, token: Token) -> Exists:
        aggregates, self.aggregates = self.aggregates, "EXISTS asks about one solution"
        pattern = self.group()
        self.aggregates = aggregates
        return Exists(pattern, negated, self.since(token))

    def variable(self) -> Var:
        """Take a variable that is bound here (projected, assigned, listed); a parameter may not be."""
        token = self.token
        if token.kind in ("attribute", "timeof"):
            self.split_attribute()
        if token.kind != "var":
            raise self.fail("a variable", f"write `?{token.text}`" if token.kind == "name" else "")
        self.advance()
        name = self.variable_name(token)
        if name in self.parameters or name in self.not_terms:
            self.error(
                "D1114",
                f"`?{name}` is a parameter and cannot be bound",
                self.span(token),
                hint="give the variable another name",
            )
        return Var(name, self.span(token))
