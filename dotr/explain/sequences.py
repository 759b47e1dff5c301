"""A match of a sequence with the element of each row, or the mapping that came furthest.

Place:   matches.py asks for it, testing/tracing.py counts what its search tests; rows come from recorded
         facts, mappings from reference/sequences.py.
Method:  a match is known by its first row: what the literal reading finds there is the match, and the last
         leaf that ended is what made it certain. Where there is none, of all ways from all rows that were
         within reach the longest is shown that was not at an end before, of equal ones the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from dotr.detect.analysis import parts
from dotr.detect.sequences.code import PatternShape
from dotr.events import NEVER, Clock, Fact, Time
from dotr.explain import proofs
from dotr.explain.record import KeptEvent, Record
from dotr.extract.printing import Writer
from dotr.program.positions import Position
from dotr.program.queries import Attribute, Call, Expression, TimeOf, Var
from dotr.program.rules import Rule
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term
from dotr.reference.sequences import Leaf, LiteralSequence, Mapped, PatternRow
from dotr.reference.sequences import Mapping as RowMapping
from dotr.reference.tesla import fact_key

DEPTH = 8
"""Events below events that are opened."""

WAYS = 10_000
"""Leaves from one row that are gone through for the one that came furthest."""

MOST = 100_000
"""Steps of all searches where conditions look at rows of the mapping: there may be 2ⁿ ways over n rows."""

FactsOf = Callable[[int, Position, Time, Time], "list[Fact] | None"]
Prove = Callable[[Position, Fact, int], proofs.FactProof]


class Furthest(NamedTuple):
    """A leaf of the search from a row."""

    rows: Sequence[PatternRow]
    first: int
    leaf: Leaf


class SearchedSequence(LiteralSequence):
    """The literal reading without ways from where a preferred one was: over n rows there may be 2ⁿ. Where
    conditions look at the row and PREV only, what follows depends on the number of rows so far; else on their
    elements, and after so many steps as are allowed nothing more is found.
    """

    def __init__(self, rule: Rule, clock: Clock) -> None:
        assert isinstance(rule.trigger, RowPattern), "a sequence"
        super().__init__(rule.trigger, rule.bindings, clock)
        self._carries = bool(PatternShape(rule.trigger, ()).apart)
        self.steps = MOST

    def leaves(self, rows: Sequence[PatternRow], first: int) -> Iterator[Leaf]:
        known: set[tuple[Hashable, Hashable]] = set()

        def is_known(rest: Hashable, given: tuple[str, ...]) -> bool:
            self.steps -= self._carries
            before = len(known)
            known.add((rest, given if self._carries else len(given)))
            return self.steps < 0 or len(known) == before

        return self.search(rows, first, is_known)


class SequenceExplainer:
    """Owns nothing; `facts` and `prove` are those of the Explainer."""

    def __init__(self, history: Record, facts: FactsOf, prove: Prove) -> None:
        self._history = history
        self._facts = facts
        self._prove = prove

    def event(self, event: KeptEvent, depth: int) -> proofs.EventProof:
        """The proof of a match."""
        rule = self._history.program.rules[event.rule]
        literal = self._literal(rule)
        pattern, begun = literal.pattern, PatternRow(len(event.facts) - 1, event.facts[0])
        since = begun.fact[0] - pattern.within
        for rows in self._partitions(event.rule, literal, since, event.time).values():
            for first in (n for n, row in enumerate(rows) if row == begun):
                given, certain = literal.at(rows, first)
                if not given or certain > event.time:
                    continue
                if literal.values(rows, Mapped(first, given, event.time)) != event.bindings:
                    continue
                shown = self._rows(pattern, rows, first, given, depth)
                ended = self._ended(literal, literal.decided(rows, first), event.time)
                return proofs.EventProof(
                    rule, event.id, event.time, shown[0].fact, (), event.bindings, shown, ended
                )
        gone = (
            "its rows are not kept"
            if literal.steps >= 0
            else "it has more ways than are searched for its rows"
        )
        trigger = self._prove(pattern.sources[begun.source], begun.fact, 0)  # older than what is kept
        return proofs.EventProof(rule, event.id, event.time, trigger, (), event.bindings, (), gone)

    def why_not(self, index: int, time: Time, where: Mapping[str, Term]) -> list[proofs.WhyNot]:
        """The matches at an instant, else how far the furthest mapping came."""
        rule = self._history.program.rules[index]
        literal = self._literal(rule)
        names = rule.variables

        def wanted(values: Sequence[Term | None], of: Sequence[str]) -> bool:
            return all(where.get(name, value) == value for name, value in zip(of, values, strict=True))

        fired = [e for e in self._history.events if e.rule == index and e.time == time]
        found: list[proofs.WhyNot] = [self.event(e, DEPTH) for e in fired if wanted(e.bindings, names)]
        if found:
            return found
        within = literal.pattern.within
        known = self._partitions(index, literal, time - 2 * within, time)
        rows = {key: part for key, part in known.items() if wanted(key, literal.pattern.per)}
        furthest = max(
            (one for part in rows.values() for one in self._ways(literal, part, time)),
            key=lambda one: (
                one.leaf.until >= time,
                len(one.leaf.given),
                one.leaf.refused,
                one.rows[one.first].fact[0],
            ),
            default=None,
        )
        if furthest is None:
            return [proofs.Unmatched(rule, time)]
        return [self._unmatched(literal, rule, furthest, time)]

    def _ways(self, literal: LiteralSequence, rows: Sequence[PatternRow], time: Time) -> Iterator[Furthest]:
        """The leaves from each row within reach that is in no match yet."""
        taken: set[int] = set()
        for start in literal.starts(rows):
            if start.given and start.time <= time:
                taken.update(range(start.first, literal.after(start)))
        for first, row in enumerate(rows):
            if first not in taken and row.fact[0] >= time - literal.pattern.within:
                yield from (Furthest(rows, first, leaf) for leaf in islice(literal.leaves(rows, first), WAYS))

    def _unmatched(
        self, literal: LiteralSequence, rule: Rule, furthest: Furthest, time: Time
    ) -> proofs.Unmatched:
        rows, first, leaf = furthest
        pattern = literal.pattern
        shown = self._rows(pattern, rows, first, leaf.given, 0)
        if leaf.waits is None:
            until = literal.deadline(rows, first, leaf.given)
            return proofs.Unmatched(rule, time, shown, until=until, open=until > time)
        if not leaf.refused:
            return proofs.Unmatched(rule, time, shown, leaf.waits, until=leaf.until, open=leaf.until > time)
        place = first + len(leaf.given)
        row = rows[place]
        proof = self._prove(pattern.sources[row.source], row.fact, 0)
        mapping = RowMapping(rows, first, (*leaf.given, leaf.waits), row.fact[0])
        return proofs.Unmatched(
            rule, time, shown, leaf.waits, proof, self._untrue(literal, leaf.waits, row, mapping)
        )

    def _untrue(
        self, literal: LiteralSequence, element: str, row: PatternRow, mapping: RowMapping
    ) -> tuple[str, ...]:
        """The parts of an element's condition that are not true, with what they read."""
        pattern, writer = literal.pattern, Writer(self._history.program.prefixes)
        own = next(one for one in pattern.elements if one.name == element)
        if row.source not in own.sources:
            return (f"it is of {pattern.sources[row.source].name}, which is no source of {element}",)
        found = []
        for part in parts(own.on):
            if literal.holds(part, mapping):
                continue
            values = (
                f"{writer.expression(pattern.written(leaf))} = {_shown(writer, literal.value(leaf, mapping))}"
                for leaf in dict.fromkeys(_leaves(part))
            )
            found.append(f"not true: {writer.expression(pattern.written(part))}   ({', '.join(values)})")
        return tuple(found)

    # -- rows

    def _literal(self, rule: Rule) -> SearchedSequence:
        return SearchedSequence(rule, self._history.clock)

    def _partitions(
        self, index: int, literal: LiteralSequence, start: Time, end: Time
    ) -> dict[tuple[Term, ...], list[PatternRow]]:
        """The rows of a stretch, in order, by partition."""
        rows = []
        for number, source in enumerate(literal.pattern.sources):
            rows += [PatternRow(number, fact) for fact in self._facts(index, source, start, end) or ()]
        rows.sort(key=lambda row: (row.fact[0], row.source, fact_key(row.fact)))
        found: dict[tuple[Term, ...], list[PatternRow]] = {}
        for row in rows:
            if (key := literal.key(row)) is not None:
                found.setdefault(key, []).append(row)
        return found

    def _rows(
        self,
        pattern: RowPattern,
        rows: Sequence[PatternRow],
        first: int,
        given: Sequence[str],
        depth: int,
    ) -> tuple[proofs.RowProof, ...]:
        found = []
        for element, row in zip(given, rows[first:], strict=False):
            found.append(proofs.RowProof(element, self._prove(pattern.sources[row.source], row.fact, depth)))
        return tuple(found)

    def _ended(self, literal: LiteralSequence, last: Leaf, time: Time) -> str:
        """What made a match certain."""
        clock, until = self._history.clock, last.until
        if last.waits is None:
            text = "certain at its last row"
        elif last.refused:
            text = f"certain when the next row was no {last.waits}, @ {clock.text(until)}"
        else:
            text = f"certain at the deadline of {last.waits}, @ {clock.text(until)}"
        return (
            text
            if until in (time, NEVER)
            else f"{text}; rows before it were not settled until {clock.text(time)}"
        )


def _leaves(expression: Expression) -> Iterator[Expression]:
    """What an expression reads."""
    match expression:
        case Attribute() | TimeOf() | Var():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _leaves(argument)
        case _:
            return


def _shown(writer: Writer, term: Term | None) -> str:
    return "unbound" if term is None else writer.term(term)
