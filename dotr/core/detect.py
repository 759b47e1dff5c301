"""Step 3: detect. Facts of this and earlier instants become matches of the rules.

Place:   called by deployment.py, which knows what extraction shares; a detector sees facts only, never a
         triple.
Method:  paper, sec. 3, TESLA; every case is spelled out in language.md, sec. 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dotr.budget import Allowance
from dotr.events import Clock
from dotr.ir import Program
from dotr.rdf.terms import Term
from dotr.temporal.refusals import RefusedTrigger
from dotr.tesla.detector import TeslaDetector
from dotr.tesla.thresholds import Filtered
from dotr.tesla.timeline import opened


def open_detector(
    program: Program,
    clock: Clock,
    same: Mapping[str, str],
    filtered: Mapping[str, tuple[str, str, Term]],
    budget: int,
    on_refused: RefusedTrigger,
    holding: tuple[int, int, int],
) -> TeslaDetector:
    """A detector of `program`, with the engine of its LARS rules if it has any.

    `same`: stream → the one whose facts it has; `filtered`: stream → its base, operator and constant;
    `budget`: units of work of a rule at one trigger fact, `on_refused` gets the facts that take more;
    `holding`: (units of work of what holds at one point, the number of parts of keys that share them, units
    of what holds at all points).
    """
    timeline = None
    if program.lars.rules:
        from dotr.lars.engine import LarsEngine  # noqa: PLC0415  # start-up: most programs have no such rules

        units, parts, in_all = holding
        engine = partial(LarsEngine, budget=units, parts=parts, in_all=in_all)
        timeline = opened(program, clock, engine, allowance=Allowance(units // parts))
    return TeslaDetector(
        program,
        clock,
        budget=budget,
        on_refused=on_refused,
        same=same,
        filtered={stream: Filtered(*filter_) for stream, filter_ in filtered.items()},
        timeline=timeline,
    )
