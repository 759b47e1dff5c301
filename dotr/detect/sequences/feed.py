"""The hot loop of a sequence as a generated function for each of its sources: rows of an instant in.

Place:   merged.py calls it with the facts of a source; what is rare it leaves to merged.py and sequence.py.
Method:  key, partition, conditions and the step from list to list are in one function, so that a row of a
         partition with a lead, or with a front, needs no call but those of updates and of its front's move
         (merged.py). Conditions are those of the source's elements only. A time before which none of its
         mappings ends (`closes`) is kept from row to row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from dotr.codegen import CodeSource, row_of
from dotr.detect.sequences.code import write_bits
from dotr.events import Clock, Fact, Time

if TYPE_CHECKING:
    from dotr.detect.sequences.merged import Merged

Feed: TypeAlias = Callable[[Time, Sequence[Fact], list[Any]], None]
"""(time, facts of a source at it in canonical order, where matches that are then certain are added)."""


def write_feed(how: Merged, clock: Clock, number: int, bound: dict[str, Any]) -> Feed:
    """The function of source `number`. `bound`: what it calls of merged.py, by name."""
    shape, limits = how.shape, how.limits
    pattern, source = shape.pattern, CodeSource()
    n = {name: source.name(name, value) for name, value in bound.items()}
    places = [pattern.sources[number].variables.index(name) for name in pattern.per]
    fact = "f" if shape.many else "r"
    before = shape.before
    source.line(f"counted[0] += {n['len']}(facts)")
    source.open(f"for {fact} in facts")
    source.line(f"v = {fact}[1]")
    if len(places) == 1:
        source.line(f"key = v[{places[0]}]")
        source.line("if key is None: counted[1] += 1; continue")
    else:
        source.line(f"key = {row_of([f'v[{place}]' for place in places]) if places else '()'}")
        if places:
            source.line("if None in key: counted[1] += 1; continue")
    if shape.many:
        source.line(f"r = f[:4] + ({number},)")
    source.line("part = part_of(key)")
    depth = source.depth
    if not before:
        source.open("if part is None")
        source.line("need = start.need")
        write_bits(source, shape, clock, how.code.failed, number)
        source.line("states, ended = start[bits]")
        source.line("if states is empty and not ended: continue")
        source.line(f"part = {n['new']}(key, time)")
        source.line("front = none; lead = None; part.work = none.cost")
        source.resume(depth)
        source.open("else")
    else:
        source.line(f"if part is None: part = {n['new']}(key, time)")
    test = "time > part.closes"
    if limits.gap is not None:
        test = f"{test} or time - part.last > {source.name('gap', limits.gap)}"
    source.line(f"if {test}: {n['expire']}(part, time, found)")
    source.line("front = part.front; lead = part.lead" if how.leads else "front = part.front")
    source.line("if front is None: need, cost = part.need, part.cost")
    if how.leads:
        source.line("elif lead is not None:")
        source.line("    need, cost = front.need | lead.states.need, front.cost + lead.states.cost")
    source.line("else: need, cost = front.need, front.cost")
    with source.block("if part.last == time"):
        source.line("if part.work < 0:")
        source.line(f"    {n['follow']}(part, r)")
        source.line("    continue")
        source.line("cost += part.work")
    source.line("part.work = cost")
    with source.block(f"if cost > {source.name('budget', how.budget)}"):
        source.line(f"{n['exceed']}(part, {fact}, found)")
        source.line(f"{n['follow']}(part, r)")
        source.line("continue")
    if before:
        source.line("before = part.before")
    write_bits(source, shape, clock, how.code.failed, number)
    source.resume(depth)
    if before == 1:
        source.line("part.before = r")
    elif before:
        source.line(f"part.before = (r, *before[:{before - 1}])")
    source.line("part.last = time")
    source.line("number = part.count; part.count = number + 1")
    source.line("dirty = False")
    if how.leads:
        with source.block("if lead is not None"):
            source.line("move = lead.states.steps.get(bits)")
            source.line("if move is None: move = lead.states.step(bits)")
            source.line("states, only, taken, origins, ended = move")
            with source.block("if only is not None"):
                source.line("one = only(lead.carried[taken[0][1]], r)")
                source.line("lead.carried = [one] * LEN(origins)".replace("LEN", n["len"]))
                source.line("if ended >= 0: lead.mapped = one")
            with source.block("elif taken"):
                source.line("old = lead.carried")
                source.line(
                    "new = [old[place] if update is None else update(old[place], r)"
                    " for update, place in taken]"
                )
                source.line("lead.carried = [new[origin] for origin in origins]")
                source.line("if ended >= 0: lead.mapped = new[ended]")
            source.line("lead.states = states")
            with source.block("if ended >= 0"):
                with source.block("if part.rows"):
                    source.line("part.starts = []; part.groups = []; part.decided = []; part.rows = []")
                source.line("part.front = none")
                with source.block("if states is empty"):
                    source.line(f"{n['report']}(part, found)")
                    source.line(f"{n['settle']}(part)")
                source.line("continue")
            source.line("dirty = states is empty")
    _write_front(source, n, leads=how.leads, before=before)
    source.line("need, cost = start.need, start.cost")
    if how.leads:
        source.line("if lead is not None: need |= states.need; cost += states.cost")
    source.line("groups = part.groups")
    with source.block("if groups"):
        source.line("left, gone = [], False")
        with source.block("for group in groups"):
            source.line("states, ended = group.states[bits]")
            source.line("if ended: group.last = number; group.hopes = dirty = True")
            with source.block("if states is empty"):
                source.line("gone = True")
                source.line(f"if group.hopes: dirty = True; {n['decide']}(part, group)")
                source.line("continue")
            source.line("group.states = states")
            with source.block("for other in left"), source.block("if other.states is states"):
                source.line(f"{n['join']}(other, group)")
                source.line("break")
            with source.block("else"):
                source.line("left.append(group)")
                source.line("need |= states.need; cost += states.cost")
        source.line("part.groups = groups = left")
        source.line("if gone and part.due is not None: dirty = True  # others may be next")
    source.line("states, ended = start[bits]")
    with source.block("if states is not empty"):
        source.line("counted[2] += 1")
        source.line("last = number if ended else -1")
        with source.block("for group in groups"), source.block("if group.states is states"):
            source.line(f"{n['begin']}(group, number, last)")
            source.line("break")
        with source.block("else"):
            source.line(f"groups.append({n['Group']}(states, last, [number], ended))")
            source.line("need |= states.need; cost += states.cost")
        source.line("dirty = dirty or ended")
    with source.block("elif ended"):
        source.line("counted[2] += 1")
        source.line("part.decided.append((number, number))")
        source.line("dirty = True")
    with source.block("if groups or part.decided"):
        with source.block("if not part.rows"):
            source.line("part.base = number")
            source.line(f"if {n['never']} == part.closes: part.closes = time + {n['within']}")
        source.line("part.rows.append((r, bits))")
    with source.block("elif part.rows"):
        source.line("part.rows = []")
    source.line("part.need = need; part.cost = cost")
    with source.block("if dirty"):
        source.line(f"{n['report']}(part, found)")
        source.line(f"{n['settle']}(part)")
    with source.block("elif not groups and not part.decided" + (" and lead is None" if how.leads else "")):
        source.line(f"{n['settle']}(part)")
    with source.block("elif part.due is not None" + (" and lead is None" if how.leads else "")):
        source.line(f"{n['settle']}(part)")
    locals_ = [f"part_of={n['parts']}.get", *[f"{name}={n[name]}" for name in LOCALS]]
    made: Feed = source.function(f"time, facts, found, {', '.join(locals_)}")
    return made


def _write_front(source: CodeSource, n: Mapping[str, str], *, leads: bool, before: int) -> None:
    """What the row does to a front; without `continue` where the groups are taken on one by one."""
    if leads:
        source.line(f"if dirty and front is not None: {n['unfold']}(part)")
    with source.block("elif front is not None" if leads else "if front is not None"):
        source.line("after, whose, joins, dropped, begin = front[bits]")
        with source.block("if not whose"):
            with source.block("if after is none"):
                with source.block("if front is not none"):
                    source.line("part.front = none; part.starts = []; part.rows = []")
                    if not before:
                        source.line(f"{'if lead is None: ' if leads else ''}{n['idle']}.append(part)")
                source.line("continue")
            source.line("part.front = after; starts = part.starts")
            with source.block("if dropped"):
                with source.block("for one, other in joins"):
                    source.line("one, other = starts[one], starts[other]")
                    source.line("if one[-1] < other[0]: one += other")
                    source.line(f"else: {n['merge']}(one, other)")
                source.line("for place in dropped: del starts[place]")
            with source.block("if begin != -1"):
                source.line("counted[2] += 1")
                source.line("if begin >= 0: starts[begin].append(number)")
                source.line("else: starts.append([number])")
            source.line("rows = part.rows")
            with source.block("if rows"):
                source.line("rows.append((r, bits))")
                source.line(f"if not number & 63: {n['trim']}(part)")
            with source.block("else"):
                source.line("part.base = number; rows.append((r, bits))")
                source.line(f"if {n['never']} == part.closes: part.closes = time + {n['within']}")
            source.line("continue")
        if leads:
            with source.block("if whose == 1 and lead is None"):
                source.line("if begin != -1: counted[2] += 1")
                source.line("if not part.rows: part.base = number")
                source.line("part.rows.append((r, bits))")
                source.line(f"if {n['complete']}(part, found): {n['settle']}(part)")
                if not before:
                    source.line(f"else: {n['idle']}.append(part)")
                source.line("continue")
        source.line(f"{n['unfold']}(part)")


LOCALS = ("start", "empty", "none", "counted")
"""What the function calls by these names: defaults, which cost a call nothing."""

BUILT_IN = {"len": len}
"""What the function calls of Python."""
