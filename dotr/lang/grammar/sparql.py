"""SELECT and ASK queries: text → `ir.Select`.

Place:   above expressions.py and triples.py; held by clauses.py. checks/scopes.py says what a query means.
Method:  SPARQL 1.1, sec. 19.8, one method a rule of the grammar. What is grammatical but forbidden in rules
         (language.md, sec. 1) is recorded and parsed on.
"""

from __future__ import annotations

from typing import Final

from dotr import ir
from dotr.lang.checks.scopes import check_select
from dotr.lang.grammar.base import Cursor, Skip
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.functions import ARGUMENTS, QUERY_AGGREGATES
from dotr.lang.grammar.tokens import Token
from dotr.lang.grammar.triples import TriplesParser
from dotr.rdf.terms import Term
from dotr.source import Span
from dotr.sparql.bound_variables import visible

_OTHER_FORMS: Final = {
    "CONSTRUCT": "a rule builds its graph in DEFINE",
    "DESCRIBE": "a rule builds its graph in DEFINE",
    "INSERT": "nothing can be changed from here",
    "DELETE": "nothing can be changed from here",
    "LOAD": "a query sees one graph only: name files with BACKGROUND",
    "CLEAR": "nothing can be changed from here",
    "DROP": "nothing can be changed from here",
    "CREATE": "nothing can be changed from here",
    "ADD": "nothing can be changed from here",
    "MOVE": "nothing can be changed from here",
    "COPY": "nothing can be changed from here",
    "WITH": "nothing can be changed from here",
}


class SparqlParser:
    """Owns what is scoped to one query, and reads the groups of EXISTS for `expressions`.

    `canonical`: whether answers that nobody orders have an order all the same.
    """

    def __init__(self, cursor: Cursor, expressions: ExpressionParser, *, canonical: bool = False) -> None:
        self.cursor = cursor
        self.expressions = expressions
        self.parameters = expressions.parameters
        self.held: dict[str, str] = {}  # prefixes that held in the query that was read last
        self._canonical = canonical
        self._triples = TriplesParser(cursor, self.parameters)
        expressions.group = self.group

    # -- whole queries ------------------------------------------------------------

    def query(self, *, ask: bool) -> ir.Select:
        """Take a query with its prologue and trailing VALUES. Prefixes it declares end with it."""
        self._triples = TriplesParser(self.cursor, self.parameters)
        with self.cursor.scope("D1201"), self.expressions.place("", Mode.QUERY):
            own: dict[str, Span] = {}
            self.held = self.cursor.prefixes
            while self.cursor.key in ("PREFIX", "BASE"):
                if self.cursor.key == "BASE":
                    self.cursor.declare_base()
                else:
                    self.cursor.declare_prefix(own)
            select = self._form(ask)
            check_select(select, self.cursor.found, self.parameters.terms)
            self.cursor.report_unused(own)
            self.cursor.used -= own.keys()
            return select

    def _form(self, ask: bool) -> ir.Select:
        if self.cursor.key == "SELECT":
            return self._select(outermost=True)
        if self.cursor.key == "ASK" and ask:
            return self._ask()
        wanted = "SELECT or ASK" if ask else "SELECT"
        why = _OTHER_FORMS.get(self.cursor.key)
        if self.cursor.key == "ASK":
            why = "write `SELECT * WHERE { … }`: it has a fact for every solution"
        if why is not None:
            self.cursor.error(
                "D1202", f"`{self.cursor.token.text}` is not {wanted}", self.cursor.span(), hint=why
            )
            raise Skip
        raise self.cursor.fail(wanted)

    def _ask(self) -> ir.Select:
        start = self.cursor.expect("ASK")
        self._dataset()
        self.cursor.accept("WHERE")
        where = self.group()
        return self._modifiers(ir.Select((), where, ask=True), start, outermost=True)

    def _select(self, *, outermost: bool) -> ir.Select:
        start = self.cursor.expect("SELECT")
        distinct = self.cursor.accept("DISTINCT") is not None
        reduced = not distinct and self.cursor.accept("REDUCED") is not None
        star = self.cursor.accept("*") is not None
        projection = () if star else self._projections()
        if outermost:
            self._dataset()
        elif self.cursor.key == "FROM":
            raise self.cursor.fail("WHERE")
        self.cursor.accept("WHERE")
        where = self.group()
        bare = ir.Select(projection, where, distinct, reduced, star)
        return self._modifiers(bare, start, outermost=outermost)

    def _projections(self) -> tuple[ir.Projection, ...]:
        found: list[ir.Projection] = []
        while True:
            if self.cursor.token.kind == "var":
                found.append(ir.Projection(self.variable()))
            elif self.cursor.key == "(":
                self.cursor.advance()
                with self.cursor.nested():
                    expression = self.expressions.expression()
                    self.cursor.expect("AS")
                    found.append(ir.Projection(self.variable(), expression))
                    self.cursor.expect(")")
            elif self.cursor.key == ",":
                raise self.cursor.fail("a variable", "projected variables stand side by side, without commas")
            elif found:
                return tuple(found)
            else:
                hint = (
                    "write an expression in brackets: `(… AS ?x)`" if self.cursor.token.kind == "name" else ""
                )
                raise self.cursor.fail("a variable, `(expression AS ?x)` or `*`", hint)

    def _dataset(self) -> None:
        while self.cursor.key == "FROM":
            start = self.cursor.advance()
            self.cursor.accept("NAMED")
            self.cursor.iri_term()
            self.cursor.error(
                "D1203",
                "a query may not choose its graph with FROM",
                self.cursor.since(start),
                hint="name files with BACKGROUND",
                notes=(
                    "it sees what holds at one instant: background, stream graph and what follows from them",
                ),
            )

    def _modifiers(self, bare: ir.Select, start: Token, *, outermost: bool) -> ir.Select:
        """GROUP BY … LIMIT, VALUES; `bare` is the query without them."""
        group_by: list[ir.GroupKey] = []
        having: list[ir.Expression] = []
        order_by: list[ir.OrderKey] = []
        if self.cursor.accept("GROUP"):
            self.cursor.expect("BY")
            with self.expressions.place("groups are made before anything is counted"):
                while not group_by or self._at_constraint() or self.cursor.token.kind == "var":
                    group_by.append(self._group_key())
        if self.cursor.accept("HAVING"):
            while not having or self._at_constraint():
                having.append(self._constraint())
        if self.cursor.accept("ORDER"):
            self.cursor.expect("BY")
            while (
                not order_by
                or self._at_constraint()
                or self.cursor.token.kind == "var"
                or self.cursor.key in ("ASC", "DESC")
            ):
                order_by.append(self._order_key())
        limit, offset = self._cut(bool(order_by), outermost)
        values = self._values() if self.cursor.key == "VALUES" else None
        projection = bare.projection
        if bare.star:
            names = visible(bare.where if values is None else ir.GroupPattern((bare.where, values)))
            projection = tuple(ir.Projection(ir.Var(name, self.cursor.span(start))) for name in names)
        return ir.Select(
            projection, bare.where, bare.distinct, bare.reduced, bare.star, bare.ask,
            tuple(group_by), tuple(having), tuple(order_by), limit, offset, values, self.cursor.since(start),
        )  # fmt: skip

    def _cut(self, ordered: bool, outermost: bool) -> tuple[int | None, int]:
        """LIMIT and OFFSET, in either order, each once."""
        limit: int | None = None
        offset: int | None = None
        start = self.cursor.token
        while (self.cursor.key == "LIMIT" and limit is None) or (
            self.cursor.key == "OFFSET" and offset is None
        ):
            word = self.cursor.advance()
            if self.cursor.token.kind != "integer":
                raise self.cursor.fail("a number")
            number = self.cursor.advance()
            value = int(number.text) if len(number.text) < 19 else 10**18
            if word.key == "LIMIT":
                limit = value
            else:
                offset = value
        fixed = outermost and (ordered or self._canonical)
        if (limit is not None or offset is not None) and not fixed:
            where = "in a subquery" if not outermost else "without ORDER BY"
            self.cursor.error(
                "D1207",
                f"LIMIT and OFFSET {where} keep answers by an order that nobody fixed",
                self.cursor.since(start),
                hint="use MIN or MAX in the subquery" if not outermost else "add ORDER BY before it",
            )
        return limit, offset or 0

    def _at_constraint(self) -> bool:
        key = self.cursor.key
        if key == "(" or self.cursor.at_iri():
            return True
        if key in ARGUMENTS or key in QUERY_AGGREGATES:
            return self.cursor.peek().key == "("
        return key == "EXISTS" or (key == "NOT" and self.cursor.peek().key == "EXISTS")

    def _constraint(self) -> ir.Expression:
        """A bracketed expression, a function call, or EXISTS."""
        if not self._at_constraint():
            raise self.cursor.fail(
                "a condition in brackets", "write `FILTER(…)`" if self.cursor.token.kind == "var" else ""
            )
        if self.cursor.at_iri() and self.cursor.peek().key != "(":
            raise self.cursor.fail("a condition in brackets")
        return self.expressions.primary()

    def _group_key(self) -> ir.GroupKey:
        if self.cursor.token.kind == "var":
            token = self.cursor.advance()
            return ir.GroupKey(self.expressions.variable_leaf(token))
        if self.cursor.key == "(":
            self.cursor.advance()
            with self.cursor.nested():
                expression = self.expressions.expression()
                variable = self.variable() if self.cursor.accept("AS") else None
                self.cursor.expect(")")
            return ir.GroupKey(expression, variable)
        return ir.GroupKey(self._constraint())

    def _order_key(self) -> ir.OrderKey:
        if self.cursor.key in ("ASC", "DESC"):
            descending = self.cursor.advance().key == "DESC"
            if self.cursor.key != "(":
                raise self.cursor.fail("`(`", "write `DESC(?x)`")
            return ir.OrderKey(self.expressions.primary(), descending)
        if self.cursor.token.kind == "var":
            return ir.OrderKey(self.expressions.variable_leaf(self.cursor.advance()))
        return ir.OrderKey(self._constraint())

    # -- groups ------------------------------------------------------------

    def group(self) -> ir.GroupPattern:
        """Take `{ … }`."""
        start = self.cursor.token
        self.cursor.expect("{")
        before = self._triples.pattern
        self._triples.new_pattern()
        with self.cursor.nested():
            if self.cursor.key == "SELECT":
                elements: tuple[ir.Element, ...] = (ir.SubSelect(self._subselect()),)
            else:
                elements = self._elements()
            self.cursor.expect("}", "`}` or another pattern")
        self._triples.pattern = before
        return ir.GroupPattern(elements, self.cursor.since(start))

    def _subselect(self) -> ir.Select:
        with self.expressions.place(""):
            return self._select(outermost=False)

    def _elements(self) -> tuple[ir.Element, ...]:
        found: list[ir.Element] = []
        while self.cursor.key != "}":
            if self.cursor.token.kind in ("attribute", "timeof"):
                self.cursor.split_attribute()
            if self._triples.begins():
                found.append(self._triples.block())
                continue
            element = self._not_triples()
            found.append(element)
            if not isinstance(element, ir.Filter):
                self._triples.new_pattern()
            self.cursor.accept(".")
        return tuple(found)

    def _not_triples(self) -> ir.Element:
        start = self.cursor.token
        match start.key:
            case "{":
                return self._group_or_union()
            case "OPTIONAL":
                self.cursor.advance()
                return ir.OptionalGroup(self.group())
            case "MINUS":
                self.cursor.advance()
                return ir.Minus(self.group())
            case "FILTER":
                self.cursor.advance()
                with self.expressions.place("a FILTER is asked of one solution"):
                    condition = self._constraint()
                return ir.Filter(condition, self.cursor.since(start))
            case "BIND":
                return self._bind()
            case "VALUES":
                return self._values()
            case "GRAPH" | "SERVICE":
                return self._other_graph()
            case "SELECT":
                raise self.cursor.fail("a pattern", "write a subquery in its own braces: `{ SELECT … }`")
            case _:
                hint = ""
                if start.kind == "name":
                    if start.text.lower() == "a":
                        hint = "a subject is missing before `a`, or it is a variable: `?a`"
                    elif start.key in ("QUERY", "RULE") or self.cursor.peek().key == ":=":
                        hint = "a `}` is missing"
                    elif start.key == "AND":
                        hint = "patterns stand side by side, with `.` between triples"
                    elif start.key == "NOT":
                        hint = "write `FILTER NOT EXISTS { … }`"
                    elif start.key in ("LIMIT", "OFFSET", "ORDER", "GROUP", "HAVING"):
                        hint = "it stands behind the closing `}` of WHERE"
                    elif self.cursor.peek().text.startswith(":"):
                        hint = "a prefixed name has no blank before the colon"
                    else:
                        hint = f"a variable is written `?{start.text}`"
                elif start.kind == "end":
                    hint = "a `}` is missing"
                raise self.cursor.fail("a pattern or `}`", hint)

    def _group_or_union(self) -> ir.Element:
        first = self.group()
        if self.cursor.key != "UNION":
            return first
        branches = [first]
        while self.cursor.accept("UNION"):
            branches.append(self.group())
        return ir.Union(tuple(branches))

    def _bind(self) -> ir.Bind:
        start = self.cursor.advance()
        self.cursor.expect("(")
        with self.expressions.place("a BIND is asked of one solution"), self.cursor.nested():
            expression = self.expressions.expression()
            self.cursor.expect("AS")
            variable = self.variable()
            self.cursor.expect(")")
        return ir.Bind(expression, variable, self.cursor.since(start))

    def _other_graph(self) -> ir.Element:
        """GRAPH and SERVICE: read, refused, and their group taken as if it stood alone."""
        start = self.cursor.advance()
        if start.key == "SERVICE":
            self.cursor.accept("SILENT")
        if self.cursor.token.kind == "var":
            self.cursor.advance()
        else:
            self.cursor.iri_term()
        door = start.key == "SERVICE"
        self.cursor.error(
            "D1203",
            f"a query may not use {start.key}",
            self.cursor.since(start),
            hint="fetch the data beforehand and name them with BACKGROUND"
            if door
            else "write the pattern itself",
            notes=("rules have no door to the outside",)
            if door
            else ("at an instant there is one graph: background, stream graph and what follows from them",),
        )
        return self.group()

    def _values(self) -> ir.Values:
        start = self.cursor.expect("VALUES")
        variables: list[ir.Var] = []
        single = self.cursor.token.kind == "var"
        if single:
            variables.append(self.variable())
        else:
            self.cursor.expect("(", "a variable or `(`")
            while self.cursor.token.kind == "var":
                variables.append(self.variable())
            self.cursor.expect(")", "a variable or `)`")
        self.cursor.expect("{")
        rows: list[tuple[Term | None, ...]] = []
        while not self.cursor.accept("}"):
            row_start = self.cursor.token
            if single:
                row = [self._cell()]
            else:
                self.cursor.expect("(", "`(` or `}`")
                row = []
                while not self.cursor.accept(")"):
                    row.append(self._cell())
            if len(row) != len(variables):
                self.cursor.error(
                    "D1213",
                    f"this row has {len(row)} values for {len(variables)} variables",
                    self.cursor.since(row_start),
                    hint="write UNDEF where there is none",
                )
            rows.append(tuple(row))
        return ir.Values(tuple(variables), tuple(rows), self.cursor.since(start))

    def _cell(self) -> Term | None:
        if self.cursor.accept("UNDEF"):
            return None
        if self.cursor.token.kind == "var" and self.cursor.token.text[1:] in self.parameters.terms:
            return self.parameters.terms[self.cursor.advance().text[1:]]
        constant = self.cursor.constant()
        if constant is not None:
            return constant
        raise self.cursor.fail(
            "a constant or UNDEF", "VALUES holds constants" if self.cursor.token.kind == "var" else ""
        )

    def variable(self) -> ir.Var:
        """Take a variable that is bound here (projected, assigned, listed); a parameter may not be."""
        if self.cursor.token.kind in ("attribute", "timeof"):
            self.cursor.split_attribute()
        token = self.cursor.variable()
        name = self.cursor.variable_name(token)
        span = self.cursor.span(token)
        self.parameters.refuse_binding(name, span, "variable")
        return ir.Var(name, span)
