"""How each operator of a rule is detected: what it keeps, and its code.

Place:   plan.py and code.py use the table `DETECTED`; the code of all operators is built from the search for
         candidates.
Method:  candidates: the facts of a bucket that are in a window and pass the rest of ON. A bucket is in
         canonical order, so a window is a range, LAST its end and FIRST its start; the rest of ON is tested
         from there, only as far as needed. `(t,)` is less than every fact of time t and greater than all
         before, so bounds are found by bisection without a key function.
         EACH takes all candidates, in canonical order; FIRST k begins at the start of the window's range,
         LAST k at its end. The three share the code that binds one fact, or loops over several. PER makes
         groups of the candidates: in a window that ends at the trigger, of the latest fact of each group,
         which is all that is kept.
         NOT drops a match if there is a candidate: if the window ends at the trigger and ON is keys and
         filters, the latest fact of the key decides; otherwise a search for the greatest candidate.
         Aggregates (COUNT, SUM, AVG, MIN, MAX) over the candidates of a scope: a scope anchored at the
         trigger whose candidates depend on nothing else has a running total (totals.py). Any other is counted
         by two bisections if only a count is needed, otherwise enumerated. Rules that differ in a threshold
         have one running total by level, or enumerate the candidates once: either gives the values of ranges
         of them. OVER LAST n and FIRST n read only the n candidates at an end of the window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from msgspec import Struct

from dotr.codegen import CodeSource
from dotr.detect.analysis import as_own, looks_at_time, names
from dotr.detect.columns import Column, Groups, JoinedLog
from dotr.detect.plan_step import (
    Content,
    FactLog,
    LastValue,
    LatestOfGroups,
    MonotonicStack,
    PlanStep,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.detect.scope import Scope, computed
from dotr.detect.thresholds import CARRIED, Measure, any_of, latest_above, latest_of, none_above, table_of
from dotr.detect.totals import JoinedTotal, counted, running, summed, value_above, values_above
from dotr.events import NEVER, Fact, Time, no_fact
from dotr.expressions.aggregates import aggregator, summarise
from dotr.expressions.functions import makes_text
from dotr.program.names import label
from dotr.program.queries import Expression
from dotr.program.rules import Absent, Between, Choose, Operator, Selection, Summarise, Within
from dotr.rdf.terms import Term, integer
from dotr.rdf.values import values_key


class StepCode(NamedTuple):
    """Where the code of a conjunct goes, and its inputs. `limits`: of the members of a group, if they differ;
    `least`: else the least size that all of them take. `number` of the conjunct, from 1: `q1` is its bucket,
    `f1` its fact, `c1` several.
    """

    source: CodeSource
    scope: Scope
    step: PlanStep
    column: Column[Any]
    limits: Sequence[int]
    least: int | None
    number: int


class CodeItem(Struct):
    """An item to write as soon as `needs` are known: a conjunct, a part of WHERE, or a binding."""

    needs: frozenset[str]
    write: Callable[[], None]
    gives: str = ""
    local: str = ""
    loop: str = ""  # the list to loop over, for a conjunct with several choices
    what: str = ""  # the conjunct, for diagnostics
    choice: bool = False  # whether this loop would be a single choice for a rule alone
    target: str = ""  # what the loop binds, if more than the local
    keeps: tuple[str, ...] = ()
    stage: str = ""  # its name in a funnel; empty: it is not a step
    may_fail: bool = True
    key: Hashable = None  # equal for items with the same code and names


Shares: TypeAlias = Callable[[Measure], Content]
"""A measure → what a column keeps for rules that differ in their thresholds of it."""


class DetectedOperator(NamedTuple):
    """One operator.

    `content`: (conjunct, variable → number) → what its column keeps if the window ends at the trigger and ON
    is keys and filters; else all facts are kept. `shares`: (conjunct, content, whether ON has more than keys
    and filters) → what rules with several thresholds can share instead, or None. `item`: (conjunct, its
    inputs, where its code goes) → its code.
    `counts_reference`: under FROM the reference's own fact is a candidate.
    """

    content: Callable[[Any, Mapping[str, int]], Content]
    shares: Callable[[Any, Content, bool], Shares | None]
    item: Callable[[Any, frozenset[str], StepCode], CodeItem]
    counts_reference: bool = False


def all_facts(conjunct: Choose, variables: Mapping[str, int]) -> Content:
    """A log, since any fact may be chosen; of groups the latest fact of each."""
    if conjunct.per and not conjunct.position.of_head:
        return LatestOfGroups(tuple(sorted(variables[name] for name in conjunct.per)))
    return FactLog(held=conjunct.position.of_head)


def one(
    conjunct: Choose, needs: frozenset[str], code: StepCode, write: Callable[[Choose, StepCode], None]
) -> CodeItem:
    """`write` binds `f<n>`; `continue` without a fact. With thresholds it lists (fact, from, to) in `c<n>`:
    which members take which fact.
    """
    fact, several = f"f{code.number}", f"c{code.number}"
    shared = bool(code.limits)
    return CodeItem(
        needs,
        lambda: write(conjunct, code),
        gives=conjunct.position.name,
        local=fact,
        loop=several if shared else "",
        what=code.step.title,
        choice=True,
        target=f"{fact}, lo_{fact}, hi_{fact}" if shared else "",
        keeps=(several,) if shared else (fact,),
        stage=label(conjunct),
        may_fail=not conjunct.optional,
    )


def several(
    conjunct: Choose, needs: frozenset[str], code: StepCode, write: Callable[[Choose, StepCode], None]
) -> CodeItem:
    """`write` lists facts, or (fact, from, to) with thresholds, in `c<n>`; `continue` without a fact."""
    fact, listed = f"f{code.number}", f"c{code.number}"
    shared = bool(code.limits)
    return CodeItem(
        needs,
        lambda: write(conjunct, code),
        gives=conjunct.position.name,
        local=fact,
        loop=listed,
        what=code.step.title,
        target=f"{fact}, lo_{fact}, hi_{fact}" if shared else "",
        keeps=(listed,),
        stage=label(conjunct),
    )


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
            scope.work.expression(expression)
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
            if start in scope.optional:  # nothing lies behind no fact
                first = scope.locals[start]
                return f"({first}[0] + 1 if {first}[0] != {source.name('never', NEVER)} else time + 1)"
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
        charge_listed(scope, step, f"len({several})")
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
            charge_listed(scope, step, "1")
        for test in tests:
            source.line(f"if {test}: continue")
        yield
    if not step.held:
        charge_listed(scope, step, "j - i")


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
            charge_listed(scope, step, "1")
        for test in tests:
            source.line(f"if {test}: continue")
        yield
    if not step.held:
        charge_listed(scope, step, "1 + i - j")


def _every_point(scope: Scope, step: PlanStep) -> bool:
    """Whether points of a stretch must be tested one by one."""
    conjunct = step.conjunct
    several = isinstance(conjunct, Choose | Summarise) and conjunct.k > 1
    return several or step.every_point(scope.trigger)


def charge_listed(scope: Scope, step: PlanStep, length: str) -> None:
    """Charge for `count` candidates, each tested for the rest of ON."""
    if scope.work is not None:
        scope.work.listed(step.title, length, step.residual)


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


def without(conjunct: Choose, code: StepCode) -> str:
    """Source of what is done where a bucket has no candidate: an OPTIONAL goes on without a fact."""
    if not conjunct.optional:
        return "continue"
    nothing = no_fact(len(conjunct.position.variables))
    return f"f{code.number} = {code.source.name('no_fact', nothing)}"


def _shares(conjunct: Choose, _content: Content, _tested: bool) -> Shares | None:
    return None if conjunct.per else Ranked


def _item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return several(conjunct, needs, code, _write)


def _write(conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, listed = find(source, scope, step, code.column, number), f"c{number}"
    source.line(f"if {bucket} is None: continue")
    if isinstance(step.column.content, LatestOfGroups):
        since = source.name("since", partial(_since, conjunct))
        source.line(f"{listed} = {since}({bucket}, {oldest(source, scope, step)}, time)")
        charge_listed(scope, step, f"len({listed})")
        source.line(f"if not {listed}: continue")
        return
    candidates(code)
    if conjunct.per:
        charge_listed(scope, step, f"len({listed})")
        source.line(f"{listed} = {source.name('groups', partial(_groups, conjunct))}({listed}, time)")
    if code.limits:
        charge_listed(scope, step, f"len({listed})")
        _who_takes(code, listed)
    source.line(f"if not {listed}: continue")


def _since(conjunct: Choose, latest: Groups, since: Time, time: Time) -> list[Fact]:
    """The groups with a fact that is not older than `since`. O(their number), and sorted."""
    recent = list(takewhile(lambda fact: fact[0] >= since, reversed(latest.values())))
    return _groups(conjunct, recent, time)


def _groups(conjunct: Choose, facts: Iterable[Fact], time: Time) -> list[Fact]:
    """The groups of these facts, in canonical order."""
    shown = [name in conjunct.per for name in conjunct.position.variables]
    values = {
        tuple([term if bound else None for term, bound in zip(fact[1], shown, strict=True)]) for fact in facts
    }
    return [(time, group, 0, "") for group in sorted(values, key=values_key)]


def _who_takes(code: StepCode, several: str) -> None:
    """The facts in `c<n>` become (fact, from, to): the members in range whose threshold they pass."""
    content = code.step.column.content
    assert isinstance(content, Ranked)
    lo, hi = code.scope.range
    rising = code.source.name("limits", code.limits)
    cut, size = measured(code.source, content.measure)
    code.source.line(
        f"{several} = [({taken(code)}, {lo}, upto) for x in {several} "
        f"if (upto := {cut}({rising}, {size}, {lo}, {hi})) > {lo}]"
    )


EACH = DetectedOperator(all_facts, _shares, _item)


def _first_shares(conjunct: Choose, _content: Content, _tested: bool) -> Shares | None:
    return None if conjunct.optional else Ranked


def _first_item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return (
        one(conjunct, needs, code, _write_first)
        if conjunct.k == 1
        else several(conjunct, needs, code, _write_k)
    )


def _write_first(conjunct: Choose, code: StepCode) -> None:
    source, number = code.source, code.number
    bucket = find(source, code.scope, code.step, code.column, number)
    if conjunct.optional:
        source.line(f"f{number} = None")
        with source.block(f"if {bucket} is not None"), from_oldest(code):
            source.line(f"f{number} = {taken(code)}")
            source.line("break")
        source.line(f"if f{number} is None: {without(conjunct, code)}")
        return
    source.line(f"if {bucket} is None: continue")
    if code.limits:
        source.line(f"c{number}, taken = [], {code.scope.range[0]}")
        with from_oldest(code):
            one_each(code)
        source.line(f"if not c{number}: continue")
        return
    source.line(f"f{number} = None")
    with from_oldest(code):
        source.line(f"f{number} = {taken(code)}")
        source.line("break")
    source.line(f"if f{number} is None: continue")


def _write_k(conjunct: Choose, code: StepCode) -> None:
    """`c<n>`: the k least candidates, in canonical order."""
    source, number = code.source, code.number
    bucket = find(source, code.scope, code.step, code.column, number)
    source.line(f"if {bucket} is None: continue")
    take_first(code, conjunct.k)
    source.line(f"if not c{number}: continue")


def take_first(code: StepCode, k: int) -> None:
    """`c<n>`: the k least candidates of bucket `q<n>`, in canonical order."""
    source, found = code.source, f"c{code.number}"
    source.line(f"{found} = []")
    if code.limits:
        source.line(f"ends, taken = [], {code.scope.range[0]}")
    with from_oldest(code):
        if code.limits:
            some_each(code, k)
        else:
            source.line(f"{found}.append({taken(code)})")
            source.line(f"if len({found}) == {source.name('k', k)}: break")


FIRST = DetectedOperator(all_facts, _first_shares, _first_item)


def _last_content(conjunct: Choose, variables: Mapping[str, int]) -> Content:
    return LastValue() if conjunct.k == 1 else all_facts(conjunct, variables)


def _last_shares(conjunct: Choose, content: Content, _tested: bool) -> Shares | None:
    if conjunct.optional:
        return None
    return Ranked if isinstance(content, FactLog) else MonotonicStack


def _last_item(conjunct: Choose, needs: frozenset[str], code: StepCode) -> CodeItem:
    return (
        one(conjunct, needs, code, _write_last)
        if conjunct.k == 1
        else several(conjunct, needs, code, _write_last_k)
    )


def _write_last(conjunct: Choose, code: StepCode) -> None:
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = find(source, scope, step, code.column, number)
    fact, listed = f"f{number}", f"c{number}"
    content = step.column.content
    if isinstance(content, LastValue):
        source.line(f"{fact} = {bucket}")
        since = oldest(source, scope, step)
        source.line(f"if {fact} is None or {fact}[0] < {since}: {without(conjunct, code)}")
        return
    if conjunct.optional:
        source.line(f"{fact} = None")
        with source.block(f"if {bucket} is not None"):
            newest_one(code)
        source.line(f"if {fact} is None: {without(conjunct, code)}")
        return
    source.line(f"if {bucket} is None: continue")
    if isinstance(content, MonotonicStack) and not code.limits:
        least = source.name("least", code.least)
        source.line(f"{fact} = {bucket}.facts[-1]")
        with source.block(f"if {bucket}.measures[-1] < {least}"):
            source.line(f"{fact} = {source.name('search', latest_of)}({bucket}, {least})")
            source.line(f"if {fact} is None: continue")
        source.line(f"if {fact}[0] < {oldest(source, scope, step)}: continue")
    elif isinstance(content, MonotonicStack):
        charge_listed(scope, step, f"len({bucket}.facts)")
        lo, hi = scope.range
        search = stack_search(source, scope, step, latest_above, code.limits)(bucket)
        passes = ">=" if content.measure.inclusive else ">"
        rising = source.name("limits", code.limits)
        with source.block(f"if {bucket}.measures[-1] {passes} {rising}[{hi} - 1]"):  # the common case
            source.line(f"{fact} = {bucket}.facts[-1]")
            source.line(f"if {fact}[0] < {oldest(source, scope, step)}: continue")
            source.line(f"{listed} = (({fact}, {lo}, {hi}),)")
        with source.block("else"):
            source.line(f"{listed} = {search}")
            source.line(f"if not {listed}: continue")
    elif code.limits:
        left = oldest(source, scope, step)
        source.line(f"{listed}, taken, lo{number} = [], {scope.range[0]}, {left}")
        newest_end(source, scope, step, number)
        with from_newest(code, refusals(code)):
            one_each(code)
        source.line(f"if not {listed}: continue")
    else:
        newest_one(code)
        source.line(f"if {fact} is None: continue")


def _write_last_k(conjunct: Choose, code: StepCode) -> None:
    """`c<n>`: the k greatest candidates, in canonical order."""
    source, number = code.source, code.number
    bucket = find(source, code.scope, code.step, code.column, number)
    source.line(f"if {bucket} is None: continue")
    take_last(code, conjunct.k)
    source.line(f"if not c{number}: continue")


def take_last(code: StepCode, k: int) -> None:
    """`c<n>`: the k greatest candidates of bucket `q<n>`, in canonical order."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, several, left = f"q{number}", f"c{number}", f"lo{number}"
    tests = refusals(code)
    count = source.name("k", k)
    source.line(f"{left} = {oldest(source, scope, step)}")
    newest_end(source, scope, step, number)
    if not (tests or code.limits):
        source.line(f"{several} = {bucket}[max(0, i - {count}):i]")
        source.line(
            f"if {several} and {several}[0][0] < {left}: "
            f"del {several}[:{bisecting(source)}({several}, ({left},))]"
        )
        if step.column.carries:
            source.line(f"{several} = [{taken(code)} for x in {several}]")
    else:
        source.line(f"{several} = []")
        if code.limits:
            source.line(f"ends, taken = [], {scope.range[0]}")
        with from_newest(code, tests):
            if code.limits:
                some_each(code, k)
            else:
                source.line(f"{several}.append({taken(code)})")
                source.line(f"if len({several}) == {count}: break")
        source.line(f"{several}.reverse()")


LAST = DetectedOperator(_last_content, _last_shares, _last_item)


def _absent_content(_conjunct: Absent, _variables: Mapping[str, int]) -> Content:
    return LastValue()


def _absent_shares(_conjunct: Absent, content: Content, _tested: bool) -> Shares:
    return Ranked if isinstance(content, FactLog) else MonotonicStack


def _absent_item(conjunct: Absent, needs: frozenset[str], code: StepCode) -> CodeItem:
    keeps = (f"left{code.number}",) if code.limits else ()
    return CodeItem(needs, lambda: _write_absent(code), keeps=keeps, stage=label(conjunct))


def _write_absent(code: StepCode) -> None:
    """`continue` if there is a candidate; with thresholds, narrow the range to members without one."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = find(source, scope, step, code.column, number)
    content = step.column.content
    if isinstance(content, LastValue):
        source.line(f"if {bucket} is not None and {bucket}[0] >= {oldest(source, scope, step)}: continue")
    elif code.limits:
        lo, hi = scope.range
        left = f"left{number}"
        if isinstance(content, MonotonicStack):
            search = stack_search(source, scope, step, none_above, code.limits)
            source.line(f"{left} = {lo} if {bucket} is None else {search(bucket)}")
        else:
            source.line(f"{left} = {lo}")
            with source.block(f"if {bucket} is not None"):
                _first_without(code, left)
        source.line(f"if {left} == {hi}: continue")
        scope.range = left, hi
    elif isinstance(content, MonotonicStack):
        any_, least = source.name("search", any_of), source.name("least", code.least)
        since = oldest(source, scope, step)
        source.line(f"if {bucket} is not None and {any_}({bucket}, {since}, {least}): continue")
    else:
        found = f"f{number}"
        source.line(f"{found} = None")
        with source.block(f"if {bucket} is not None"):
            newest_one(code)
        source.line(f"if {found} is not None: continue")


def _first_without(code: StepCode, left: str) -> None:
    """`left` becomes the first member in range without a candidate: those before it have one."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    source.line(f"lo{number} = {oldest(source, scope, step)}")
    newest_end(source, scope, step, number)
    with from_newest(code, refusals(code)), upto(code, left):
        source.line(f"{left} = upto")
        source.line(f"if {left} == {scope.range[1]}: break")


ABSENT = DetectedOperator(_absent_content, _absent_shares, _absent_item)


_SUMMED = ("COUNT", "SUM", "AVG")
_EXTREME = ("MIN", "MAX")


def _aggregate_content(conjunct: Summarise, variables: Mapping[str, int]) -> Content:
    """A running total, if the window is anchored at the trigger and the argument reads only the own fact."""
    of_head, own = conjunct.position.of_head, conjunct.position.name
    window, argument, function = conjunct.window, conjunct.argument, conjunct.function
    if aggregator(function).ordered or conjunct.selection is not None:
        return FactLog(held=of_head)
    if not isinstance(window, Within) or not (argument is None or _is_own(argument, own, of_head)):
        return FactLog(held=of_head)
    # one point of a stretch decides DISTINCT, MIN and MAX; other aggregates have no running form there
    counted = of_head and not conjunct.distinct and function not in _EXTREME
    if counted and function not in _SUMMED:
        return FactLog(held=True)
    of = None if argument is None else as_own(argument, own, variables)
    chained = conjunct.position.chained and function == "COUNT" and argument is None
    weight = len(conjunct.position.variables) if chained else -1
    return RunningTotal(function, conjunct.distinct, of, window.duration, counted, weight)


def _is_own(argument: Expression, own: str, of_head: bool) -> bool:
    looks = of_head and looks_at_time(argument, own)
    return names(argument) <= {own} and not makes_text(argument) and not looks


def _aggregate_shares(conjunct: Summarise, content: Content, tested: bool) -> Shares | None:
    if isinstance(content, RunningTotal):
        function, distinct, of, width = content.function, content.distinct, content.argument, content.duration
        return lambda measure: RankedTotal(measure, function, distinct, of, width)
    if aggregator(conjunct.function).ordered or conjunct.selection is not None:
        return None
    # what two bisections count is not enumerated for the sake of sharing
    return Ranked if tested or conjunct.argument is not None else None


def _aggregate_item(conjunct: Summarise, needs: frozenset[str], code: StepCode) -> CodeItem:
    """With thresholds `c<n>` lists (value, from, to): which members have which value."""
    value, several = f"a{code.number}", f"c{code.number}"
    shared = bool(code.limits)
    return CodeItem(
        needs,
        lambda: _write_ranges(conjunct, code) if shared else _write_aggregate(conjunct, code),
        gives="?" + conjunct.variable,
        local=value,
        loop=several if shared else "",
        what=code.step.title,
        choice=True,
        target=f"{value}, lo_{value}, hi_{value}" if shared else "",
        keeps=(several,) if shared else (value,),
        stage=label(conjunct),
        may_fail=False,
    )


def _write_aggregate(conjunct: Summarise, code: StepCode) -> None:
    """Bind `a<n>` to the aggregate's term, or None if it has no value."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket = find(source, scope, step, code.column, number)
    value, several = f"a{number}", f"c{number}"
    nothing, since = source.name("nothing", _nothing(conjunct)), oldest(source, scope, step)
    if isinstance(step.column.content, RunningTotal):
        source.line(f"{value} = {nothing} if {bucket} is None else {bucket}.value({since})")
        return
    if isinstance(step.column.content, RankedTotal):
        above, least = source.name("above", value_above), source.name("least", code.least)
        value_ = f"{above}({bucket}, {since}, {least}, {nothing})"
        source.line(f"{value} = {nothing} if {bucket} is None else {value_}")
        return
    source.line(f"{value} = {nothing}")
    with source.block(f"if {bucket} is not None"):
        if conjunct.argument is None and step.residual is None and conjunct.selection is None:
            end = beyond(scope, step)
            bisect, count = source.name("bisect", bisect_left), source.name("integer", integer)
            upper = f"len({bucket})" if end is None else f"{bisect}({bucket}, ({end},))"
            source.line(f"{value} = {count}(max(0, {upper} - {bisect}({bucket}, ({since},))))")
            return
        match conjunct.selection:
            case Selection.LAST:
                take_last(code, conjunct.k)
            case Selection.FIRST:
                take_first(code, conjunct.k)
            case _:
                candidates(code)
        finish = source.name("finish", _finish(conjunct))
        _charge(conjunct, code)
        values = several if conjunct.argument is None else f"[{_of(conjunct, code)} for x in {several}]"
        source.line(f"{value} = {finish}({values})")


def _write_ranges(conjunct: Summarise, code: StepCode) -> None:
    """`c<n>` becomes (value, from, to) of ranges that cover the members in range."""
    source, scope, step, number = code.source, code.scope, code.step, code.number
    bucket, several = find(source, scope, step, code.column, number), f"c{number}"
    content, nothing, (lo, hi) = step.column.content, _nothing(conjunct), scope.range
    with source.block(f"if {bucket} is None"):
        source.line(f"{several} = (({source.name('nothing', nothing)}, {lo}, {hi}),)")
    with source.block("else"):
        if isinstance(content, RankedTotal):
            search = stack_search(source, scope, step, partial(values_above, nothing), code.limits)
            source.line(f"{several} = {search(bucket)}")
            return
        assert isinstance(content, Ranked)
        candidates(code)
        _charge(conjunct, code)
        cut, size = measured(source, content.measure)
        upto = f"(upto := {cut}({source.name('limits', code.limits)}, {size}, {lo}, {hi}))"
        passing = f"for x in {several} if {upto} > {lo}"
        if conjunct.argument is None:
            found = f"{source.name('counted', counted)}([upto {passing}], {lo}, {hi})"
        else:
            make = source.name("make", running(conjunct.function, conjunct.distinct, star=False))
            values = f"[(upto, {_of(conjunct, code)}) {passing}]"
            found = f"{source.name('summed', summed)}({values}, {lo}, {hi}, {make})"
        source.line(f"{several} = {found}")


def _charge(conjunct: Summarise, code: StepCode) -> None:
    """Charge for the candidates `c<n>` and their arguments."""
    if code.scope.work is not None:
        argument = conjunct.argument
        evaluated = argument if argument is not None and computed(argument) else None
        code.scope.work.listed(code.step.title, f"len(c{code.number})", evaluated)


def _of(conjunct: Summarise, code: StepCode) -> str:
    """Source of the argument of a candidate `x`."""
    scope, name = code.scope, conjunct.position.name
    assert conjunct.argument is not None
    scope.locals[name] = "x"
    value = scope.value(conjunct.argument)
    del scope.locals[name]
    return value


def _nothing(conjunct: Summarise) -> Term | None:
    return summarise(conjunct.function, conjunct.distinct, [], star=conjunct.argument is None)


def _finish(conjunct: Summarise) -> Any:
    function, distinct, star = conjunct.function, conjunct.distinct, conjunct.argument is None
    if distinct or star:
        return lambda terms: summarise(function, distinct, terms, star=star)
    return aggregator(function).of


AGGREGATE = DetectedOperator(_aggregate_content, _aggregate_shares, _aggregate_item, counts_reference=True)


DETECTED: Final[Mapping[Operator, DetectedOperator]] = {
    Operator.EACH: EACH,
    Operator.LAST: LAST,
    Operator.FIRST: FIRST,
    Operator.NOT: ABSENT,
    Operator.AGGREGATE: AGGREGATE,
}
