"""What flows: time, messages, facts, matches, composite events and their effects.

Place:   the values that the four steps hand to each other; no behaviour beyond naming, and putting together
         the parts of a message, for every format and Python.
Method:  hot values are plain tuples (44 ns to build; a frozen dataclass takes ten times that).
         Parts (language.md, "Messages"): a graph alone is not a message; a deletion names triples, and a
         blank node is not a name, as in SPARQL's DELETE DATA.
Bad input: D2201 no part at all · D2202 a deletion with a blank node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from dotr.errors import DataError
from dotr.rdf.blanks import label_stream
from dotr.rdf.terms import RDF_TYPE, XSD_DATETIME, XSD_INTEGER, Memo, Term, Triple

Time: TypeAlias = int
"""Microseconds since 1970-01-01T00:00:00Z, or since 0 where data use integers."""

FOREVER: Final[Time] = 2**127
"""The end of a triple that lasts until it is deleted: later than every time."""

Values: TypeAlias = tuple[Term | None, ...]
"""Attributes in projection order; None where unbound."""

Fact: TypeAlias = tuple[Time, Values, int, str]
"""(time, values, ordinal among equals of its stream and time from 0, id of the composite it is or "").

A fact's identity is its stream's name (a query, or a rule under chaining) with the first three."""


NEVER: Final[Time] = -(2**62)
"""The time of no fact: earlier than every time, and a window measured from it still fits 64 bits."""


def no_fact(width: int) -> Fact:
    """What a match has in the place of an OPTIONAL without a candidate, of a stream of `width` attributes."""
    return NEVER, (None,) * width, 0, ""


class Message(NamedTuple):
    """What arrives with one timestamp and may change what lasts: up to three parts, each a set of triples
    with its own blank nodes, or None. `graph` None: no graph came.

    A graph alone is passed as the plain list of its triples, without a Message.
    """

    graph: list[Triple] | None = None
    insert: list[Triple] | None = None
    delete: list[Triple] | None = None


GraphOrMessage: TypeAlias = list[Triple] | Message
"""A graph, or a message that may insert, delete, or bring no graph."""

Instant: TypeAlias = tuple[Time, list[GraphOrMessage] | None]
"""A time and what came for it; None is a tick without a message."""


class LabelledGraph(list[Triple]):
    """All graphs of an instant, whose blank nodes have their labels; nothing else comes at it."""


def labelled(parts: Sequence[GraphOrMessage], time: Time) -> list[Message]:
    """The messages of one instant, blank nodes relabelled per part."""
    if not parts:
        return []
    first = parts[0]
    if type(first) is LabelledGraph:
        return [Message(first)]
    if len(parts) == 1 and not isinstance(first, Message):  # most instants have one graph
        return [Message(label_stream([first], time)[0])]
    messages = [part if isinstance(part, Message) else Message(part) for part in parts]
    graphs = iter(label_stream([m.graph for m in messages if m.graph is not None], time))
    inserts = iter(label_stream([m.insert for m in messages if m.insert is not None], time, "insert "))
    return [
        Message(
            None if message.graph is None else next(graphs),
            None if message.insert is None else next(inserts),
            message.delete,
        )
        for message in messages
    ]


def all_triples(part: GraphOrMessage) -> list[Triple]:
    """The triples of all parts together."""
    if not isinstance(part, Message):
        return part
    return [triple for triples in part for triple in triples or ()]


def plain(part: GraphOrMessage) -> Any:
    """A part as what JSON is made of: a graph as its triples, a message as its parts."""
    if isinstance(part, Message):
        return {name: triples for name, triples in part._asdict().items() if triples is not None}
    return part


def part_of(value: Any) -> GraphOrMessage:
    """The inverse of `plain`."""
    if isinstance(value, Mapping):
        return Message(**{name: [(s, p, o) for s, p, o in triples] for name, triples in value.items()})
    return [(s, p, o) for s, p, o in value]


_RULE = itemgetter(0)
_EPOCH: Final = date(1970, 1, 1).toordinal()


def _day(number: int) -> str:
    """The day of this number after 1970-01-01; "" outside the years 1 to 9999."""
    try:
        return date.fromordinal(_EPOCH + number).isoformat()
    except (ValueError, OverflowError):
        return ""


_days: Memo[int, str] = Memo(_day, limit=1 << 12)
_MINUTES: Final = [f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(1440)]
_SECONDS: Final = [f"{second:02}Z" for second in range(60)]
"""How an xsd:dateTime goes on after its day, and how it ends (`strftime` takes eight times as long)."""


def _minute(number: int) -> str:
    """An xsd:dateTime up to its seconds, by the number of its minute; "" outside the years 1 to 9999."""
    day, minute = divmod(number, 1440)
    whole = _days[day]
    return f"{whole}{_MINUTES[minute]}" if whole else ""


_minutes: Memo[int, str] = Memo(_minute, limit=1 << 12)


class Clock:
    """How a run writes time: as xsd:dateTime, or as integers of `unit` microseconds (1, 1000 or 1 000 000).

    A value; it remembers the last literal it made, since an instant is written many times.
    """

    __slots__ = ("_last", "_term", "integer", "unit")

    def __init__(self, integer: bool = True, unit: int = 1_000_000) -> None:
        self.integer = integer
        self.unit = unit
        self._last: Time | None = None
        self._term: Term = ""

    def text(self, time: Time) -> str:
        """A timestamp in the data's form: `12`, or `2026-01-01T08:00:12Z` (fraction only if there is one)."""
        if self.integer:
            return str(time // self.unit)
        begun = _minutes[time // 60_000_000]
        if not begun:
            return f"{time}us"
        second, micros = divmod(time % 60_000_000, 1_000_000)
        if micros:
            fraction = f"{micros:06d}".rstrip("0")
            return f"{begun}{second:02}.{fraction}Z"
        return begun + _SECONDS[second]

    def term(self, time: Time) -> Term:
        """A timestamp as a literal: what `Name.time` and `NOW()` are."""
        if time != self._last:
            datatype = XSD_INTEGER if self.integer else XSD_DATETIME
            self._term = f'"{self.text(time)}"^^<{datatype}>'
            self._last = time
        return self._term

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Clock) and (self.integer, self.unit) == (other.integer, other.unit)

    def __hash__(self) -> int:
        return hash((self.integer, self.unit))

    def __repr__(self) -> str:
        return f"Clock(integer={self.integer}, unit={self.unit})"

    def __reduce__(self) -> tuple[type[Clock], tuple[bool, int]]:
        return Clock, (self.integer, self.unit)


class Match(NamedTuple):
    """One match of a rule. `facts`: the trigger's first (a tick is a fact without values), then those of the
    EACH, LAST and FIRST conjuncts as written (`no_fact` of an OPTIONAL that has none); of a sequence that of
    its first row. `bindings`: the values of WITH in order; None, in a sequence alone, where one is unbound.
    `rule`: the rule's place in the program.
    """

    rule: int
    time: Time
    facts: tuple[Fact, ...]
    bindings: tuple[Term, ...]


RawMatch: TypeAlias = tuple[tuple[int, ...], Time, tuple[Fact, ...], tuple[Term, ...]]
"""(rules, time, facts, bindings): one match shared by several rules of one shape.

A thousand rules over the same facts make one tuple. Output order: `in_order`."""


def in_order(found: Sequence[RawMatch]) -> list[tuple[int, RawMatch]]:
    """(rule, what it matched) for each match of an instant, in output order: by rule, then as found."""
    if len(found) == 1:
        rules, *_ = match = found[0]
        return [(rule, match) for rule in sorted(rules)]
    single = [(rule, match) for match in found for rule in match[0]]
    single.sort(key=_RULE)
    return single


Pattern: TypeAlias = tuple[Term | int, Term | int, Term | int]
"""A triple of DELETE; a number stands for any term, the same number for the same term."""


class Effect(Struct, frozen=True):
    """What one event states and ends at the next moment. `name`: the event's id, or a function that makes
    it. `lost`: triples of its INSERT that are none, or have a blank node.
    """

    rule: str
    name: str | Callable[[], str]
    insert: tuple[Triple, ...]
    delete: tuple[Pattern, ...]
    lost: int = 0

    @property
    def id(self) -> str:
        """The event's id."""
        return self.name if isinstance(self.name, str) else self.name()


class Template(Protocol):
    """What a rule makes of its matches; emit/events.py creates one per rule."""

    @property
    def rule(self) -> str:
        """The rule's name."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of WITH, in order."""

    @property
    def positions(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Names of the positions a match has facts for, each with its attributes, trigger first."""

    @property
    def optional(self) -> frozenset[str]:
        """Those of them that may have none."""

    def graph(self, id_: str, bindings: tuple[Term, ...]) -> tuple[Triple, ...]:
        """The triples of DEFINE in template order, without repeats."""

    def quads(self, id_: str, bindings: tuple[Term, ...], stamp: str) -> str:
        """The event as N-Quads: a stamp in the default graph, then `graph` in a graph named `id_`."""


class Composite:
    """A composite event as it leaves: everything any sink prints, made on demand.

    `bound`: the values of WITH, in order.
    """

    __slots__ = ("bound", "facts", "id", "template", "time")

    change: int = 1
    """-1 where a correction takes the event back."""
    correction: Any = None
    """What took it back or added it (emit/changes.py); None of what was reported in its turn."""

    def __init__(self, template: Template, id_: str, match: RawMatch) -> None:
        self.template = template
        self.id = id_
        _, self.time, self.facts, self.bound = match

    @property
    def rule(self) -> str:
        return self.template.rule

    @property
    def bindings(self) -> tuple[tuple[str, Term], ...]:
        """Variables of WITH and their values, in order."""
        return tuple(zip(self.template.variables, self.bound, strict=True))

    @property
    def match(self) -> tuple[tuple[str, tuple[str, ...], Fact], ...]:
        """(position, its attributes, its fact), the trigger first; without what an OPTIONAL did not find."""
        return tuple(
            (name, variables, fact)
            for (name, variables), fact in zip(self.template.positions, self.facts, strict=True)
            if fact[0] != NEVER
        )

    @property
    def graph(self) -> tuple[Triple, ...]:
        """The triples of DEFINE in template order, without repeats."""
        return self.template.graph(self.id, self.bound)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composite) and self._whole() == other._whole()

    def __hash__(self) -> int:
        return hash((self.id, self.time))

    def __repr__(self) -> str:
        return f"Composite({self.id} @ {self.time} {self.bindings})"

    def _whole(self) -> tuple[object, ...]:
        return self.rule, self.time, self.id, self.bindings, self.match, self.graph


INSERT = "<urn:dotr:insert>"
DELETE = "<urn:dotr:delete>"
"""Names of the graphs of a message, of a log of messages, that are insertions and deletions."""

INSERTION = "<urn:dotr:Insert>"
DELETION = "<urn:dotr:Delete>"
"""Classes of stamped graphs that are insertions and deletions."""


def message_of(
    graph: list[Triple] | None, insert: list[Triple] | None, delete: list[Triple] | None, place: str
) -> GraphOrMessage:
    """What came, from its parts; None where there is none. Raises DataError."""
    if insert is None and delete is None:
        if graph is None:
            raise DataError.of(
                "D2201",
                "a message needs a graph, an insertion or a deletion",
                place=place,
                hint='an empty graph is `"graph": ""`',
            )
        return graph
    if delete is not None:
        refuse_blank(delete, place)
    return Message(graph, insert, delete)


def stamped_part(name: Term, triples: list[Triple], about: Sequence[Triple], place: str) -> GraphOrMessage:
    """A named graph as what the default graph, which is `about` graphs, says it is. Raises DataError."""
    kinds = {o for s, p, o in about if s == name and p == RDF_TYPE}
    insert = triples if INSERTION in kinds else None
    delete = triples if DELETION in kinds else None
    return message_of(triples if insert is None and delete is None else None, insert, delete, place)


def refuse_blank(delete: Sequence[Triple], place: str) -> None:
    """Raise DataError D2202 where a deletion has a blank node."""
    for triple in delete:
        if triple[0][0] == "_" or triple[2][0] == "_":
            raise DataError.of(
                "D2202",
                "a deletion names a triple, and a blank node is not a name",
                place=place,
                label=" ".join(triple),
                notes=("blank nodes are scoped to their graph: this one was in no other",),
                hint="give the node an IRI where it is inserted",
            )
