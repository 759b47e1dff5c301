"""The meaning of a sequence, written down: every mapping in the order of preference (sequences, sec. 2).

Place:   reference/tesla.py reads sequences by it; explanations and tests take mappings and leaves from here.
Method:  a backtracking matcher over the rows of one partition. A leaf of its search is a mapping, or a
         partial one that waits for a row; each has the instant with which it ends if no more rows come. So
         what `matches` gives is certain up to every instant whose rows are all known; what is later is what
         silence would bring, and its first time is the next deadline.
Why not: merged states, running totals: whoever doubts the engine reads this file against the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from msgspec.structs import replace

from dotr.budget import EXPRESSION, UNLIMITED, Exhausted, Overlong
from dotr.events import NEVER, Clock, Fact, Time
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.literal_numbers import literally, summarised
from dotr.program.queries import Attribute, Expression, TimeOf, Var
from dotr.program.rules import Binding
from dotr.program.sequences import (
    Either,
    Element,
    InOrder,
    Pattern,
    Place,
    Repeated,
    RowElement,
    RowName,
    RowPattern,
    RowTotal,
)
from dotr.rdf.terms import Term

SKIPPED: Final = ""
"""In the place of an element: the row is skipped."""


class PatternRow(NamedTuple):
    """A fact of a source, which is a number in the order of OF."""

    source: int
    fact: Fact


class Mapped(NamedTuple):
    """A match: rows from `first` on, each given to an element (or SKIPPED). `time`: when it is certain. With
    none given: that there is no match at `first`.
    """

    first: int
    given: tuple[str, ...]
    time: Time

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + len(self.given) - 1


class Leaf(NamedTuple):
    """The end of one way of the search. `waits`: the element for which it has no row, None for a mapping.

    `until`: the instant with which it ends; of a mapping, at which it is complete. `refused`: its next row
    ended it; else its deadline does.
    """

    given: tuple[str, ...]
    waits: str | None
    until: Time
    refused: bool = False


class Mapping(NamedTuple):
    """Where an expression is evaluated: rows of a partition, of which those from `first` on are given to
    elements, in ON the tested one last. `now`: what NOW() is.
    """

    rows: Sequence[PatternRow]
    first: int
    given: tuple[str, ...]
    now: Time

    def rows_of(self, element: str) -> list[PatternRow]:
        """The rows given to an element (`*`: to any), in order."""
        ways = enumerate(self.given, self.first)
        return [self.rows[n] for n, name in ways if name and element in ("*", name)]


_Rest: TypeAlias = "tuple[Pattern, _Rest] | None"
"""What is to come of a pattern, part by part."""


class LiteralSequence:
    """Reads one pattern over the rows of one partition. Owns its expressions, compiled, and the units of work
    that are left: a step of a search takes ten; over n rows there may be 2ⁿ.
    """

    def __init__(self, pattern: RowPattern, bindings: Sequence[Binding], clock: Clock) -> None:
        self.pattern = pattern
        self.bindings = tuple(bindings)
        self._clock = clock
        self._elements = {element.name: element for element in pattern.elements}
        self._rows = dict(pattern.rows)
        self._totals = dict(pattern.totals)
        self._compiled: dict[Any, Callable[[Any], Any]] = {}
        self.left = UNLIMITED

    # -- rows ----------------------------------------------------------------------------------------------

    def key(self, row: PatternRow) -> tuple[Term, ...] | None:
        """The partition of a row: the terms of PER; None where one is unbound: it is no row."""
        found = tuple(self.term(row, name) for name in self.pattern.per)
        return None if None in found else tuple(term for term in found if term is not None)

    def term(self, row: PatternRow | None, variable: str) -> Term | None:
        """An attribute of a row; None where it is unbound or its source has none of that name."""
        if row is None:
            return None
        variables = self.pattern.sources[row.source].variables
        return row.fact[1][variables.index(variable)] if variable in variables else None

    # -- mappings ------------------------------------------------------------------------------------------

    def matches(self, rows: Sequence[PatternRow]) -> Iterator[Mapped]:
        """The matches in the rows of a partition, if no more come, in the order of their first rows.

        A row after an instant `now` does not change those with a time ≤ `now`.
        """
        return (start for start in self.starts(rows) if start.given)

    def starts(self, rows: Sequence[PatternRow], first: int = 0, settled: Time = NEVER) -> Iterator[Mapped]:
        """What each row considered starts, from `first` on: a match, or none (nothing given). What is before
        was certain at `settled`.
        """
        while first < len(rows):
            given, time = self.at(rows, first)
            settled = time if self.pattern.overlapping else max(settled, time)
            start = Mapped(first, given, settled)
            yield start
            first = self.after(start)

    def after(self, mapped: Mapped) -> int:
        """The next row considered."""
        if self.pattern.overlapping or not mapped.given:
            return mapped.first + 1
        element = self.pattern.skip_to
        if element is not None and element in mapped.given:
            last = max(n for n, name in enumerate(mapped.given, mapped.first) if name == element)
            return max(last, mapped.first + 1)
        return mapped.last + 1

    def at(self, rows: Sequence[PatternRow], first: int) -> tuple[tuple[str, ...], Time]:
        """The match at a row (empty: none) and the instant at which it, or that there is none, is certain."""
        certain: Time = NEVER
        for leaf in self.leaves(rows, first):
            certain = max(certain, leaf.until)
            if leaf.waits is None:
                return leaf.given, certain
        return (), certain

    def decided(self, rows: Sequence[PatternRow], first: int) -> Leaf:
        """What made the match at a row certain last: the mapping itself, or the end of a preferred one."""
        last: Leaf | None = None
        for leaf in self.leaves(rows, first):
            if last is None or leaf.until > last.until or (leaf.waits is None and leaf.until == last.until):
                last = leaf
            if leaf.waits is None:
                break
        assert last is not None, "a search has a leaf"
        return last

    def leaves(self, rows: Sequence[PatternRow], first: int) -> Iterator[Leaf]:
        """All ways from a row on, the preferred first."""
        return self.search(rows, first, lambda _rest, _given: False)

    def search(
        self,
        rows: Sequence[PatternRow],
        first: int,
        is_known: Callable[[Hashable, tuple[str, ...]], bool],
    ) -> Iterator[Leaf]:
        """The ways from a row on. One that goes on from (what is to come of the pattern, the elements given)
        is left out where that is known; explanations know what a preferred way has come to. Raises Exhausted
        when nothing is left.
        """
        open_: list[tuple[_Rest, tuple[str, ...]]] = [((self.pattern.pattern, None), ())]
        while open_:
            rest, given = open_.pop()
            self.left -= EXPRESSION
            if self.left < 0:
                raise Exhausted
            if is_known(rest, given):
                continue
            if rest is None:
                yield Leaf(given, None, rows[first + len(given) - 1].fact[0])
                continue
            part, behind = rest
            if not isinstance(part, Element):
                open_.extend((way, given) for way in reversed(_ways(part, behind)))
                continue
            place = first + len(given)
            deadline = self.deadline(rows, first, given) if given else rows[first].fact[0]
            if place == len(rows) or rows[place].fact[0] > deadline:
                yield Leaf(given, part.name, deadline)
                continue
            skips = self.pattern.skipping and bool(given)
            if skips:
                open_.append((rest, (*given, SKIPPED)))
            if self.satisfies(rows, first, (*given, part.name)):
                open_.append((behind, (*given, part.name)))
            elif not skips:
                yield Leaf(given, part.name, rows[place].fact[0], refused=True)

    def deadline(self, rows: Sequence[PatternRow], first: int, given: tuple[str, ...]) -> Time:
        """The last instant whose rows a partial mapping may take."""
        latest = rows[first].fact[0] + self.pattern.within
        if self.pattern.gap is None:
            return latest
        return min(latest, rows[first + len(given) - 1].fact[0] + self.pattern.gap)

    # -- conditions and values -----------------------------------------------------------------------------

    def satisfies(self, rows: Sequence[PatternRow], first: int, given: tuple[str, ...]) -> bool:
        """Whether the last row of a mapping satisfies the element it is given to."""
        element = self._elements[given[-1]]
        row = rows[first + len(given) - 1]
        return row.source in element.sources and self.passes(
            element, Mapping(rows, first, given, row.fact[0])
        )

    def passes(self, element: RowElement, mapping: Mapping) -> bool:
        """Whether the condition of an element is true."""
        return element.on is None or self.holds(element.on, mapping)

    def holds(self, condition: Expression, mapping: Mapping) -> bool:
        """Whether a condition is true."""
        if (True, condition) not in self._compiled:
            self._compiled[True, condition] = compile_condition(condition, self._leaf, **self._how)
        try:
            return bool(self._compiled[True, condition](mapping))
        except Overlong:
            return False

    def values(self, rows: Sequence[PatternRow], mapped: Mapped) -> tuple[Term | None, ...]:
        """The attributes of a match's fact."""
        mapping = Mapping(rows, mapped.first, mapped.given, mapped.time)
        return tuple(self.value(binding.expression, mapping) for binding in self.bindings)

    def value(self, expression: Expression, mapping: Mapping) -> Term | None:
        """The value of an expression; None for unbound or an error."""
        if (False, expression) not in self._compiled:
            self._compiled[False, expression] = compile_expression(expression, self._leaf, **self._how)
        try:
            found: Term | None = self._compiled[False, expression](mapping)
        except Overlong:
            return None
        return found

    def row(self, name: RowName, mapping: Mapping) -> PatternRow | None:
        """The row that a name is of."""
        if name.place is Place.PREV:
            tested = mapping.first + len(mapping.given) - 1
            if tested < name.n:
                return None
            before, latest = mapping.rows[tested - name.n], mapping.rows[tested].fact[0]
            return before if before.fact[0] >= latest - self.pattern.within else None
        found = mapping.rows_of(name.element)
        if name.place is Place.LAST:
            found.reverse()
        return found[name.n] if name.n < len(found) else None

    def total(self, total: RowTotal, mapping: Mapping) -> Term | None:
        """The value of an aggregate over the rows so far."""
        found = mapping.rows_of(total.element)
        if total.argument is None:
            return summarised(total.function, total.distinct, [None] * len(found), star=True)
        own, argument = Mapping(found, 0, (), mapping.now), total.argument
        terms = [
            self.value(argument, own._replace(first=n, given=(total.element,))) for n in range(len(found))
        ]
        return summarised(total.function, total.distinct, terms)

    @property
    def _how(self) -> dict[str, Any]:
        return {
            "clock": self._clock,
            "now": lambda mapping: self._clock.term(mapping.now),
            "seconds": True,
            "reading": literally,
        }

    def _leaf(self, node: Var | Attribute | TimeOf) -> Callable[[Mapping], Term | None]:
        if isinstance(node, Var):
            total = self._totals[node.name]
            return lambda mapping: self.total(total, mapping)
        name = self._rows[node.position]
        if isinstance(node, Attribute):
            return lambda mapping: self.term(self.row(name, mapping), node.variable)

        def time(mapping: Mapping) -> Term | None:
            row = self.row(name, mapping)
            return None if row is None else self._clock.term(row.fact[0])

        return time


def _ways(part: InOrder | Either | Repeated, behind: _Rest) -> list[_Rest]:
    """What may come of a part and what is behind it, the preferred first."""
    match part:
        case InOrder(parts):
            for one in reversed(parts):
                behind = (one, behind)
            return [behind]
        case Either(branches):
            return [(branch, behind) for branch in branches]
        case Repeated(maximum=0):
            return [behind]
        case Repeated(minimum=minimum, maximum=maximum):
            fewer = None if maximum is None else maximum - 1
            once: _Rest = (part.part, (replace(part, minimum=max(0, minimum - 1), maximum=fewer), behind))
            if minimum:
                return [once]
            return [behind, once] if part.reluctant else [once, behind]
        case _:
            assert_never(part)
