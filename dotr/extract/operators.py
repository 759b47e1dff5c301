"""Query operators: the solutions of a view, or their signed change at an instant.

Place:   made from algebra.py for everything except conjunctions, which are the leaves (leaves.py).
Method:  every operator can list its solutions over a view that agree with a `seed`, and return the signed
         change of its solutions from the background to the instant. With S the old and N the new state:
             Δ(A ⋈ B) = ΔA ⋈ B(N) + A(S) ⋈ ΔB
         and non-monotone operators (OPTIONAL, MINUS, EXISTS) evaluate again the old solutions that agree with
         a change on their right, f mapping one solution to the result:
             Δ = Σ over ΔA of ± f(N)  +  Σ over touched A(S) of f(N) − f(S)
         (differential: McSherry et al. 2013, with the old state at hand instead of a trace). Multisets are
         exact. If the background alone has no A, the second sums vanish and B is not watched.
         Filters, binds and UNION map a change of the input to a change of the output, row by row; a group
         that a change touches is aggregated before and after, unless the background has none of it.
         Aggregates use the exact sums and the order of the contract; the full engine calls them, too, inside
         custom aggregate functions.
Why not: bindings pushed everywhere: variables have bottom-up scope in SPARQL, so a seed may only restrict a
         leaf, and must not be visible to a filter or reach the right side of an OPTIONAL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from dotr.budget import KEPT, Exhausted, Factor, Meter
from dotr.events import Values
from dotr.expressions.aggregates import summarise
from dotr.joins.plan import Relation, View
from dotr.rdf.terms import Term, integer

Row: TypeAlias = Values
Seed: TypeAlias = Mapping[str, Term]
Change: TypeAlias = tuple[Row, int]
C = TypeVar("C")
Test: TypeAlias = Callable[[Row], bool]
Compute: TypeAlias = Callable[[Row], Term | None]
Lookup: TypeAlias = Callable[[View, Sequence[Term]], Iterable[Row]]
"""The rows of a view in which variables fixed beforehand have these values."""


class Watched(Protocol):
    """What may change an answer: rows of these relations."""

    sources: tuple[Relation, ...]


class SolutionOperator(Protocol):
    """`schema`: its variables, the columns of its rows; None in a row if unbound.

    `certain`: the variables that every row binds. `statically_empty`: the background alone has no solution.
    `calls`: how many calls of functions of one's own it has.
    """

    @property
    def schema(self) -> tuple[str, ...]: ...
    @property
    def certain(self) -> frozenset[str]: ...
    @property
    def statically_empty(self) -> bool: ...
    @property
    def calls(self) -> int: ...

    def rows(self, view: View, seed: Seed) -> Iterable[Row]:
        """The solutions over a view that agree with the seed, with multiplicity."""

    def lookup(self, names: Sequence[str]) -> Lookup:
        """`rows` for seeds of exactly these variables, which are certain. Before the first instant."""

    def changes(self) -> list[Change]:
        """(row, how many more or fewer) from the background to the instant.

        Not consolidated: a row may occur several times, and be removed although the background lacks it.
        """

    def watch(self) -> list[Watched]:
        """Prepare for `changes`, before the first instant. Returns what can change anything."""


def seeded(operator: SolutionOperator, names: Sequence[str]) -> Lookup:
    """A lookup by `rows`."""
    return lambda view, values: operator.rows(view, dict(zip(names, values, strict=True)))


def consolidated(changes: Iterable[Change]) -> list[Change]:
    """The same change, each row once and without zero changes; in order of first appearance."""
    changes = list(changes)
    if len(changes) == 1:
        return changes if changes[0][1] else []
    total: dict[Row, int] = {}
    for row, count in changes:
        total[row] = total.get(row, 0) + count
    return [(row, count) for row, count in total.items() if count]


def gained(changes: Iterable[Change]) -> list[Row]:
    """The rows after the changes, starting from none, with multiplicity.

    `changes` is consolidated: a raw list of `SolutionOperator.changes` may remove a row that it adds.
    """
    found: list[Row] = []
    for row, count in changes:
        assert count > 0, "nothing can be taken from nothing"
        found += [row] * count
    return found


def apart(meter: Meter, call: Callable[[], object]) -> None:
    """Find out which functions of one's own are called, at no cost: what rows cost is charged when they are
    evaluated, whether results are kept or not. Where that takes more than the meter's limit, calls come in
    the order of rows.
    """
    left = meter.left[0]
    meter.left[0] = meter.limit
    try:
        call()
    except Exhausted:
        pass
    finally:
        meter.left[0] = left


def ahead(parts: Iterable[Callable[[], object]], calls: int, meter: Meter) -> None:
    """Call functions of one's own for all `parts` together, which a join will evaluate one by one."""
    from dotr.expressions.own_functions import (  # noqa: PLC0415  # start-up: few runs call one
        call_in_order,
        is_settled,
    )

    if not is_settled():
        apart(meter, lambda: call_in_order(lambda part: part(), parts, calls))


def _all(rows: Callable[[View, Any], Iterable[Row]], view: View, seed: Any) -> list[Row]:
    return list(rows(view, seed))


def agrees(row: Row, columns: Sequence[tuple[int, str]], seed: Seed) -> bool:
    """Whether the row's variables at `columns` have no other value than the seed."""
    for column, name in columns:
        value = row[column]
        if value is not None and name in seed and seed[name] != value:
            return False
    return True


def picker(places: Sequence[int]) -> Callable[[Any], Row]:
    """A function that picks columns of a row, as a tuple."""
    if not places:
        return lambda row: ()
    if len(places) == 1:
        only = places[0]
        return lambda row: (row[only],)
    return itemgetter(*places)


def counted(rows: Iterable[C], meter: Meter, what: str, units: int = 1) -> list[C]:
    """The rows as a list, charged. Raises Exhausted."""
    found = rows if isinstance(rows, list) else list(rows)
    meter.charge(len(found), what, units)
    return found


class Pairing:
    """Owns how rows of a left and a right operator are joined, and looked up for each other.

    `exact`: the shared variables are certain on both sides, so that a lookup finds exactly the matching rows.
    `found`: `matches`, after calls of functions of one's own were made for it (`ahead`). Rows are charged to
    `meter`, as the sides of `what`.
    """

    def __init__(self, left: SolutionOperator, right: SolutionOperator, meter: Meter, what: str) -> None:
        self.left, self.right = left, right
        self._meter, self._what = meter, what
        self._size = 0
        self.schema = tuple(sorted({*left.schema, *right.schema}))
        places = {name: i for i, name in enumerate(left.schema)}
        others = {name: i for i, name in enumerate(right.schema)}
        shared = [name for name in self.schema if name in places and name in others]
        self._shared = [(places[name], others[name], name) for name in shared]
        self._sources = [(places.get(name), others.get(name)) for name in self.schema]
        self.exact = left.certain.issuperset(shared) and right.certain.issuperset(shared)
        width = len(left.schema)
        self._pick = picker([places[n] if n in places else width + others[n] for n in self.schema])
        self._nothing: Row = (None,) * len(right.schema)
        self._left_key = picker([places[name] for name in shared])
        self._right_key = picker([others[name] for name in shared])
        self._rights = right.lookup(shared) if self.exact else seeded(right, ())
        self._lefts: Lookup | None = left.lookup(shared) if self.exact and not left.statically_empty else None
        self.found = self._settled if right.calls else self.matches

    def lefts(self, rows: Iterable[C]) -> Sequence[C]:
        """The rows of the left side, charged."""
        found = counted(rows, self._meter, f"the left side of {self._what}")
        self._size = len(found)
        return found

    def matches(self, view: View, left: Row, seed: Seed | None = None) -> Sequence[Row]:
        """Right rows of a view that agree with a left row (and with `seed`)."""
        if self.exact and not seed:
            rows = self._rights(view, self._left_key(left))  # type: ignore[arg-type]  # certain: no None
            found = rows if isinstance(rows, list) else list(rows)
            self._charge(found)
            return found
        known = {name: value for place, _, name in self._shared if (value := left[place]) is not None}
        found = list(self.right.rows(view, {**seed, **known} if seed else known))
        self._charge(found)
        return [row for row in found if self._compatible(left, row)]

    def _settled(self, view: View, left: Row, seed: Seed | None = None) -> Sequence[Row]:
        from dotr.expressions.own_functions import settled  # noqa: PLC0415  # start-up: few runs call one

        return settled(lambda: self.matches(view, left, seed))

    def asked(
        self, lefts: Iterable[tuple[View, Row]], seed: Seed | None = None
    ) -> list[Callable[[], object]]:
        """`matches` for each left row over a view, to be evaluated."""
        return [partial(self.matches, view, left, seed) for view, left in lefts]

    def _charge(self, found: Sequence[Row]) -> None:
        left = self._meter.left
        left[0] -= 1 + KEPT * len(found)
        if left[0] < 0:
            sides = (("left", self._size), ("right", len(found)))
            self._meter.spent([Factor(f"the {side} side of {self._what}", size) for side, size in sides])

    def touched(self, rights: Iterable[Row]) -> Iterator[Change]:
        """Distinct left rows of the background that agree with one of the right rows, with multiplicity."""
        if self._lefts is not None:
            lookup, keys = self._lefts, dict.fromkeys(map(self._right_key, rights))
            if self.left.calls:
                ahead([partial(_all, lookup, View.OLD, key) for key in keys], self.left.calls, self._meter)
            for key in keys:
                found = Counter(lookup(View.OLD, key))  # type: ignore[arg-type]  # no None
                self._meter.charge(1 + len(found), f"the left side of {self._what}", KEPT)
                yield from found.items()
            return
        yield from touched(self.left, map(self.back, rights), self._meter)

    def back(self, right: Row) -> dict[str, Term]:
        """The values of a right row for variables of the left."""
        return {name: value for _, place, name in self._shared if (value := right[place]) is not None}

    def _compatible(self, left: Row, right: Row) -> bool:
        for i, j, _ in self._shared:
            a, b = left[i], right[j]
            if a is not None and b is not None and a != b:
                return False
        return True

    def overlaps(self, left: Row, right: Row) -> bool:
        """Whether the two bind a variable in common."""
        return any(left[i] is not None and right[j] is not None for i, j, _ in self._shared)

    def row(self, left: Row, right: Row) -> Row:
        if self.exact:
            return self._pick(left + right)
        return tuple(
            [
                left[i] if i is not None and left[i] is not None else right[j] if j is not None else None
                for i, j in self._sources
            ]
        )

    def alone(self, left: Row) -> Row:
        """The left row over the common schema."""
        return self._pick(left + self._nothing)


def touched(operator: SolutionOperator, seeds: Iterable[Seed], meter: Meter) -> Iterator[Change]:
    """Distinct solutions of the background that agree with at least one seed, with multiplicity."""
    found: dict[Row, int] = {}
    distinct = {tuple(sorted(seed.items())): seed for seed in seeds}
    asked = [distinct[()]] if () in distinct else list(distinct.values())
    if operator.calls:
        ahead([partial(_all, operator.rows, View.OLD, seed) for seed in asked], operator.calls, meter)
    for seed in asked:
        rows = Counter(operator.rows(View.OLD, seed))
        meter.charge(1 + len(rows), "answers of the background that may have changed", KEPT)
        found.update(rows)
    yield from found.items()


class JoinOperator:
    """Join of two operators: looks up the right side for each row of the left."""

    def __init__(self, left: SolutionOperator, right: SolutionOperator, meter: Meter) -> None:
        self._left, self._right, self._meter = left, right, meter
        self._pairing = Pairing(left, right, meter, "a join")
        self.schema = self._pairing.schema
        self.certain = left.certain | right.certain
        self.statically_empty = left.statically_empty or right.statically_empty
        self.calls = left.calls + right.calls

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        pairing = self._pairing
        lefts = pairing.lefts(self._left.rows(view, seed))
        if self._right.calls:
            ahead(pairing.asked(((view, left) for left in lefts), seed), self.calls, self._meter)
        for left in lefts:
            for right in pairing.found(view, left, seed):
                yield pairing.row(left, right)

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def _ahead(self, changes: Iterable[Change]) -> None:
        """Call functions of one's own for what `changes` looks up, given those of the left side."""
        left, right, pairing = self._left, self._right, self._pairing
        parts = pairing.asked((View.NEW, row) for row, _ in changes)
        if left.statically_empty:
            ahead(parts, self.calls, self._meter)
            return
        ahead([right.changes, *parts], self.calls, self._meter)
        if left.calls:
            seeds = [pairing.back(row) for row, _ in right.changes()]
            ahead([partial(_all, left.rows, View.OLD, seed) for seed in seeds], self.calls, self._meter)

    def changes(self) -> list[Change]:
        pairing = self._pairing
        changed = pairing.lefts(self._left.changes())
        if self.calls:
            self._ahead(changed)
        found = [
            (pairing.row(left, right), count)
            for left, count in changed
            for right in pairing.found(View.NEW, left)
        ]
        if self._left.statically_empty:
            return found
        for right, count in self._right.changes():
            seed = pairing.back(right)
            columns = [(i, name) for i, name in enumerate(self._left.schema) if name in seed]
            lefts = list(self._left.rows(View.OLD, seed))
            self._meter.charge(1 + len(lefts), "the left side of a join", KEPT)
            for left in lefts:
                if agrees(left, columns, seed):
                    found.append((pairing.row(left, right), count))
        return found

    def watch(self) -> list[Watched]:
        watched = self._left.watch()
        return watched if self._left.statically_empty else [*watched, *self._right.watch()]


class LeftJoinOperator:
    """OPTIONAL: every extension of a left row that passes the conditions, or the row alone."""

    def __init__(
        self,
        left: SolutionOperator,
        right: SolutionOperator,
        conditions: Callable[[tuple[str, ...]], Test] | None,
        meter: Meter,
        units: int,
        ordered: Callable[[Sequence[str]], Callable[[Sequence[Row]], None]] | None = None,
        calls: int = 0,
    ) -> None:
        """`ordered`: makes of a schema what calls functions of one's own for rows, in canonical order;
        `calls`: how many calls the conditions have.
        """
        self._left, self._right, self._meter, self._units = left, right, meter, units
        self._pairing = Pairing(left, right, meter, "an OPTIONAL")
        self.schema = self._pairing.schema
        self.certain = left.certain
        self.statically_empty = left.statically_empty
        self.calls = left.calls + right.calls + calls
        self._columns = [(i, name) for i, name in enumerate(self.schema)]
        self._holds = None if conditions is None else conditions(self.schema)
        self._call = None if ordered is None else ordered(self.schema)

    def _paired(self, view: View, left: Row) -> list[Row]:
        pairing = self._pairing
        return [pairing.row(left, right) for right in pairing.found(view, left)]

    def _called(self, asked: Sequence[tuple[View, Row]]) -> None:
        """Call functions of one's own for all extensions of left rows."""
        if self._right.calls:
            ahead(self._pairing.asked(asked), self.calls, self._meter)
        call = self._call
        if call is not None:
            apart(
                self._meter, lambda: call([row for view, left in asked for row in self._paired(view, left)])
            )

    def _extended(self, view: View, left: Row) -> list[Row]:
        pairing = self._pairing
        found = self._paired(view, left)
        if self._holds is not None:
            self._meter.charge(len(found), "the condition of an OPTIONAL", self._units)
            found = [row for row in found if self._holds(row)]
        return found or [pairing.alone(left)]

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        lefts = self._pairing.lefts(self._left.rows(view, seed))
        if self.calls:
            self._called([(view, left) for left in lefts])
        for left in lefts:
            for row in self._extended(view, left):
                if agrees(row, self._columns, seed):
                    yield row

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        new, old = View.NEW, View.OLD
        lefts = list(self._pairing.lefts(self._left.changes()))
        touched: Sequence[Change] = ()
        if not self._left.statically_empty:
            rights = [right for right, _ in consolidated(self._right.changes())]
            touched = list(self._pairing.touched(rights))
        if self.calls:
            self._called([*((new, c[0]) for c in (*lefts, *touched)), *((old, c[0]) for c in touched)])
        found = [(row, n) for left, n in lefts for row in self._extended(new, left)]
        for left, count in touched:
            found += [(row, count) for row in self._extended(new, left)]
            found += [(row, -count) for row in self._extended(old, left)]
        return found

    def watch(self) -> list[Watched]:
        watched = self._left.watch()
        return watched if self._left.statically_empty else [*watched, *self._right.watch()]


class DifferenceOperator:
    """MINUS: the left rows that no right row agrees with on a variable both bind."""

    def __init__(self, left: SolutionOperator, right: SolutionOperator, meter: Meter) -> None:
        self._left, self._right, self._meter = left, right, meter
        self._pairing = Pairing(left, right, meter, "a MINUS")
        self.schema = left.schema
        self.certain = left.certain
        self.statically_empty = left.statically_empty
        self.calls = left.calls + right.calls

    def _stays(self, view: View, left: Row) -> bool:
        pairing = self._pairing
        return not any(pairing.overlaps(left, right) for right in pairing.found(view, left))

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        lefts = self._pairing.lefts(self._left.rows(view, seed))
        self._called((view, left) for left in lefts)
        for left in lefts:
            if self._stays(view, left):
                yield left

    def _called(self, asked: Iterable[tuple[View, Row]]) -> None:
        """Call functions of one's own for what left rows are compared with."""
        if self._right.calls:
            ahead(self._pairing.asked(asked), self.calls, self._meter)

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        lefts = self._pairing.lefts(self._left.changes())
        touched: Sequence[Change] = ()
        if not self._left.statically_empty:
            rights = [right for right, _ in consolidated(self._right.changes())]
            touched = list(self._pairing.touched(rights))
        if self._right.calls:
            both = [(view, left) for view in (View.NEW, View.OLD) for left, _ in touched]
            self._called([*((View.NEW, left) for left, _ in lefts), *both])
        found = [change for change in lefts if self._stays(View.NEW, change[0])]
        for left, count in touched:
            change = self._stays(View.NEW, left) - self._stays(View.OLD, left)
            if change:
                found.append((left, count * change))
        return found

    def watch(self) -> list[Watched]:
        watched = self._left.watch()
        return watched if self._left.statically_empty else [*watched, *self._right.watch()]


class ExistsOperator:
    """FILTER with EXISTS. `patterns`: operators without filters, whose changes show what to test again.

    `condition` is a function of a view and a row.
    """

    def __init__(
        self,
        inner: SolutionOperator,
        condition: Callable[[View, Row], bool],
        patterns: Sequence[SolutionOperator],
        meter: Meter,
        units: int,
        call: Callable[[Sequence[tuple[View, Row]]], None] | None = None,
        calls: int = 0,
    ) -> None:
        """`call` makes the `calls` of functions of one's own for rows, in canonical order."""
        self._inner, self._patterns, self._meter, self._units = inner, patterns, meter, units
        self._condition, self._call = condition, call
        self.schema = inner.schema
        self.certain = inner.certain
        self.statically_empty = inner.statically_empty
        self.calls = inner.calls + calls

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        asked = self._asked(self._inner.rows(view, seed))
        self._called([(view, row) for row in asked])
        for row in asked:
            if self._condition(view, row):
                yield row

    def _asked(self, rows: Iterable[C]) -> list[C]:
        return counted(rows, self._meter, "rows that an EXISTS is asked of", 1 + self._units)

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        holds = self._condition
        changes = self._asked(self._inner.changes())
        again = [] if self._inner.statically_empty else self._again()
        rows = [(View.NEW, row) for row, _ in (*changes, *again)]
        self._called(rows + [(View.OLD, row) for row, _ in again])
        found = [change for change in changes if holds(View.NEW, change[0])]
        for row, count in again:
            change = holds(View.NEW, row) - holds(View.OLD, row)
            if change:
                found.append((row, count * change))
        return found

    def _called(self, asked: Sequence[tuple[View, Row]]) -> None:
        call = self._call
        if call is not None:
            apart(self._meter, lambda: call(asked))

    def _again(self) -> list[Change]:
        """The rows of the background for which the patterns may have changed."""
        seeds = [
            {n: t for n, t in zip(pattern.schema, row, strict=True) if t is not None and n in self.schema}
            for pattern in self._patterns
            for row, _ in consolidated(pattern.changes())
        ]
        return self._asked(touched(self._inner, seeds, self._meter))

    def watch(self) -> list[Watched]:
        watched = self._inner.watch()
        if not self._inner.statically_empty:
            for pattern in self._patterns:
                watched = [*watched, *pattern.watch()]
        return watched


def aggregate(
    function: str,
    distinct: bool,
    values: Sequence[Term | None],
    summary: Callable[..., Term | None] = summarise,
) -> Term | None:
    """The aggregate of a group's values, None for an error; AVG of no values is 0 (sec. 18.5.1.4).

    `summary`: `summarise`, or its literal reading.
    """
    if function == "AVG" and not values:
        return integer(0)
    return summary(function, distinct, values)


def columns_for(have: Sequence[str], want: Sequence[str]) -> list[int | None]:
    """The place of each wanted variable, None if missing."""
    places = {name: i for i, name in enumerate(have)}
    return [places.get(name) for name in want]


def picked(row: Row, columns: Sequence[int | None]) -> Row:
    return tuple([None if i is None else row[i] for i in columns])


class UnionOperator:
    """UNION: the rows of every branch, mapped to one schema."""

    def __init__(self, branches: Sequence[SolutionOperator], meter: Meter) -> None:
        self._branches = branches
        self._meter = meter
        self.schema = tuple(sorted({name for branch in branches for name in branch.schema}))
        self._columns = [columns_for(branch.schema, self.schema) for branch in branches]
        sets = [branch.certain for branch in branches]
        self.certain: frozenset[str] = frozenset.intersection(*sets) if sets else frozenset()
        self.statically_empty = all(branch.statically_empty for branch in branches)
        self.calls = sum(branch.calls for branch in branches)

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        if self.calls:
            parts = [partial(_all, branch.rows, view, seed) for branch in self._branches]
            ahead(parts, self.calls, self._meter)
        for branch, columns in zip(self._branches, self._columns, strict=True):
            for row in counted(branch.rows(view, seed), self._meter, "a branch of a UNION", KEPT):
                yield picked(row, columns)

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        if self.calls:
            ahead([branch.changes for branch in self._branches], self.calls, self._meter)
        return [
            (picked(row, columns), count)
            for branch, columns in zip(self._branches, self._columns, strict=True)
            for row, count in counted(branch.changes(), self._meter, "a branch of a UNION", KEPT)
        ]

    def watch(self) -> list[Watched]:
        return [watched for branch in self._branches for watched in branch.watch()]


class CallsInOrder:
    """The same rows, after functions of one's own were called for them in canonical order (by `call`)."""

    def __init__(self, inner: SolutionOperator, call: Callable[[Sequence[Row]], None], calls: int) -> None:
        self._inner, self._call = inner, call
        self.schema = inner.schema
        self.certain = inner.certain
        self.statically_empty = inner.statically_empty
        self.calls = inner.calls + calls

    def _called(self, rows: Iterable[Row]) -> list[Row]:
        found = list(rows)
        self._call(found)
        return found

    def rows(self, view: View, seed: Seed) -> list[Row]:
        return self._called(self._inner.rows(view, seed))

    def lookup(self, names: Sequence[str]) -> Lookup:
        inner = self._inner.lookup(names)
        return lambda view, values: self._called(inner(view, values))

    def changes(self) -> list[Change]:
        changes = self._inner.changes()
        self._call([row for row, _ in changes])
        return changes

    def watch(self) -> list[Watched]:
        return self._inner.watch()


class FilterOperator:
    """FILTER without EXISTS."""

    def __init__(
        self, inner: SolutionOperator, condition: Callable[[tuple[str, ...]], Test], meter: Meter, units: int
    ) -> None:
        self._inner, self._meter, self._units = inner, meter, units
        self.schema = inner.schema
        self.certain = inner.certain
        self.statically_empty = inner.statically_empty
        self.calls = inner.calls
        self._holds = condition(inner.schema)

    def rows(self, view: View, seed: Seed) -> list[Row]:
        return list(filter(self._holds, self._tested(self._inner.rows(view, seed))))

    def lookup(self, names: Sequence[str]) -> Lookup:
        inner, holds, tested = self._inner.lookup(names), self._holds, self._tested
        return lambda view, values: list(filter(holds, tested(inner(view, values))))

    def changes(self) -> list[Change]:
        return [change for change in self._tested(self._inner.changes()) if self._holds(change[0])]

    def _tested(self, rows: Iterable[C]) -> list[C]:
        return counted(rows, self._meter, "rows that a FILTER is asked of", 1 + self._units)

    def watch(self) -> list[Watched]:
        return self._inner.watch()


class ExtendOperator:
    """BIND or a SELECT expression; an error leaves the variable unbound."""

    def __init__(
        self,
        inner: SolutionOperator,
        variable: str,
        compute: Callable[[tuple[str, ...]], Compute],
        meter: Meter,
        units: int,
    ) -> None:
        self._inner, self._variable, self._meter, self._units = inner, variable, meter, units
        self.schema = tuple(sorted({*inner.schema, variable}))
        self.certain = inner.certain
        self.statically_empty = inner.statically_empty
        self.calls = inner.calls
        self._columns = columns_for(inner.schema, self.schema)
        self._place = self.schema.index(variable)
        self._compute = compute(inner.schema)

    def _row(self, row: Row) -> Row:
        wide = list(picked(row, self._columns))
        wide[self._place] = self._compute(row)
        return tuple(wide)

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        wanted = seed.get(self._variable)
        inner = seed if wanted is None else {n: t for n, t in seed.items() if n != self._variable}
        for row in map(self._row, self._computed(self._inner.rows(view, inner))):
            if wanted is None or row[self._place] in (wanted, None):
                yield row

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        return [(self._row(row), count) for row, count in self._computed(self._inner.changes())]

    def _computed(self, rows: Iterable[C]) -> list[C]:
        return counted(rows, self._meter, "rows that a BIND is computed for", KEPT + self._units)

    def watch(self) -> list[Watched]:
        return self._inner.watch()


class AggregateState(Struct, frozen=True):
    """One aggregate: `argument` None is `COUNT(*)`; with `distinct` over whole solutions."""

    function: str
    distinct: bool
    argument: Compute | None


class GroupOperator:
    """Groups and their totals.

    `keys`: (name, its inner variable or None for an expression, how to compute it). `units`: of
    evaluating the keys and the arguments of totals for a row.
    """

    def __init__(
        self,
        inner: SolutionOperator,
        keys: Sequence[tuple[str, str | None, Compute]],
        totals: Sequence[tuple[str, AggregateState]],
        scope: Sequence[str],
        meter: Meter,
        units: int,
    ) -> None:
        self._inner, self._meter = inner, meter
        self._keys = keys
        self._totals = [total for _, total in totals]
        self._units = 1 + units
        self._whole = columns_for(inner.schema, scope)
        names = [name for name, _, _ in keys] + [name for name, _ in totals]
        self.schema = tuple(sorted(names))
        self.certain = frozenset(name for name, source, _ in keys if source in inner.certain)
        self.statically_empty = inner.statically_empty and bool(keys)
        self.calls = inner.calls
        self._columns = columns_for(names, self.schema)
        self._empty = None if keys else self._row((), [])

    def _key(self, row: Row) -> Row:
        return tuple([compute(row) for _, _, compute in self._keys])

    def _groups(self, rows: Iterable[Row]) -> dict[Row, list[Row]]:
        groups: dict[Row, list[Row]] = {} if self._keys else {(): []}
        for row in counted(rows, self._meter, "rows that are grouped", self._units):
            groups.setdefault(self._key(row), []).append(row)
        return groups

    def _row(self, key: Row, members: list[Row]) -> Row:
        found = [self._total(total, members) for total in self._totals]
        return picked((*key, *found), self._columns)

    def _total(self, total: AggregateState, members: list[Row]) -> Term | None:
        if total.argument is not None:
            return aggregate(total.function, total.distinct, [total.argument(row) for row in members])
        rows = {picked(row, self._whole) for row in members} if total.distinct else members
        return integer(len(rows))

    def rows(self, view: View, seed: Seed) -> Iterator[Row]:
        inner = {source: seed[name] for name, source, _ in self._keys if source is not None and name in seed}
        columns = [(i, name) for i, name in enumerate(self.schema)]
        for key, members in self._groups(self._inner.rows(view, inner)).items():
            row = self._row(key, members)
            if agrees(row, columns, seed):
                yield row

    def lookup(self, names: Sequence[str]) -> Lookup:
        return seeded(self, names)

    def changes(self) -> list[Change]:
        changes = consolidated(self._inner.changes())
        if not changes:
            return []
        if self._inner.statically_empty:  # the changes are everything
            found = [(self._row(key, members), 1) for key, members in self._groups(gained(changes)).items()]
            return found if self._empty is None else [*found, (self._empty, -1)]
        keys = dict.fromkeys(self._key(row) for row, _ in changes)
        if self.calls:
            rows, views = self._inner.rows, (View.NEW, View.OLD)
            parts = [partial(_all, rows, view, self._seed(key)) for key in keys for view in views]
            ahead(parts, self.calls, self._meter)
        return [change for key in keys for change in self._again(key)]

    def _seed(self, key: Row) -> dict[str, Term]:
        pairs = zip(self._keys, key, strict=True)
        return {source: term for (_, source, _), term in pairs if source is not None and term is not None}

    def _again(self, key: Row) -> Iterator[Change]:
        """One group, before and after."""
        seed = self._seed(key)
        for view, sign in ((View.NEW, 1), (View.OLD, -1)):
            rows = counted(self._inner.rows(view, seed), self._meter, "rows that are grouped", self._units)
            members = [row for row in rows if self._key(row) == key]
            if members or not self._keys:
                yield self._row(key, members), sign

    def watch(self) -> list[Watched]:
        return self._inner.watch()
