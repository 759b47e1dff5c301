"""Planned rules as one Python function: trigger facts in, matches out.

Place:   network.py calls it when rules first wake; rule_writer.py writes the code of one shape.
Method:  one loop over the trigger facts; every conjunct, part of WHERE and binding is evaluated as soon as
         its inputs are known, so that what depends on the trigger alone is evaluated once, whatever EACH
         multiplies. Rules with a common beginning are one function: the beginning is written once, as in a
         Rete network (Forgy 1982), and each branch after it is a one-turn loop, which `continue` leaves. A
         branch starts with the units of work left where it begins: each rule is charged as if alone.
Why not: a function per rule. A thousand rules of different shapes look up one fact a thousand times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dotr.budget import Exhausted
from dotr.codegen import CodeSource
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.tesla.operators.detected import CodeItem
from dotr.tesla.rule_writer import RuleWriter, SharedRules, works
from dotr.tesla.work import RuleWork

Run: TypeAlias = Callable[[Time, Sequence[Fact], list[RawMatch]], None]
"""(instant, trigger facts in canonical order, where matches are appended in output order)."""

BRANCHES = 4
"""How deep branches of rules with a common beginning nest; loops nest inside, and CPython refuses twenty."""


def compile_rules(
    shapes: Sequence[SharedRules],
    clock: Clock,
    *,
    budget: int,
    drop: Callable[[Sequence[int]], None],
    spent: list[int] | None = None,
) -> Run:
    """The function of rules of one trigger, by shape (sharing.py); usually of one rule.

    `drop` gets the rules of matches that have no graph. A match shared by several rules of a shape is one
    entry. A trigger fact that takes more than `budget` units of work yields no match; `exceeded` of its shape
    is called instead. `spent`: see RuleWork.
    """
    source = CodeSource()
    work = RuleWork(source, budget, spent) if any(works(shape.plans) for shape in shapes) else None
    writers = [RuleWriter(shape, source, clock, work, drop) for shape in shapes]
    return _FunctionWriter(source, work).function(writers)


class _Branch:
    """Owns what remains to be written of one shape before its loops."""

    __slots__ = ("items", "writer")

    def __init__(self, writer: RuleWriter) -> None:
        self.writer = writer
        self.items = writer.before_loops()
        self.items.reverse()

    @property
    def next(self) -> CodeItem | None:
        return self.items[-1] if self.items else None


class _FunctionWriter:
    """Owns one function under construction."""

    def __init__(self, source: CodeSource, work: RuleWork | None) -> None:
        self._source = source
        self._work = work

    def function(self, writers: Sequence[RuleWriter]) -> Run:
        source = self._source
        branches = [_Branch(writer) for writer in writers]
        with source.block("for f0 in facts"):
            first, *others = writers
            if first.rule.consuming and self._work is None:
                source.line("start = len(out)")
            first.write_trigger()
            for other in others:
                other.begin()
            if self._work is not None:
                self._work.begin()
            self._limited(branches, 0)
            if first.rule.consuming:  # then it is alone
                first.write_consumed()
        if self._work is not None:
            self._work.settle()
        counted: dict[int, list[int]] = {}
        for writer in writers:
            if writer.stages is not None:
                writer.stages.settle(counted)
        return source.function("time, facts, out")

    def _limited(self, branches: list[_Branch], depth: int) -> None:
        """Write rules that are equal so far; too much work of theirs ends here."""
        source, work = self._source, self._work
        if work is None:
            self._alike(branches, depth)
            return
        outer, before = source.depth, work.start
        work.start = start = f"start{depth}" if depth else "start"
        source.line(f"{start} = len(out)")
        loses = [branch.writer for branch in branches if branch.writer.loses]
        alone = len(branches) == 1 and bool(loses)
        if alone:
            source.line("lost = []")
            loses[0].kept.append("lost")
        source.open("try")
        self._alike(branches, depth)
        source.resume(outer)
        with source.block(f"except {source.name('exhausted', Exhausted)} as spent"):
            source.line(f"del out[{start}:]")
            for branch in branches:
                branch.writer.write_exceeded()
            source.line("continue")
        if alone:
            loses[0].write_dropped()
        work.start = before

    def _alike(self, branches: list[_Branch], depth: int) -> None:
        """Write what all have next in common, then each branch."""
        while True:
            ways: dict[object, list[_Branch]] = {}
            for number, branch in enumerate(branches):
                item = branch.next
                apart = item is None or depth == BRANCHES  # branches are independent
                ways.setdefault(("alone", number) if apart or item is None else item.key, []).append(branch)
            if len(ways) > 1:
                break
            if branches[0].next is None:
                branches[0].writer.write_loops()
                return
            self._item(branches)
        local = f"left{depth}_"
        if self._work is not None:
            self._work.save(local)
        gathered = self._gathered(branches, depth)
        for number, way in enumerate(ways.values()):
            with self._source.block("for _ in (0,)"):
                if number and self._work is not None:
                    self._work.restore(local)
                self._limited(way, depth + 1)
        for name, writer in gathered.items():
            with self._source.block(f"if {name}"):
                writer.write_gathered(name)

    def _gathered(self, branches: Sequence[_Branch], depth: int) -> dict[str, RuleWriter]:
        """Rules that branch here with equal matches, if any, are collected in a list: (its local, one of
        them).
        """
        alike: dict[object, list[RuleWriter]] = {}
        for branch in branches:
            match = branch.writer.match_here()
            if match is not None:
                alike.setdefault(match, []).append(branch.writer)
        found: dict[str, RuleWriter] = {}
        for writers in alike.values():
            if len(writers) > 1:
                name = f"same{depth}_{len(found)}"
                self._source.line(f"{name} = []")
                found[name] = writers[0]
                for writer in writers:
                    writer.gathers = name
        return found

    def _item(self, branches: Sequence[_Branch]) -> None:
        """Write the next item of all, once."""
        first, *others = [(branch.writer, branch.items.pop()) for branch in branches]
        writer, item = first
        item.write()
        line = self._source.reserve() if item.stage else None
        writer.advance(item, line)
        for other, same in others:
            other.advance(same, line, writer)
