"""Query trees as SPARQL text: for `dotr fmt`, and for the full engine.

Place:   the inverse of lang's parser; lang/printer.py prints rules around it.
Method:  SPARQL 1.1, sec. 19.8, with brackets only where the grammar needs them: parsing the text yields an
         equal tree. One element per line, nested groups indented; `;` joins patterns of one subject.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from dotr import program
from dotr.expressions.aggregates import written
from dotr.rdf.terms import RDF_TYPE, XSD_BOOLEAN, XSD_DECIMAL, XSD_DOUBLE, XSD_INTEGER, Term, escape, members
from dotr.regex import regex

NOW_MARK = "\0"
"""The placeholder for the instant's time in text for the full engine; no user text can contain it."""

_LOCAL = regex(r"(?:[A-Za-z_0-9](?:[A-Za-z_0-9.-]*[A-Za-z_0-9-])?)?\Z")
_TYPED = regex(r'"([^"\\]*)"\^\^<([^>]*)>\Z')
_SHORT_NUMBERS = {
    XSD_INTEGER: regex(r"-?[0-9]+\Z"),
    XSD_DECIMAL: regex(r"-?[0-9]+(\.[0-9]+)?\Z"),
    XSD_DOUBLE: regex(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z"),
}
_LEVELS = {"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5}
_LEVELS |= dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "IN", "NOT-IN"), 3)
_UNARY = {"!": "!", "u-": "-", "u+": "+"}
_UNARY_LEVEL, _PRIMARY = 6, 7


def query_text(select: program.Select, prefixes: Mapping[str, str] | None = None) -> str:
    """The text of a query, several lines, no newline at the end; absolute IRIs are shortened with `prefixes`.

    The text does not declare the prefixes. Without prefixes it is valid for any SPARQL engine; literals then
    keep their full form.
    """
    return "\n".join(Writer(prefixes).select(select))


@dataclass(slots=True)
class Writer:
    """Owns the prefixes, longest namespace first. All methods return self-contained text. `names`: of terms
    that are shown otherwise than as they are written.
    """

    prefixes: Mapping[str, str] | None = None
    names: Mapping[Term, str] = field(default_factory=dict)
    _known: dict[Term, str] = field(default_factory=dict, init=False, repr=False)
    _spaces: list[tuple[str, str]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self._spaces = sorted(
            ((space, name) for name, space in (self.prefixes or {}).items() if space),
            key=lambda pair: (-len(pair[0]), pair[1]),
        )
        self._known.update(self.names)

    # terms and paths

    def term(self, term: Term) -> str:
        """A constant: short if prefixes are passed and they, or SPARQL's number syntax, allow it."""
        if (self.prefixes is None and term[0] != "[") or term == NOW_MARK:
            return term
        text = self._known.get(term)
        if text is None:
            text = self._known[term] = self._short(term)
        return text

    def _short(self, term: Term) -> str:
        if term[0] == "<":
            for space, name in self._spaces:
                if term.startswith(space, 1) and _LOCAL.match(term[1 + len(space) : -1]):
                    return f"{name}:{term[1 + len(space) : -1]}"
            return term
        if term[0] == "[":
            return f"[{', '.join(map(self.term, members(term)))}]"
        typed = _TYPED.match(term)
        if typed is None:
            return term
        lexical, datatype = typed.groups()
        if datatype == XSD_BOOLEAN and lexical in ("true", "false"):
            return str(lexical)
        short = _SHORT_NUMBERS.get(datatype)
        if short is not None and short.match(lexical):
            if datatype == XSD_DOUBLE and "e" not in lexical.lower():
                return f"{lexical}e0"
            return f"{lexical}.0" if datatype == XSD_DECIMAL and "." not in lexical else str(lexical)
        return f'"{lexical}"^^{self.term(f"<{datatype}>")}'

    def node(self, node: program.Node) -> str:
        """A constant, `?v`, or `_:b` for a blank node of the query."""
        if isinstance(node, program.Var):
            return f"_:{node.name[1:]}" if node.name[0] == "." else f"?{node.name}"
        return self.term(node)

    def path(self, path: program.Path, level: int = 0) -> str:
        """A property path; brackets if it binds more loosely than `level` (0 `|`, 1 `/`, 2 `^`, 3 `*`)."""
        match path:
            case str():
                return "a" if path == RDF_TYPE and self.prefixes is not None else self.term(path)
            case program.Alternative(paths):
                text, own = "|".join(self.path(p, 1) for p in paths), 0
            case program.Sequence(paths):
                text, own = "/".join(self.path(p, 2) for p in paths), 1
            case program.Inverse(inner):
                text, own = "^" + self.path(inner, 3), 2
            case program.Repeat(inner, minimum, unbounded):
                text, own = self.path(inner, 4) + ("?" if not unbounded else "+" if minimum else "*"), 3
            case program.NegatedSet(forward, inverse):
                steps = [self.path(p, 4) for p in forward] + ["^" + self.path(p, 4) for p in inverse]
                return f"!({'|'.join(steps)})" if len(steps) != 1 else f"!{steps[0]}"
            case _:
                assert_never(path)
        return f"({text})" if own < level else text

    # expressions

    def expression(self, expression: program.Expression, level: int = 0) -> str:
        """An expression; brackets if it binds more loosely than `level` (1 `||` … 6 unary, 7 primary)."""
        match expression:
            case program.Const(term):
                return self.term(term)
            case program.Var():
                return self.node(expression)
            case program.Attribute(position, variable):
                return f"{position}.?{variable}" if variable else position
            case program.TimeOf(position):
                return f"{position}.time"
            case program.Aggregate():
                return self._aggregate(expression)
            case program.Exists(pattern, negated):
                text = " ".join(line.strip() for line in self.group(pattern))
                return f"NOT EXISTS {text}" if negated else f"EXISTS {text}"
            case program.Call(function, arguments):
                text, own = self._call(function, arguments)
                return f"({text})" if own < level else text
            case _:
                assert_never(expression)

    def _call(self, function: str, arguments: tuple[program.Expression, ...]) -> tuple[str, int]:
        if function in _UNARY:
            inner = self.expression(arguments[0], _PRIMARY)
            bare = function == "!" or not isinstance(arguments[0], program.Const)  # `-5` would be a constant
            return f"{_UNARY[function]}{inner if bare else f'({inner})'}", _UNARY_LEVEL
        own = _LEVELS.get(function)
        if own is None:
            name = self.term(function) if function[0] == "<" else function
            if name == "IRI":
                arguments = arguments[:1]  # the second is the BASE
            return f"{name}({', '.join(map(self.expression, arguments))})", _PRIMARY
        if function in ("IN", "NOT-IN"):
            items = ", ".join(map(self.expression, arguments[1:]))
            return f"{self.expression(arguments[0], 4)} {function.replace('-', ' ')} ({items})", own
        left = self.expression(arguments[0], own + 1 if own == 3 else own)
        return f"{left} {function} {self.expression(arguments[1], own + 1)}", own

    def _aggregate(self, aggregate: program.Aggregate) -> str:
        inner = "*" if aggregate.argument is None else self.expression(aggregate.argument)
        if aggregate.distinct:
            inner = f"DISTINCT {inner}"
        if aggregate.separator is not None:
            inner += f'; SEPARATOR="{escape(aggregate.separator)}"'
        return written(aggregate.function, inner)

    def constraint(self, expression: program.Expression) -> str:
        """An expression where the grammar requires brackets or EXISTS."""
        text = self.expression(expression)
        return text if isinstance(expression, program.Exists) else f"({text})"

    # groups

    def group(self, group: program.GroupPattern) -> list[str]:
        """`{`, the elements one step to the right, `}`."""
        if len(group.elements) == 1 and isinstance(group.elements[0], program.SubSelect):
            inner = self.select(group.elements[0].select)
        else:
            inner = [line for element in group.elements for line in self.element(element)]
        return ["{", *_indented(inner), "}"] if inner else ["{}"]

    def element(self, element: program.Element) -> list[str]:
        """The lines of one element of a group."""
        match element:
            case program.Triples(patterns):
                return list(self._triples(patterns))
            case program.Filter(condition):
                return self._filter(condition)
            case program.Bind(expression, variable):
                return [f"BIND({self.expression(expression)} AS {self.node(variable)})"]
            case program.Values():
                return self.values(element)
            case program.Union(branches):
                lines = self.group(branches[0])
                for branch in branches[1:]:
                    lines = _joined(lines, " UNION ", self.group(branch))
                return lines
            case program.OptionalGroup(group):
                return _joined(["OPTIONAL"], " ", self.group(group))
            case program.Minus(group):
                return _joined(["MINUS"], " ", self.group(group))
            case program.SubSelect():
                return self.group(program.GroupPattern((element,)))
            case program.GroupPattern():
                return self.group(element)
            case _:
                assert_never(element)

    def _filter(self, condition: program.Expression) -> list[str]:
        if isinstance(condition, program.Exists):
            word = "FILTER NOT EXISTS" if condition.negated else "FILTER EXISTS"
            return _joined([word], " ", self.group(condition.pattern))
        return [f"FILTER{self.constraint(condition)}"]

    def _triples(self, patterns: tuple[program.TriplePattern, ...]) -> Iterator[str]:
        subject: program.Node | None = None
        lines: list[str] = []
        for pattern in patterns:
            predicate = pattern.predicate
            verb = self.node(predicate) if isinstance(predicate, program.Var) else self.path(predicate)
            rest = f"{verb} {self.node(pattern.object)}"
            if pattern.subject == subject:
                lines[-1] += " ;"
                lines.append(f"  {rest}")
            else:
                if lines:
                    lines[-1] += " ."
                lines.append(f"{self.node(pattern.subject)} {rest}")
            subject = pattern.subject
        if lines:
            lines[-1] += " ."
        yield from lines

    def values(self, values: program.Values) -> list[str]:
        """`VALUES (?x ?y) { (…) (…) }`."""
        head = f"VALUES ({' '.join(map(self.node, values.variables))})"
        rows = (" ".join("UNDEF" if t is None else self.term(t) for t in row) for row in values.rows)
        return [f"{head} {{ {' '.join(f'({row})' for row in rows)} }}" if values.rows else f"{head} {{}}"]

    # queries

    def select(self, select: program.Select) -> list[str]:
        """The lines of a query or subquery, including the braces of its pattern."""
        lines = _joined([self._head(select)], " ", self.group(select.where))
        if select.group_by:
            lines.append("GROUP BY " + " ".join(map(self._group_key, select.group_by)))
        if select.having:
            lines.append("HAVING " + " ".join(map(self.constraint, select.having)))
        if select.order_by:
            lines.append("ORDER BY " + " ".join(map(self._order_key, select.order_by)))
        if select.limit is not None:
            lines.append(f"LIMIT {select.limit}")
        if select.offset:
            lines.append(f"OFFSET {select.offset}")
        if select.values is not None:
            lines += self.values(select.values)
        return lines

    def _head(self, select: program.Select) -> str:
        if select.ask:
            return "ASK"
        word = "SELECT DISTINCT" if select.distinct else "SELECT REDUCED" if select.reduced else "SELECT"
        if select.star or not select.projection:
            return f"{word} * WHERE"
        items = (
            self.node(p.variable)
            if p.expression is None
            else f"({self.expression(p.expression)} AS {self.node(p.variable)})"
            for p in select.projection
        )
        return f"{word} {' '.join(items)} WHERE"

    def _group_key(self, key: program.GroupKey) -> str:
        if key.variable is not None:
            return f"({self.expression(key.expression)} AS {self.node(key.variable)})"
        return (
            self.node(key.expression)
            if isinstance(key.expression, program.Var)
            else self.constraint(key.expression)
        )

    def _order_key(self, key: program.OrderKey) -> str:
        if key.descending:
            return f"DESC({self.expression(key.expression)})"
        return (
            self.node(key.expression)
            if isinstance(key.expression, program.Var)
            else f"ASC({self.expression(key.expression)})"
        )


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _joined(before: list[str], glue: str, after: list[str]) -> list[str]:
    """Two blocks, with the last line of one and the first of the other joined."""
    return [*before[:-1], before[-1] + glue + after[0], *after[1:]]
