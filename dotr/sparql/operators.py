"""Operators of the algebra, executable: all solutions of a state, or the change between two states.

Place:   made from algebra.py for everything that is not one conjunction; conjunctions are the leaves.
Method:  every operator can list its solutions over a state that agree with a `seed`, and give the signed
         change of its solutions from the background to the instant. With S the old and N the new state:
             Δ(A ⋈ B) = ΔA ⋈ B(N) + A(S) ⋈ ΔB
         and what is not monotone (OPTIONAL, MINUS, EXISTS) looks again at the old solutions that agree with a
         change on its right, f being what becomes of one solution:
             Δ = Σ over ΔA of ± f(N)  +  Σ over touched A(S) of f(N) − f(S)
         (differential: McSherry et al. 2013, with the old state at hand instead of a trace). Multisets are
         exact.
Why not: bindings pushed into everything: variables have bottom-up scope in SPARQL, so a seed may only
         restrict a leaf, never be seen by a filter or reach the right side of an OPTIONAL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from dotr.events import Values
from dotr.rdf.terms import Term, integer
from dotr.sparql import totals

State = TypeVar("State")
Row: TypeAlias = Values
Seed: TypeAlias = Mapping[str, Term]
Change: TypeAlias = tuple[Row, int]
Test: TypeAlias = Callable[[Row], bool]
Compute: TypeAlias = Callable[[Row], Term | None]


@dataclass(frozen=True, slots=True)
class Instant(Generic[State]):
    """The two states of one instant: the closed background, and K(t)."""

    old: State
    new: State


class Operator(Protocol[State]):
    """`schema`: its variables, the columns of its rows; None where a row does not bind one."""

    @property
    def schema(self) -> tuple[str, ...]: ...

    def rows(self, state: State, seed: Seed) -> Iterable[Row]:
        """The solutions over a state that agree with the seed; each as often as it is one."""

    def changes(self, instant: Instant[State]) -> list[Change]:
        """(row, how many more or fewer) from the old state to the new; a row may occur several times."""

    def prepare(self, given: frozenset[str]) -> None:
        """Before the first instant: `rows` will be asked for an instant with seeds for these variables."""

    def watch(self) -> None:
        """Before the first instant: `changes` will be asked."""


def consolidated(changes: Iterable[Change]) -> list[Change]:
    """The same change, each row once and none without effect; in order of first appearance."""
    total: dict[Row, int] = {}
    for row, count in changes:
        total[row] = total.get(row, 0) + count
    return [(row, count) for row, count in total.items() if count]


def _agrees(row: Row, columns: Sequence[tuple[int, str]], seed: Seed) -> bool:
    for column, name in columns:
        value = row[column]
        if value is not None and name in seed and seed[name] != value:
            return False
    return True


class _Merge:
    """Owns how rows of two schemas are put together."""

    def __init__(self, left: tuple[str, ...], right: tuple[str, ...]) -> None:
        self.schema = tuple(sorted({*left, *right}))
        places = {name: i for i, name in enumerate(left)}
        others = {name: i for i, name in enumerate(right)}
        self.shared = [(places[n], others[n], n) for n in self.schema if n in places and n in others]
        self._sources = [(places.get(name), others.get(name)) for name in self.schema]
        self.names = frozenset(name for _, _, name in self.shared)

    def seed(self, left: Row) -> dict[str, Term]:
        """What the left row says about the right side's variables."""
        return {name: value for place, _, name in self.shared if (value := left[place]) is not None}

    def back(self, right: Row) -> dict[str, Term]:
        """What the right row says about the left side's variables."""
        return {name: value for _, place, name in self.shared if (value := right[place]) is not None}

    def compatible(self, left: Row, right: Row) -> bool:
        for i, j, _ in self.shared:
            a, b = left[i], right[j]
            if a is not None and b is not None and a != b:
                return False
        return True

    def overlaps(self, left: Row, right: Row) -> bool:
        """Whether the two bind a variable in common."""
        return any(left[i] is not None and right[j] is not None for i, j, _ in self.shared)

    def row(self, left: Row, right: Row) -> Row:
        return tuple(
            [
                left[i] if i is not None and left[i] is not None else right[j] if j is not None else None
                for i, j in self._sources
            ]
        )

    def alone(self, left: Row) -> Row:
        return tuple([None if i is None else left[i] for i, _ in self._sources])


class Asked(Protocol):
    """What an EXISTS tests with."""

    def prepare(self, given: Iterable[str]) -> None: ...


class JoinOperator(Generic[State]):
    """Join of two operators, by looking up the right side for each row of the left."""

    def __init__(self, left: Operator[State], right: Operator[State]) -> None:
        self._left, self._right = left, right
        self._merge = _Merge(left.schema, right.schema)
        self.schema = self._merge.schema

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        merge = self._merge
        for left in self._left.rows(state, seed):
            for right in self._right.rows(state, {**seed, **merge.seed(left)}):
                if merge.compatible(left, right):
                    yield merge.row(left, right)

    def changes(self, instant: Instant[State]) -> list[Change]:
        merge = self._merge
        found: list[Change] = []
        for left, count in self._left.changes(instant):
            for right in self._right.rows(instant.new, merge.seed(left)):
                if merge.compatible(left, right):
                    found.append((merge.row(left, right), count))
        for right, count in self._right.changes(instant):
            for left in self._left.rows(instant.old, merge.back(right)):
                if merge.compatible(left, right):
                    found.append((merge.row(left, right), count))
        return found

    def prepare(self, given: frozenset[str]) -> None:
        self._left.prepare(given)
        self._right.prepare(given | self._merge.names)

    def watch(self) -> None:
        self._left.watch()
        self._right.watch()
        self._right.prepare(self._merge.names)


def touched(operator: Operator[State], state: State, seeds: Iterable[Seed]) -> Iterator[Change]:
    """The solutions of a state that agree with one of the seeds at least, each once with its multiplicity."""
    found: dict[Row, int] = {}
    for seed in _least(seeds):
        for row, count in Counter(operator.rows(state, seed)).items():
            found[row] = count
    yield from found.items()


def _least(seeds: Iterable[Seed]) -> list[Seed]:
    """Each seed once; only the empty one if it is among them."""
    distinct = {tuple(sorted(seed.items())): seed for seed in seeds}
    return [distinct[()]] if () in distinct else list(distinct.values())


class LeftJoinOperator(Generic[State]):
    """OPTIONAL: every extension of a left row that passes the conditions, or the row alone."""

    def __init__(
        self, left: Operator[State], right: Operator[State], conditions: Callable[[tuple[str, ...]], Test]
    ) -> None:
        self._left, self._right = left, right
        self._merge = _Merge(left.schema, right.schema)
        self.schema = self._merge.schema
        self._columns = [(i, name) for i, name in enumerate(self.schema)]
        self._holds = conditions(self.schema)

    def _extended(self, state: State, left: Row) -> list[Row]:
        merge, holds = self._merge, self._holds
        found = [
            row
            for right in self._right.rows(state, merge.seed(left))
            if merge.compatible(left, right) and holds(row := merge.row(left, right))
        ]
        return found or [merge.alone(left)]

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        for left in self._left.rows(state, seed):
            for row in self._extended(state, left):
                if _agrees(row, self._columns, seed):
                    yield row

    def changes(self, instant: Instant[State]) -> list[Change]:
        found = [
            (row, count)
            for left, count in self._left.changes(instant)
            for row in self._extended(instant.new, left)
        ]
        seeds = [self._merge.back(right) for right, _ in consolidated(self._right.changes(instant))]
        for left, count in touched(self._left, instant.old, seeds):
            found += [(row, count) for row in self._extended(instant.new, left)]
            found += [(row, -count) for row in self._extended(instant.old, left)]
        return found

    def prepare(self, given: frozenset[str]) -> None:
        self._left.prepare(given)
        self._right.prepare(self._merge.names)

    def watch(self) -> None:
        self._left.watch()
        self._right.watch()
        self._right.prepare(self._merge.names)


class DifferenceOperator(Generic[State]):
    """MINUS: the left rows that no right row agrees with on a variable both bind."""

    def __init__(self, left: Operator[State], right: Operator[State]) -> None:
        self._left, self._right = left, right
        self._merge = _Merge(left.schema, right.schema)
        self.schema = left.schema

    def _stays(self, state: State, left: Row) -> bool:
        merge = self._merge
        return not any(
            merge.compatible(left, right) and merge.overlaps(left, right)
            for right in self._right.rows(state, merge.seed(left))
        )

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        for left in self._left.rows(state, seed):
            if self._stays(state, left):
                yield left

    def changes(self, instant: Instant[State]) -> list[Change]:
        found = [c for c in self._left.changes(instant) if self._stays(instant.new, c[0])]
        seeds = [self._merge.back(right) for right, _ in consolidated(self._right.changes(instant))]
        for left, count in touched(self._left, instant.old, filter(None, seeds)):
            change = self._stays(instant.new, left) - self._stays(instant.old, left)
            if change:
                found.append((left, count * change))
        return found

    def prepare(self, given: frozenset[str]) -> None:
        self._left.prepare(given)
        self._right.prepare(self._merge.names)

    def watch(self) -> None:
        self._left.watch()
        self._right.watch()
        self._right.prepare(self._merge.names)


class UnionOperator(Generic[State]):
    """UNION: the rows of every branch, brought to one schema."""

    def __init__(self, branches: Sequence[Operator[State]]) -> None:
        self._branches = branches
        self.schema = tuple(sorted({name for branch in branches for name in branch.schema}))
        self._columns = [_columns(branch.schema, self.schema) for branch in branches]

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        for branch, columns in zip(self._branches, self._columns, strict=True):
            for row in branch.rows(state, seed):
                yield _picked(row, columns)

    def changes(self, instant: Instant[State]) -> list[Change]:
        return [
            (_picked(row, columns), count)
            for branch, columns in zip(self._branches, self._columns, strict=True)
            for row, count in branch.changes(instant)
        ]

    def prepare(self, given: frozenset[str]) -> None:
        for branch in self._branches:
            branch.prepare(given)

    def watch(self) -> None:
        for branch in self._branches:
            branch.watch()


def _columns(have: Sequence[str], want: Sequence[str]) -> list[int | None]:
    places = {name: i for i, name in enumerate(have)}
    return [places.get(name) for name in want]


def _picked(row: Row, columns: Sequence[int | None]) -> Row:
    return tuple([None if i is None else row[i] for i in columns])


class FilterOperator(Generic[State]):
    """FILTER without EXISTS."""

    def __init__(self, inner: Operator[State], condition: Callable[[tuple[str, ...]], Test]) -> None:
        self._inner = inner
        self.schema = inner.schema
        self._holds = condition(inner.schema)

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        return filter(self._holds, self._inner.rows(state, seed))

    def changes(self, instant: Instant[State]) -> list[Change]:
        return [change for change in self._inner.changes(instant) if self._holds(change[0])]

    def prepare(self, given: frozenset[str]) -> None:
        self._inner.prepare(given)

    def watch(self) -> None:
        self._inner.watch()


class ExistsOperator(Generic[State]):
    """FILTER with EXISTS. `patterns`: operators without filters, whose changes show what to ask again.

    `condition` is asked of a state and a row.
    """

    def __init__(
        self,
        inner: Operator[State],
        condition: Callable[[State, Row], bool],
        patterns: Sequence[Operator[State]],
        tests: Sequence[Asked],
    ) -> None:
        self._inner, self._condition, self._patterns, self._tests = inner, condition, patterns, tests
        self.schema = inner.schema
        self._merges = [_Merge(inner.schema, pattern.schema) for pattern in patterns]

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        for row in self._inner.rows(state, seed):
            if self._condition(state, row):
                yield row

    def changes(self, instant: Instant[State]) -> list[Change]:
        holds = self._condition
        found = [change for change in self._inner.changes(instant) if holds(instant.new, change[0])]
        seeds = [
            merge.back(row)
            for pattern, merge in zip(self._patterns, self._merges, strict=True)
            for row, _ in consolidated(pattern.changes(instant))
        ]
        for row, count in touched(self._inner, instant.old, seeds):
            change = holds(instant.new, row) - holds(instant.old, row)
            if change:
                found.append((row, count * change))
        return found

    def prepare(self, given: frozenset[str]) -> None:
        self._inner.prepare(given)
        for test in self._tests:
            test.prepare(self.schema)

    def watch(self) -> None:
        self._inner.watch()
        for pattern in self._patterns:
            pattern.watch()
        for test in self._tests:
            test.prepare(self.schema)


class ExtendOperator(Generic[State]):
    """BIND or a SELECT expression; an error leaves the variable unbound."""

    def __init__(
        self, inner: Operator[State], variable: str, compute: Callable[[tuple[str, ...]], Compute]
    ) -> None:
        self._inner, self._variable = inner, variable
        self.schema = tuple(sorted({*inner.schema, variable}))
        self._columns = _columns(inner.schema, self.schema)
        self._place = self.schema.index(variable)
        self._compute = compute(inner.schema)

    def _row(self, row: Row) -> Row:
        wide = list(_picked(row, self._columns))
        wide[self._place] = self._compute(row)
        return tuple(wide)

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        wanted = seed.get(self._variable)
        inner = seed if wanted is None else {n: t for n, t in seed.items() if n != self._variable}
        for row in map(self._row, self._inner.rows(state, inner)):
            if wanted is None or row[self._place] in (wanted, None):
                yield row

    def changes(self, instant: Instant[State]) -> list[Change]:
        return [(self._row(row), count) for row, count in self._inner.changes(instant)]

    def prepare(self, given: frozenset[str]) -> None:
        self._inner.prepare(given)

    def watch(self) -> None:
        self._inner.watch()


@dataclass(frozen=True, slots=True)
class Total:
    """One aggregate: `argument` None is `COUNT(*)`; over whole solutions if `distinct` too."""

    function: str
    distinct: bool
    argument: Compute | None


class GroupOperator(Generic[State]):
    """Groups and their totals. A group that a change touches is added up again, before and after.

    `keys`: (name, the inner variable that it is or None for an expression, how to compute it).
    """

    def __init__(
        self,
        inner: Operator[State],
        keys: Sequence[tuple[str, str | None, Compute]],
        totals: Sequence[tuple[str, Total]],
        scope: Sequence[str],
    ) -> None:
        self._inner = inner
        self._keys = keys
        self._totals = [total for _, total in totals]
        self._whole = _columns(inner.schema, scope)
        names = [name for name, _, _ in keys] + [name for name, _ in totals]
        self.schema = tuple(sorted(names))
        self._columns = _columns(names, self.schema)

    def _key(self, row: Row) -> Row:
        return tuple([compute(row) for _, _, compute in self._keys])

    def _groups(self, state: State, seed: Seed) -> dict[Row, list[Row]]:
        groups: dict[Row, list[Row]] = {} if self._keys else {(): []}
        for row in self._inner.rows(state, seed):
            groups.setdefault(self._key(row), []).append(row)
        return groups

    def _row(self, key: Row, members: list[Row]) -> Row:
        found = [self._total(total, members) for total in self._totals]
        return _picked((*key, *found), self._columns)

    def _total(self, total: Total, members: list[Row]) -> Term | None:
        if total.argument is not None:
            return totals.total(total.function, total.distinct, [total.argument(row) for row in members])
        return integer(
            len({_picked(row, self._whole) for row in members}) if total.distinct else len(members)
        )

    def rows(self, state: State, seed: Seed) -> Iterator[Row]:
        inner = {source: seed[name] for name, source, _ in self._keys if source is not None and name in seed}
        columns = [(i, name) for i, name in enumerate(self.schema)]
        for key, members in self._groups(state, inner).items():
            row = self._row(key, members)
            if _agrees(row, columns, seed):
                yield row

    def changes(self, instant: Instant[State]) -> list[Change]:
        keys = dict.fromkeys(self._key(row) for row, _ in self._inner.changes(instant))
        found: list[Change] = []
        for key in keys:
            pairs = zip(self._keys, key, strict=True)
            seed = {source: term for (_, source, _), term in pairs if source is not None and term is not None}
            for state, sign in ((instant.new, 1), (instant.old, -1)):
                members = [row for row in self._inner.rows(state, seed) if self._key(row) == key]
                if members or not self._keys:
                    found.append((self._row(key, members), sign))
        return found

    def prepare(self, given: frozenset[str]) -> None:
        self._inner.prepare(frozenset(s for name, s, _ in self._keys if s is not None and name in given))

    def watch(self) -> None:
        self._inner.watch()
        self._inner.prepare(frozenset(source for _, source, _ in self._keys if source is not None))
