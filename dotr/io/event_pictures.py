"""Events as pictures: marks along time, and rows of a table.

Place:   between events and pictures/, which knows neither terms nor clocks; notebooks, `dotr show` and
         `dotr compare` draw with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dotr.core.funnel import Funnel
from dotr.events import Clock, Composite, Time
from dotr.io.events import TermFormatter
from dotr.pictures.bars import bars
from dotr.pictures.markup import Html, element, text
from dotr.pictures.table import table
from dotr.pictures.timeline import ROUND, Mark, timeline
from dotr.rdf.terms import Term, is_list, is_literal, literal_parts, members

_DAY = 86_400_000_000
_MINUTE = 60_000_000


def values_text(bindings: Iterable[tuple[str, Term]], write: Callable[[Term], str]) -> str:
    """`?room :room14  ?celsius 71`."""
    return "  ".join(f"?{name} {write(term)}" for name, term in bindings)


def tick_text(clock: Clock, first: Time, last: Time) -> Callable[[Time], str]:
    """How ticks between two times are written: as short as tells them apart."""
    if clock.integer:
        return clock.text

    def short(time: Time) -> str:
        whole = clock.text(time)
        day, _, hour = whole.rstrip("Z").partition("T")
        if last - first > 6 * _DAY:
            return day
        hour = hour.removesuffix(":00") if last - first > 5 * _MINUTE else hour
        return f"{day} {hour}" if last - first > _DAY else hour

    return short


def events_along_time(
    marks: Sequence[Mark],
    clock: Clock,
    lanes: Sequence[str] = (),
    label: str = "",
    rules: Sequence[str] = (),
) -> Html:
    """Marks with the ticks of a clock; times of day have their day below. `rules`: all of the program, whose
    places are their colours.
    """
    times = [mark.time for mark in marks] + [m.moved_to for m in marks if m.moved_to is not None]
    first, last = min(times, default=0), max(times, default=0)
    steps = [one * clock.unit for one in INTEGER_STEPS] if clock.integer else ROUND
    drawn = timeline(marks, tick_text(clock, first, last), lanes, steps, label, rules)
    if not times or clock.integer:
        return drawn
    days = list(dict.fromkeys(clock.text(time).partition("T")[0] for time in (first, last)))
    return Html(drawn + element("p", text(" – ".join(days) + ", UTC"), class_="note"))


INTEGER_STEPS = tuple(n * 10**power for power in range(16) for n in (1, 2, 5))


DESCRIBED = 5_000
"""Events up to which each mark says what it is."""


def marks_of(
    composites: Sequence[Composite], clock: Clock, write: Callable[[Term], str], link: bool = False
) -> list[Mark]:
    """A mark an event; with `link` it leads to `#e` and the event's place. Of more than `DESCRIBED` events
    they are bare: nobody points at one of so many.
    """
    if len(composites) > DESCRIBED:
        return [Mark(one.rule, one.time, "") for one in composites]
    return [
        Mark(
            one.rule,
            one.time,
            f"{one.rule} @ {clock.text(one.time)}  {values_text(one.bindings, write)}",
            f"#e{place}" if link else "",
        )
        for place, one in enumerate(composites)
    ]


def event_table(composites: Sequence[Composite], clock: Clock, terms: TermFormatter, more: int = 0) -> Html:
    """Time, rule and each variable of the events."""
    names = list(dict.fromkeys(name for one in composites for name, _ in one.bindings))
    rows = []
    for one in composites:
        values = dict(one.bindings)
        cells = [plain(values[name], terms) if name in values else "" for name in names]
        time = element("span", text(clock.text(one.time)), class_="time")
        rows.append([time, *(text(cell) for cell in (one.rule, *cells))])
    return table(("time", "rule", *names), rows, more=more)


def plain(term: Term, terms: TermFormatter) -> str:
    """A term for people: a literal without its quotes and datatype; a list by its members."""
    if is_list(term):
        return ", ".join(plain(member, terms) for member in members(term))
    return literal_parts(term)[0] if is_literal(term) else terms.term(term)


def funnel_bars(rule: str, events: int, funnel: Funnel, lane: int = 0) -> Html:
    """How far the facts of a rule came, step by step, to its events."""
    steps = [*funnel]
    if not steps or (steps[-1] != ("events", events) and steps[-1][0] != "matches"):
        steps.append(("events", events))
    head = element("h3", element("span", class_=f"dot lane{lane % 8}"), text(rule))
    return Html(head + bars(steps, lane))
