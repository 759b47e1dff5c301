"""The facts of a bucket that are in a window and pass the rest of ON, as code.

Place:   what the files of the operators are written with.
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
from dotr.ir.rules import Between, Choose, Within
from dotr.tesla.buckets import JoinedLog
from dotr.tesla.columns import Column
from dotr.tesla.fact_scope import Scope
from dotr.tesla.plan_step import PlanStep
from dotr.tesla.running_aggregates import JoinedTotal
from dotr.tesla.thresholds import CARRIED, Measure, table_of
from dotr.tesla.work import computed


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
    bisect, end = bisecting(source), beyond(scope, step)
    source.line(f"{left} = {oldest(source, scope, step)}")
    if end is None:
        source.line(
            f"{several} = {bucket} if {bucket}[0][0] >= {left} else {bucket}[{bisect}({bucket}, ({left},)):]"
        )
    else:
        source.line(f"{several} = {bucket}[{bisect}({bucket}, ({left},)):{bisect}({bucket}, ({end},))]")
    tests = refusals(scope, step)
    if tests:
        listed(scope, step, f"len({several})")
        source.line(f"{several} = [x for x in {several} if not ({' or '.join(tests)})]")


def measured(source: CodeSource, measure: Measure) -> tuple[str, str, str]:
    """Of a kept fact `x`: what cuts the thresholds by its size, it without its size, its size."""
    cut = source.name("cut", bisect_right if measure.inclusive else bisect_left)
    if measure.place == CARRIED:
        return cut, "x[:4]", "x[4]"
    return cut, "x", f"{source.name('size', table_of(measure))}[x[1][{measure.place}]]"  # as it came


@contextmanager
def from_newest(
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
            listed(scope, step, "1")
        for test in tests:
            source.line(f"if {test}: continue")
        yield
    if not step.held:
        listed(scope, step, "j - i")


def newest_end(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> None:
    """`i`: the place after the window's last fact."""
    bucket, end = f"q{number}", beyond(scope, step)
    where = f"len({bucket})" if end is None else f"{bisecting(source)}({bucket}, ({end},))"
    source.line(f"i = {where}")


@contextmanager
def from_oldest(source: CodeSource, scope: Scope, step: PlanStep, number: int) -> Iterator[None]:
    """A loop over candidates `x` from the window's start, whose body the caller writes."""
    bucket, end, tests = f"q{number}", beyond(scope, step), refusals(scope, step)
    source.line(f"i = j = {bisecting(source)}({bucket}, ({oldest(source, scope, step)},))")
    places = f"{bucket}.forwards(i, {_every_point(scope, step)})" if step.held else f"range(i, len({bucket}))"
    with source.block(f"for i in {places}"):
        source.line(f"x = {bucket}[i]")
        if end is not None:
            source.line(f"if x[0] >= {end}: break")
        if step.held:
            listed(scope, step, "1")
        for test in tests:
            source.line(f"if {test}: continue")
        yield
    if not step.held:
        listed(scope, step, "1 + i - j")


def _every_point(scope: Scope, step: PlanStep) -> bool:
    """Whether one point of a stretch does not tell of the others."""
    conjunct = step.conjunct
    several = isinstance(conjunct, Choose) and conjunct.k > 1
    return several or step.every_point(scope.trigger)


def listed(scope: Scope, step: PlanStep, length: str) -> None:
    """So many candidates are looked at, each tested for what is left of ON."""
    if scope.work is not None:
        scope.work.listed(step.title, length, tests=step.residual is not None)


def bisecting(source: CodeSource) -> str:
    return source.name("bisect", bisect_left)


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
    newest_end(source, scope, step, number)
    with from_newest(source, scope, step, number, tests):
        source.line(f"{fact} = x")
        source.line("break")
