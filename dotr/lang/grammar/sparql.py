"""SELECT and ASK queries: string → `Select`, with triple patterns and property paths.

Place:   above expressions.py; used by dotr.py. checks/scopes.py checks what a query means.
Method:  SPARQL 1.1, sec. 19.8, one method per rule of the grammar. What is grammatical but forbidden in rules
         (language.md, sec. 1) is recorded and parsing continues. Blank nodes and collections become variables
         and plain triple patterns, numbered as they appear: printing and parsing again gives the same tree.
"""

from __future__ import annotations

from typing import Final

from dotr import program
from dotr.extract.rewriting import visible
from dotr.lang.checks.scopes import check_select
from dotr.lang.grammar.cursor import NUMBERS, TYPE, Cursor, Parameters, Skip, Token
from dotr.lang.grammar.expressions import ARGUMENTS, QUERY_AGGREGATES, ExpressionParser, Mode
from dotr.program import (
    Alternative,
    Inverse,
    NegatedSet,
    Node,
    Path,
    Repeat,
    Sequence,
    TriplePattern,
    Triples,
    Var,
)
from dotr.rdf.terms import RDF, Term
from dotr.source import Span


class PathParser:
    """Takes paths from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def path(self) -> Path:
        """Take a path, which may be one predicate."""
        with self.cursor.nested():
            branches = [self._sequence()]
            while self.cursor.accept("|"):
                branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternative(tuple(branches))

    def _sequence(self) -> Path:
        steps = [self._step()]
        while self.cursor.accept("/"):
            steps.append(self._step())
        return steps[0] if len(steps) == 1 else Sequence(tuple(steps))

    def _step(self) -> Path:
        if self.cursor.accept("^"):
            return Inverse(self._element())
        return self._element()

    def _element(self) -> Path:
        path = self._primary()
        if self.cursor.key == "*":
            self.cursor.advance()
            return Repeat(path, 0, unbounded=True)
        if self.cursor.key == "+" and not (
            self.cursor.peek().kind in NUMBERS and self.cursor.peek().start == self.cursor.token.end
        ):
            self.cursor.advance()
            return Repeat(path, 1, unbounded=True)
        if self.cursor.key == "?":
            self.cursor.advance()
            return Repeat(path, 0, unbounded=False)
        return path

    def _primary(self) -> Path:
        if self.cursor.key == "(":
            self.cursor.advance()
            path = self.path()
            self.cursor.expect(")")
            return path
        if self.cursor.accept("!"):
            return self._negated_set()
        return self._iri()

    def _iri(self) -> Term:
        if self.cursor.key == "A" and self.cursor.token.text == "a":
            self.cursor.advance()
            return TYPE
        if not self.cursor.at_iri():
            hint = "the predicate rdf:type is a lower-case `a`" if self.cursor.key == "A" else ""
            raise self.cursor.fail("a predicate", hint)
        return self.cursor.iri_term()

    def _negated_set(self) -> NegatedSet:
        forward: list[Term] = []
        inverse: list[Term] = []

        def one() -> None:
            (inverse if self.cursor.accept("^") else forward).append(self._iri())

        if self.cursor.accept("("):
            if not self.cursor.accept(")"):
                one()
                while self.cursor.accept("|"):
                    one()
                self.cursor.expect(")", "`|` or `)`")
        else:
            one()
        return NegatedSet(tuple(forward), tuple(inverse))


FIRST: Final[Term] = f"<{RDF}first>"
REST: Final[Term] = f"<{RDF}rest>"
NIL: Final[Term] = f"<{RDF}nil>"


class TriplesParser:
    """Owns what is scoped to one query: blank node labels, their number, the basic graph pattern it is in."""

    def __init__(self, cursor: Cursor, parameters: Parameters) -> None:
        self.cursor = cursor
        self._parameters = parameters
        self._paths = PathParser(cursor)
        self._labels: dict[str, tuple[str, int]] = {}
        self._blanks = 0
        self.pattern = 0
        """Number of the basic graph pattern: a label is allowed in one only."""
        self._patterns = 0

    def new_pattern(self) -> None:
        """Another basic graph pattern begins."""
        self._patterns += 1
        self.pattern = self._patterns

    def begins(self) -> bool:
        """Whether a triple may begin here."""
        token = self.cursor.token
        return (
            token.kind in ("var", "iri", "pname", "label", "string", "integer", "decimal", "double")
            or token.key in ("(", "[", "TRUE", "FALSE")
            or (token.key in ("+", "-") and self.cursor.peek().kind in NUMBERS)
        )

    def block(self) -> Triples:
        """Triples up to the first token that is not part of one; dots stand between subjects."""
        found: list[TriplePattern] = []
        while True:
            start = self.cursor.token
            opened = start.key in ("[", "(") and not self._empty_bracket()
            subject = self._node(found)
            if not (opened and self.cursor.key in (".", "}") and found):
                self._predicates(subject, found)
            if self.cursor.token.kind in ("attribute", "timeof"):
                self.cursor.split_attribute()
            if not self.cursor.accept("."):
                if self.begins():
                    raise self.cursor.fail("`.`, `;` or `,`", "triples are separated by `.`")
                break
            if self.cursor.token.kind in ("attribute", "timeof"):
                self.cursor.split_attribute()
            if not self.begins():
                break
        return Triples(tuple(found))

    def _empty_bracket(self) -> bool:
        return self.cursor.peek().key in ("]", ")")

    def _predicates(self, subject: Node, found: list[TriplePattern]) -> None:
        """`verb object, object ; verb object …` after a subject."""
        while True:
            start = self.cursor.token
            verb = self._verb()
            while True:
                inner: list[TriplePattern] = []
                if self.cursor.token.kind in ("attribute", "timeof"):
                    self.cursor.split_attribute()
                object_ = self._node(inner)
                found.append(TriplePattern(subject, verb, object_, self.cursor.since(start)))
                found.extend(inner)
                if not self.cursor.accept(","):
                    break
            if not self.cursor.accept(";"):
                return
            while self.cursor.accept(";"):
                pass
            if not self._at_verb():
                return

    def _at_verb(self) -> bool:
        return self.cursor.token.kind in ("var", "iri", "pname") or self.cursor.key in ("A", "^", "!", "(")

    def _verb(self) -> Node | Path:
        if self.cursor.token.kind == "var":
            return self._variable_node()
        if not self._at_verb():
            hint = ""
            if self.cursor.token.kind == "string" or self.cursor.at_literal():
                hint = "a literal cannot be a predicate"
            raise self.cursor.fail("a predicate", hint)
        return self._paths.path()

    def _variable_node(self) -> Node:
        token = self.cursor.advance()
        name = self.cursor.variable_name(token)
        return self._parameters.term(name, token) or Var(name, self.cursor.span(token))

    def _blank(self, token: Token) -> Var:
        name = f".b{self._blanks}"
        self._blanks += 1
        return Var(name, self.cursor.span(token))

    def _node(self, found: list[TriplePattern]) -> Node:
        """A subject or object. The triples inside `[…]` and `(…)` go to `found`, in order of appearance."""
        token = self.cursor.token
        if token.kind == "var":
            return self._variable_node()
        if token.kind == "label":
            return self._label(self.cursor.advance())
        if token.key == "[":
            return self._properties(found)
        if token.key == "(":
            return self._collection(found)
        constant = self.cursor.constant()
        if constant is not None:
            return constant
        hint = f"a variable is written `?{token.text}`" if token.kind == "name" and token.key != "A" else ""
        raise self.cursor.fail("a variable or a term", hint)

    def _label(self, token: Token) -> Var:
        name, pattern = self._labels.get(token.text, ("", self.pattern))
        if not name:
            variable = self._blank(token)
            self._labels[token.text] = (variable.name, self.pattern)
            return variable
        if pattern != self.pattern:
            self.cursor.error(
                "D1214",
                f"`{token.text}` is used in two groups",
                self.cursor.span(token),
                hint="a variable can join them: `?x`",
                notes=("a blank node label is known in one basic graph pattern only",),
            )
        return Var(name, self.cursor.span(token))

    def _properties(self, found: list[TriplePattern]) -> Node:
        node = self._blank(self.cursor.advance())
        if self.cursor.accept("]"):
            return node
        with self.cursor.nested():
            self._predicates(node, found)
            self.cursor.expect("]", "`]`, `;` or `,`")
        return node

    def _collection(self, found: list[TriplePattern]) -> Node:
        start = self.cursor.advance()
        if self.cursor.accept(")"):
            return NIL
        first = cell = self._blank(start)
        with self.cursor.nested():
            while True:
                inner: list[TriplePattern] = []
                item_start = self.cursor.token
                item = self._node(inner)
                found.append(TriplePattern(cell, FIRST, item, self.cursor.since(item_start)))
                found.extend(inner)
                if self.cursor.key == ")":
                    self.cursor.advance()
                    found.append(TriplePattern(cell, REST, NIL, self.cursor.since(start)))
                    return first
                following = self._blank(self.cursor.token)
                found.append(TriplePattern(cell, REST, following, self.cursor.since(start)))
                cell = following


_NO_UPDATE: Final = "a query cannot change data"

_OTHER_FORMS: Final = {
    "CONSTRUCT": "a rule builds its graph in DEFINE",
    "DESCRIBE": "a rule builds its graph in DEFINE",
    "LOAD": "a query sees one graph only: name files with BACKGROUND",
    **dict.fromkeys(("INSERT", "DELETE", "CLEAR", "DROP", "CREATE"), _NO_UPDATE),
    **dict.fromkeys(("ADD", "MOVE", "COPY", "WITH"), _NO_UPDATE),
}


class SparqlParser:
    """Owns what is scoped to one query, and reads the groups of EXISTS for `expressions`.

    `canonical`: whether answers without ORDER BY have an order nevertheless.
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

    def query(self, *, ask: bool) -> program.Select:
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

    def _form(self, ask: bool) -> program.Select:
        if self.cursor.key == "SELECT":
            return self._select(outermost=True)
        if self.cursor.key == "ASK" and ask:
            return self._ask()
        wanted = "SELECT or ASK" if ask else "SELECT"
        why = _OTHER_FORMS.get(self.cursor.key)
        if self.cursor.key == "ASK":
            why = "write `SELECT * WHERE { … }`: it has a fact for every solution"
        if why is _NO_UPDATE:
            why += ": write `SELECT … WHERE { … }`" + ("" if ask else ", and what an event adds in DEFINE")
        if why is not None:
            self.cursor.error(
                "D1202", f"`{self.cursor.token.text}` is not {wanted}", self.cursor.span(), hint=why
            )
            raise Skip
        raise self.cursor.fail(wanted)

    def _ask(self) -> program.Select:
        start = self.cursor.expect("ASK")
        self._dataset()
        self.cursor.accept("WHERE")
        where = self.group()
        return self._modifiers(program.Select((), where, ask=True), start, outermost=True)

    def _select(self, *, outermost: bool) -> program.Select:
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
        bare = program.Select(projection, where, distinct, reduced, star)
        return self._modifiers(bare, start, outermost=outermost)

    def _projections(self) -> tuple[program.Projection, ...]:
        found: list[program.Projection] = []
        while True:
            if self.cursor.token.kind == "var":
                found.append(program.Projection(self.variable()))
            elif self.cursor.key == "(":
                self.cursor.advance()
                with self.cursor.nested():
                    expression = self.expressions.expression()
                    self.cursor.expect("AS")
                    found.append(program.Projection(self.variable(), expression))
                    self.cursor.expect(")")
            elif self.cursor.key == ",":
                raise self.cursor.fail(
                    "a variable", "write selected variables one after the other, without commas"
                )
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

    def _modifiers(self, bare: program.Select, start: Token, *, outermost: bool) -> program.Select:
        """GROUP BY … LIMIT, VALUES; `bare` is the query without them."""
        group_by: list[program.GroupKey] = []
        having: list[program.Expression] = []
        order_by: list[program.OrderKey] = []
        if self.cursor.accept("GROUP"):
            self.cursor.expect("BY")
            with self.expressions.place("GROUP BY is evaluated before aggregates"):
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
            names = visible(bare.where if values is None else program.GroupPattern((bare.where, values)))
            projection = tuple(
                program.Projection(program.Var(name, self.cursor.span(start))) for name in names
            )
        return program.Select(
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
                f"LIMIT and OFFSET {where} keep answers by an undefined order",
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

    def _constraint(self) -> program.Expression:
        """A bracketed expression, a function call, or EXISTS."""
        if not self._at_constraint():
            raise self.cursor.fail(
                "a condition in brackets", "write `FILTER(…)`" if self.cursor.token.kind == "var" else ""
            )
        if self.cursor.at_iri() and self.cursor.peek().key != "(":
            raise self.cursor.fail("a condition in brackets")
        return self.expressions.primary()

    def _group_key(self) -> program.GroupKey:
        if self.cursor.token.kind == "var":
            token = self.cursor.advance()
            return program.GroupKey(self.expressions.variable_leaf(token))
        if self.cursor.key == "(":
            self.cursor.advance()
            with self.cursor.nested():
                expression = self.expressions.expression()
                variable = self.variable() if self.cursor.accept("AS") else None
                self.cursor.expect(")")
            return program.GroupKey(expression, variable)
        return program.GroupKey(self._constraint())

    def _order_key(self) -> program.OrderKey:
        if self.cursor.key in ("ASC", "DESC"):
            descending = self.cursor.advance().key == "DESC"
            if self.cursor.key != "(":
                raise self.cursor.fail("`(`", "write `DESC(?x)`")
            return program.OrderKey(self.expressions.primary(), descending)
        if self.cursor.token.kind == "var":
            return program.OrderKey(self.expressions.variable_leaf(self.cursor.advance()))
        return program.OrderKey(self._constraint())

    # -- groups ------------------------------------------------------------

    def group(self) -> program.GroupPattern:
        """Take `{ … }`."""
        start = self.cursor.token
        self.cursor.expect("{")
        before = self._triples.pattern
        self._triples.new_pattern()
        with self.cursor.nested():
            if self.cursor.key == "SELECT":
                elements: tuple[program.Element, ...] = (program.SubSelect(self._subselect()),)
            else:
                elements = self._elements()
            self.cursor.expect("}", "`}` or another pattern")
        self._triples.pattern = before
        return program.GroupPattern(elements, self.cursor.since(start))

    def _subselect(self) -> program.Select:
        with self.expressions.place(""):
            return self._select(outermost=False)

    def _elements(self) -> tuple[program.Element, ...]:
        found: list[program.Element] = []
        while self.cursor.key != "}":
            if self.cursor.token.kind in ("attribute", "timeof"):
                self.cursor.split_attribute()
            if self._triples.begins():
                found.append(self._triples.block())
                continue
            element = self._not_triples()
            found.append(element)
            if not isinstance(element, program.Filter):
                self._triples.new_pattern()
            self.cursor.accept(".")
        return tuple(found)

    def _not_triples(self) -> program.Element:
        start = self.cursor.token
        match start.key:
            case "{":
                return self._group_or_union()
            case "OPTIONAL":
                self.cursor.advance()
                return program.OptionalGroup(self.group())
            case "MINUS":
                self.cursor.advance()
                return program.Minus(self.group())
            case "FILTER":
                self.cursor.advance()
                with self.expressions.place("a FILTER is evaluated for one solution"):
                    condition = self._constraint()
                return program.Filter(condition, self.cursor.since(start))
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
                        hint = "write patterns one after the other, with `.` between triples"
                    elif start.key == "NOT":
                        hint = "write `FILTER NOT EXISTS { … }`"
                    elif start.key in ("LIMIT", "OFFSET", "ORDER", "GROUP", "HAVING"):
                        hint = "write it after the closing `}` of WHERE"
                    elif start.text in _OTHER_FORMS:  # in capitals: hardly a variable
                        hint = _OTHER_FORMS[start.text]
                    elif self.cursor.peek().text.startswith(":"):
                        hint = "a prefixed name has no blank before the colon"
                    else:
                        hint = f"a variable is written `?{start.text}`"
                elif start.kind == "end":
                    hint = "a `}` is missing"
                raise self.cursor.fail("a pattern or `}`", hint)

    def _group_or_union(self) -> program.Element:
        first = self.group()
        if self.cursor.key != "UNION":
            return first
        branches = [first]
        while self.cursor.accept("UNION"):
            branches.append(self.group())
        return program.Union(tuple(branches))

    def _bind(self) -> program.Bind:
        start = self.cursor.advance()
        self.cursor.expect("(")
        with self.expressions.place("a BIND is evaluated for one solution"), self.cursor.nested():
            expression = self.expressions.expression()
            self.cursor.expect("AS")
            variable = self.variable()
            self.cursor.expect(")")
        return program.Bind(expression, variable, self.cursor.since(start))

    def _other_graph(self) -> program.Element:
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
            notes=("a rule cannot read from other services",)
            if door
            else ("at an instant there is one graph: background, stream graph and what follows from them",),
        )
        return self.group()

    def _values(self) -> program.Values:
        start = self.cursor.expect("VALUES")
        variables: list[program.Var] = []
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
        return program.Values(tuple(variables), tuple(rows), self.cursor.since(start))

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

    def variable(self) -> program.Var:
        """Take a variable that is bound here (projected, assigned, listed); a parameter may not be."""
        if self.cursor.token.kind in ("attribute", "timeof"):
            self.cursor.split_attribute()
        token = self.cursor.variable()
        name = self.cursor.variable_name(token)
        span = self.cursor.span(token)
        self.parameters.refuse_binding(name, span, "variable")
        return program.Var(name, span)
