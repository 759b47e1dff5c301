"""Checks of .lars files: LARS rules as written → checked rules, and their order of evaluation.

Place:   called by names.py, which knows the queries and rules of the deployment; `Program.dependencies` and
         `LarsProgram.layers` are results of the order.
Method:  language.md, "What holds". A name of a body is a query, a rule or a head; heads of an imported
         library have the import's prefix, as its rules have. A rule with an unknown name is left out and
         nothing more is reported about it.
         Variables: range restriction, as enrich/analysis.py: atoms that are not negated bind their variables,
         and the time variable of AT; an aggregate binds its group and its value; a BIND binds once what it
         reads is bound. Time variables are a sort of their own.
         Use: reported are heads that nothing reads, and ALWAYS that holds at once, since windows are cut at
         the beginning of the timeline.
         Layers: the order in which heads and events are determined at one time point. Components (Tarjan
         1972) of one graph over heads of .lars files and composite event rules: a head waits for the rules
         and heads that it reads, a rule for the heads and rules that it does not read strictly. As in strata
         of Datalog (Apt, Blair, Walker 1988), the layer of a head is above that of every rule it reads, and
         of every head that it negates or aggregates.
         Chaining: without LARS rules, the order of composite event rules at one instant (language.md, sec. 3,
         "chaining"). A reference is strict if its window, or a window between it and the trigger, is BEFORE
         or BETWEEN: it reads earlier instants only and orders nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.detect.analysis import references, strictness
from dotr.enrich.analysis import Language, bound_twice, check_functions, components, near, path
from dotr.errors import Diagnostics
from dotr.joins.plan import expression_variables
from dotr.lang.grammar.cursor import nearest
from dotr.lang.grammar.lars import LarsFile
from dotr.lang.loading import LoadedFile
from dotr.program import (
    FactWindow,
    LarsLayer,
    LarsProgram,
    LarsRule,
    Modality,
    Position,
    Program,
    Rule,
    TimeWindow,
    WindowAggregate,
    WindowAtom,
)
from dotr.program.names import duration_text
from dotr.source import Span

_LARS = Language(
    "D1614",
    "a .lars file",
    "rules are evaluated at every time point, even if no data come",
    "",
    "write `COUNT(…) AS ?n OVER …`",
)


def check_lars_rule(rule: program.LarsRule, found: Diagnostics) -> None:
    """Report variables that are unbound or bound twice, and what is not allowed in a rule."""
    bound, times = _bound(rule, found)
    for name in atom_variables(rule.head.atom):
        if name not in bound and name not in times:
            _unsafe(name, "the head", rule.head.atom.span, rule, bound, found)
    for literal in rule.body:
        if isinstance(literal, program.FilterAtom):
            check_functions(literal.condition, literal.span, found, _LARS)
            for name in expression_variables(literal.condition):
                if name not in bound and name not in times:
                    _unsafe(name, "FILTER", literal.span, rule, bound, found)
    _check_times(rule, times, found)


def atom_variables(atom: program.NamedAtom) -> list[str]:
    """Names of the variables of an atom, in order of first appearance."""
    return list(dict.fromkeys(a.name for a in atom.arguments if isinstance(a, program.Var)))


def _bound(rule: program.LarsRule, found: Diagnostics) -> tuple[set[str], set[str]]:
    """What the body binds: variables, and time variables."""
    bound: set[str] = set()
    times: set[str] = set()
    for literal in rule.body:
        if isinstance(literal, program.WindowAtom) and not literal.negated:
            bound.update(atom_variables(literal.atom))
            if literal.at is not None:
                times.add(literal.at)
        elif isinstance(literal, program.WindowAggregate):
            bound.update(variable.name for variable in literal.group)
    for literal in rule.body:
        if isinstance(literal, program.WindowAggregate):
            bound.update(_check_aggregate(literal, rule, found))
            if literal.variable.name in bound:
                bound_twice(literal.variable.name, literal.variable.span or literal.span, found, "D1605")
            bound.add(literal.variable.name)
    _check_binds(
        [literal for literal in rule.body if isinstance(literal, program.BindAtom)], rule, bound, times, found
    )
    return bound, times


def _check_binds(
    binds: list[program.BindAtom],
    rule: program.LarsRule,
    bound: set[str],
    times: set[str],
    found: Diagnostics,
) -> None:
    for bind in binds:
        check_functions(bind.expression, bind.span, found, _LARS)
    left = list(binds)
    while ready := [b for b in left if all(n in bound for n in expression_variables(b.expression))]:
        for bind in ready:
            left.remove(bind)
            if bind.variable.name in bound:
                bound_twice(bind.variable.name, bind.span, found, "D1605")
            bound.add(bind.variable.name)
    targets = {bind.variable.name for bind in left}
    for bind in left:
        missing = [n for n in expression_variables(bind.expression) if n not in bound]
        for name in missing:
            if name not in targets and name not in times:
                _unsafe(name, "BIND", bind.span, rule, bound, found)
        if all(name in targets for name in missing):
            found.error("D1605", f"unsafe rule: `?{bind.variable.name}` is computed from itself", bind.span)
    bound.update(targets)  # reported once


def _check_aggregate(total: program.WindowAggregate, rule: program.LarsRule, found: Diagnostics) -> list[str]:
    """Report what is wrong with an aggregate; its variables that should stand in PER."""
    own = atom_variables(total.atom)
    group = {variable.name for variable in total.group}
    for variable in total.group:
        if variable.name not in own:
            found.error(
                "D1612",
                f"`{total.atom.name}` has no `?{variable.name}`",
                variable.span or total.span,
                hint=near(variable.name, own) or "PER names variables of the atom",
            )
    if total.argument is not None:
        check_functions(total.argument, total.span, found, _LARS)
        for name in expression_variables(total.argument):
            if name not in own:
                _unsafe(name, total.function, total.span, rule, own, found)
    elsewhere = set(atom_variables(rule.head.atom))
    for literal in rule.body:
        if literal is not total:
            elsewhere.update(literal_variables(literal))
    elsewhere.discard(total.variable.name)
    shared = [name for name in own if name in elsewhere and name not in group]
    if shared:
        listed = ", ".join("?" + name for name in [*(v.name for v in total.group), *shared])
        found.error(
            "D1612",
            f"`?{shared[0]}` is also used outside of this aggregate, and is not in PER",
            total.span,
            hint=f"write `PER ({listed})`, or another name in the atom",
        )
    return shared


def literal_variables(literal: program.LarsLiteral) -> Iterator[str]:
    """Names that a literal mentions where others see them: of an aggregate its group and its value."""
    match literal:
        case program.WindowAtom(atom):
            yield from atom_variables(atom)
        case program.WindowAggregate(variable=variable, group=group):
            yield variable.name
            yield from (v.name for v in group)
        case program.FilterAtom(condition):
            yield from expression_variables(condition)
        case program.BindAtom(expression, variable):
            yield variable.name
            yield from expression_variables(expression)


def _check_times(rule: program.LarsRule, times: set[str], found: Diagnostics) -> None:
    """Time variables stand after AT only, and a head's is bound."""
    mentioned = set(times) | {
        b.at for b in rule.body if isinstance(b, program.WindowAtom) and b.at is not None
    }
    if rule.head.at is not None:
        mentioned.add(rule.head.at)
        if rule.head.at not in times:
            span = rule.head.span or rule.span
            found.error(
                "D1605",
                f"unsafe rule: no literal binds the time `?{rule.head.at}` of the head",
                span,
                hint=near(rule.head.at, times) or f"write `AT ?{rule.head.at} WITHIN …` in the body",
                notes=("a time is bound after AT, by an atom that is not negated",),
            )
    for literal in rule.body:
        inner = set(literal_variables(literal))
        if isinstance(literal, program.WindowAggregate):
            inner.update(atom_variables(literal.atom))
        _refuse_times(inner & mentioned, literal.span, found)
    _refuse_times(set(atom_variables(rule.head.atom)) & mentioned, rule.head.atom.span, found)


def _refuse_times(names: Iterable[str], span: Span | None, found: Diagnostics) -> None:
    for name in sorted(names):
        found.error(
            "D1613",
            f"`?{name}` is a time point, not a term",
            span,
            hint="select the time as an attribute in the query, or choose another name",
            notes=("it is used after AT",),
        )


def _unsafe(
    name: str, where: str, span: Span | None, rule: program.LarsRule, bound: Iterable[str], found: Diagnostics
) -> None:
    notes = ["a variable is bound by an atom that is not negated, by BIND, or by an aggregate"]
    negated = (b for b in rule.body if isinstance(b, program.WindowAtom) and b.negated)
    if any(name in atom_variables(literal.atom) for literal in negated):
        notes.append(f"`?{name}` occurs only in a NOT, which binds nothing")
    found.error(
        "D1605", f"unsafe rule: `?{name}` of {where} is not bound", span, "", near(name, bound), notes
    )


class LarsName(Struct, frozen=True):
    """What a name of a body stands for: `attributes` None: it could not be read. `head`: of a .lars file.
    `lists`: attributes whose values are lists.
    """

    name: str
    attributes: tuple[str, ...] | None
    head: bool
    kind: str
    lists: frozenset[str] = frozenset()


LookUp = Callable[[LoadedFile, str], LarsName | None]
Names = Callable[[LoadedFile], Sequence[str]]


def head_attributes(atom: program.NamedAtom) -> tuple[str, ...]:
    """How composite event rules call the arguments of a head: by its variables; a constant or a repeated
    variable at place k, from 1, is `_k`.
    """
    found: list[str] = []
    for place, argument in enumerate(atom.arguments, 1):
        named = isinstance(argument, program.Var) and argument.name not in found
        found.append(argument.name if named and isinstance(argument, program.Var) else f"_{place}")
    return tuple(found)


class LarsResolver:
    """Owns the LARS rules of a deployment while names are looked up. `heads`: name → its attributes."""

    def __init__(self, files: Sequence[tuple[LoadedFile, LarsFile]], found: Diagnostics) -> None:
        self.files = files
        self._found = found
        self._unknown: dict[str, list[tuple[Span | None, str]]] = {}
        self.whole = True

    def heads(self) -> Iterator[tuple[str, tuple[str, ...], Span]]:
        """The name of every head with its attributes, where it is defined first."""
        seen: set[str] = set()
        for unit, file in self.files:
            for rule in file.rules:
                atom = rule.head.atom
                name = unit.prefix + atom.name
                if name not in seen:
                    assert atom.span is not None, "parsed atoms have places"
                    seen.add(name)
                    yield name, head_attributes(atom), atom.span

    def program(
        self,
        look_up: LookUp,
        names: Names,
        used: Callable[[str], None],
        attributes: Mapping[str, tuple[str, ...]],
    ) -> LarsProgram:
        """The checked rules, `layers` still empty; findings are recorded. `used` gets the queries read."""
        step, place = self._step()
        rules: list[LarsRule] = []
        for unit, file in self.files:
            for written in file.rules:
                rule = _RuleNames(self, unit, look_up, names, self._found).resolved(written)
                if rule is None:
                    self.whole = False
                    continue
                check_lars_rule(rule, self._found)
                self._check_durations(rule, step, place)
                rules.append(rule)
        self._report_unknown()
        program = LarsProgram(tuple(rules), step, attributes, (), place or _first(rules))
        for name in program.reads:
            used(name)
        return program

    def unknown(self, name: str, span: Span | None, hint: str) -> None:
        self._unknown.setdefault(name, []).append((span, hint))

    def _report_unknown(self) -> None:
        """One error a name, however many rules use it."""
        for name, uses in self._unknown.items():
            span, hint = uses[0]
            notes = [f"also at {other}" for other, _ in uses[1:3] if other is not None]
            self._found.error(
                "D1604", f"there is no query, rule or head `{name}`", span, hint=hint, notes=notes
            )

    # -- the timeline ------------------------------------------------------------

    def _step(self) -> tuple[int | None, Span | None]:
        """The STEP of all files, and where it is stated first."""
        step: int | None = None
        place: Span | None = None
        for _, file in self.files:
            for line in file.steps:
                if line.micros == 0:
                    self._found.error(
                        "D1607", "a timeline of STEP 0 has no points", line.span, hint="write `STEP 1 s`"
                    )
                elif step is None:
                    step, place = line.micros, line.span
                elif line.micros != step:
                    self._found.error(
                        "D1607",
                        f"STEP is {duration_text(step)} as well as {duration_text(line.micros)}",
                        line.span,
                        hint="keep one of them: a deployment has one timeline",
                        notes=(f"the other is at {place}",),
                    )
        return step, place

    def _check_durations(self, rule: LarsRule, step: int | None, place: Span | None) -> None:
        if step is None:
            return
        for duration, span in rule.durations:
            if duration % step and not self._is_reported(span):
                below = duration // step * step
                near = [duration_text(value) for value in (below, below + step) if value]
                self._found.error(
                    "D1608",
                    f"{duration_text(abs(duration))} is not a multiple of STEP {duration_text(step)}",
                    span,
                    hint=f"write {' or '.join(near)}, or a finer STEP",
                    notes=(f"the STEP is at {place}",) if place is not None else (),
                )

    def _is_reported(self, span: Span | None) -> bool:
        """Whether a length of time could not be read."""
        errors = (error.span for error in self._found.errors)
        return span is not None and any(
            place is not None and place.source == span.source and span.start <= place.start < span.end
            for place in errors
        )


def _first(rules: Sequence[program.LarsRule]) -> Span | None:
    return rules[0].head.atom.span if rules else None


class _RuleNames(Struct):
    """Looks the names of one rule up."""

    resolver: LarsResolver
    unit: LoadedFile
    look_up: LookUp
    names: Names
    found: Diagnostics
    broken: bool = False

    def resolved(self, rule: program.LarsRule) -> program.LarsRule | None:
        """The rule with the deployment's names; None when it cannot be, which is reported."""
        head = replace(rule.head, atom=self._head(rule.head.atom))
        body = tuple(map(self._literal, rule.body))
        return None if self.broken else replace(rule, head=head, body=body)

    def _head(self, atom: program.NamedAtom) -> program.NamedAtom:
        stream = self.look_up(self.unit, atom.name)
        if stream is None or not stream.head:  # defined otherwise, too: reported already
            self.broken = True
            return atom
        self._check_arity(atom, stream)
        return replace(atom, name=stream.name)

    def _literal(self, literal: program.LarsLiteral) -> program.LarsLiteral:
        if not isinstance(literal, program.WindowAtom | program.WindowAggregate):
            return literal
        atom, stream = self._atom(literal.atom)
        if literal.window is None:
            assert isinstance(literal, program.WindowAtom), "an aggregate has a window"
            return replace(literal, atom=atom)
        window = self._window(literal.window, atom, stream)
        if isinstance(literal, program.WindowAggregate):
            return replace(literal, atom=atom, window=window)
        return replace(literal, atom=atom, window=window)

    def _atom(self, atom: program.NamedAtom) -> tuple[program.NamedAtom, LarsName | None]:
        stream = self._stream(atom.name, atom.span)
        if stream is None:
            return atom, None
        self._check_arity(atom, stream)
        return replace(atom, name=stream.name), stream

    def _stream(self, name: str, span: Span | None) -> LarsName | None:
        stream = self.look_up(self.unit, name)
        if stream is None:
            self.broken = True
            if any(name in file.unread for _, file in self.resolver.files):
                return None  # its rule could not be read, which is reported
            if span is not None:
                span = Span(span.source, span.start, span.start + len(name))
            hint = nearest(name, self.names(self.unit))
            self.resolver.unknown(
                name, span, hint or f"define it: `{name}(…) :- … .`, or `QUERY {name} := {{ SELECT … }}`"
            )
        return stream

    def _check_arity(self, atom: program.NamedAtom, stream: LarsName) -> None:
        attributes, given = stream.attributes, len(atom.arguments)
        if attributes is None:
            self.broken = True
        elif stream.lists:
            self.broken = True
            first = next(name for name in attributes if name in stream.lists)
            self.found.error(
                "D1341",
                f"`?{first}` of `{atom.name}` is a list, which is no value of an atom",
                atom.span,
                hint=f"write a rule like `{atom.name}` that has a COUNT instead of the list, and read that",
            )
        elif len(attributes) != given:
            self.broken = True
            shown = ", ".join("?" + name for name in attributes)
            self.found.error(
                "D1606",
                f"`{atom.name}` has {_arguments(len(attributes))}, here {given}",
                atom.span,
                hint=f"write `{atom.name}({shown})`",
                notes=(f"`{atom.name}` is a {stream.kind}: {_WHENCE[stream.kind]}",),
            )

    def _window(
        self, window: program.LarsWindow, atom: program.NamedAtom, own: LarsName | None
    ) -> program.LarsWindow:
        if not isinstance(window, program.FactWindow):
            return window
        if not window.streams:
            self._check_counted(own, atom.name, window.span)
            return replace(window, streams=(atom.name,))
        streams: list[str] = []
        for name in window.streams:
            stream = self._stream(name, window.span)
            self._check_counted(stream, name, window.span)
            streams.append(name if stream is None else stream.name)
        if own is not None and own.head:
            self._check_counted(own, atom.name, window.span)
        elif own is not None and atom.name not in streams:
            self.found.warning(
                "D1611",
                f"`{atom.name}` is not a query whose facts this window keeps",
                window.span,
                hint=f"write `OF ({', '.join((*window.streams, atom.name))})`",
                notes=("its atoms are never in the window, so it never holds",),
            )
        return replace(window, streams=tuple(dict.fromkeys(streams)))

    def _check_counted(self, stream: LarsName | None, name: str, span: Span | None) -> None:
        if stream is not None and stream.head:
            self.broken = True
            self.found.error(
                "D1610",
                f"a window of facts ranges over queries and rules, and `{name}` is derived",
                span,
                hint="write a window of time, `WITHIN 10 s`",
                notes=("how many atoms rules derive depends on how they are written",),
            )


_WHENCE: Mapping[str, str] = {
    "query": "its arguments are what it selects",
    "rule": "its arguments are what WITH binds",
    "head": "its arguments are those of its first rule",
}


def _arguments(number: int) -> str:
    return f"{number or 'no'} argument{'' if number == 1 else 's'}"


class _LayerEdge(Struct, frozen=True):
    """`user` waits for `needed`; `why`: "NOT", "an aggregate" or "". `span`: where it says so."""

    user: str
    needed: str
    why: str
    span: Span | None


def head_of(stream: str, lars: LarsProgram) -> str | None:
    """The head that a stream of a rule is about: of `alarm`, `ISTREAM alarm` and `DSTREAM alarm`."""
    name = stream.rpartition(" ")[2]
    return name if name in lars.attributes else None


def layered(
    rules: Sequence[Rule], chained: tuple[int, ...], lars: LarsProgram, found: Diagnostics
) -> tuple[tuple[int, ...], LarsProgram]:
    """Rules in an order that suits the heads, too, and the LARS program with its layers. `chained`: rules in
    an order that suits rules alone. Findings are recorded; then the layers are of no use.
    """
    names = {rule.name for rule in rules}
    edges = [*_lars_edges(lars, names), *_rule_edges(rules, lars)]
    graph: dict[str, list[str]] = {name: [] for name in (*lars.attributes, *(r.name for r in rules))}
    by_user: dict[str, list[_LayerEdge]] = {name: [] for name in graph}
    for edge in edges:
        graph[edge.user].append(edge.needed)
        by_user[edge.user].append(edge)
    levels: dict[str, int] = {}
    for component in components(graph):
        members = set(component)
        level = 0
        inside: list[_LayerEdge] = []
        for edge in (edge for node in component for edge in by_user[node]):
            if edge.needed in members:
                inside.append(edge)
            else:
                above = edge.user in lars.attributes and (edge.why or edge.needed in names)
                level = max(level, levels[edge.needed] + bool(above))
        _check_component(members, inside, graph, names, found)
        levels.update(dict.fromkeys(component, level))
    order = tuple(sorted(chained, key=lambda i: levels[rules[i].name]))  # stable: `chained` within a level
    return order, replace(lars, layers=_layers(lars, levels, [rules[i].name for i in order]))


def _layers(lars: LarsProgram, levels: Mapping[str, int], order: Sequence[str]) -> tuple[LarsLayer, ...]:
    found: list[LarsLayer] = []
    for level in sorted({levels[name] for name in lars.attributes}):
        names = tuple(name for name in lars.attributes if levels[name] == level)
        rules = tuple(i for i, rule in enumerate(lars.rules) if levels[rule.head.atom.name] == level)
        before = sum(levels[name] < level for name in order)
        found.append(LarsLayer(names, rules, before))
    return tuple(found)


def lars_reads(rule: LarsRule) -> Iterator[tuple[str, str, Span | None]]:
    """(name, "NOT" | "an aggregate" | "", place) of every atom of a body."""
    for literal in rule.body:
        if not isinstance(literal, WindowAtom | WindowAggregate):
            continue
        why = "NOT" if isinstance(literal, WindowAtom) and literal.negated else ""
        why = "an aggregate" if isinstance(literal, WindowAggregate) else why
        yield literal.atom.name, why, literal.span
        if isinstance(literal.window, FactWindow):
            yield from ((name, why, literal.span) for name in literal.window.streams)


def _lars_edges(lars: LarsProgram, names: set[str]) -> Iterator[_LayerEdge]:
    for rule in lars.rules:
        for name, why, span in lars_reads(rule):
            if name in lars.attributes or name in names:
                yield _LayerEdge(rule.head.atom.name, name, why, span)


def _rule_edges(rules: Sequence[Rule], lars: LarsProgram) -> Iterator[_LayerEdge]:
    known = {rule.name for rule in rules}
    for rule in rules:
        for position, strict in strictness(rule):
            if strict:
                continue
            head = head_of(position.stream, lars)
            if head is not None:
                yield _LayerEdge(rule.name, head, "", position.span)
            elif position.chained and position.stream in known:
                yield _LayerEdge(rule.name, position.stream, "", position.span)


def _check_component(
    members: set[str],
    inside: Sequence[_LayerEdge],
    graph: Mapping[str, Sequence[str]],
    rules: set[str],
    found: Diagnostics,
) -> None:
    if members <= rules:
        return  # lars.py has reported it
    if members & rules:
        edge = next(e for e in inside if e.user in rules and e.needed not in rules)
        found.error(
            "D1616",
            f"rule `{edge.user}` waits for itself within one instant, through what holds",
            edge.span,
            hint=f"make it look back strictly: `{edge.needed}` WITHIN … BEFORE …",
            notes=(_cycle(edge, graph, members),),
        )
        return
    for edge in [e for e in inside if e.why][:1]:
        found.error(
            "D1615",
            f"recursion through {edge.why}: `{edge.user}` depends on itself",
            edge.span,
            hint="derive what is negated or counted without it",
            notes=(_cycle(edge, graph, members),),
        )


def _cycle(edge: _LayerEdge, graph: Mapping[str, Sequence[str]], members: set[str]) -> str:
    steps = path(graph, edge.needed, edge.user, members)
    return "the cycle: " + " ← ".join([edge.user, f"{edge.why} {steps[0]}".strip(), *steps[1:]])


def unread_heads(
    lars: LarsProgram,
    files: Sequence[tuple[LoadedFile, LarsFile]],
    read: Collection[str],
    found: Diagnostics,
) -> None:
    """Warn about heads of the user's own files that no rule of either kind reads."""
    used = {head_of(stream, lars) for stream in read}
    for rule in lars.rules:
        own = rule.head.atom.name
        used.update(name for name, _, _ in lars_reads(rule) if name != own)
    reported: set[str] = set()
    for unit, file in files:
        for written in file.rules:
            name = unit.prefix + written.head.atom.name
            if unit.parent is None and name in lars.attributes and name not in used and name not in reported:
                reported.add(name)
                found.warning(
                    "D1617",
                    f"no rule reads `{name}`",
                    written.head.atom.span,
                    hint=f"name it in a rule, as `FROM ISTREAM {name}`, or delete it",
                )


def check_boxes(program: Program, found: Diagnostics) -> None:
    """Say once where ALWAYS may hold from the first time point on."""
    places = [
        literal.span
        for rule in program.lars.rules
        for literal in rule.body
        if isinstance(literal, WindowAtom)
        and literal.modality is Modality.ALWAYS
        and isinstance(literal.window, TimeWindow)
        and literal.window.duration
        and literal.span is not None
    ]
    if places:
        found.info(
            "D1618",
            "ALWAYS can hold at once: a window is cut at the beginning of the timeline",
            places[0],
            notes=[f"also at {place}" for place in places[1:4]],
            hint="write `AT LEAST k` if it must not hold at the first points of a run",
        )


def _references(rule: Rule) -> Iterator[tuple[Position, bool]]:
    """The positions that range over rules, each with whether the reference is strict."""
    chained = [position for position in rule.positions if position.chained]
    for position, (_, strict) in zip(chained, references(rule), strict=True):
        yield position, strict


def order(rules: Sequence[Rule], found: Diagnostics) -> tuple[int, ...]:
    """Rules so that every non-strict reference comes first, program order where free; cycles are recorded."""
    index = {rule.name: i for i, rule in enumerate(rules)}
    needs: dict[int, dict[int, Span | None]] = {i: {} for i in range(len(rules))}
    for i, rule in enumerate(rules):
        for position, strict in _references(rule):
            if not strict and position.stream in index:
                needs[i].setdefault(index[position.stream], position.span)
    waiting = {i: len(needed) for i, needed in needs.items()}
    users: dict[int, list[int]] = {i: [] for i in needs}
    for i, needed in needs.items():
        for j in needed:
            users[j].append(i)
    ready = [i for i, count in waiting.items() if count == 0]
    heapify(ready)
    sequence: list[int] = []
    while ready:
        i = heappop(ready)
        sequence.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heappush(ready, user)
    if len(sequence) < len(rules):
        _report({i: needs[i] for i in needs if waiting[i]}, rules, found)
    return tuple(sequence)


def _report(
    needs: Mapping[int, Mapping[int, Span | None]], rules: Sequence[Rule], found: Diagnostics
) -> None:
    """One finding for each cycle met when walking from rule to rule."""
    done: set[int] = set()
    for start in needs:
        path: list[int] = []
        at = start
        while at not in done and at not in path:
            path.append(at)
            following = [j for j in needs[at] if j in needs]
            if not following:
                break
            at = min(following)
        if at in path:
            cycle = path[path.index(at) :]
            names = [rules[i].name for i in (*cycle, cycle[0])]
            follower = cycle[1] if len(cycle) > 1 else cycle[0]
            hint = "make one of the references strict: WITHIN … BEFORE …"
            if any(rules[i].kind == "sequence" for i in cycle):
                hint = "a sequence looks at its own instant: let a rule between read one WITHIN … BEFORE …"
            found.error(
                "D1307",
                f"{rules[at].kind} `{rules[at].name}` waits for itself within one instant",
                needs[at][follower],
                hint=hint,
                notes=(" refers to ".join(f"`{name}`" for name in names),),
            )
        done.update(path)
