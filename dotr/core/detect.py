"""Step 3: detect. Facts of this and earlier instants become matches of the rules.

Place:   called by pipeline.py between extract and emit; sees facts only, never a triple.
Method:  paper, sec. 3, TESLA; every case is spelled out in language.md, sec. 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dotr.budget import POINT
from dotr.events import Clock
from dotr.ir import Program
from dotr.rdf.terms import Term
from dotr.temporal.engine_record import Detector, LiteralDetector, TemporalEngine
from dotr.temporal.refusals import RefusedTrigger
from dotr.tesla.detector import TeslaDetector
from dotr.tesla.digest import rule_digests
from dotr.tesla.partitioning import plan_batch
from dotr.tesla.plan import RulePlan
from dotr.tesla.references import rule_reaches
from dotr.tesla.silence import silence
from dotr.tesla.thresholds import Filtered, sizes
from dotr.tesla.timeline import opened


def _tesla(
    program: Program,
    clock: Clock,
    same: Mapping[str, str],
    filtered: Mapping[str, tuple[str, str, Term]],
    budget: int,
    on_refused: RefusedTrigger,
    holding: tuple[int, int, int],
) -> TeslaDetector:
    timeline = None
    if program.lars.rules:
        from dotr.lars.engine import LarsEngine  # noqa: PLC0415  # start-up: most programs have no such rules

        units, parts, in_all = holding
        engine = partial(LarsEngine, budget=units, parts=parts, in_all=in_all)
        timeline = opened(program, clock, engine, most=units // parts // POINT)
    return TeslaDetector(
        program,
        clock,
        budget=budget,
        on_refused=on_refused,
        same=same,
        filtered={stream: Filtered(*filter_) for stream, filter_ in filtered.items()},
        timeline=timeline,
    )


def _plans(detector: Detector) -> Sequence[RulePlan]:
    assert isinstance(detector, TeslaDetector)
    return sorted(detector.network.plans, key=lambda plan: plan.index)


def _literal(program: Program, clock: Clock) -> LiteralDetector:
    from dotr.reference.tesla import LiteralTesla  # noqa: PLC0415  # start-up: few runs verify

    return LiteralTesla(program, clock)


TESLA = "tesla"
ENGINES: Mapping[str, TemporalEngine] = {
    TESLA: TemporalEngine(
        open=_tesla,
        shares=sizes,
        plans=_plans,
        literal=_literal,
        reaches=rule_reaches,
        partitioning=plan_batch,
        silence=silence,
        digests=rule_digests,
    )
}
"""Temporal engines by name (`Settings.detector`): the only place in core/ and batch/ that names one."""
