"""Facts of graphs of one form, from columns of terms: no graph, no overlay, no call for each graph.

Place:   beside extractor.py, for rows of tables (io/tables/rows.py): core/pipeline.py asks for the facts of
         many instants at once.
Method:  a form is a list of triples whose nodes are constants or numbers of columns. The patterns of a
         conjunction that only the stream can match are matched with the form once, when it is first seen;
         what is left of a query are conditions of columns: the constants that a term must be, terms that must
         be equal, filters of one variable, decided once for each distinct term by the condition that the
         kernel evaluates, and the join with the background, once for each distinct tuple of terms that enter
         it. Rows that pass are distributed to streams by the generated lines that single triples use.
         Several rows of one instant: their triples are one graph. A conjunction of one stream pattern finds
         each distinct triple once; one of several may join triples of different rows, unless they all have
         one subject, which no two rows of an instant share.
Why not: a columnar detector as well (it would take these columns as they are, in `FormRun`): another executor
         of every operator, with every tie. Graphs of an archive as columns of tokens: those of CityBench have
         five forms of 15 triples; splitting their JSON lines into tokens and finding the distinct ones takes
         29 to 38 µs a graph, reading them as graphs 26. Rows of CSV and JSON lines as columns: 0.9 to 1.2
         times graphs of them.
Bad input: none: what this way cannot do, and what takes much work, is left to the usual way (`Unfit`, None).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, product
from operator import itemgetter, lt
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.budget import Exhausted, Meter
from dotr.codegen import Names, make
from dotr.events import Fact, Time
from dotr.extract.extractor import Extractor
from dotr.extract.full import Explosion
from dotr.extract.leaves import Lazy, Leaf, Scalars, bounded
from dotr.extract.operators import Row
from dotr.extract.sharing import Distribution
from dotr.extract.units import MonotoneDelta, QueryUnit
from dotr.joins.plan import BodyPattern, Check, Item, RowFilter, View, expression_variables, is_class, plan
from dotr.joins.store import TripleIndex
from dotr.program import Aggregate, Call, Exists, Expression, Node, Var
from dotr.rdf.terms import RDF_TYPE, XSD, Memo, Term

Place: TypeAlias = Term | int
"""A node of a form: a constant, or the number of a column."""

Form: TypeAlias = tuple[tuple[Place, Place, Place], ...]

TermTest: TypeAlias = Callable[[Term | None], object]

WAYS = 16
"""The limit of ways in which the patterns of a conjunction match a form."""

LEAST = 100_000
"""Units of work of a query at an instant below which the usual way decides."""

JOINED = 1_000
"""Rows of the background that a distinct tuple of terms is joined with, at most."""


class FormColumn(Struct, frozen=True):
    """The terms of a column, None where there is none: those of the rows, or with `codes` the distinct ones
    and of each row which.
    """

    terms: Sequence[Term | None]
    codes: Sequence[int] | None = None

    def part(self, start: int, end: int) -> FormColumn:
        """Some rows."""
        if self.codes is None:
            return FormColumn(self.terms[start:end])
        return FormColumn(self.terms, self.codes[start:end])

    def of_rows(self) -> Sequence[Term | None]:
        """The term of each row."""
        return self.terms if self.codes is None else list(map(self.terms.__getitem__, self.codes))


class FormRun(Struct, frozen=True):
    """Graphs of one form, one a row, in order of their times. No two triples of one row are equal."""

    form: Form
    times: Sequence[Time]
    columns: Sequence[FormColumn]

    def part(self, start: int, end: int) -> FormRun:
        """Some of them."""
        return FormRun(self.form, self.times[start:end], [column.part(start, end) for column in self.columns])


class Unfit(Exception):  # noqa: N818  # no error
    """Why the queries of a program cannot be evaluated over columns."""


class FormExtractor:
    """Owns how the queries of an extractor are evaluated over one form. Raises Unfit.

    `alone`: whether a triple of this relation and predicate only adds itself (Materialiser.alone).
    """

    def __init__(
        self, extractor: Extractor, store: TripleIndex, form: Form, alone: Callable[[Term, Place], bool]
    ) -> None:
        self._form, self._alone = form, alone
        self._open = [(p, o) for _, p, o in form if isinstance(p, int)]
        for _, predicate, object_ in form:
            if isinstance(predicate, str) and not alone(predicate, object_):
                raise Unfit(f"rules, schema or background have {predicate}")
        if any(unit.always for unit in extractor.units):
            raise Unfit("the background alone answers a query")
        predicates = {p for _, p, _ in form}
        self._units: list[_FormUnit] = []
        for unit in extractor.units:
            if self._open or _touches(unit, predicates):
                self._units.append(_FormUnit(unit, form, store))

    def facts(self, run: FormRun) -> dict[str, list[Fact]] | None:
        """Stream → facts of all rows, by time and in canonical order; None where the usual way decides."""
        for predicate, object_ in self._open:
            for term in run.columns[predicate].terms:
                if term is not None and (term == RDF_TYPE or not self._alone(term, object_)):
                    return None
        apart = all(map(lt, run.times, run.times[1:]))
        rows = _Rows(run)
        result: defaultdict[str, list[Fact]] = defaultdict(list)
        try:
            for unit in self._units:
                if not unit.add(rows, apart, result):
                    return None
        except (Exhausted, Explosion):
            return None
        return result


def _touches(unit: QueryUnit, predicates: Iterable[Place]) -> bool:
    return any(
        (RDF_TYPE if is_class(relation) else relation) in predicates or relation[0] != "<"
        for relation in unit.relations
    )


class _Rows:
    """Owns the columns of a run, expanded when first asked for."""

    def __init__(self, run: FormRun) -> None:
        self.times, self.columns = run.times, run.columns
        self.count = len(run.times)
        self._expanded: dict[int, Sequence[Term | None]] = {}

    def terms(self, column: int) -> Sequence[Term | None]:
        found = self._expanded.get(column)
        if found is None:
            found = self._expanded[column] = self.columns[column].of_rows()
        return found

    def picked(self, place: Place, rows: Sequence[int]) -> Sequence[Term | None]:
        """The terms of a node in some rows."""
        if isinstance(place, str):
            return [place] * len(rows)
        terms = self.terms(place)
        return terms if len(rows) == self.count else list(map(terms.__getitem__, rows))

    def picked_times(self, rows: Sequence[int]) -> Sequence[Time]:
        return self.times if len(rows) == self.count else list(map(self.times.__getitem__, rows))

    def passing(
        self, rows: Sequence[int], column: int, test: Callable[[Term | None], object]
    ) -> Sequence[int]:
        """Those of some rows whose term passes; each distinct term is tested once."""
        found = self.columns[column]
        terms, codes = found.terms, found.codes
        if test is _is_there and None not in terms:
            return rows
        if codes is None:
            return [row for row in rows if test(terms[row])]
        if len(terms) * 2 > len(rows):
            table: dict[int, object] = {}
            for code in {codes[row] for row in rows}:
                table[code] = test(terms[code])
            return [row for row in rows if table[codes[row]]]
        passed = list(map(test, terms))
        return [row for row in rows if passed[codes[row]]]


_Answer: TypeAlias = tuple[Time, int, tuple[Term, ...] | None, Row]
"""(time, row, the triple of the only stream pattern unless it has a blank node, columns)."""


class _Background(Struct, frozen=True):
    """What is joined with the background: the nodes that enter, and the rows of a tuple of their terms."""

    given: tuple[Place, ...]
    rows: Callable[[tuple[Term, ...]], Sequence[Row]]


class _Way(Struct, frozen=True):
    """One way in which the patterns of a conjunction match a form: when, and the columns of its answers.

    `tests`: (column, test), those by constants first; `alike`: pairs of columns with the same term;
    `outputs`: nodes, or Var for what the background binds; `triple`: of the only stream pattern; `subject`:
    the one node of all of them.
    """

    tests: tuple[tuple[int, TermTest], ...]
    alike: tuple[tuple[int, int], ...]
    outputs: tuple[Place | Var, ...]
    background: _Background | None
    bound: tuple[str, ...]
    triple: tuple[Place, Place, Place] | None
    subject: Place | None

    def rows(self, rows: _Rows) -> Sequence[int]:
        """The rows that pass."""
        found: Sequence[int] = range(rows.count)
        for column, test in self.tests:
            found = rows.passing(found, column, test)
        for one, other in self.alike:
            left, right = rows.terms(one), rows.terms(other)
            found = [row for row in found if left[row] == right[row]]
        return found

    def answers(self, rows: _Rows) -> Iterator[_Answer]:
        """Those of the rows that pass."""
        found = self.rows(rows)
        keys: Iterable[Any] = [None] * len(found)
        if self.triple is not None and not any(
            place[0] == "_" for place in self.triple if isinstance(place, str)
        ):
            keys = zip(*[rows.picked(place, found) for place in self.triple], strict=True)
        columns = [[None] * len(found) if isinstance(p, Var) else rows.picked(p, found) for p in self.outputs]
        answers: Iterable[Row] = zip(*columns, strict=True) if columns else [()] * len(found)
        background = self.background
        if background is None:
            yield from zip(rows.picked_times(found), found, keys, answers, strict=True)
            return
        given = [rows.picked(place, found) for place in background.given]
        entering: Iterable[Any] = zip(*given, strict=True) if given else [()] * len(found)
        places = [(at, self.bound.index(p.name)) for at, p in enumerate(self.outputs) if isinstance(p, Var)]
        for time, number, key, answer, values in zip(
            rows.picked_times(found), found, keys, answers, entering, strict=True
        ):
            for joined in background.rows(values):
                own = list(answer)
                for at, place in places:
                    own[at] = joined[place]
                yield time, number, key, tuple(own)


class _FormUnit:
    """Owns how a unit is evaluated over a form. Raises Unfit."""

    def __init__(self, unit: QueryUnit, form: Form, store: TripleIndex) -> None:
        if not isinstance(unit, MonotoneDelta):
            raise Unfit(
                f"query {unit.name} is more than a conjunction of patterns, or reads the background alone"
            )
        if unit.meter.limit < LEAST:
            raise Unfit("the budget is small")
        self._distribution = unit.distribution
        self._leaves = [list(_ways(unit, leaf, form, store)) for leaf in unit.leaves]
        ways = [way for leaf in self._leaves for way in leaf]
        self._loop = None
        if len(ways) == 1 and ways[0].background is None:
            self._loop = _loop(ways[0], unit.distribution)

    def add(self, rows: _Rows, apart: bool, result: defaultdict[str, list[Fact]]) -> bool:
        """Add the facts of all rows, `apart` in time or not; False where rows of an instant may join."""
        if apart and self._loop is not None:
            way = (
                self._leaves[0][0] if self._leaves[0] else next(way for leaf in self._leaves for way in leaf)
            )
            found = way.rows(rows)
            columns = [rows.picked(place, found) for place in way.outputs if isinstance(place, int)]
            self._loop(rows.picked_times(found), *columns, result)
            return True
        answers: list[tuple[Time, Row]] = []
        for leaf in self._leaves:
            if not apart and not all(way.triple or _distinct(rows, way.subject) for way in leaf):
                return False
            if apart:
                answers += [(time, row) for way in leaf for time, _, _, row in way.answers(rows)]
            else:
                answers += _once(leaf, rows)
        answers.sort(key=itemgetter(0))
        for time, some in groupby(answers, key=itemgetter(0)):
            self._distribution.add([row for _, row in some], time, result)
        return True


def _once(leaf: Sequence[_Way], rows: _Rows) -> Iterator[tuple[Time, Row]]:
    """Answers of distinct triples: what several rows of an instant state, once."""
    first: dict[Any, tuple[int, int]] = {}
    for number, way in enumerate(leaf):
        for time, row, triple, answer in way.answers(rows):
            if triple is None or first.setdefault((time, triple), (number, row)) == (number, row):
                yield time, answer


def _distinct(rows: _Rows, subject: Place | None) -> bool:
    """Whether no two rows of an instant have the same subject."""
    if isinstance(subject, int):
        return len(set(zip(rows.times, rows.terms(subject), strict=True))) == rows.count
    return subject is not None and subject[0] == "_"


def _loop(way: _Way, distribution: Distribution) -> Callable[..., None]:
    """The function that adds the fact of each row: (times, columns of outputs…, result)."""
    names = Names()
    columns = [names.constant(p) if isinstance(p, str) else f"c{n}" for n, p in enumerate(way.outputs)]
    own = [column for column, p in zip(columns, way.outputs, strict=True) if isinstance(p, int)]
    names.namespace["zip"] = zip
    several = ", ".join(["time", *own])
    head = f"    for {several} in zip({', '.join(['times', *own])}):" if own else "    for time in times:"
    lines = [f"def facts({', '.join(['times', *own, 'result'])}):", head]
    lines += [f"        {line}" for line in distribution.lines_of_one(columns, [True] * len(columns), names)]
    made: Callable[..., None] = make("facts", "\n".join([*lines, ""]), names)
    return made


# ------------------------------------------------------------------ patterns


def _ways(unit: MonotoneDelta, leaf: Leaf, form: Form, store: TripleIndex) -> Iterator[_Way]:
    if leaf.finish is not None:
        raise Unfit(f"query {unit.name} has BIND")
    stream: list[BodyPattern] = []
    joined: list[BodyPattern] = []
    filters: list[Expression] = []
    checks: list[Check] = []
    for item in leaf.items:
        if isinstance(item, RowFilter):
            filters.append(_plain(item.condition, unit))
        elif isinstance(item, Check) and len(item.variables) == 1:
            checks.append(item)
        elif isinstance(item, BodyPattern) and item.relation[0] in "<a":
            (joined if store.filled(item.relation) else stream).append(item)
        else:
            raise Unfit(f"query {unit.name} has a pattern that is not plain")
    candidates = [[triple for triple in form if _may_match(pattern, triple)] for pattern in stream]
    count = 1
    for some in candidates:
        count *= len(some)
    if count > WAYS:
        raise Unfit(f"the patterns of query {unit.name} match the form in many ways")
    for chosen in product(*candidates):
        way = _Matching(unit, leaf, store).way(stream, chosen, joined, filters, checks)
        if way is not None:
            yield way


def _plain(condition: Expression, unit: MonotoneDelta) -> Expression:
    """A condition whose value is that of its variables. Raises Unfit."""
    todo: list[Expression] = [condition]
    while todo:
        part = todo.pop()
        if isinstance(part, Call):
            name = part.function
            own = name[0] == "<" and len(name) > 2 and not name.startswith(f"<{XSD}")
            if own or name == "NOW":
                raise Unfit(f"query {unit.name} has {name}")
            todo += part.arguments
        elif isinstance(part, Exists | Aggregate):
            raise Unfit(f"query {unit.name} has EXISTS")
    return condition


def _may_match(pattern: BodyPattern, triple: tuple[Place, Place, Place]) -> bool:
    _, predicate, object_ = triple
    if is_class(pattern.relation):
        return predicate == RDF_TYPE and object_ == pattern.relation[2:]
    if isinstance(predicate, int):
        return pattern.relation[0] == "<"
    return predicate == pattern.relation


class _Matching:
    """Owns what variables are bound to while patterns are matched with triples of a form."""

    def __init__(self, unit: MonotoneDelta, leaf: Leaf, store: TripleIndex) -> None:
        self._unit, self._leaf, self._store = unit, leaf, store
        self._nodes: dict[str, Place] = {}
        self._tests: list[tuple[int, TermTest]] = []
        self._alike: list[tuple[int, int]] = []
        self._needed: dict[int, None] = {}

    def way(
        self,
        stream: Sequence[BodyPattern],
        chosen: Sequence[tuple[Place, Place, Place]],
        joined: Sequence[BodyPattern],
        filters: Sequence[Expression],
        checks: Sequence[Check],
    ) -> _Way | None:
        """None where they cannot match."""
        for pattern, triple in zip(stream, chosen, strict=True):
            if not self._match(pattern, triple):
                return None
        for triple in chosen:
            self._needed |= dict.fromkeys(place for place in triple if isinstance(place, int))
        self._tests.sort(key=itemgetter(0))
        present = [(column, _is_there) for column in self._needed]
        scalars = Scalars(self._store)
        left: list[Expression] = []
        for condition in filters:
            names = expression_variables(condition)
            if len(names) != 1 or names[0] not in self._nodes:
                left.append(condition)
            elif not self._test(names[0], _single(scalars.test([condition], names))):
                return None
        for check in checks:
            if check.variables[0] in self._nodes and not self._test(
                check.variables[0], (lambda function: lambda term: function(term))(check.function)
            ):
                return None
        background = self._background(joined, left) if joined or left else None
        outputs = tuple(self._output(node) for node in self._leaf.outputs)
        subjects = {(p.columns[0], t[0]) for p, t in zip(stream, chosen, strict=True)}
        one = next(iter(subjects)) if len(subjects) == 1 else (None, None)
        return _Way(
            (*present, *self._tests),
            tuple(self._alike),
            outputs,
            background,
            tuple(dict.fromkeys(p.name for p in outputs if isinstance(p, Var))),
            chosen[0] if len(chosen) == 1 else None,
            one[1] if isinstance(one[0], Var) else None,
        )

    def _match(self, pattern: BodyPattern, triple: tuple[Place, Place, Place]) -> bool:
        subject, predicate, object_ = triple
        if isinstance(predicate, int):
            self._must_be(predicate, pattern.relation)
        nodes = (subject,) if is_class(pattern.relation) else (subject, object_)
        for node, place in zip(pattern.columns, nodes, strict=True):
            if isinstance(node, str):
                if isinstance(place, int):
                    self._must_be(place, node)
                elif place != node:
                    return False
                continue
            known = self._nodes.setdefault(node.name, place)
            if known == place:
                continue
            if isinstance(known, int) and isinstance(place, int):
                self._alike.append((known, place))
            elif isinstance(known, int):
                self._must_be(known, place)  # type: ignore[arg-type]  # a term
            elif isinstance(place, int):
                self._must_be(place, known)
            else:
                return False
        return True

    def _must_be(self, column: int, term: Term) -> None:
        self._tests.append((column, lambda other: other == term))

    def _test(self, name: str, test: TermTest) -> bool:
        """Test what a variable is bound to; False where that is a constant that does not pass."""
        place = self._nodes[name]
        if isinstance(place, str):
            self._refuse_blank(place)
            return bool(test(place))
        self._tests.append((place, Memo(test).__getitem__))
        return True

    def _refuse_blank(self, place: Place) -> None:
        if isinstance(place, str) and place[0] == "_":
            raise Unfit(f"query {self._unit.name} has a blank node of the stream")

    def _output(self, node: Node) -> Place | Var:
        if isinstance(node, str):
            return node
        place = self._nodes.get(node.name)
        if place is None:
            return node
        self._refuse_blank(place)
        return place

    def _background(self, patterns: Sequence[BodyPattern], filters: Sequence[Expression]) -> _Background:
        """The join with these patterns of the background, under filters of several variables."""
        names = {name for pattern in patterns for name in pattern.variables}
        names |= {name for condition in filters for name in expression_variables(condition)}
        given = tuple(sorted(name for name in names if name in self._nodes))
        for name in given:
            self._refuse_blank(self._nodes[name])
        outputs = tuple(
            node for node in self._leaf.outputs if isinstance(node, Var) and node.name not in self._nodes
        )
        outputs = tuple(dict.fromkeys(outputs))
        meter = Meter(self._unit.meter.limit // 2)
        items: list[Item] = [*patterns, *(RowFilter(condition) for condition in filters)]
        lazy = Lazy(plan(items, outputs, self._store, given=given, view=View.OLD), self._store, meter=meter)

        def rows(values: tuple[Term, ...]) -> Sequence[Row]:
            found: list[Row] = []
            meter.open()
            lazy.run(bounded(found, JOINED), *values)
            return found

        return _Background(tuple(self._nodes[name] for name in given), Memo(rows).__getitem__)


def _is_there(term: Term | None) -> bool:
    return term is not None


def _single(test: Callable[[Row], object]) -> TermTest:
    """A test of a row of one value, as one of the value."""
    return lambda term: test((term,))
