"""What detection requires of an operator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct

from dotr.codegen import CodeSource
from dotr.tesla.column_spec import Content
from dotr.tesla.thresholds import Measure

if TYPE_CHECKING:
    from dotr.tesla.columns import Column
    from dotr.tesla.fact_scope import Scope
    from dotr.tesla.plan_step import PlanStep


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
