"""HOLD lines, one meaning for each predicate and class of a deployment; and what ISTREAM and DSTREAM refuse.

Place:   called by resolve.py; `Program.holds` is what `check_holds` makes of the lines that loading.py met.
Method:  language.md, "What lasts". Equal lines for one predicate or class are one line, different ones an
         error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from msgspec import Struct

from dotr.errors import Diagnostics
from dotr.ir import Call, Hold, RelationToStream, Select
from dotr.lang.grammar.syntax import Held, HeldClass, HeldPredicate, HeldRest, HoldSyntax
from dotr.lang.loading import LoadedFile
from dotr.rdf.terms import RDF_TYPE
from dotr.source import PLACES, Span


def check_holds(lines: Iterable[tuple[LoadedFile, HoldSyntax]], found: Diagnostics) -> tuple[Hold, ...]:
    """What lasts, one Hold for each predicate and class, in the order of the lines."""
    known: dict[Held, Hold] = {}
    for unit, line in lines:
        for held in line.held:
            if _allowed(unit, line, held, found):
                _add(held, _hold(line, held), known, found)
    holds = tuple(known.values())
    if not any(hold.predicate is None for hold in holds):
        for hold in holds:
            if hold.duration == 0:
                found.warning(
                    "D1505",
                    "this holds nothing",
                    hold.span,
                    hint="delete the line, or say what it is an exception of: `HOLD * FOR …`",
                    notes=("FOR 0 s takes something out of `HOLD *`, and there is no such line",),
                )
    return holds


def _hold(line: HoldSyntax, held: Held) -> Hold:
    duration = None if line.duration is None else line.duration.micros
    match held:
        case HeldPredicate(iri, span):
            return Hold(iri, None, line.latest, duration, span)
        case HeldClass(iri, span):
            return Hold(RDF_TYPE, iri, line.latest, duration, span)
        case HeldRest(span):
            return Hold(None, None, line.latest, duration, span)
        case _:
            assert_never(held)


def _allowed(unit: LoadedFile, line: HoldSyntax, held: Held, found: Diagnostics) -> bool:
    match held:
        case HeldPredicate(iri, span) if iri == RDF_TYPE:
            found.error("D1502", "membership is held class by class", span, hint="write `HOLD a :Class`")
            return False
        case HeldRest(span) if unit.parent is not None:
            found.error(
                "D1504",
                "a library may not say how long everything lasts",
                span,
                hint="name the predicates and classes that its rules need",
            )
            return False
        case HeldClass(_, span) | HeldRest(span) if line.latest:
            what = "a class" if isinstance(held, HeldClass) else "everything"
            found.error(
                "D1501",
                f"LATEST is for a predicate, not for {what}",
                span,
                hint="write `HOLD :predicate LATEST`: it is replaced by the next value of the same subject",
            )
            return False
        case _:
            return True


def _add(held: Held, hold: Hold, known: dict[Held, Hold], found: Diagnostics) -> None:
    other = known.setdefault(held, hold)
    if other != hold:
        found.error(
            "D1503",
            f"{_shown(hold.span)} is held in two ways",
            hold.span,
            hint="keep one of the lines",
            notes=(f"the other stands at {other.span}",),
        )


def _shown(span: Span | None) -> str:
    return "this" if span is None else f"`{span.source.text[span.start : span.end]}`"


def check_standing(operator: RelationToStream, select: Select, span: Span, found: Diagnostics) -> None:
    """What lasts does not change because time goes by."""
    if asks_now(select):
        found.error(
            "D1507",
            f"NOW() has no value under {operator}",
            span,
            hint="compare with the time of the event, in ON or WHERE",
            notes=(f"{operator} compares answers over what lasts, at whatever time it changes",),
        )


def asks_now(value: Any) -> bool:
    """Whether NOW() stands anywhere below a syntax node."""
    if isinstance(value, Call) and value.function == "NOW":
        return True
    if isinstance(value, tuple):
        return any(map(asks_now, value))
    return isinstance(value, Struct) and any(
        asks_now(getattr(value, name)) for name in value.__struct_fields__ if name not in PLACES
    )
