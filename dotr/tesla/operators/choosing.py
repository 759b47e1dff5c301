"""The code that EACH, LAST and FIRST share: bind one fact, or loop over several."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dotr.ir.rules import Choose
from dotr.temporal.stages import label
from dotr.tesla.column_spec import Content, FactLog
from dotr.tesla.operators.detected import CodeItem, StepCode


def all_facts(conjunct: Choose, _variables: Mapping[str, int]) -> Content:
    """A log, since any fact may be chosen."""
    return FactLog(held=conjunct.position.bare)


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
