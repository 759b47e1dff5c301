"""Build tables, triggers and components from LARS rules, and determine how far a program reaches.

Place:   the constructor of engine.py calls it; `dotr plan` and the cutting of programs for Spark read the
         reach.
Method:  window atoms over one name with one modality and length share a table. A component is open-ended if
         it negates, aggregates, counts facts, reads what is open-ended, has a rule without a positive atom,
         or is recursive through `WITHIN n` or AT LEAST.
         Reach: how far back and ahead a program sees, and by which argument it can be cut, from its shape
         alone. Windows add up along the paths from a head down to a stream. A cycle longer than nothing can
         be walked again and again: what it influences has no bound. A window of facts has none in time,
         either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from dotr.budget import Meter
from dotr.events import Clock, Time
from dotr.joins.filters import Moment
from dotr.joins.plan import AbsentPattern, BodyPattern, Item, from_body, relation_name
from dotr.program.program import (
    Argument,
    FactWindow,
    LarsProgram,
    LarsRule,
    Modality,
    NamedAtom,
    TimeWindow,
    WindowAggregate,
    WindowAtom,
)
from dotr.program.queries import BindAtom, FilterAtom, Var
from dotr.rdf.terms import Memo, Term
from dotr.rdf.values import DateTime, decode
from dotr.windows.body_code import HeadSink, WindowTables, compile_body, pattern
from dotr.windows.rules import (
    BoundedHeads,
    Component,
    Differences,
    OpenEndedHead,
    Reads,
    Recursive,
    TableTrigger,
    components,
    differences,
    inertia,
    reads,
    recursive,
)
from dotr.windows.tables import (
    HeadPile,
    Kept,
    OpenEnded,
    Placing,
    Relation,
    Scattered,
    SolutionBuffer,
    Through,
)
from dotr.windows.window_tables import Agenda, AtomTable, Net, Row
from dotr.windows.windows import WINDOWS, FactView, PointLog, Totals, ViewOptions, kind_of


class Wiring(Struct, eq=False):
    """Everything an engine owns, wired together."""

    agenda: Agenda
    placing: Placing
    relations: dict[str, Relation] = field(default_factory=dict)
    logs: dict[FactWindow, PointLog] = field(default_factory=dict)
    logs_of: dict[str, list[PointLog]] = field(default_factory=dict)
    fact_views: list[FactView] = field(default_factory=list)
    others_of: dict[str, list[FactView]] = field(default_factory=dict)
    totals: list[Totals] = field(default_factory=list)
    strata: list[list[Component]] = field(default_factory=list)

    @property
    def components(self) -> list[Component]:
        return [component for stratum in self.strata for component in stratum]


class ComponentBuilder:
    """Owns what is shared while a net is built."""

    def __init__(
        self,
        program: LarsProgram,
        beginning: int,
        step: int,
        clock: Clock,
        moment: Moment,
        watched: Collection[str] | None,
        meter: Meter,
        carried: bool = False,
    ) -> None:
        self._program, self._beginning, self._step = program, beginning, step
        self._meter, self._carried = meter, carried
        self._clock, self._moment = clock, moment
        self._tables = WindowTables(meter, moment)
        self._heads = {rule.head.atom.name for rule in program.rules}
        self._scattered = {rule.head.atom.name for rule in program.rules if rule.head.at is not None}
        self._watched = self._heads if watched is None else self._heads & set(watched)
        self._open_ended: set[str] = set()
        agenda = Agenda()
        self._net = Wiring(agenda, Placing(agenda, beginning))
        self._views: dict[tuple[object, ...], AtomTable] = {}
        self._fact_views: dict[tuple[object, ...], FactView] = {}
        self._totals: dict[WindowAggregate, Totals] = {}
        terms: Memo[int, Term] = Memo(lambda point: clock.term(point * step))
        self._term = terms.__getitem__
        self._points: Memo[Term, int] = Memo(self._point)

    def _point(self, term: Term) -> int:
        """The number of the point that a term of AT writes."""
        value = decode(term)
        if isinstance(value, DateTime):
            return int(value.ticks // 10**12) // self._step
        assert isinstance(value, int)
        return value * self._clock.unit // self._step

    def build(self, strata: Sequence[Sequence[int]]) -> Wiring:
        rules = self._program.rules
        split = [components(rules, numbers) for numbers in strata]
        for numbers in (numbers for stratum in split for numbers in stratum):
            own = [rules[number] for number in numbers]
            if self._is_open_ended(own):
                self._open_ended |= {rule.head.atom.name for rule in own}
        for rule in rules:
            self._relation(rule.head.atom)
        for stratum in split:
            self._net.strata.append(
                [self._component([rules[number] for number in numbers]) for numbers in stratum]
            )
        self._net.totals = list(self._totals.values())
        return self._net

    def _is_open_ended(self, rules: Sequence[LarsRule]) -> bool:
        own = {rule.head.atom.name for rule in rules}
        for rule in rules:
            atoms = [literal for literal in rule.body if isinstance(literal, WindowAtom)]
            if not atoms or any(isinstance(literal, WindowAggregate) for literal in rule.body):
                return True
            for literal in atoms:
                if literal.negated or isinstance(literal.window, FactWindow):
                    return True
                if literal.atom.name in self._open_ended:
                    return True
                grows = literal.window is not None and kind_of(literal).grows
                if literal.atom.name in own and grows and literal.window != TimeWindow(0):
                    return True
        return False

    # -- tables

    def _relation(self, atom: NamedAtom) -> Relation:
        relations = self._net.relations
        name = atom.name
        if name not in relations:
            relations[name] = relation = Relation(name, len(atom.arguments))
            if name in self._heads:
                table = self._time_view(relation, Modality.SOMETIME, 0, 0)
                if name in self._watched:
                    table.timed = True
                    table.net = Net()
        return relations[name]

    def _time_view(self, relation: Relation, modality: Modality, length: int, count: int) -> AtomTable:
        key = (relation.name, modality, length, count)
        if key in self._views:
            return self._views[key]
        open_ended, scattered = relation.name in self._open_ended, relation.name in self._scattered
        options = ViewOptions(
            self._net.agenda, length, count, self._beginning, self._term, open_ended, scattered
        )
        view = WINDOWS[modality].view(options)
        if modality is Modality.SOMETIME and length == 0:
            relation.present = view
        relation.add(view)
        self._views[key] = view.table
        return view.table

    def _fact_view(self, atom: NamedAtom, window: FactWindow, modality: Modality, count: int) -> FactView:
        key = (atom.name, window, modality, count)
        if key not in self._fact_views:
            net = self._net
            if window not in net.logs:
                log = net.logs[window] = PointLog(window, self._beginning)
                for name in window.streams:
                    net.logs_of.setdefault(name, []).append(log)
            counted = atom.name in window.streams
            view = FactView(net.agenda, net.logs[window], atom.name, modality, count, self._term, counted)
            if not counted:
                net.others_of.setdefault(atom.name, []).append(view)
            net.fact_views.append(view)
            self._fact_views[key] = view
        return self._fact_views[key]

    def _table(
        self, atom: NamedAtom, window: TimeWindow | FactWindow | None, modality: Modality, count: int
    ) -> AtomTable:
        if isinstance(window, FactWindow):
            return self._fact_view(atom, window, modality, count).table
        length = 0 if window is None else window.duration // self._step
        if length == 0 and modality is Modality.ALWAYS:
            modality = Modality.SOMETIME
        return self._time_view(self._relation(atom), modality, length, count)

    def _total(self, literal: WindowAggregate) -> Totals:
        if literal not in self._totals:
            source = self._table(literal.atom, literal.window, Modality.AT, 0)
            source.timed = True
            columns = literal.atom.arguments
            reading = pattern(columns, literal.group, literal.argument, self._moment)
            self._totals[literal] = Totals(self._net.agenda, literal, source, reading, self._meter)
        return self._totals[literal]

    # -- rules

    def _component(self, rules: Sequence[LarsRule]) -> Component:
        heads = list(dict.fromkeys(self._relation(rule.head.atom) for rule in rules))
        watched = [relation for relation in heads if relation.name in self._watched]
        own = {relation.name for relation in heads}
        inertial = self._inertial(rules, heads, watched)
        if inertial is not None:
            return inertial
        reads = Reads()
        bodies = [self._items(rule, reads) for rule in rules]
        if not own & self._open_ended:
            triggers = self._triggers(rules, bodies, [Through(relation) for relation in heads])
            return BoundedHeads(heads, triggers, recursive(rules), watched)
        if recursive(rules):
            for table in reads.tables:
                table.timed = True
            piles = [OpenEnded(relation) for relation in heads]
            whole = self._whole(rules, bodies, piles)
            own_only = self._triggers(rules, bodies, piles, own)
            agenda = self._net.agenda
            return Recursive(heads, reads, whole, own_only, self._meter, agenda, self._carried, watched)
        found: dict[Row, None] = {}
        kept = [Kept(heads[0], found)]
        kept_up = self._kept_up(rules, bodies, reads, kept)
        whole = self._whole(rules, bodies, kept)
        return OpenEndedHead(heads[0], reads, whole, found, kept_up, self._meter, watched)

    def _inertial(
        self, rules: Sequence[LarsRule], heads: Sequence[Relation], watched: Sequence[Relation]
    ) -> OpenEndedHead | None:
        """A head that holds on by inertia: what began stays open-ended until an atom of a NOT comes, where
        that can be found from the atom. None for other heads.
        """
        rest = [carried for rule in rules if (carried := inertia(rule, self._step)) is not None]
        others = [rule for rule in rules if inertia(rule, self._step) is None]
        if not rest or len(heads) > 1 or recursive(others) or heads[0].name in self._scattered:
            return None
        reads = Reads()
        bodies = [self._items(rule, reads) for rule in others]
        absent = [self._items(rule, reads) for rule in rest]
        found: dict[Row, None] = {}
        kept = [Kept(heads[0], found)]
        ordinary = self._kept_up(others, bodies, reads, kept)
        carrying = self._kept_up(rest, absent, reads, kept, carried=True)
        if ordinary is None or carrying is None:
            return None
        whole = self._whole(others, bodies, kept)
        return OpenEndedHead(heads[0], reads, whole, found, [*ordinary, *carrying], self._meter, watched)

    def _kept_up(
        self,
        rules: Sequence[LarsRule],
        bodies: Sequence[Sequence[Item]],
        reads: Reads,
        kept: Sequence[HeadPile],
        carried: bool = False,
    ) -> list[Differences] | None:
        """How each rule is kept up; None where one had better be derived as a whole. `carried`: see
        `differences`.
        """
        for table in reads.tables:
            table.timed = True
            table.net = table.net or Net()
        apart = [
            self._differences(rule, items, kept, carried) for rule, items in zip(rules, bodies, strict=True)
        ]
        known = [differences for differences in apart if differences is not None]
        return known if len(known) == len(rules) else None

    def _triggers(
        self,
        rules: Sequence[LarsRule],
        bodies: Sequence[Sequence[Item]],
        piles: Sequence[HeadPile],
        names: Collection[str] | None = None,
    ) -> list[TableTrigger]:
        """A join from each positive atom; `names`: of these names alone."""
        found = []
        for rule, items in zip(rules, bodies, strict=True):
            sink = self._sink(rule, piles)
            for place, item in enumerate(items):
                if isinstance(item, BodyPattern) and (names is None or relation_name(item.relation) in names):
                    run = compile_body(items, sink, self._tables, rule, place)
                    found.append(TableTrigger(self._tables.table(item), run, sink.target))
        return found

    def _whole(
        self, rules: Sequence[LarsRule], bodies: Sequence[Sequence[Item]], piles: Sequence[HeadPile]
    ) -> list[tuple[Callable[[], None], SolutionBuffer]]:
        """A join over all that holds for each rule."""
        sinks = [self._sink(rule, piles) for rule in rules]
        return [
            (compile_body(items, sink, self._tables, rule), sink.target)
            for rule, items, sink in zip(rules, bodies, sinks, strict=True)
        ]

    def _differences(
        self, rule: LarsRule, items: Sequence[Item], piles: Sequence[HeadPile], carried: bool
    ) -> Differences | None:
        relation, sink = self._relation(rule.head.atom), self._sink(rule, piles)
        return differences(items, rule, sink, relation, self._tables, carried)

    def _items(self, rule: LarsRule, reads: Reads) -> list[Item]:
        """The body over tables; those that it reads are noted."""
        items: list[Item] = []
        for literal in rule.body:
            match literal:
                case FilterAtom() | BindAtom():
                    items.append(from_body(literal))
                case WindowAggregate():
                    total = self._total(literal)
                    reads.totals[total] = reads.tables[total.table] = None
                    if isinstance(literal.window, FactWindow):
                        reads.fact_views[self._fact_view(literal.atom, literal.window, Modality.AT, 0)] = None
                    of = f"{literal.function} OVER {literal.atom.name}"
                    items.append(self._tables.pattern(total.table, of, (*literal.group, literal.variable)))
                case WindowAtom():
                    modality = literal.modality or Modality.SOMETIME
                    table = self._table(literal.atom, literal.window, modality, literal.count)
                    reads.tables[table] = None
                    if isinstance(literal.window, FactWindow):
                        view = self._fact_view(literal.atom, literal.window, modality, literal.count)
                        reads.fact_views[view] = None
                    columns: tuple[Argument, ...] = literal.atom.arguments
                    if WINDOWS[modality].each_point:
                        assert literal.at is not None
                        columns = (*columns, Var(literal.at))
                    atom = self._tables.pattern(table, literal.atom.name, columns)
                    items.append(AbsentPattern(atom) if literal.negated else atom)
        return items

    def _sink(self, rule: LarsRule, piles: Sequence[HeadPile]) -> HeadSink:
        """Where the solutions of a rule go: the pile of its head, or by the point that it is put at."""
        head, relation = rule.head, self._relation(rule.head.atom)
        columns = head.atom.arguments
        if head.at is not None:
            offset = head.offset // self._step
            put = Scattered(self._net.placing, relation, self._points, offset)
            return HeadSink(columns, put, at=head.at)
        pile = next(pile for pile in piles if pile.relation is relation)
        return HeadSink(columns, pile, annotated=isinstance(pile, Through))


Depths: TypeAlias = Mapping[str, Time | None]
"""Stream → how long after a fact of it, in µs, an atom may still depend on it; None: for ever."""


def depths(program: LarsProgram) -> dict[str, Depths]:
    """Head → the streams that it depends on, through whatever other heads, and for how long.

    Offsets ahead add up as windows do.
    """
    found: dict[str, dict[str, Time | None]] = {}
    for numbers in components(program.rules, range(len(program.rules))):
        rules = [program.rules[number] for number in numbers]
        own = {rule.head.atom.name for rule in rules}
        endless = any(name in own and length != 0 for rule in rules for name, length in _steps(rule))
        whole: dict[str, Time | None] = {}
        for rule in rules:
            for name, length in _steps(rule):
                if name in own:
                    continue
                for stream, depth in found.get(name, {name: 0}).items():
                    sum_ = None if length is None or depth is None or endless else length + depth
                    before = whole.get(stream, 0)
                    whole[stream] = None if sum_ is None or before is None else max(sum_, before)
        found |= dict.fromkeys(own, whole)
    return {head: dict(streams) for head, streams in found.items()}


def horizon(program: LarsProgram) -> tuple[Time | None, Time]:
    """(how far back state reaches, None without bound; how far ahead atoms are put), in µs."""
    back = [depth for streams in depths(program).values() for depth in streams.values()]
    ahead = max((rule.head.offset for rule in program.rules), default=0)
    reach = None if None in back else max((depth for depth in back if depth is not None), default=0)
    return reach, max(ahead, 0)


def _steps(rule: LarsRule) -> Iterator[tuple[str, Time | None]]:
    """(name, how long after an atom of it the head may depend on it) of what a body reads."""
    ahead = max(rule.head.offset, 0)
    for literal in rule.body:
        if isinstance(literal, WindowAtom | WindowAggregate):
            window = literal.window or TimeWindow(0)
            length = None if window.reach is None else ahead + window.reach
            yield from ((name, length) for name in dict.fromkeys((literal.atom.name, *window.streams)))


def connected(rules: Sequence[LarsRule]) -> list[LarsRule]:
    """The rules in an order in which each shares a name with one before it, if any does: there its key is
    known then, and nothing need be tried.
    """
    left, order = list(rules), []
    seen: set[str] = set()
    while left:
        nearest = next((rule for rule in left if not seen.isdisjoint(names(rule))), left[0])
        left.remove(nearest)
        order.append(nearest)
        seen.update(names(nearest))
    return order


def names(rule: LarsRule) -> list[str]:
    """Of the head and of what the body reads."""
    return [rule.head.atom.name, *(name for name, _ in reads(rule))]


def rule_keys(rule: LarsRule, parted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The ways in which every atom of a rule has one and the same variable in its name's place, given the
    places of some names already; in the order of the head's arguments.

    None where an atom has no such variable, counts facts (of all keys together), or there is no atom.
    """
    if whole_reason(rule) is not None:
        return
    atoms = _atoms(rule)
    variables = [argument.name for argument in atoms[0][1] if isinstance(argument, Var)]
    for variable in dict.fromkeys(variables):
        yield from _places(atoms, variable, parted)


def whole_reason(rule: LarsRule) -> str | None:
    """Why a rule, by itself, cannot be parted; None if it can."""
    atoms = _atoms(rule)
    counting = [item.window for item in _windows(rule) if isinstance(item.window, FactWindow)]
    if counting:
        return "it has a window of facts" if counting[0].per else "a window of facts counts those of all keys"
    if len(atoms) == 1:
        return "its body reads nothing"
    shared = {argument.name for argument in atoms[0][1] if isinstance(argument, Var)}
    for _, arguments in atoms:
        shared &= {argument.name for argument in arguments if isinstance(argument, Var)}
    return None if shared else "no variable is in all of its atoms"


def _windows(rule: LarsRule) -> Iterator[WindowAtom | WindowAggregate]:
    return (item for item in rule.body if isinstance(item, WindowAtom | WindowAggregate))


def _atoms(rule: LarsRule) -> list[tuple[str, tuple[Argument | None, ...]]]:
    """(name, arguments) of the head and the body; of an aggregate's only those of PER can part it."""
    found: list[tuple[str, tuple[Argument | None, ...]]] = [(rule.head.atom.name, rule.head.atom.arguments)]
    for literal in _windows(rule):
        arguments: tuple[Argument | None, ...] = literal.atom.arguments
        if isinstance(literal, WindowAggregate):
            arguments = tuple(a if a in literal.group else None for a in arguments)
        found.append((literal.atom.name, arguments))
    return found


def _places(
    atoms: Sequence[tuple[str, tuple[Argument | None, ...]]], variable: str, parted: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """The ways in which every atom has the variable in its name's place."""
    if not atoms:
        yield dict(parted)
        return
    (name, arguments), *rest = atoms
    for place, argument in enumerate(arguments):
        fits = isinstance(argument, Var) and argument.name == variable and parted.get(name, place) == place
        if fits:
            yield from _places(rest, variable, {**parted, name: place})
