"""Names resolved: syntax → the checked program.

Place:   called by lang/__init__.py with what loading.py read.
Method:  language.md, sec. 2 and 3. First the names of the deployment (queries, rules, heads and their
         changes), with one error per name, however many rules use it; then each rule against them. A position
         is known from its conjunct on. A name that could not be read or resolved is `unresolved`:
         nothing more is reported about it, so that one mistake is reported once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from dotr import program
from dotr.errors import Diagnostics
from dotr.lang.checks.lars import LarsName, LarsResolver, layered, order, unread_heads
from dotr.lang.checks.lasting import check_effects, check_holds, check_standing, patterns_of
from dotr.lang.checks.sequences import SequenceResolver, as_rule
from dotr.lang.grammar.cursor import nearest
from dotr.lang.grammar.dotr import KEYWORDS
from dotr.lang.grammar.syntax import (
    AfterSyntax,
    CalendarSyntax,
    ChooseSyntax,
    ConjunctSyntax,
    DefinitionSyntax,
    EventSyntax,
    EverySyntax,
    Name,
    QuerySyntax,
    RuleSyntax,
    SequenceSyntax,
    SummariseSyntax,
    TriggerSyntax,
    WindowSyntax,
    WithinSyntax,
)
from dotr.lang.loading import Loaded, LoadedFile
from dotr.lang.operators import (
    A_GROUP,
    CHOOSING,
    EXCLUDED,
    GROUP_ROLE,
    WRITTEN,
    build_after,
    build_calendar,
    build_every,
    check_consuming,
)
from dotr.lang.operators import AFTER_ROLE as FOLLOWED
from dotr.lang.operators import EVERY_ROLE as TICK
from dotr.program import LarsProgram, Program, RelationToStream, Rule, Select, StandingQuery
from dotr.program.own_functions import OWN, called_by
from dotr.program.program import calls_in
from dotr.program.rules import COLLECT
from dotr.source import Span


class StreamNames(Struct, frozen=True):
    """What a name stands for in a deployment: a query or a rule. `variables` None: it could not be read.

    `operator`: the stream is one of changes; `select` is then the query that changes, as it is of a QUERY.
    `definition`: the name under which a QUERY or rule defines it, where that is not `name`. `head`: of a
    .lars file; its variables are its attributes. `lists`: those variables whose values are lists.
    """

    name: str
    variables: tuple[str, ...] | None
    chained: bool
    span: Span
    operator: RelationToStream | None = None
    select: Select | None = None
    definition: str = ""
    head: bool = False
    lists: frozenset[str] = frozenset()
    sequence: bool = False

    @property
    def kind(self) -> str:
        """What messages call it."""
        if self.sequence:
            return "sequence"
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
        """Names of no query, rule or sequence: places and hints."""
        self.whole = True
        """Whether every name could be taken."""
        self._broken_units: list[LoadedFile] = []
        self.accepted: list[tuple[LoadedFile, DefinitionSyntax]] = []
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

    def _define(self, unit: LoadedFile, definition: DefinitionSyntax) -> None:
        name = unit.prefix + definition.name.text
        if name in self._streams:
            other = self._streams[name]
            kind = other.kind
            self._found.error(
                "D1104",
                f"`{name}` is defined twice",
                definition.name.span,
                hint="names of rules and queries are unique in a deployment",
                notes=(f"the {kind} `{name}` is defined at {other.span}",),
            )
            self.whole = False
        elif definition.name.text in unit.expected:
            self._found.error(
                "D1104",
                f"`{definition.name.text}` is a parameter of this file and is also defined in it",
                definition.name.span,
                hint="rename one of them",
            )
            self.whole = False
        elif isinstance(definition, QuerySyntax):
            self._streams[name] = self._query(name, definition)
        elif isinstance(definition, SequenceSyntax):
            names = definition.attributes if definition.whole or definition.bindings else None
            lists = definition.lists
            self._streams[name] = StreamNames(
                name, names, True, definition.name.span, lists=lists, sequence=True
            )
        else:
            readable = definition.whole or definition.bindings
            names = tuple(b.variable.text for b in definition.bindings) if readable else None
            lists = definition.lists
            self._streams[name] = StreamNames(name, names, True, definition.name.span, lists=lists)
        self.accepted.append((unit, definition))

    def _define_head(self, name: str, attributes: tuple[str, ...], span: Span) -> None:
        other = self._streams.get(name)
        if other is not None:
            self._found.error(
                "D1104",
                f"`{name}` is defined twice",
                span,
                hint="names of rules, queries and heads are unique in a deployment",
                notes=(f"the {other.kind} `{name}` is defined at {other.span}",),
            )
            self.whole = False
            return
        self.heads[name] = attributes
        self._streams[name] = StreamNames(name, attributes, False, span, head=True)

    def lars_name(self, unit: LoadedFile, name: str) -> LarsName | None:
        stream = self.look_up(unit, name)
        if stream is None:
            return None
        return LarsName(stream.name, stream.variables, stream.head, stream.kind, stream.lists)

    def lists_of(self, stream: str) -> frozenset[str]:
        """The attributes of a stream whose values are lists."""
        found = self._streams.get(stream)
        return frozenset() if found is None else found.lists

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
        assert definition.operator is not None, "an alias stands after ISTREAM or DSTREAM"
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
            what = f"is a {stream.kind}" if stream.chained else f"is the {stream.operator} of one"
            self._found.error(
                "D1506",
                f"{operator} takes a QUERY, and `{of.text}` {what}",
                of.span,
                hint=f"{_EVENTS[stream.kind]} are a stream: name it alone"
                if stream.chained
                else "name its query",
                notes=(f"`{of.text}` is defined at {stream.span}",),
            )
            self.whole = False
            return None
        name = f"{operator} {stream.name}"
        if stream.select is not None:
            self.standing.setdefault(name, StandingQuery(operator, stream.select, stream.name))
            check_standing(operator, stream.select, of.span, self._found)
        return replace(stream, name=name, operator=operator, definition=stream.name)

    def look_up(self, unit: LoadedFile, name: str) -> StreamNames | None:
        """The query, rule or sequence that `name` means in a file."""
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
                    f"there is no query, rule or sequence `{name.text}`",
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
            self._found.error(
                "D1106", f"there is no query, rule or sequence `{name}`", span, hint=hint, notes=notes
            )

    def is_broken(self, unit: LoadedFile | None) -> bool:
        """Whether an import, or one around it, was handed something wrong: its rules are left alone."""
        while unit is not None:
            if unit in self._broken_units:
                return True
            unit = unit.parent
        return False


_EVENTS: Final = {"rule": "a rule's events", "sequence": "a sequence's facts"}


def selects(variables: tuple[str, ...]) -> str:
    """What a query selects, for messages."""
    return f"it selects {' '.join('?' + v for v in variables)}" if variables else "it selects nothing"


BY_COUNT: Final = "bind its COUNT in `{}`, `WITH ?{}_count := ?n`, and read that"

_ONE_FACT = frozenset(("trigger", FOLLOWED, TICK, *CHOOSING))
"""Roles of names that stand for one fact, or tick."""


def _time_meant(position: str, variable: str) -> str:
    return f"the time of an event is `{position}.time`" if variable.lower() == "time" else ""


class _Known(Struct):
    """What a rule's names stand for at one point of its text."""

    positions: dict[str, program.Position] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)  # trigger, tick, chosen, NOT, aggregate
    totals: dict[str, Span] = field(default_factory=dict)
    grouped: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of groups, the attributes of PER
    lists: set[str] = field(default_factory=set)
    unresolved: set[str] = field(default_factory=set)


class RuleResolver:
    """Owns the names of one rule while it is built."""

    def __init__(self, streams: Streams, unit: LoadedFile, syntax: RuleSyntax, found: Diagnostics) -> None:
        self._streams = streams
        self._unit = unit
        self._syntax = syntax
        self._found = self.found = found
        self._name = unit.prefix + syntax.name.text
        self.kind, self.events = "rule", "events"
        self._known = _Known(unresolved=set(syntax.unresolved))
        self._spans: dict[str, Span] = {}
        self._later = {c.event.name.text: c.event.name.span for c in syntax.conjuncts}
        self._hiding: set[str] = set()  # names of queries or rules that events were given
        self._broken = not syntax.whole
        self._lost = syntax.trigger is None  # then nobody knows which names there were

    def rule(self) -> program.Rule | None:
        """The rule, or None when it cannot be built; either way everything wrong with it is recorded."""
        syntax = self._syntax
        trigger = self._trigger(syntax.trigger)
        conjuncts: list[program.Conjunct] = []
        for written in syntax.conjuncts:
            conjunct = self._conjunct(written)
            if conjunct is not None:
                conjuncts.append(conjunct)
            else:
                self._broken = True
        if syntax.where is not None:
            self.check(syntax.where, None)
        bindings = self._bindings()
        self._template(syntax.template, syntax.template_names)
        inserts, deletes = self._effects()
        self._consuming()
        if trigger is None or self._broken:
            return None
        return program.Rule(
            name=self._name,
            template=syntax.template,
            trigger=trigger,
            conjuncts=tuple(conjuncts),
            where=syntax.where,
            bindings=bindings,
            consuming=tuple(dict.fromkeys(name.text for name in syntax.consuming)),
            span=syntax.span,
            private=syntax.private,
            inserts=inserts,
            deletes=deletes,
        )

    # -- events ------------------------------------------------------------

    def _trigger(self, written: TriggerSyntax | None) -> program.Trigger | None:
        match written:
            case None:
                return None
            case EverySyntax():
                return build_every(self, written)
            case CalendarSyntax():
                return build_calendar(self, written)
            case AfterSyntax():
                return build_after(self, written, self._triggering(written.event))
            case EventSyntax():
                position = self._triggering(written)
                self.register(written.name, position, "trigger")
                return position

    def _triggering(self, written: EventSyntax) -> program.Position | None:
        """The stream of the trigger's event."""
        position = self._position(written)
        if position is None and written.query is None and written.alias is None:
            self._lost = True  # the names that follow may be what this one should have been
        return position

    def source(self, written: EventSyntax) -> program.Position | None:
        """The stream of a source of a sequence; its name is known from now on."""
        position = self._position(written)
        self.register(written.name, position, "trigger")
        return position

    def lists_of(self, position: program.Position) -> frozenset[str]:
        """The attributes of a position whose values are lists."""
        return self._streams.lists_of(position.stream)

    def define(self, name: Name, role: str) -> None:
        """A name that is no event's has this role from now on, unless it has another."""
        if not self._claim(name, defined=True) and name.text in self._known.roles:
            return
        self._known.roles[name.text] = role
        self._spans[name.text] = name.span

    def register(self, name: Name, position: program.Position | None, role: str) -> None:
        """An event's name has this role from now on; None where nothing is known of it."""
        self._spans.setdefault(name.text, name.span)
        self._known.roles.setdefault(name.text, role)
        if position is None:
            self._known.unresolved.add(name.text)
        else:
            self._known.positions.setdefault(name.text, position)

    def _claim(self, name: Name, *, defined: bool) -> bool:
        """Whether a position may have this name."""
        if name.text in self._known.roles:
            self._found.error(
                "D1105",
                f"`{name.text}` names two {self.events} of this {self.kind}",
                name.span,
                hint=f"name the second: `Again := {name.text}`" if not defined else "choose another name",
                notes=(f"the first is at {self._spans[name.text]}",),
            )
            self._broken = True
            return False
        stream = self._streams.look_up(self._unit, name.text) if defined else None
        if stream is not None:
            kind = stream.kind
            self._found.error(
                "D1107",
                f"`{name.text}` is a {kind} already",
                name.span,
                hint="choose another name for this event: it must not hide a rule or query",
                notes=(f"the {kind} is defined at {stream.span}",),
            )
            self._broken = True
            self._hiding.add(name.text)
            return False
        return True

    def _position(self, event: EventSyntax) -> program.Position | None:
        """The stream that an event ranges over; None when it is not known."""
        name = event.name
        defined = event.query is not None or (event.alias is not None and not event.short) or event.broken
        claimed = self._claim(name, defined=defined)
        if event.broken:
            return None
        if event.query is not None:
            stream = f"{self._name}.{name.text}"
            if claimed:
                self._ask(stream, event.query, event.operator, name.span)
            return program.Position(name.text, stream, event.query.variables, False, name.span)
        if event.operator is not None and event.alias is not None:
            if not claimed:
                return None
            changes = self._streams.changes(self._unit, event.operator, event.alias)
            return None if changes is None else self._over(name, changes)
        target = event.alias or name
        earlier = self._known.positions.get(target.text)
        if event.alias is not None and earlier is not None:
            return replace(earlier, name=name.text, span=name.span)
        if not claimed and event.alias is None:
            return None
        if event.alias is not None and target.text in self._known.unresolved:
            return None
        stream_found = self._streams.look_up(self._unit, target.text)
        if stream_found is None:
            self._unknown_event(target)
            return None
        self._streams.used.add(stream_found.definition or stream_found.name)
        return self._over(name, stream_found)

    def _ask(
        self, stream: str, query: program.Select, operator: program.RelationToStream | None, span: Span
    ) -> None:
        """A query written in place."""
        if operator is None:
            self._streams.queries[stream] = query
            return
        self._streams.standing[stream] = program.StandingQuery(operator, query)
        check_standing(operator, query, span, self._found)

    def _over(self, name: Name, stream: StreamNames) -> program.Position | None:
        if stream.variables is None:
            self._broken = True
            return None
        return program.Position(
            name.text, stream.name, stream.variables, stream.chained, name.span, held=stream.head
        )

    def _unknown_event(self, name: Name) -> None:
        self._broken = True
        if name.text in self._hiding:
            return
        if self._known.roles.get(name.text) == TICK:
            self._found.error("D1308", f"`{name.text}` is a tick and has no facts", name.span,
                              hint="name a query or a rule")  # fmt: skip
            return
        known = self._streams.names(self._unit)
        hint = nearest(name.text, [*known, *self._known.positions])
        hint = (
            hint or f"write its query here, `{name.text} := {{ SELECT … }}`, or as `QUERY {name.text} := …`"
        )
        self._streams.unknown.setdefault(name.text, []).append((name.span, hint))

    # -- conjuncts ------------------------------------------------------------

    def _conjunct(self, written: ConjunctSyntax) -> program.Conjunct | None:
        event = written.event
        position = self._position(event)
        own = event.name.text
        window = self._window(written.window, own)
        fresh = own not in self._known.roles
        if fresh and isinstance(written, ChooseSyntax) and written.per:
            self._known.grouped[own] = tuple(name.text for name in written.per)
        if fresh and position is not None:
            self._known.positions[own] = position
        elif fresh:
            self._known.unresolved.add(own)
        if written.on is not None:
            self.check(written.on, own)
        return WRITTEN[written.operator].build(self, written, position, window)

    def selects(self, position: program.Position, variable: Name) -> bool:
        """Whether a stream has an attribute; it is reported where it has not."""
        if variable.text in position.variables:
            return True
        self._found.error(
            "D1310",
            f"`{position.name}` does not select `?{variable.text}`",
            variable.span,
            selects(position.variables),
            hint=nearest(variable.text, position.variables, "?"),
        )
        return False

    def total(self, variable: Name, function: str = "") -> None:
        """An aggregate's name is known from now on."""
        if function == COLLECT:
            self._known.lists.add(variable.text)
        if variable.text in self._known.totals:
            self._found.error(
                "D1309",
                f"two aggregates are called `?{variable.text}`",
                variable.span,
                hint="choose another name",
                notes=(f"the first is at {self._known.totals[variable.text]}",),
            )
        self._known.totals.setdefault(variable.text, variable.span)

    def _window(self, written: WindowSyntax, own: str) -> program.Window | None:
        if isinstance(written, WithinSyntax):
            good = self._reference(written.reference, own)
            if not good:
                return None
            return program.Within(
                written.duration.micros, written.reference.text, written.before, written.span
            )
        good = self._reference(written.start, own)
        good = self._reference(written.end, own) and good
        return program.Between(written.start.text, written.end.text, written.span) if good else None

    def _reference(self, name: Name, own: str) -> bool:
        """Whether a window may be measured from `name`: the trigger or an earlier positive conjunct."""
        role = self._known.roles.get(name.text)
        if role in _ONE_FACT:
            return True
        self._broken = True
        if role is None and self._maybe_unresolved(name.text):
            return False
        earlier = [n for n, r in self._known.roles.items() if r in _ONE_FACT]
        if role is not None:
            called = A_GROUP if role == GROUP_ROLE else EXCLUDED[role].called
            self._found.error(
                "D1303",
                f"`{name.text}` is {called}: no single event that a window could be measured from",
                name.span,
                hint=f"measure from {' or '.join(f'`{n}`' for n in earlier)}",
            )
        elif name.text == own:
            self._found.error(
                "D1302",
                f"the window of `{name.text}` is measured from itself",
                name.span,
                hint=f"measure from {' or '.join(f'`{n}`' for n in earlier)}" if earlier else "",
            )
        elif name.text in self._later:
            self._found.error(
                "D1302",
                f"`{name.text}` comes later in this rule",
                name.span,
                hint="write its conjunct before this one",
                notes=(f"it is at {self._later[name.text]}",),
            )
        else:
            self._found.error(
                "D1301",
                f"no event of this rule is called `{name.text}`",
                name.span,
                hint=nearest(name.text, earlier) or (f"known here: {' '.join(earlier)}" if earlier else ""),
            )
        return False

    # -- expressions ------------------------------------------------------------

    def check(self, expression: program.Expression, own: str | None) -> None:
        """Look up every name of an expression. `own` is the event of the conjunct it stands in."""
        match expression:
            case program.Attribute(position, variable, span):
                self._attribute(position, variable, own, span)
            case program.TimeOf(position, span):
                if self._readable(position, own, span, span) and position in self._known.grouped:
                    self._broken = True
                    self._found.error(
                        "D1310",
                        f"`{position}` is {A_GROUP} and has no time",
                        span,
                        hint="measure from the trigger, or take MAX of the times in an aggregate",
                    )
            case program.Var(name, span):
                self._total_use(name, own, span)
            case program.Call(_, arguments):
                for argument in arguments:
                    self.check(argument, own)
            case _:
                return

    def _attribute(self, position: str, variable: str, own: str | None, span: Span | None) -> None:
        name_span, variable_span = span, span
        if span is not None:
            middle = span.start + len(position)
            name_span = Span(span.source, span.start, middle)
            variable_span = Span(span.source, middle + 1, span.end)
        if not self._readable(position, own, name_span, span):
            return
        if position in self._hiding:  # reported already
            return
        if self._known.roles.get(position) == TICK and position != own:
            self._found.error("D1308", f"`{position}` is a tick and has no attributes", variable_span,
                              hint=f"its time is `{position}.time`")  # fmt: skip
            self._broken = True
            return
        known = self._known.positions.get(position)
        if known is None:
            return
        grouped = self._known.grouped.get(position)
        if grouped is not None and variable in known.variables and variable not in grouped:
            self._broken = True
            self._found.error(
                "D1310",
                f"`{position}` is {A_GROUP} and has no `?{variable}`",
                variable_span,
                f"it is one for each {' '.join('?' + name for name in grouped)}",
                hint=f"add `?{variable}` to PER",
            )
            return
        if variable in known.variables:
            if variable in self._streams.lists_of(known.stream):
                self._list_read(f"{position}.?{variable}", span, BY_COUNT.format(known.stream, variable))
            return
        self._broken = True
        self._found.error(
            "D1310",
            f"`{position}` does not select `?{variable}`",
            variable_span,
            selects(known.variables),
            hint=_time_meant(position, variable) or nearest(variable, known.variables, "?"),
        )

    def _readable(self, name: str, own: str | None, span: Span | None, whole: Span | None) -> bool:
        """Whether a position has one fact here whose values can be read."""
        if name == own or (name in self._known.unresolved and name not in self._known.roles):
            return True
        role = self._known.roles.get(name)
        if role in _ONE_FACT or role == GROUP_ROLE:
            return True
        self._broken = True
        if role is None and self._maybe_unresolved(name):
            return False
        if role is not None:
            operator = EXCLUDED[role]
            self._found.error(
                "D1303",
                f"`{name}` is {operator.called}: it has no values outside its own conjunct",
                span,
                hint=operator.hint,
            )
        elif name in self._later:
            self._found.error(
                "D1302",
                f"`{name}` comes later in this rule",
                span,
                hint="write its conjunct before this one, or move the condition after it",
                notes=(f"it is at {self._later[name]}",),
            )
        else:
            known = [n for n, r in self._known.roles.items() if r in _ONE_FACT]
            known += [own] if own is not None else []
            self._found.error(
                "D1301",
                f"no event of this rule is called `{name}`",
                span,
                hint=nearest(name, known) or (f"known here: {' '.join(known)}" if known else ""),
            )
        return False

    def _maybe_unresolved(self, name: str) -> bool:
        """Whether an unknown name may be one that an unreadable or unknown event was meant to have."""
        return self._lost or name in self._known.unresolved or bool(nearest(name, self._known.unresolved))

    def _total_use(self, name: str, own: str | None, span: Span | None) -> None:
        """`?name` is an aggregate that is known here; `own` is the event of the conjunct it stands in."""
        if name in self._known.lists:
            self._list_read(f"?{name}", span, "write its COUNT as an aggregate beside it, and use that")
        if name in self._known.totals or "?" + name in self._known.unresolved:
            return
        self._broken = True
        carriers = [p.name for p in self._known.positions.values() if name in p.variables]
        carriers.sort(key=lambda carrier: carrier != own)  # that of its own conjunct is the likely one
        later = [
            c for c in self._syntax.conjuncts if isinstance(c, SummariseSyntax) and c.variable.text == name
        ]
        notes: tuple[str, ...] = ()
        if later:
            hint = "an aggregate can be used after its conjunct"
            notes = (f"it is at {later[0].variable.span}",)
        elif carriers:
            hint = f"write `{carriers[0]}.?{name}`"
        else:
            hint = nearest(name, self._known.totals, "?") or "attributes are written `Event.?x`"
        self._found.error("D1304", f"no aggregate is called `?{name}` here", span, hint=hint, notes=notes)

    def _list_read(self, written: str, span: Span | None, hint: str) -> None:
        """A list is used where a term is needed."""
        self._broken = True
        self._found.error(
            "D1341",
            f"`{written}` is a list, which is no value of an expression",
            span,
            hint=hint,
            notes=("a list is given to one variable, `WITH ?list := ?list`, for DEFINE and for the output",),
        )

    # -- the end of a rule ------------------------------------------------------------

    def _bindings(self) -> tuple[program.Binding, ...]:
        found: dict[str, program.Binding] = {}
        for written in self._syntax.bindings:
            expression = written.expression
            if not (isinstance(expression, program.Var) and expression.name in self._known.lists):
                self.check(expression, None)
            name = written.variable
            if name.text in found:
                self._found.error("D1108", f"WITH binds `?{name.text}` twice", name.span,
                                  hint="choose another name")  # fmt: skip
                self._broken = True
                continue
            found[name.text] = program.Binding(name.text, written.expression, name.span)
        return tuple(found.values())

    def _template(self, triples: Sequence[program.TemplateTriple], names: Sequence[Name]) -> None:
        self._spread(triples)
        self._unbound(names)

    def _effects(self) -> tuple[tuple[program.TemplateTriple, ...], tuple[program.PatternTriple, ...]]:
        """The triples of INSERT and DELETE."""
        inserts, deletes = self._syntax.inserts, self._syntax.deletes
        if inserts is not None:
            self._template(inserts.triples, inserts.names)
        if deletes is None:
            return () if inserts is None else inserts.triples, ()
        self._spread(deletes.triples)
        bound = {b.variable.text for b in self._syntax.bindings}
        found, whole = patterns_of(deletes, bound, self._found)
        self._broken = self._broken or not whole
        return () if inserts is None else inserts.triples, found

    def _spread(self, triples: Sequence[program.TemplateTriple]) -> None:
        """Report triples with two lists."""
        listed = self._syntax.lists
        for triple in triples:
            nodes = triple.subject, triple.predicate, triple.object
            lists = [n.name for n in nodes if isinstance(n, program.TemplateVar) and n.name in listed]
            if len(lists) > 1:
                self._broken = True
                self._found.error(
                    "D1342",
                    "a triple has two lists: " + " and ".join(f"`?{name}`" for name in lists),
                    triple.span,
                    "it would stand for every pair of their members",
                    hint="write a triple for each list",
                )

    def _unbound(self, names: Sequence[Name]) -> None:
        """Report variables of a template that WITH does not bind."""
        bound = {b.variable.text for b in self._syntax.bindings}
        reported: set[str] = set()
        for name in names:
            if name.text in bound or name.text in reported or (not self._syntax.whole and not bound):
                continue
            reported.add(name.text)
            self._broken = True
            carriers = [p.name for p in self._known.positions.values() if name.text in p.variables]
            value = f"?{name.text}" if name.text in self._known.totals else "…"
            if carriers:
                value = f"{carriers[0]}.?{name.text}"
            binding = f"?{name.text} := {value}"
            self._found.error(
                "D1305",
                f"WITH does not bind `?{name.text}`",
                name.span,
                hint=nearest(name.text, bound, "?")
                or (f"add `{binding}` to WITH" if self._syntax.bindings else f"add `WITH {binding}`"),
            )

    def _consuming(self) -> None:
        called = dict.fromkeys(_ONE_FACT, "the trigger") | {
            role: operator.called for role, operator in EXCLUDED.items()
        }
        called[GROUP_ROLE] = A_GROUP
        known = self._known
        if not check_consuming(self._syntax.consuming, known.roles, known.unresolved, called, self._found):
            self._broken = True


class Resolver:
    """Owns what becomes the program."""

    def __init__(self, loaded: Loaded, found: Diagnostics) -> None:
        self._loaded = loaded
        self._found = found
        self._lars = LarsResolver(loaded.lars, found)
        self._streams = Streams(loaded, self._lars.heads(), found)

    def program(self) -> Program:
        """The checked program; meaningful only when nothing of severity error was found."""
        rules: list[Rule] = []
        seen: set[str] = set()
        for unit, definition in self._streams.accepted:
            name = unit.prefix + definition.name.text
            if isinstance(definition, QuerySyntax):
                if definition.select is not None and definition.operator is None and name not in seen:
                    self._streams.queries[name] = definition.select
            elif not self._streams.is_broken(unit):
                rule = self._rule(unit, definition, name)
                if rule is not None and name not in seen:
                    rules.append(rule)
                else:
                    self._streams.whole = False
            seen.add(name)
        lars = self._lars.program(
            self._streams.lars_name, self._streams.names, self._streams.use, self._streams.heads
        )
        self._streams.whole = self._streams.whole and self._lars.whole
        dependencies = order(rules, self._found)
        if lars.rules and len(dependencies) == len(rules):
            dependencies, lars = layered(rules, dependencies, lars, self._found)
        self._streams.report_unknown()
        self._unused(bool(rules))
        self._unread(rules, lars)
        holds = check_holds(self._loaded.holds, self._found)
        check_effects(rules, holds, self._found)
        program = Program(
            queries=self._streams.queries,
            rules=tuple(rules),
            datalog=tuple(self._loaded.datalog),
            background=tuple(self._loaded.background),
            entailment=self._loaded.entailment,
            prefixes=self._loaded.prefixes,
            dependencies=dependencies,
            lars=lars,
            holds=holds,
            standing=self._streams.standing,
            named=self._loaded.background,
        )
        return replace(program, functions=called_by(calls_in(program))) if OWN else program

    def _rule(self, unit: LoadedFile, definition: RuleSyntax | SequenceSyntax, name: str) -> Rule | None:
        if isinstance(definition, RuleSyntax):
            return RuleResolver(self._streams, unit, definition, self._found).rule()
        events = RuleResolver(self._streams, unit, as_rule(definition), self._found)
        events.kind, events.events = "sequence", "sources"
        return SequenceResolver(events, definition, name, self._found).rule()

    def _unused(self, rules: bool) -> None:
        """Warn about the user's own queries that nothing uses; a file of queries alone is fine."""
        read = [d for _, d in self._streams.accepted if not isinstance(d, QuerySyntax)]
        rules = rules and all(definition.whole for definition in read)
        for unit, definition in self._streams.accepted:
            name = unit.prefix + definition.name.text
            own = rules and unit.parent is None and isinstance(definition, QuerySyntax)
            if own and name not in self._streams.used and self._streams.whole:
                self._found.warning(
                    "D1117",
                    f"no rule uses the query `{name}`",
                    definition.name.span,
                    hint="delete it, or name it in a rule",
                )

    def _unread(self, rules: Sequence[Rule], lars: LarsProgram) -> None:
        """Warn about the user's own private rules and heads that nothing reads; they do nothing."""
        read = {p.stream for rule in rules for p in rule.positions if p.stream != rule.name}
        read.update(lars.reads)
        if self._streams.whole and rules:
            unread_heads(lars, self._loaded.lars, read, self._found)
        fires = any(isinstance(d, RuleSyntax) for _, d in self._streams.accepted)
        for unit, definition in self._streams.accepted:
            name = unit.prefix + definition.name.text
            private = isinstance(definition, RuleSyntax) and definition.private and unit.parent is None
            if isinstance(definition, SequenceSyntax) and unit.parent is None and fires:
                self._unread_sequence(name, definition, read)
            if isinstance(definition, RuleSyntax) and (definition.inserts or definition.deletes):
                continue  # its events change what lasts
            if private and name not in read and self._streams.whole:
                self._found.warning(
                    "D1312",
                    f"`{name}` is private, and no other rule reads its events",
                    definition.name.span,
                    hint="delete PRIVATE, or read it in a rule",
                )

    def _unread_sequence(self, name: str, definition: SequenceSyntax, read: Collection[str]) -> None:
        if name not in read and self._streams.whole:
            self._found.warning(
                "D1312",
                f"no rule reads the sequence `{name}`",
                definition.name.span,
                hint=f"name it in a rule: `RULE … FROM {name}`",
            )
