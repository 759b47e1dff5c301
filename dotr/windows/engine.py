"""What holds over windows, maintained from point to point.

Place:   core/ opens one and feeds it; reference/lars.py is the same by the definition, with the same
         interface, which this one completes: points at which nothing can change may be left out.
Method:  annotated evaluation (Laser, sec. 3). A stratum whose rules only lengthen what holds (windows of time
         over queries, rules and such strata, no NOT, no aggregate) is *bounded*: its heads carry their last
         point, only rows that began or were extended are joined again, between points and within one
         (semi-naive), and what ends does so from a bucket. Any other stratum is *open-ended*: its heads hold
         until one of the tables it reads has changed; then what is new is joined from what changed, and the
         heads that agree with what is gone are checked again (rules.py). If it is recursive all of it is
         derived again. Nothing is guessed about what may come, and silence costs nothing in either. Recursion
         through `WITHIN n` is open-ended, too: its last points would grow without end.
         Refusals: rules that take too much work at a point, D4011, or make a string or number that is too
         long, D4133, end the run: what holds later depends on what holds now, so that nothing of it can be
         left out.
Why not: one table of annotated formulae, as Laser has it: what ALWAYS, NOT and tuple windows hold through
         depends on what comes. Laser's Algorithm 1 taken literally differs from the definition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from dotr.budget import BUDGET, OVERLONG, POINT, UNLIMITED, VIEW, Exhausted, Meter, Overlong
from dotr.errors import EngineError, ProgramError
from dotr.events import Clock, Time, Values
from dotr.expressions.functions import makes_text
from dotr.joins.filters import Moment
from dotr.program.program import LarsProgram, LarsRule, WindowAggregate
from dotr.program.queries import BindAtom, FilterAtom
from dotr.rdf.values import values_key
from dotr.windows.building import ComponentBuilder, horizon

MUCH_WORK = "D4011"
MUCH_VERIFYING = "D4012"


def overworked(
    program: LarsProgram, heads: Collection[str], exhausted: Exhausted, at: str, budget: int
) -> ProgramError:
    """D4011 or D4133 at a point, whose text is `at`, while rules for `heads` were evaluated."""
    rule = exhausted.source
    if not isinstance(rule, LarsRule):
        texts = isinstance(exhausted, Overlong) and any(map(_makes_text, program.rules))
        own = [r for r in program.rules if r.head.atom.name in heads and (not texts or _makes_text(r))]
        rule = own[0] if len(own) == 1 else None
    if isinstance(exhausted, Overlong):
        code, much, hint = OVERLONG, f"makes {exhausted.made} at {at}", exhausted.hint
    else:
        code, much = MUCH_WORK, f"brings what holds at {at} to more than {budget} units of work"
        hint = "narrow a window, let atoms share a variable, or raise --budget"
    names = (rule.head.atom.name,) if isinstance(rule, LarsRule) else heads
    return ProgramError.of(
        code,
        f"a rule for `{'` or `'.join(names)}` {much}",
        rule.span if isinstance(rule, LarsRule) else None,
        notes=exhausted.notes(),
        hint=hint,
        place=f"@ {at}",
    )


def endless(
    heads: Collection[str], at: str, most: int, notes: tuple[str, ...] = (), *, literal: bool
) -> ProgramError:
    """D4011 at a point, whose text is `at`: all points of a run at which nothing comes take more than `most`
    units, as far as its input does not account for them; `heads`: those that are at fault, where known.
    D4012 if the `literal` reading takes that much.
    """
    of = f" for `{'` or `'.join(heads)}`" if heads else ""
    what = f"the literal reading of what holds{of}" if literal else f"what holds{of}"
    remedy = "verify a shorter stretch of the stream" if literal else "let rules read ISTREAM"
    return ProgramError.of(
        MUCH_VERIFYING if literal else MUCH_WORK,
        f"{what} takes more than {most:,} units of work at points at which nothing comes",
        notes=notes or (f"it had reached {at}",),
        hint="correct the clock of the source (--max-jump refuses such graphs), choose a longer STEP, "
        f"{remedy}, or raise --budget",
        place=f"@ {at}",
    )


def _makes_text(rule: LarsRule) -> bool:
    for literal in rule.body:
        match literal:
            case FilterAtom(condition=expression) | BindAtom(expression=expression):
                found = makes_text(expression)
            case WindowAggregate(argument=argument):
                found = argument is not None and makes_text(argument)
            case _:
                found = False
        if found:
            return True
    return False


VERSION = 1
"""Of snapshots."""


class LarsEngine:
    """Owns what LARS rules remember. See reference/lars.py for the interface.

    `strata`: numbers of rules, in evaluation order. `beginning`: the first point, a multiple of `step` (µs).
    `watched`: heads whose changes are reported by `evaluate`; None: all. Changes of others cost nothing.
    `budget`: units of work (budget.py) at one point, of all rules. `parts`: among how many it is shared, each
    with other keys: where no part needs more than its share, all together do not need more than the budget.
    `in_all`: units at all points together, each of them counted as POINT more.
    """

    def __init__(
        self,
        program: LarsProgram,
        strata: Sequence[Sequence[int]],
        beginning: Time,
        step: int,
        clock: Clock,
        watched: Collection[str] | None = None,
        *,
        budget: int = BUDGET,
        parts: int = 1,
        in_all: int = UNLIMITED,
    ) -> None:
        self._program, self._step, self._clock = program, step, clock
        moment = Moment()
        moment.clock = clock
        self._budget, self._share = budget, budget // parts
        self._meter = Meter(self._share)
        self.limit = UNLIMITED
        """Of units at points that begin from now on, if less than the budget."""
        builder = ComponentBuilder(
            program, beginning // step, step, clock, moment, watched, self._meter, parts > 1
        )
        self._net = builder.build(strata)
        views = sum(len(relation.views) for relation in self._net.relations.values())
        self._each = VIEW * (len(self._net.components) + views)
        self._now = beginning // step - 1
        self._in_all = in_all

    # -- a point

    def begin(self, point: Time) -> None:
        """Go to a point after the last one, none that is due between them: what ended leaves, what is
        pending for it comes. Raises ProgramError D4011 past the budget of all points.
        """
        since, now = self._now, point // self._step
        assert now > since, "points increase"
        self._now = now
        self._in_all -= POINT + self._meter.used
        if self._in_all < 0:
            raise overworked(self._program, (), Exhausted(), self._clock.text(point), self._budget)
        self._meter.open(min(self._share, self.limit))
        net = self._net
        net.placing.now = now
        for relation in net.relations.values():
            relation.begin(now, since)
        for view in net.fact_views:
            view.begin(now, since)
        for total in net.totals:
            total.begin(now, since)
        for name, atoms in net.placing.pending.pop(now, {}).items():
            net.relations[name].put(list(atoms), now)

    def facts(self, name: str, facts: Iterable[tuple[Time, Values]]) -> None:
        """Facts of a query or a composite event rule whose point this is."""
        net = self._net
        given = list(facts)
        for log in net.logs_of.get(name, ()):
            log.add(self._now, name, given)
        for view in net.others_of.get(name, ()):
            view.add(self._now, given)
        relation = net.relations.get(name)
        if relation is not None and relation.views:
            bound: list[Any] = [values for _, values in given if None not in values]
            relation.hold(bound, self._now)

    def evaluate(self, stratum: int, ordered: bool = True) -> dict[str, tuple[list[Values], list[Values]]]:
        """Rules of a stratum to their fixpoint. Watched heads → (began, ended), in canonical order.

        `ordered` False: in no order that means anything, which saves 2 µs an atom. Raises ProgramError D4011,
        D4133 past the budget, Exhausted past a `limit` below it; the engine is in no state to go on from
        then.
        """
        changes = {}
        for component in self._net.strata[stratum]:
            try:
                component.evaluate(self._now)
            except Exhausted as exhausted:
                if self.limit < self._share:
                    raise
                at = self._clock.text(self._now * self._step)
                heads = [relation.name for relation in component.heads]
                raise overworked(self._program, heads, exhausted, at, self._budget) from None
            for relation in component.watched:
                changes[relation.name] = relation.changes(ordered)
        return changes

    def holding(self, name: str) -> list[Values]:
        """The atoms of a head that hold at this point, once its stratum is evaluated; in canonical order."""
        atoms: list[Values] = list(self._net.relations[name].holding())
        return sorted(atoms, key=values_key)

    def end(self) -> None:
        """The point is done."""

    def due(self) -> Time | None:
        """The next point at which something may change without input; None if nothing ever does."""
        point = self._net.agenda.after(self._now)
        return None if point is None else point * self._step

    def restless(self) -> list[str]:
        """The heads whose atoms wait ahead or are distinguished by each point, so that points are never all
        alike.
        """
        net = self._net
        ahead = {name for placed in net.placing.pending.values() for name in placed}
        distinguished = {r.name for r in net.relations.values() if any(view.ends for view in r.each_point)}
        return sorted(ahead | distinguished)

    @property
    def used(self) -> int:
        """Units of work at this point so far, and what every point costs."""
        return self._meter.used + self._each

    def horizon(self) -> tuple[Time | None, Time]:
        """How far back state reaches (None without bound) and how far ahead atoms are put, in µs."""
        return horizon(self._program)

    # -- state

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future depends on, as a JSON-able value; between points."""
        net = self._net
        return {
            "version": VERSION,
            "now": self._now,
            "relations": {name: relation.dump() for name, relation in net.relations.items()},
            "logs": [log.dump() for log in net.logs.values()],
            "facts": [view.dump() for view in net.fact_views],
            "pending": [
                [point, [[name, [list(values) for values in atoms]] for name, atoms in placed.items()]]
                for point, placed in sorted(net.placing.pending.items())
            ],
            "evaluated": [component.evaluated for component in net.components],
            "agenda": net.agenda.dump(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot of the same program; before the first point. Raises EngineError D5010."""
        if state["version"] != VERSION:
            raise EngineError.of(
                "D5010",
                f"the state of LARS rules has version {state['version']}, this dotr reads {VERSION}",
                hint="replay the stream from the start, or use the dotr that wrote it",
            )
        net = self._net
        if any(len(part[0]) != len(net.relations[name].views) for name, part in state["relations"].items()):
            raise EngineError.of(
                "D5010",
                "the state of LARS rules is of another version of dotr, which kept other windows of them",
                hint="replay the stream from the start, or use the dotr that wrote it",
            )
        self._now = net.placing.now = state["now"]
        for name, part in state["relations"].items():
            net.relations[name].load(part, self._now)
        for log, part in zip(net.logs.values(), state["logs"], strict=True):
            log.load(part)
        for view, part in zip(net.fact_views, state["facts"], strict=True):
            view.load(part)
        for total in net.totals:
            total.load()
        for point, placed in state["pending"]:
            net.placing.pending[point] = {name: {tuple(v): None for v in atoms} for name, atoms in placed}
        for component, evaluated in zip(net.components, state["evaluated"], strict=True):
            component.evaluated = evaluated
        net.agenda.load(state["agenda"])
