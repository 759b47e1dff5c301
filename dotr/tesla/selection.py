"""EACH, LAST and FIRST as code: which facts of a bucket a match takes.

Place:   compile.py, for the conjuncts that choose. `bucket` and the bounds of windows serve negation.py and
         aggregation.py as well.
Method:  a bucket is in canonical order, so a window is a range, LAST its end and FIRST its start; what is
         left of ON is tested from that end on, and only as far as needed. `(t,)` is less than every fact of
         time t and greater than all before, so bounds are found by bisection without a key function.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

from dotr.codegen import CodeSource
from dotr.ir.rules import Between, Choose, Selection, Within
from dotr.tesla.buckets import JoinedLog
from dotr.tesla.columns import Column
from dotr.tesla.fact_scope import Scope
from dotr.tesla.plan import LastValue, MonotonicStack, PlanStep, Ranked
from dotr.tesla.running_aggregates import JoinedTotal
from dotr.tesla.thresholds import CARRIED, Measure, latest_above, table_of
from dotr.tesla.work import computed


def write(
    source: CodeSource,
    scope: Scope,
    step: PlanStep,
    conjunct: Choose,
    column: Column[Any],
    limits: Sequence[int],
    number: int,
) -> None:
    """Bind `f<n>` (LAST, FIRST) or the list `c<n>` (EACH, k > 1); `continue` where there is none.

    With `limits` (of the members of a group), `c<n>` lists (fact, from, to): who takes which fact.
    """
    bucket = find(source, scope, step, column, number)
    fact, several = f"f{number}", f"c{number}"
    if isinstance(step.column.content, MonotonicStack):
        source.line(f"if {bucket} is None: continue")
        _listed(scope, step, f"len({bucket}.facts)")
        source.line(f"{several} = {stack_search(source, scope, step, latest_above, limits)(bucket)}")
        source.line(f"if not {several}: continue")
        return
    if isinstance(step.column.content, LastValue):
        source.line(f"{fact} = {bucket}")
        source.line(f"if {fact} is None or {fact}[0] < {oldest(source, scope, step)}: continue")
        return
    source.line(f"if {bucket} is None: continue")
    match conjunct.selection:
        case Selection.EACH:
            candidates(source, scope, step, number)
            if isinstance(step.column.content, Ranked):
                _listed(scope, step, f"len({several})")
                _who_takes(source, scope, step.column.content.measure, limits, several)
            source.line(f"if not {several}: continue")
        case Selection.LAST if isinstance(step.column.content, Ranked):
            _newest_above(source, scope, step, step.column.content.measure, limits, number)
            source.line(f"if not {several}: continue")
        case Selection.LAST if conjunct.k == 1:
            newest_one(source, scope, step, number)
            source.line(f"if {fact} is None: continue")
        case Selection.FIRST if conjunct.k == 1:
            _oldest_one(source, scope, step, number)
            source.line(f"if {fact} is None: continue")
        case Selection.LAST:
            _newest_k(source, scope, step, number, conjunct.k)
            source.line(f"if not {several}: continue")
        case Selection.FIRST:
            _oldest_k(source, scope, step, number, conjunct.k)
            source.line(f"if not {several}: continue")
        case _:
            assert_never(conjunct.selection)


def find(source: CodeSource, scope: Scope, step: PlanStep, column: Column[Any], number: int) -> str:
    """Write the look-up of the bucket; the local that holds it, or None."""
    bucket = f"q{number}"
    get = source.name("get", column.table.get)
    if not step.probe:
        source.line(f"{bucket} = {get}(())")
        return bucket
    terms = []
    for i, expression in enumerate(step.probe):
        terms.append(f"k{number}_{i}")
        if scope.work is not None and computed(expression):
            scope.work.expression()
        source.line(f"{terms[-1]} = {scope.value(expression)}")
    key = terms[0] if len(terms) == 1 else f"({', '.join(terms)})"
    source.line(f"{bucket} = {get}({key})")
    peers = " or ".join(f"({term} and {term}[0] == '\"')" for term in terms)
    with source.block(f"if {bucket} is None and ({peers})"):
        source.line(f"{bucket} = {source.name('find', column.find)}({key}, {oldest(source, scope, step)})")
        if scope.work is not None:
            scope.work.listed(step.title, f"{source.name('joined', joined)}({bucket})")
    return bucket


def joined(bucket: Any) -> int:
    """How many facts were gathered, where several buckets are read as one."""
    return len(bucket) if isinstance(bucket, JoinedLog | JoinedTotal) else 0


def stack_search(
    source: CodeSource, scope: Scope, step: PlanStep, search: Callable[..., Any], limits: Sequence[int]
) -> Callable[[str], str]:
    """Source of a search of thresholds.py over a bucket, for the members in range."""
    lo, hi = scope.range
    inclusive = step.threshold is not None and step.threshold.measure.inclusive
    cut = source.name("cut", bisect_right if inclusive else bisect_left)
    since = oldest(source, scope, step)
    rising = source.name("limits", limits)
    return lambda bucket: f"{source.name('search', search)}({bucket}, {since}, {lo}, {hi}, {rising}, {cut})"


def oldest(source: CodeSource, scope: Scope, step: PlanStep) -> str:
    """Source of the least time inside the window."""
    match step.conjunct.window:
        case Within(duration=duration, reference=reference):
            width = source.name("width", duration)
            return (
                f"time - {width}" if reference == scope.trigger else f"{scope.locals[reference]}[0] - {width}"
            )
        case Between(start=start):
            return f"{scope.locals[start]}[0] + 1"
        case _:
            assert_never(step.conjunct.window)


def beyond(scope: Scope, step: PlanStep) -> str | None:
    """Source of the least time after the window, None where the column ends with the window."""
    if step.newest:
        return None
    match step.conjunct.window:
        case Within(reference=reference, before=before):
            return f"{scope.locals[reference]}[0]" + ("" if before else " + 1")
        case Between(end=end):
            return f"{scope.locals[end]}[0]"
        case _:
            assert_never(step.conjunct.window)


def refusals(scope: Scope, step: PlanStep) -> list[str]:
    """Tests under which the candidate `x` is none: it is the reference itself, or the rest of ON fails."""
    tests = []
    if step.itself is not None:
        fact = "x[:4]" if step.column.carries else "x"
        tests.append(f"{fact} == {scope.locals[step.itself]}")
    if step.residual is not None:
        name = step.conjunct.position.name
        scope.locals[name] = "x"
        tests.append(f"not {scope.test(step.residual)}")
        del scope.locals[name]
    return tests


def candidates(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> None:
    """`c<n>`: the candidates of bucket `q<n>` in canonical order; it may be the bucket itself: read only."""
    bucket, several, left = f"q{number}", f"c{number}", f"lo{number}"
    bisect, end = _bisect(source), beyond(scope, step)
    source.line(f"{left} = {oldest(source, scope, step)}")
    if end is None:
        source.line(
            f"{several} = {bucket} if {bucket}[0][0] >= {left} else {bucket}[{bisect}({bucket}, ({left},)):]"
        )
    else:
        source.line(f"{several} = {bucket}[{bisect}({bucket}, ({left},)):{bisect}({bucket}, ({end},))]")
    tests = refusals(scope, step)
    if tests:
        _listed(scope, step, f"len({several})")
        source.line(f"{several} = [x for x in {several} if not ({' or '.join(tests)})]")


def _newest_above(
    source: CodeSource, scope: Scope, step: PlanStep, measure: Measure, limits: Sequence[int], number: int
) -> None:
    """`c<n>`: the greatest candidate of each member in range, as (fact, from, to).

    From the newest on, each candidate is that of the members whose threshold it passes and no newer one did.
    """
    lo, hi = scope.range
    several = f"c{number}"
    cut, fact, size = _measured(source, measure)
    rising = source.name("limits", limits)
    source.line(f"{several}, taken, lo{number} = [], {lo}, {oldest(source, scope, step)}")
    _newest_end(source, scope, step, number)
    with _from_newest(source, scope, step, number, refusals(scope, step)):
        source.line(f"upto = {cut}({rising}, {size}, taken, {hi})")
        with source.block("if upto > taken"):
            source.line(f"{several}.append(({fact}, taken, upto))")
            source.line("taken = upto")
            source.line(f"if taken == {hi}: break")


def _measured(source: CodeSource, measure: Measure) -> tuple[str, str, str]:
    """Of a kept fact `x`: what cuts the thresholds by its size, it without its size, its size."""
    cut = source.name("cut", bisect_right if measure.inclusive else bisect_left)
    if measure.place == CARRIED:
        return cut, "x[:4]", "x[4]"
    return cut, "x", f"{source.name('size', table_of(measure))}[x[1][{measure.place}]]"  # as it came


def _who_takes(
    source: CodeSource, scope: Scope, measure: Measure, limits: Sequence[int], several: str
) -> None:
    """The facts in `c<n>` become (fact, from, to): the members in range whose threshold they pass."""
    lo, hi = scope.range
    rising = source.name("limits", limits)
    cut, fact, size = _measured(source, measure)
    source.line(
        f"{several} = [({fact}, {lo}, upto) for x in {several} "
        f"if (upto := {cut}({rising}, {size}, {lo}, {hi})) > {lo}]"
    )


def newest_one(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> None:
    """`f<n>`: the greatest candidate of bucket `q<n>`, or None."""
    fact, bucket, left = f"f{number}", f"q{number}", f"lo{number}"
    tests = refusals(scope, step)
    end = beyond(scope, step)
    source.line(f"{left} = {oldest(source, scope, step)}")
    if not tests and end is None:
        source.line(f"{fact} = {bucket}[-1]")
        source.line(f"if {fact}[0] < {left}: {fact} = None")
        return
    source.line(f"{fact} = None")
    _newest_end(source, scope, step, number)
    with _from_newest(source, scope, step, number, tests):
        source.line(f"{fact} = x")
        source.line("break")


def _newest_k(source: CodeSource, scope: Scope, step: PlanStep, number: int, k: int) -> None:
    """`c<n>`: the k greatest candidates, in canonical order."""
    several, bucket, left = f"c{number}", f"q{number}", f"lo{number}"
    tests = refusals(scope, step)
    count = source.name("k", k)
    source.line(f"{left} = {oldest(source, scope, step)}")
    _newest_end(source, scope, step, number)
    if not tests:
        source.line(f"{several} = {bucket}[max(0, i - {count}):i]")
        source.line(
            f"if {several} and {several}[0][0] < {left}: "
            f"del {several}[:{_bisect(source)}({several}, ({left},))]"
        )
        return
    source.line(f"{several} = []")
    with _from_newest(source, scope, step, number, tests):
        source.line(f"{several}.append(x)")
        source.line(f"if len({several}) == {count}: break")
    source.line(f"{several}.reverse()")


@contextmanager
def _from_newest(
    source: CodeSource, scope: Scope, step: PlanStep, number: int, tests: Sequence[str]
) -> Iterator[None]:
    """A loop over candidates `x` from place `i` down to the window's start, whose body the caller writes."""
    source.line("j = i")
    places = f"q{number}.backwards(i, {_every_point(scope, step)})" if step.held else "range(i - 1, -1, -1)"
    with source.block(f"for i in {places}"):
        source.line(f"x = q{number}[i]")
        with source.block(f"if x[0] < lo{number}"):
            source.line("i += 1")
            source.line("break")
        if step.held:
            _listed(scope, step, "1")
        for test in tests:
            source.line(f"if {test}: continue")
        yield
    if not step.held:
        _listed(scope, step, "j - i")


def _newest_end(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> None:
    """`i`: the place after the window's last fact."""
    bucket, end = f"q{number}", beyond(scope, step)
    where = f"len({bucket})" if end is None else f"{_bisect(source)}({bucket}, ({end},))"
    source.line(f"i = {where}")


def _oldest_one(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> None:
    """`f<n>`: the least candidate, or None."""
    fact = f"f{number}"
    source.line(f"{fact} = None")
    with _from_oldest(source, scope, step, number):
        source.line(f"{fact} = x")
        source.line("break")


def _oldest_k(source: CodeSource, scope: Scope, step: PlanStep, number: int, k: int) -> None:
    """`c<n>`: the k least candidates, in canonical order."""
    several = f"c{number}"
    source.line(f"{several} = []")
    with _from_oldest(source, scope, step, number):
        source.line(f"{several}.append(x)")
        source.line(f"if len({several}) == {source.name('k', k)}: break")


@contextmanager
def _from_oldest(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> Iterator[None]:
    """A loop over candidates `x` from the window's start, whose body the caller writes."""
    bucket, end, tests = f"q{number}", beyond(scope, step), refusals(scope, step)
    source.line(f"i = j = {_bisect(source)}({bucket}, ({oldest(source, scope, step)},))")
    places = f"{bucket}.forwards(i, {_every_point(scope, step)})" if step.held else f"range(i, len({bucket}))"
    with source.block(f"for i in {places}"):
        source.line(f"x = {bucket}[i]")
        if end is not None:
            source.line(f"if x[0] >= {end}: break")
        if step.held:
            _listed(scope, step, "1")
        for test in tests:
            source.line(f"if {test}: continue")
        yield
    if not step.held:
        _listed(scope, step, "1 + i - j")


def _every_point(scope: Scope, step: PlanStep) -> bool:
    """Whether one point of a stretch does not tell of the others."""
    conjunct = step.conjunct
    several = isinstance(conjunct, Choose) and conjunct.k > 1
    return several or step.every_point(scope.trigger)


def _listed(scope: Scope, step: PlanStep, length: str) -> None:
    """So many candidates are looked at, each tested for what is left of ON."""
    if scope.work is not None:
        scope.work.listed(step.title, length, tests=step.residual is not None)


def _bisect(source: CodeSource) -> str:
    return source.name("bisect", bisect_left)
