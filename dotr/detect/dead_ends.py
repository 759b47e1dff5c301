"""Which candidates no match can be completed from, so that the search leaves them out.

Place:   code.py asks which loops of a rule are filtered, and by what; the code that it writes keeps what it
         found in a `Completable`. plan.py prints what is not covered.
Method:  a pattern is a tree: a conjunct is measured from one earlier event. What must still be found after a
         candidate mostly depends on the candidate and the trigger alone, whichever events were chosen
         between them. So the candidates of a loop are tested once for each trigger fact: for their own
         conditions, and for a candidate that passes in the loops measured from them, and so on. This is the
         semijoin pass of acyclic joins (Yannakakis 1981), run only as far as the search looks: windows of
         neighbours overlap, and each candidate is tested when the first of them reaches it. What passed is
         kept in canonical order, so that a window over it is found by bisection and the others are not even
         passed over. A trigger fact then costs O(candidates in its windows + matches), whatever the number of
         conjuncts; where a condition compares a candidate with its reference, O(pairs of them).
         A loop may depend on attributes of events further up through its equality keys: what was found is
         then kept for each of their values. Conditions on two events of which one is measured from the other
         are tested pair by pair. Other conditions on several events (`uncovered`) are tested while matches
         are enumerated, and so are values of WITH that may be missing.
Why not: CORE (Bucchi, Grez, Quintana, Riveros, Vansummeren 2022) keeps a compact graph of all partial matches
         while events arrive: constant work for an event whatever the query, and matches one after another
         with a delay linear in their size. It needs unary conditions and one window for the pattern. Here a
         conjunct has its own window and may compare events, selection is defined backwards from the trigger,
         and events that no trigger ever asks for cost one append. The price is one pass over the windows for
         each trigger fact.
         Remembering dead ends while matches are enumerated: each candidate would still be looked up once for
         each earlier one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct

from dotr.detect.analysis import NOW, names
from dotr.detect.analysis import parts as operands
from dotr.detect.plan_step import PlanStep
from dotr.events import Fact, Time
from dotr.program.queries import Attribute, Call, Expression
from dotr.program.rules import Between, Choose, Conjunct, Operator, Rule, Summarise

DEEP: Final = 100
"""How many filtered loops may hang from one another: each is a call inside another. In a longer chain some
candidates are enumerated of which only the next hundred events are known to follow."""

Read: TypeAlias = tuple[str, str]
"""An attribute: (position, variable)."""


class Part(Struct, frozen=True):
    """A conjunct or a part of WHERE. `needs`: the positions and `?variables` that must be known. `gives`:
    what it makes known, one choice after the other if it is a `loop`. `carried`: attributes that only its
    equality keys read, of positions that it needs for nothing else.
    """

    needs: frozenset[str]
    gives: str = ""
    loop: bool = False
    may_fail: bool = True
    carried: frozenset[Read] = frozenset()


class Completion(Struct, frozen=True):
    """What decides whether a match can be completed from a candidate of a loop: places of parts, in the order
    in which they can be tested.

    `pairs`: for a loop among them, what is tested for the candidate together with each of that loop.
    `carried`: attributes of earlier events that they read. `filtered`: whether candidates are tested before
    they are enumerated; those of the first loop need not be.
    """

    parts: tuple[int, ...]
    pairs: Mapping[int, tuple[int, ...]]
    carried: tuple[Read, ...]
    filtered: bool


def needed(step: PlanStep) -> frozenset[str]:
    """What must be known before the candidates of a conjunct can be found."""
    conjunct = step.conjunct
    looked_at = [*step.probe, *_elsewhere(step)]
    return _reference(conjunct).union(*map(names, looked_at)) - {conjunct.position.name, NOW}


def part_of(step: PlanStep) -> Part:
    """A conjunct as a part."""
    conjunct = step.conjunct
    loop = isinstance(conjunct, Choose) and (conjunct.operator is Operator.EACH or conjunct.k > 1)
    total = isinstance(conjunct, Summarise)
    fixed = _reference(conjunct).union(*map(names, _elsewhere(step)))
    read = [leaf for expression in step.probe for leaf in leaves(expression)]
    for leaf in read:
        if not isinstance(leaf, Attribute):
            fixed |= names(leaf)
    carried = {(leaf.position, leaf.variable) for leaf in read if isinstance(leaf, Attribute)}
    return Part(
        needed(step),
        gives="?" + conjunct.variable if isinstance(conjunct, Summarise) else conjunct.position.name,
        loop=loop,
        may_fail=not total and not (isinstance(conjunct, Choose) and conjunct.optional),
        carried=frozenset(read for read in carried if read[0] not in fixed),
    )


def parts_of(rule: Rule, steps: Sequence[PlanStep]) -> list[Part]:
    """The conjuncts of a rule, and the parts of its WHERE."""
    now = rule.trigger.name
    found = [part_of(step) for step in steps]
    for test in operands(rule.where):
        found.append(Part(frozenset(now if name == NOW else name for name in names(test))))
    return found


def known_first(rule: Rule, found: Sequence[Part]) -> frozenset[str]:
    """What is known before a loop is open."""
    known = {rule.trigger.name, rule.triggering.name}
    for part in found:
        if part.gives and not part.loop and part.needs <= known:
            known.add(part.gives)
    return frozenset(known)


def _reference(conjunct: Conjunct) -> frozenset[str]:
    window = conjunct.window
    return frozenset((window.start, window.end) if isinstance(window, Between) else (window.reference,))


def _elsewhere(step: PlanStep) -> list[Expression]:
    """What is read beside the equality keys."""
    argument = step.conjunct.argument if isinstance(step.conjunct, Summarise) else None
    return [expression for expression in (step.residual, argument) if expression is not None]


def leaves(expression: Expression) -> Iterator[Expression]:
    """What an expression reads; a call without arguments is NOW()."""
    if isinstance(expression, Call) and expression.arguments:
        for argument in expression.arguments:
            yield from leaves(argument)
    else:
        yield expression


def completions(
    parts: Sequence[Part], known: frozenset[str], *, counted: bool = False
) -> dict[int, Completion]:
    """Place of a loop → what decides about its candidates. `known`: before any loop is open. Loops nest in
    the order of their places; if matches are only `counted` none is open, and all candidates are tested.
    Cost: O(loops · parts), and as much again for each level of what needs what.
    """
    loops = [place for place, part in enumerate(parts) if part.loop]
    behind = _behind(parts, known)
    found: dict[int, Completion] = {}
    depth: dict[int, int] = {}
    for place in reversed(loops):
        found[place] = one = _completion(parts, known, place, behind, found)
        below = [depth[child] for child in one.parts if child in depth and found[child].filtered]
        depth[place] = 1 + max(below, default=0)
        first = place == loops[0] and not (one.pairs and len(loops) > 2) and not counted
        tests = any(parts[other].may_fail for other in one.parts)
        filtered = tests and not first and depth[place] <= DEEP
        if not filtered:
            depth[place] = 0
        found[place] = Completion(one.parts, one.pairs, one.carried, filtered)
    return found


def filters(rule: Rule, steps: Sequence[PlanStep]) -> bool:
    """Whether candidates of a rule are tested before they are enumerated."""
    found = parts_of(rule, steps)
    if sum(part.loop for part in found) < 2:
        return False
    return any(one.filtered for one in completions(found, known_first(rule, found)).values())


def uncovered(parts: Sequence[Part], known: frozenset[str], *, counted: bool = False) -> list[int]:
    """The places of what can fail for several events together after they were chosen."""
    found = completions(parts, known, counted=counted)
    first = min(found, default=-1)
    covered = {
        other
        for place, one in found.items()
        if one.filtered or place == first
        for other in (*one.parts, *(test for tests in one.pairs.values() for test in tests))
    }
    return [
        place
        for place, part in enumerate(parts)
        if part.may_fail and not part.needs <= known and place not in covered
    ]


def enumerated(rule: Rule, steps: Sequence[PlanStep]) -> list[str]:
    """What is tested for combinations of events, for a reader: which conjunct, or WHERE, and which events."""
    found = parts_of(rule, steps)
    if sum(part.loop for part in found) < 2:
        return []
    known = known_first(rule, found)
    titles = [step.title for step in steps] + ["WHERE"] * (len(found) - len(steps))
    return [
        f"{titles[place]}: tested for each combination of {', '.join(sorted(found[place].needs - known))}"
        for place in uncovered(found, known)
    ]


def _behind(parts: Sequence[Part], known: frozenset[str]) -> dict[str, frozenset[str]]:
    """What is made known → what must have been known before."""
    found: dict[str, frozenset[str]] = {}
    for part in parts:  # of conjuncts, each after those that it needs
        if part.gives:
            direct = part.needs - known
            found[part.gives] = direct.union(*(found.get(name, frozenset()) for name in direct))
    return found


def _completion(
    parts: Sequence[Part],
    known: frozenset[str],
    place: int,
    behind: Mapping[str, frozenset[str]],
    later: Mapping[int, Completion],
) -> Completion:
    outer = behind[parts[place].gives]
    inside = {parts[place].gives}
    taken = _ready(parts, known, inside, outer, later, set())
    pairs: dict[int, tuple[int, ...]] = {}
    for child in taken:
        if parts[child].loop:
            tests = _tests(parts, known | inside, outer, child, taken, later)
            if tests:
                pairs[child] = tests
    feeding = {name for tests in pairs.values() for test in tests for name in parts[test].needs}
    kept = _feeding(parts, taken, feeding, {other for other in taken if parts[other].may_fail})
    kept.sort(key=pairs.__contains__)  # pairs are tested when all else is known
    carried = {
        read
        for other in (*kept, *(test for tests in pairs.values() for test in tests))
        for read in _carried(parts, other, later)
        if read[0] in outer
    }
    return Completion(tuple(kept), pairs, tuple(sorted(carried)), filtered=False)


def _tests(
    parts: Sequence[Part],
    known: frozenset[str],
    outer: frozenset[str],
    child: int,
    taken: Sequence[int],
    later: Mapping[int, Completion],
) -> tuple[int, ...]:
    """What is tested for a candidate together with each of the loop `child`."""
    own = {parts[child].gives}
    both = _ready(parts, known, own, outer, later, {child, *taken})
    of_child = set(later[child].parts) if later[child].filtered else set()
    wanted = {other for other in both if parts[other].may_fail and other not in of_child}
    return tuple(_feeding(parts, both, set(), wanted))


def _ready(
    parts: Sequence[Part],
    known: frozenset[str],
    inside: set[str],
    outer: frozenset[str],
    later: Mapping[int, Completion],
    left_out: set[int],
) -> list[int]:
    """What can be tested once `inside` is known too, which grows. `outer`: what can be carried."""
    found: list[int] = []
    progress = True
    while progress:
        progress = False
        for place, part in enumerate(parts):
            if place in left_out or place in found or part.needs.isdisjoint(inside):
                continue
            missing = part.needs - known - inside
            if missing and not missing <= outer & {position for position, _ in part.carried}:
                continue
            above = {position for position, _ in _carried(parts, place, later)}
            if not above <= known | inside | outer:
                continue
            found.append(place)
            progress = True
            if part.gives and not part.loop:
                inside.add(part.gives)
    return found


def _carried(parts: Sequence[Part], place: int, later: Mapping[int, Completion]) -> set[Read]:
    """The attributes of other events on which a part depends, as far as its keys read them."""
    below = later[place].carried if place in later and later[place].filtered else ()
    return {*parts[place].carried, *below}


def _feeding(parts: Sequence[Part], places: Sequence[int], feeding: set[str], wanted: set[int]) -> list[int]:
    """Those of `places` that are wanted, or give what one of them or of `feeding` needs."""
    kept: list[int] = []
    needs = set(feeding)
    for place in reversed(places):
        part = parts[place]
        if place in wanted or (part.gives in needs and not part.loop):
            kept.append(place)
            needs |= part.needs
    kept.reverse()
    return kept


class Completable:
    """Owns the candidates of one bucket from which a match of one trigger fact can be completed, in canonical
    order, and the times for which they are known: `bounds` are starts and ends of intervals, half open;
    `since`, `until` those of the interval that was asked for last.
    """

    __slots__ = ("bounds", "facts", "since", "until")

    def __init__(self) -> None:
        self.bounds: list[Time] = []
        self.facts: list[Fact] = []
        self.since, self.until = 1, 0  # no window lies there

    def gaps(self, start: Time, end: Time) -> list[tuple[Time, Time]]:
        """The parts of the times from `start` up to before `end` that are not known yet: from now on they
        are.
        """
        bounds = self.bounds
        first = bisect_left(bounds, start)
        if first % 2 and end <= bounds[first]:  # all are known
            self.since, self.until = bounds[first - 1], bounds[first]
            return []
        last = bisect_left(bounds, end + 1)
        edges = [] if first % 2 else [start]
        edges += bounds[first:last]
        if last % 2 == 0:
            edges.append(end)
        bounds[first:last] = ([] if first % 2 else [start]) + ([] if last % 2 else [end])
        place = first - first % 2
        self.since, self.until = bounds[place], bounds[place + 1]
        found = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]
        return [(a, b) for a, b in found if a < b]

    def ahead(self, bucket: Sequence[Fact], facts: Sequence[Fact], width: Time, beyond: Time) -> list[Fact]:
        """The facts of the bucket in the windows of `facts` that are not known yet, in canonical order. Each
        window reaches from `width` before its fact up to before `beyond` after it.
        """
        found: list[Fact] = []
        bounds, fresh = self.bounds, not self.bounds
        for start, end in spans(facts, width, beyond):
            if fresh:  # the common case
                bounds += (start, end)
                found += bucket[bisect_left(bucket, (start,)) : bisect_left(bucket, (end,))]
                continue
            for since, until in self.gaps(start, end):
                found += bucket[bisect_left(bucket, (since,)) : bisect_left(bucket, (until,))]
        return found

    def put(self, facts: list[Fact]) -> None:
        """Add those that pass of what was not known."""
        known = self.facts
        if not known or not facts or known[-1][0] < facts[0][0]:
            known += facts
            return
        place = bisect_left(known, (facts[0][0],))
        if facts[-1][0] < known[place][0]:
            known[place:place] = facts
        else:
            known += facts
            known.sort(key=_TIME)  # facts of one time became known together


_TIME = itemgetter(0)


def spans(facts: Sequence[Fact], width: Time, beyond: Time) -> Iterator[tuple[Time, Time]]:
    """The times that the windows of `facts` cover together, as few intervals; see `Completable.ahead`.
    `facts` are sorted by time, at least one.
    """
    start, end = facts[0][0] - width, facts[0][0]
    for fact in facts:
        if fact[0] - width > end:
            yield start, end
            start = fact[0] - width
        end = fact[0] + beyond
    yield start, end
