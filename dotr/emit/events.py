"""Step 4: emit. A match becomes the composite event that leaves: its id, its bindings, its graph.

Place:   called by pipeline.py after detect.
Method:  paper, sec. 4, "output translation"; fresh names are content hashes (language.md, sec. 3), so that
         replay, restart and Spark agree; the paper draws them at random. A template is resolved once, to
         nodes for its triples and a generated function for its N-Quads, each made on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from dotr.emit.templates import Constants, Row, RuleTemplate, Writer, share_writers
from dotr.events import Clock, Composite, Fact, RawMatch, Time
from dotr.program import Program
from dotr.program.names import hashes_of
from dotr.rdf.terms import Memo, Term

if TYPE_CHECKING:
    from dotr.emit.changes import Correction

Rules: TypeAlias = tuple[int, ...]

Named: TypeAlias = tuple[RuleTemplate, str, RawMatch]
"""Rule, hash and match of an event."""

_Part: TypeAlias = tuple[list[int], list[Constants], Writer]
"""Rules in output order, the constants of each, and the function that writes their events."""

_Order: TypeAlias = tuple[list[list[_Part]], Callable[[list[Any]], tuple[Any, ...]]]
"""The parts of several sets of rules, and a function that puts what they write, rule by rule, in output
order."""


class InstantEvents(Sequence[Composite]):
    """The events of one instant, in output order: a sequence whose items are made on demand.

    `len` counts the matches; an event costs its object and, once for all rules that matched the same facts,
    its hash.
    """

    __slots__ = ("_emitter", "_events", "matches")

    change = 1
    """-1 where a correction takes these events back."""
    correction: Correction | None = None
    """What took them back or added them; None of what was reported in its turn."""

    def __init__(self, emitter: Emitter, matches: Sequence[RawMatch]) -> None:
        self.matches = matches
        self._emitter = emitter
        self._events: list[Composite] | None = None

    def __bool__(self) -> bool:
        return bool(self.matches)

    def __len__(self) -> int:
        return sum([len(match[0]) for match in self.matches])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a sequence of values

    @property
    def time(self) -> Time:
        """Their instant."""
        return self.matches[0][1]

    @property
    def emitter(self) -> Emitter:
        """What makes them."""
        return self._emitter

    def rules(self) -> set[int]:
        """The numbers of the rules that have an event."""
        return {rule for match in self.matches for rule in match[0]}

    @overload
    def __getitem__(self, place: int) -> Composite: ...
    @overload
    def __getitem__(self, place: slice) -> list[Composite]: ...
    def __getitem__(self, place: int | slice) -> Composite | list[Composite]:
        return self._made()[place]

    def __iter__(self) -> Iterator[Composite]:
        return iter(self._made())

    def _made(self) -> list[Composite]:
        events = self._events
        if events is None:
            events = self._events = self.composites()
        return events

    def composites(self) -> list[Composite]:
        """The events, made."""
        return [Composite(template, template.prefix + name, match) for template, name, match in self.named()]

    def named(self) -> list[Named]:
        """What each event is made of."""
        return self._emitter.named([self.matches])

    def instants(self) -> Sequence[Sequence[RawMatch]]:
        """The matches of each instant."""
        return [self.matches]

    def nquads(self, clock: Clock) -> list[str]:
        """The N-Quads of each event, without making it. See RuleTemplate.quads."""
        return self._emitter.quads.written(self.instants(), clock.term)


class EventRun(InstantEvents):
    """The events of several instants, one after the other: named together."""

    __slots__ = ("_instants",)

    def __init__(self, instants: Sequence[InstantEvents]) -> None:
        super().__init__(instants[0]._emitter, [match for events in instants for match in events.matches])
        self._instants = [events.matches for events in instants]

    def named(self) -> list[Named]:
        return self._emitter.named(self._instants)

    def instants(self) -> Sequence[Sequence[RawMatch]]:
        return self._instants


def together(instants: Iterable[InstantEvents]) -> Iterator[InstantEvents]:
    """The events of instants as sequences, each of those of one program; what corrections change stays."""
    for (_, correction), run in groupby(instants, key=attrgetter("_emitter", "correction")):
        first, *more = run
        if correction is not None:
            yield from (first, *more)
        else:
            yield EventRun([first, *more]) if more else first


class Emitter:
    """Turns the matches of a program's rules into composite events. Stateless."""

    def __init__(self, program: Program) -> None:
        self.templates = tuple(RuleTemplate(rule) for rule in program.rules)
        share_writers(self.templates)
        self.quads = EventTexts(
            lambda rule: (self.templates[rule].write, self.templates[rule].constants), len(self.templates)
        )
        self._numbers = {template.rule: number for number, template in enumerate(self.templates)}
        most = _most(len(program.rules))
        self._in_order: Memo[tuple[Rules, ...], list[tuple[RuleTemplate, int]]] = Memo(
            self._order_of, most // 4
        )
        private = frozenset(index for index, rule in enumerate(program.rules) if rule.private)
        self._hides = bool(private)
        self._leaving: Memo[Rules, Rules] = Memo(
            lambda rules: tuple(rule for rule in rules if rule not in private), most
        )

    def public(self, matches: Sequence[RawMatch]) -> Sequence[RawMatch]:
        """The matches whose events leave; those of PRIVATE rules are for other rules only."""
        if not self._hides:
            return matches
        leaving = self._leaving
        return [(rules, *match[1:]) for match in matches if (rules := leaving[match[0]])]

    def composites(self, matches: Sequence[RawMatch]) -> list[Composite]:
        """The events of one instant's matches, in output order. O(facts of a match) for its name, once for
        all rules that matched the same facts.
        """
        return [Composite(of, of.prefix + name, match) for of, name, match in self.named([matches])]

    def single(self, matches: Sequence[RawMatch]) -> list[Named]:
        """`named` of one instant, the match of each with its own rule alone."""
        return [
            (template, name, ((self._numbers[template.rule],), *match[1:]))
            for template, name, match in self.named([matches])
        ]

    def named(self, instants: Sequence[Sequence[RawMatch]]) -> list[Named]:
        """(template, hash, match) of each event of instants in order, those of one in output order."""
        names = _names(instants)
        found: list[Named] = []
        begun = 0
        for matches in instants:
            rules = tuple([match[0] for match in matches])
            order = self._in_order[rules] if len(rules) < _FEW else self._order_of(rules)
            found += [(template, names[begun + place], matches[place]) for template, place in order]
            begun += len(rules)
        return found

    def _order_of(self, rules: tuple[Rules, ...]) -> list[tuple[RuleTemplate, int]]:
        """The events of an instant's matches, which are of these rules, in output order: template, match."""
        single = [(rule, place) for place, of_match in enumerate(rules) for rule in of_match]
        single.sort(key=itemgetter(0))
        return [(self.templates[rule], place) for rule, place in single]


_FEW = 16
"""Matches of an instant below which the order of their events is remembered."""


def _most(rules: int) -> int:
    """How many sets of so many rules are remembered."""
    return max(256, (1 << 21) // max(1, rules))


class EventTexts:
    """Owns how the events of rules are written in one format: those of one form by one function.

    `writer`: of a rule, by its number, with its constants; `rules`: how many there are.
    """

    def __init__(self, writer: Callable[[int], tuple[Writer, Constants]], rules: int) -> None:
        self._writer = writer
        most = _most(rules)
        self._parts: Memo[Rules, list[_Part]] = Memo(self._parts_of, most)
        self._orders: Memo[tuple[Rules, ...], _Order | None] = Memo(self._order_of, most // 4)

    def written(self, instants: Sequence[Sequence[RawMatch]], stamp: Callable[[Time], str]) -> list[str]:
        """The text of each event of instants in order, those of one in output order, without making the
        events; matches that are alone at their instants are written together. `stamp`: the text of a time.
        """
        names = iter(_names(instants))
        written: list[str] = []
        rows: list[Row] = []
        last: Rules = ()
        for matches in instants:
            if len(matches) == 1:
                rules, time, facts, values = matches[0]
                if rules != last:
                    written += self._alone(last, rows)
                    last, rows = rules, []
                rows.append((next(names), stamp(time), facts, values))
                continue
            written += self._alone(last, rows)
            rows = []
            written += self._instant(matches, list(islice(names, len(matches))), stamp(matches[0][1]))
        written += self._alone(last, rows)
        return written

    def _alone(self, rules: Rules, rows: Sequence[Row]) -> list[str]:
        """What the same rules matched at an instant each."""
        if not rows:
            return []
        parts = self._parts[rules]
        if len(parts) == 1:
            _, own, write = parts[0]
            return write(own, rows)
        order = self._orders[(rules,)]
        assert order is not None, "no rule is twice in a match"
        (together,), in_rule_order = order
        written: list[str] = []
        for row in rows:
            written += in_rule_order([text for _, own, write in together for text in write(own, (row,))])
        return written

    def _instant(self, matches: Sequence[RawMatch], names: Sequence[str], stamp: str) -> list[str]:
        """The text of each event of one instant's matches, which have these hashes, in output order."""
        if len(matches) > 2 and matches[0][0] != matches[1][0]:
            once = len({match[0] for match in matches}) == len(matches)
            alike = self._together(matches, names, stamp) if once else None
            if alike is not None:
                return alike
        runs: dict[Rules, list[Row]] = {}
        last: Rules | None = None
        for (rules, _, facts, values), name in zip(matches, names, strict=True):
            if rules is not last:  # those of a rule are adjacent, most often
                last, rows = rules, runs.setdefault(rules, [])
            rows.append((name, stamp, facts, values))
        order = self._orders[tuple(runs)]
        if order is None:  # a rule is in several
            runs = _by_rule(matches, names, stamp)
            order = self._orders[tuple(runs)]
            assert order is not None, "each rule is by itself"
        together, in_rule_order = order
        texts: list[list[str]] = []
        for rows, of_run in zip(runs.values(), together, strict=True):
            for _, constants, write in of_run:
                written, width = write(constants, rows), len(constants)
                texts += [written] if width == 1 else [written[place::width] for place in range(width)]
        return texts[0] if len(texts) == 1 else list(chain.from_iterable(in_rule_order(texts)))

    def _together(self, matches: Sequence[RawMatch], names: Sequence[str], stamp: str) -> list[str] | None:
        """For rules that matched once each: those with equal matches are written together. None if a rule
        matched more than once.
        """
        same: dict[tuple[tuple[Fact, ...], tuple[Term, ...]], tuple[Row, list[int]]] = {}
        for (rules, _, facts, values), name in zip(matches, names, strict=True):
            row = name, stamp, facts, values
            same.setdefault((facts, values), (row, []))[1].extend(rules)  # a hash says not which events
        order = self._orders[tuple([tuple(numbers) for _, numbers in same.values()])]
        if order is None:
            return None
        parts, in_rule_order = order
        texts: list[str] = []
        for (row, _), of_match in zip(same.values(), parts, strict=True):
            for _, own, write in of_match:
                texts += write(own, (row,))
        return list(in_rule_order(texts))

    def _order_of(self, together: tuple[Rules, ...]) -> _Order | None:
        """How rules are written together; None if a rule occurs twice."""
        parts = [self._parts[rules] for rules in together]
        written = [rule for of_match in parts for numbers, _, _ in of_match for rule in numbers]
        if len(set(written)) < len(written):
            return None
        return parts, itemgetter(*sorted(range(len(written)), key=written.__getitem__))

    def _parts_of(self, rules: Rules) -> list[_Part]:
        """Rules in output order, by the function that writes their events."""
        parts: dict[int, _Part] = {}
        for rule in sorted(rules):
            write, constants = self._writer(rule)
            numbers, own, _ = parts.setdefault(id(write), ([], [], write))
            numbers.append(rule)
            own.append(constants)
        return list(parts.values())


def _by_rule(matches: Sequence[RawMatch], names: Sequence[str], stamp: str) -> dict[Rules, list[Row]]:
    """What each rule by itself matched, as found."""
    runs: dict[Rules, list[Row]] = {}
    for (rules, _, facts, values), name in zip(matches, names, strict=True):
        for rule in rules:
            runs.setdefault((rule,), []).append((name, stamp, facts, values))
    return runs


def _names(instants: Sequence[Sequence[RawMatch]]) -> list[str]:
    """The hash of each match of instants."""
    return hashes_of([(matches[0][1], [match[2] for match in matches]) for matches in instants])
