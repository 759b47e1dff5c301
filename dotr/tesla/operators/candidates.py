"""The facts of a bucket that are in a window and pass the rest of ON, as code.

Place:   the files of the operators are built from it.
Method:  a bucket is in canonical order, so a window is a range, LAST its end and FIRST its start; the rest of
         ON is tested from there, only as far as needed. `(t,)` is less than every fact of time t and greater
         than all before, so bounds are found by bisection without a key function.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

from dotr.codegen import CodeSource
from dotr.ir.rules import Between, Choose, Within
from dotr.tesla.buckets import JoinedLog
from dotr.tesla.column_spec import Ranked
from dotr.tesla.columns import Column
from dotr.tesla.fact_scope import Scope
from dotr.tesla.operators.detected import StepCode
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
    """The number of facts collected when several buckets are read as one."""
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
    """Source of the least time after the window, None if the column ends with the window."""
    if step.newest:
        return None
    match step.conjunct.window:
        case Within(reference=reference, before=before):
            return f"{scope.locals[reference]}[0]" + ("" if before else " + 1")
        case Between(end=end):
            return f"{scope.locals[end]}[0]"
        case _:
            assert_never(step.conjunct.window)


def taken(code: StepCode) -> str:
    """Source of the fact that the stored fact `x` represents."""
    return "x[:4]" if code.step.column.carries else "x"


def refusals(code: StepCode) -> list[str]:
    """Tests that exclude `x` as a candidate: it is too small (others that share the column take smaller
    ones), it is the reference itself, or the rest of ON fails.
    """
    scope, step, content = code.scope, code.step, code.step.column.content
    tests = []
    if code.least is not None and isinstance(content, Ranked) and code.least > min(code.column.levels):
        _, size = measured(code.source, content.measure)
        tests.append(f"{size} < {code.source.name('least', code.least)}")
    if step.itself is not None:
        tests.append(f"{taken(code)} == {scope.locals[step.itself]}")
    if step.residual is not None:
        name = step.conjunct.position.name
        scope.locals[name] = "x"
        tests.append(f"not {scope.test(step.residual)}")
        del scope.locals[name]
    return tests


def candidates(code: StepCode) -> None:
    """`c<n>`: the candidates of bucket `q<n>` in canonical order, as stored if members differ in limits; it
    may be the bucket itself: read only.
    """
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, several, left = f"q{number}", f"c{number}", f"lo{number}"
    bisect, end = bisecting(source), beyond(scope, step)
    source.line(f"{left} = {oldest(source, scope, step)}")
    if end is None:
        source.line(
            f"{several} = {bucket} if {bucket}[0][0] >= {left} else {bucket}[{bisect}({bucket}, ({left},)):]"
        )
    else:
        source.line(f"{several} = {bucket}[{bisect}({bucket}, ({left},)):{bisect}({bucket}, ({end},))]")
    tests = refusals(code)
    kept = "x" if code.limits else taken(code)
    if tests:
        listed(scope, step, f"len({several})")
        source.line(f"{several} = [{kept} for x in {several} if not ({' or '.join(tests)})]")
    elif kept != "x":
        source.line(f"{several} = [{kept} for x in {several}]")


def measured(source: CodeSource, measure: Measure) -> tuple[str, str]:
    """The bisection that cuts the thresholds at the size of a stored fact `x`, and its size."""
    cut = source.name("cut", bisect_right if measure.inclusive else bisect_left)
    if measure.place == CARRIED:
        return cut, "x[4]"
    return cut, f"{source.name('size', table_of(measure))}[x[1][{measure.place}]]"  # as it arrived


@contextmanager
def from_newest(code: StepCode, tests: Sequence[str]) -> Iterator[None]:
    """A loop over candidates `x` from place `i` down to the window's start, whose body the caller writes."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
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
def from_oldest(code: StepCode) -> Iterator[None]:
    """A loop over candidates `x` from the window's start, whose body the caller writes."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, end, tests = f"q{number}", beyond(scope, step), refusals(code)
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
    """Whether points of a stretch must be tested one by one."""
    conjunct = step.conjunct
    several = isinstance(conjunct, Choose) and conjunct.k > 1
    return several or step.every_point(scope.trigger)


def listed(scope: Scope, step: PlanStep, length: str) -> None:
    """Charge for `count` candidates, each tested for the rest of ON."""
    if scope.work is not None:
        scope.work.listed(step.title, length, tests=step.residual is not None)


def bisecting(source: CodeSource) -> str:
    return source.name("bisect", bisect_left)


def newest_one(code: StepCode) -> None:
    """`f<n>`: the greatest candidate of bucket `q<n>`, or None."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    fact, bucket, left = f"f{number}", f"q{number}", f"lo{number}"
    tests = refusals(code)
    end = beyond(scope, step)
    source.line(f"{left} = {oldest(source, scope, step)}")
    if not tests and end is None:
        source.line(f"x = {bucket}[-1]")
        source.line(f"{fact} = None if x[0] < {left} else {taken(code)}")
        return
    source.line(f"{fact} = None")
    newest_end(source, scope, step, number)
    with from_newest(code, tests):
        source.line(f"{fact} = {taken(code)}")
        source.line("break")


@contextmanager
def upto(code: StepCode, above: str) -> Iterator[None]:
    """Called with a stored fact `x` that the members from `above` to `upto` take."""
    content = code.step.column.content
    assert isinstance(content, Ranked)
    cut, size = measured(code.source, content.measure)
    rising = code.source.name("limits", code.limits)
    code.source.line(f"upto = {cut}({rising}, {size}, {above}, {code.scope.range[1]})")
    with code.source.block(f"if upto > {above}"):
        yield


def one_each(code: StepCode) -> None:
    """In a loop over candidates: each goes to the members whose threshold it passes and no earlier one did;
    `c<n>` gets (fact, from, to), `taken` is the end of members that have theirs.
    """
    with upto(code, "taken"):
        code.source.line(f"c{code.number}.append(({taken(code)}, taken, upto))")
        code.source.line("taken = upto")
        code.source.line(f"if taken == {code.scope.range[1]}: break")


def some_each(code: StepCode, k: int) -> None:
    """In a loop over candidates: like `one_each`, but each member has up to `k`. Members with easier
    thresholds never have fewer, so those that have `k` are the first ones: their number is the k-th largest
    of `ends`, where a candidate's end is the number of members it passes for.
    """
    source, count = code.source, code.source.name("k", k)
    with upto(code, "taken"):
        source.line(f"c{code.number}.append(({taken(code)}, taken, upto))")
        source.line(f"{source.name('insort', insort)}(ends, upto)")
        with source.block(f"if len(ends) >= {count}"):
            source.line(f"taken = ends[-{count}]")
            source.line(f"if taken == {code.scope.range[1]}: break")
