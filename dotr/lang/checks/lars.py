"""Names of .lars files looked up: LARS rules as written → checked ones.

Place:   called by resolve.py, which knows the queries and rules of the deployment; lars_rules.py looks into
         each rule, layers.py at all of them together.
Method:  language.md, "What holds". A name of a body is a query, a rule or a head; heads of an imported
         library have the import's prefix, as its rules have. A rule with an unknown name is left out and
         nothing more is said about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dotr import ir
from dotr.errors import Diagnostics
from dotr.lang.checks.lars_rules import check_lars_rule
from dotr.lang.grammar.base import nearest
from dotr.lang.grammar.lars import LarsFile
from dotr.lang.loading import LoadedFile
from dotr.source import Span
from dotr.temporal.durations import duration_text


class LarsName(Struct, frozen=True):
    """What a name of a body stands for: `attributes` None: it could not be read. `head`: of a .lars file."""

    name: str
    attributes: tuple[str, ...] | None
    head: bool
    kind: str


LookUp = Callable[[LoadedFile, str], LarsName | None]
Names = Callable[[LoadedFile], Sequence[str]]


def head_attributes(atom: ir.NamedAtom) -> tuple[str, ...]:
    """How composite event rules call the arguments of a head: by its variables; a constant or a repeated
    variable at place k, from 1, is `_k`.
    """
    found: list[str] = []
    for place, argument in enumerate(atom.arguments, 1):
        named = isinstance(argument, ir.Var) and argument.name not in found
        found.append(argument.name if named and isinstance(argument, ir.Var) else f"_{place}")
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
    ) -> ir.LarsProgram:
        """The checked rules, `layers` still empty; findings are recorded. `used` gets the queries read."""
        step, place = self._step()
        rules: list[ir.LarsRule] = []
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
        program = ir.LarsProgram(tuple(rules), step, attributes, (), place or _first(rules))
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
                        f"STEP is {duration_text(step)} and {duration_text(line.micros)} at once",
                        line.span,
                        hint="keep one of them: a deployment has one timeline",
                        notes=(f"the other stands at {place}",),
                    )
        return step, place

    def _check_durations(self, rule: ir.LarsRule, step: int | None, place: Span | None) -> None:
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
                    notes=(f"the STEP stands at {place}",) if place is not None else (),
                )

    def _is_reported(self, span: Span | None) -> bool:
        """Whether a length of time could not be read."""
        errors = (error.span for error in self._found.errors)
        return span is not None and any(
            place is not None and place.source == span.source and span.start <= place.start < span.end
            for place in errors
        )


def _first(rules: Sequence[ir.LarsRule]) -> Span | None:
    return rules[0].head.atom.span if rules else None


class _RuleNames(Struct):
    """Looks the names of one rule up."""

    resolver: LarsResolver
    unit: LoadedFile
    look_up: LookUp
    names: Names
    found: Diagnostics
    broken: bool = False

    def resolved(self, rule: ir.LarsRule) -> ir.LarsRule | None:
        """The rule with the deployment's names; None when it cannot be, which is reported."""
        head = replace(rule.head, atom=self._head(rule.head.atom))
        body = tuple(map(self._literal, rule.body))
        return None if self.broken else replace(rule, head=head, body=body)

    def _head(self, atom: ir.NamedAtom) -> ir.NamedAtom:
        stream = self.look_up(self.unit, atom.name)
        if stream is None or not stream.head:  # defined otherwise, too: reported already
            self.broken = True
            return atom
        self._check_arity(atom, stream)
        return replace(atom, name=stream.name)

    def _literal(self, literal: ir.LarsLiteral) -> ir.LarsLiteral:
        if not isinstance(literal, ir.WindowAtom | ir.WindowAggregate):
            return literal
        atom, stream = self._atom(literal.atom)
        if literal.window is None:
            assert isinstance(literal, ir.WindowAtom), "an aggregate has a window"
            return replace(literal, atom=atom)
        window = self._window(literal.window, atom, stream)
        if isinstance(literal, ir.WindowAggregate):
            return replace(literal, atom=atom, window=window)
        return replace(literal, atom=atom, window=window)

    def _atom(self, atom: ir.NamedAtom) -> tuple[ir.NamedAtom, LarsName | None]:
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

    def _check_arity(self, atom: ir.NamedAtom, stream: LarsName) -> None:
        attributes, given = stream.attributes, len(atom.arguments)
        if attributes is None:
            self.broken = True
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

    def _window(self, window: ir.LarsWindow, atom: ir.NamedAtom, own: LarsName | None) -> ir.LarsWindow:
        if not isinstance(window, ir.FactWindow):
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
                f"`{atom.name}` is not among what this window keeps",
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
