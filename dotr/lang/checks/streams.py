"""The names of one deployment: what stands for a query, a rule, a head or their changes.

Place:   resolve.py makes it of all definitions; rule_names.py looks its events up here.
Method:  language.md, sec. 2. One error a name, however many rules use it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from dotr.errors import Diagnostics
from dotr.ir import (
    RelationToStream,
    Select,
    StandingQuery,
)
from dotr.lang.checks.lars import LarsName
from dotr.lang.checks.lasting import check_standing
from dotr.lang.grammar.base import nearest
from dotr.lang.grammar.syntax import (
    Name,
    QuerySyntax,
    RuleSyntax,
)
from dotr.lang.grammar.windows import KEYWORDS
from dotr.lang.loading import Loaded, LoadedFile
from dotr.source import Span


class StreamNames(Struct, frozen=True):
    """What a name stands for in a deployment: a query or a rule. `variables` None: it could not be read.

    `operator`: the stream is one of changes; `select` is then the query that changes, as it is of a QUERY.
    `definition`: the name under which a QUERY or rule defines it, where that is not `name`. `head`: of a
    .lars file; its variables are its attributes.
    """

    name: str
    variables: tuple[str, ...] | None
    chained: bool
    span: Span
    operator: RelationToStream | None = None
    select: Select | None = None
    definition: str = ""
    head: bool = False

    @property
    def kind(self) -> str:
        """What messages call it."""
        return "rule" if self.chained else "head" if self.head else "query"


class Streams:
    """Owns the names of one deployment, and what of them was used."""

    def __init__(
        self, loaded: Loaded, heads: Iterable[tuple[str, tuple[str, ...], Span]], found: Diagnostics
    ) -> None:
        self._found = found
        self._streams: dict[str, StreamNames] = {}
        self.queries: dict[str, Select] = {}
        self.standing: dict[str, StandingQuery] = {}
        self.used: set[str] = set()
        self.unknown: dict[str, list[tuple[Span, str]]] = {}
        """Names of no query or rule: places and hints."""
        self.whole = True
        """Whether every name could be taken."""
        self._broken_units: list[LoadedFile] = []
        self.accepted: list[tuple[LoadedFile, QuerySyntax | RuleSyntax]] = []
        for unit, definition in loaded.definitions:
            self._define(unit, definition)
        self.heads: dict[str, tuple[str, ...]] = {}
        for name, attributes, place in heads:
            self._define_head(name, attributes, place)
        for unit, definition in self.accepted:
            if isinstance(definition, QuerySyntax) and definition.alias is not None:
                self._define_changes(unit, definition, definition.alias)
        for unit, statement in loaded.imports:
            self._check_given(unit, statement.path.text)

    def _define(self, unit: LoadedFile, definition: QuerySyntax | RuleSyntax) -> None:
        name = unit.prefix + definition.name.text
        if name in self._streams:
            other = self._streams[name]
            kind = other.kind
            self._found.error(
                "D1104",
                f"`{name}` is defined twice",
                definition.name.span,
                hint="rules and queries have names of their own in a deployment",
                notes=(f"the {kind} `{name}` stands at {other.span}",),
            )
            self.whole = False
        elif definition.name.text in unit.expected:
            self._found.error(
                "D1104",
                f"`{definition.name.text}` is a parameter of this file and defined in it",
                definition.name.span,
                hint="rename one of them",
            )
            self.whole = False
        elif isinstance(definition, QuerySyntax):
            self._streams[name] = self._query(name, definition)
        else:
            readable = definition.whole or definition.bindings
            names = tuple(b.variable.text for b in definition.bindings) if readable else None
            self._streams[name] = StreamNames(name, names, True, definition.name.span)
        self.accepted.append((unit, definition))

    def _define_head(self, name: str, attributes: tuple[str, ...], span: Span) -> None:
        other = self._streams.get(name)
        if other is not None:
            self._found.error(
                "D1104",
                f"`{name}` is defined twice",
                span,
                hint="rules, queries and heads have names of their own in a deployment",
                notes=(f"the {other.kind} `{name}` stands at {other.span}",),
            )
            self.whole = False
            return
        self.heads[name] = attributes
        self._streams[name] = StreamNames(name, attributes, False, span, head=True)

    def lars_name(self, unit: LoadedFile, name: str) -> LarsName | None:
        stream = self.look_up(unit, name)
        return None if stream is None else LarsName(stream.name, stream.variables, stream.head, stream.kind)

    def use(self, stream: str) -> None:
        """A .lars file reads a stream."""
        self.used.update(s.definition or s.name for s in self._streams.values() if s.name == stream)

    def _query(self, name: str, definition: QuerySyntax) -> StreamNames:
        select, operator, span = definition.select, definition.operator, definition.name.span
        if operator is not None and select is not None:
            self.standing[name] = StandingQuery(operator, select)
            check_standing(operator, select, span, self._found)
        return StreamNames(name, None if select is None else select.variables, False, span, operator, select)

    def _define_changes(self, unit: LoadedFile, definition: QuerySyntax, alias: Name) -> None:
        """`QUERY Name := ISTREAM Other`, when all names are known."""
        name = unit.prefix + definition.name.text
        assert definition.operator is not None, "an alias stands behind ISTREAM or DSTREAM"
        changes = self.changes(unit, definition.operator, alias)
        if changes is not None and self._streams[name].span == definition.name.span:
            self._streams[name] = replace(changes, span=definition.name.span, definition=name)

    def changes(self, unit: LoadedFile, operator: RelationToStream, of: Name) -> StreamNames | None:
        """The stream `ISTREAM of`, one wherever it is written. None: it cannot be, and that is reported."""
        stream = self.look_up(unit, of.text)
        if stream is None:
            if of.text.upper() not in KEYWORDS:  # then it is reported that no name may be one
                self._found.error(
                    "D1106",
                    f"there is no query `{of.text}`",
                    of.span,
                    hint=nearest(of.text, self.names(unit))
                    or f"define it: `QUERY {of.text} := {{ SELECT … }}`",
                )
            self.whole = False
            return None
        self.used.add(stream.definition or stream.name)
        if stream.head:
            return replace(
                stream, name=f"{operator} {stream.name}", operator=operator, definition=stream.name
            )
        if stream.chained or stream.operator is not None:
            what = "is a rule" if stream.chained else f"is the {stream.operator} of one"
            self._found.error(
                "D1506",
                f"{operator} takes a QUERY, and `{of.text}` {what}",
                of.span,
                hint="a rule's events are a stream: name it alone" if stream.chained else "name its query",
                notes=(f"`{of.text}` stands at {stream.span}",),
            )
            self.whole = False
            return None
        name = f"{operator} {stream.name}"
        if stream.select is not None:
            self.standing.setdefault(name, StandingQuery(operator, stream.select, stream.name))
            check_standing(operator, stream.select, of.span, self._found)
        return replace(stream, name=name, operator=operator, definition=stream.name)

    def look_up(self, unit: LoadedFile, name: str) -> StreamNames | None:
        """The query or rule that `name` means in a file."""
        if name in unit.given and unit.parent is not None:
            return self.look_up(unit.parent, unit.given[name].text)
        expected = unit.expected.get(name)
        if expected is not None:
            return StreamNames(name, tuple(v.text for v in expected.variables), False, expected.name.span)
        return self._streams.get(unit.prefix + name)

    def names(self, unit: LoadedFile) -> list[str]:
        """Every name that `look_up` finds in a file."""
        own = [n[len(unit.prefix) :] for n in self._streams if n.startswith(unit.prefix)]
        return [*own, *unit.expected]

    def _check_given(self, unit: LoadedFile, path: str) -> None:
        """The queries handed to an import exist and select what its file expects."""
        assert unit.parent is not None, "an import has a parent"
        for parameter, name in unit.given.items():
            stream = self.look_up(unit.parent, name.text)
            if stream is None:
                self._found.error(
                    "D1106",
                    f"there is no query or rule `{name.text}`",
                    name.span,
                    hint=nearest(name.text, self.names(unit.parent)),
                )
                self.whole = False
                self._broken_units.append(unit)
                continue
            self.used.add(stream.definition or stream.name)
            expected = unit.expected.get(parameter)
            if expected is None or stream.variables is None:
                continue
            wanted = ", ".join("?" + v.text for v in expected.variables)
            missing = [v.text for v in expected.variables if v.text not in stream.variables]
            if missing:
                self._found.error(
                    "D1115",
                    f"`{name.text}` does not select {' '.join(f'`?{m}`' for m in missing)}",
                    name.span,
                    selects(stream.variables),
                    hint=f"write a query that does, or rename with `SELECT (?x AS ?{missing[0]})`",
                    notes=(f"`{path}` expects {parameter}({wanted})",),
                )
                self.whole = False
                self._broken_units.append(unit)

    def report_unknown(self) -> None:
        """One error a name, however many rules use it."""
        for name, uses in self.unknown.items():
            if name.upper() in KEYWORDS:
                continue
            span, hint = uses[0]
            notes = [f"also at {other}" for other, _ in uses[1:3]]
            notes += [f"and {len(uses) - 3} more"] if len(uses) > 3 else []
            self._found.error("D1106", f"there is no query or rule `{name}`", span, hint=hint, notes=notes)

    def is_broken(self, unit: LoadedFile | None) -> bool:
        """Whether an import, or one around it, was handed something wrong: its rules are left alone."""
        while unit is not None:
            if unit in self._broken_units:
                return True
            unit = unit.parent
        return False


def selects(variables: tuple[str, ...]) -> str:
    """What a query selects, for messages."""
    return f"it selects {' '.join('?' + v for v in variables)}" if variables else "it selects nothing"
