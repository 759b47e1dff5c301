"""Queries over what holds: prepared once, asked often, and counted.

Place:   under knowledge_base.py, which lets several threads in; extract/query.py answers.
Method:  a prepared query keeps its plans over the index until that is another one, or has grown to several
         times of what it was planned for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

from msgspec.structs import replace

from dotr.budget import Exhausted, Meter, at_deployment
from dotr.errors import UsageError
from dotr.events import Clock, Time
from dotr.extract.extractor import much_work_of
from dotr.extract.interpreter import asks_time
from dotr.extract.operators import Row
from dotr.extract.query import Query
from dotr.extract.rewriting import names
from dotr.joins.store import TripleIndex
from dotr.knowledge_base.model import Model
from dotr.program import Const, Projection, Select, Var
from dotr.rdf.rdflib_terms import rdflib_term
from dotr.rdf.terms import TRUE, Term

if TYPE_CHECKING:
    from dotr.knowledge_base.knowledge_base import KnowledgeBase


class PreparedQuery:
    """A query of one knowledge base, to be asked again and again: `prepared()`, `prepared(room=term)`."""

    def __init__(self, owner: KnowledgeBase, query: PlannedQuery) -> None:
        self._owner, self._query = owner, query

    @property
    def variables(self) -> tuple[str, ...]:
        return self._query.variables

    @property
    def is_ask(self) -> bool:
        return self._query.select.ask

    def __call__(self, **values: Any) -> Answers:
        """The answers of now. Raises UsageError: D4180 no such variable, D4186 an ASK."""
        if self._query.select.ask:
            raise UsageError.of("D4186", "an ASK has no rows", hint="call ask(…)")
        return self._owner.answers(self._query, values)

    def ask(self, **values: Any) -> bool:
        """Whether there is an answer now."""
        return bool(self._owner.answers(self._query, values).rows)


_GROWTH = 4
_LEAST = 1000
"""A query is replanned for so many times the triples, and more."""


_NO_VALUES: Mapping[str, Term] = {}


class Solution(tuple[Any, ...]):
    """One row of answers: by place, by variable (`row["room"]`, `row.room`), None where it is unbound."""

    _names: tuple[str, ...]

    def __new__(cls, terms: Sequence[Any], variables: tuple[str, ...]) -> Solution:
        made = super().__new__(cls, terms)
        made._names = variables
        return made

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            try:
                return super().__getitem__(self._names.index(place.lstrip("?")))
            except ValueError:
                raise KeyError(place) from None
        return super().__getitem__(place)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getitem__(self._names.index(name))
        except ValueError:
            raise AttributeError(f"this row has no variable {name!r}") from None

    def asdict(self) -> dict[str, Any]:
        """Variable → term, without those that are unbound."""
        return {name: term for name, term in zip(self._names, self, strict=True) if term is not None}


class Answers(Sequence[Solution]):
    """The answers of a query, in canonical order unless it has one. `rows` has canonical terms; iterating
    gives what the knowledge base is configured to give.
    """

    def __init__(self, variables: tuple[str, ...], rows: list[Row], as_rdflib: bool) -> None:
        self.variables = variables
        self.rows = rows
        self._as_rdflib = as_rdflib

    def _made(self, row: Row) -> Solution:
        return shown(row, self.variables, self._as_rdflib)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Solution]:
        return map(self._made, self.rows)

    @overload
    def __getitem__(self, place: int) -> Solution: ...
    @overload
    def __getitem__(self, place: slice) -> list[Solution]: ...
    def __getitem__(self, place: int | slice) -> Solution | list[Solution]:
        if isinstance(place, slice):
            return list(map(self._made, self.rows[place]))
        return self._made(self.rows[place])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Answers):
            return (self.variables, self.rows) == (other.variables, other.rows)
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a sequence of values

    def __repr__(self) -> str:
        return (
            f"<{len(self.rows)} answers over {' '.join('?' + name for name in self.variables) or 'nothing'}>"
        )


def shown(row: Row, variables: tuple[str, ...], as_rdflib: bool) -> Solution:
    """A row of canonical terms as a user gets it."""
    if as_rdflib:
        return Solution([None if term is None else rdflib_term(term) for term in row], variables)
    return Solution(row, variables)


class PlannedQuery:
    """Owns the plans of one query. Threads may share it: they wait for each other."""

    def __init__(self, select: Select, budget: int) -> None:
        self.select = select
        self.variables = () if select.ask else select.variables
        self._budget = budget
        self._meter = Meter()
        self._plain = as_select(select) if select.ask else select
        self._names = names(select)
        self._asks_time = asks_time(select)
        self._lock = Lock()
        self._index: object = None
        self._planned = 0
        self._query: Query | None = None

    def rows(
        self,
        model: Model,
        now: tuple[Time, Clock] | None,
        values: Mapping[str, Term] = _NO_VALUES,
    ) -> list[Row]:
        """All answers with these values of variables; of ASK an empty row, if there is one.

        Raises UsageError D4112 for NOW() before there is a time, D4180 for a variable that is not there,
        ProgramError D4132, D4133 past the budget.
        """
        if not values.keys() <= self._names:
            raise UsageError.of(
                "D4180",
                f"the query has no variable `?{min(values.keys() - self._names)}`",
                hint="give values to variables of the query",
            )
        with self._lock, self._counted(model):
            query = self._planned_for(model)
            if self._asks_time:
                time, clock = now or _no_time()
                self._store.moment.now = clock.term(time)
            query.renew()
            if self.select.ask:
                return [()] if (query.with_values(values) if values else query.any()) else []
            return query.with_values(values) if values else query.solutions()

    @contextmanager
    def _counted(self, model: Model) -> Iterator[None]:
        limit = at_deployment(self._budget, len(model.kept))
        self._meter.open(limit)
        try:
            yield
        except Exhausted as exhausted:
            self._query = None  # what it had begun to remember is not whole
            raise much_work_of(exhausted, "asked", self.select, limit, "over what holds") from None

    def refuse_time(self) -> None:
        """Raise UsageError D4112 where it asks for NOW(): what is watched changes with what holds alone."""
        if self._asks_time:
            _no_time()

    def _planned_for(self, model: Model) -> Query:
        index, size = model.kept.index, len(model.kept)
        fits = self._planned // _GROWTH <= size <= _GROWTH * self._planned + _LEAST
        if self._query is None or index is not self._index or not fits:
            self._store: TripleIndex = model.reader()
            self._query = Query(self._plain, self._store, meter=self._meter)
            self._index, self._planned = index, size
        return self._query


def as_select(select: Select) -> Select:
    """An ASK as a query with at most one answer."""
    name = "ask"
    while name in names(select):
        name += "_"
    return replace(select, ask=False, distinct=True, projection=(Projection(Var(name), Const(TRUE)),))


def _no_time() -> tuple[Time, Clock]:
    raise UsageError.of(
        "D4112",
        "this query asks for NOW(), and there is no time",
        hint="call advance(time), and do not watch it",
    )
