"""The input of one timestamp (graphs, and messages that may change what lasts), and findings about it.

Place:   the parts are values between pipeline.py, which closes instants, and the code that runs them;
         findings are warnings about instants that are not in error, from instant.py to the caller that shows
         them.
Method:  each finding is reported once, identified by its message and label, not by its time. Where instants
         are unordered, as in the tasks of a batch, it is reported again for an earlier one, to find the
         first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from dotr.budget import Allowance, Meter
from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Message, Time
from dotr.rdf.blanks import label_stream
from dotr.rdf.terms import Triple

Part: TypeAlias = list[Triple] | Message
"""A graph, or a message that may insert, delete, or bring no graph."""

Instant: TypeAlias = tuple[Time, list[Part] | None]
"""A time and what came for it; None is a tick without a message."""


def labelled(parts: Sequence[Part], time: Time) -> list[Message]:
    """The messages of one instant, blank nodes relabelled per part."""
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


def all_triples(part: Part) -> list[Triple]:
    """The triples of all parts together."""
    if not isinstance(part, Message):
        return part
    return [triple for triples in part for triple in triples or ()]


def plain(part: Part) -> Any:
    """A part as a JSON value: a graph as its triples, a message as its parts."""
    if isinstance(part, Message):
        return {name: triples for name, triples in part._asdict().items() if triples is not None}
    return [list(triple) for triple in part]


def part_of(value: Any) -> Part:
    """The inverse of `plain`."""
    if isinstance(value, Mapping):
        return Message(**{name: [(s, p, o) for s, p, o in triples] for name, triples in value.items()})
    return [(s, p, o) for s, p, o in value]


Finding: TypeAlias = Callable[[Diagnostic], None]

MOST = 1_000
"""The limit of findings of one code that are reported and remembered."""


class Findings:
    """Owns what was reported; `say` is called with what was not."""

    def __init__(self, say: Finding) -> None:
        self._say = say
        self._said: dict[str, dict[tuple[str, str], Time]] = {}

    def found(self, findings: Iterable[Diagnostic], time: Time, clock: Clock) -> None:
        """Report new findings about an instant."""
        for finding in findings:
            said = self._said.setdefault(finding.code, {})
            about = (finding.message, finding.label)
            if said.get(about, time + 1) <= time or (len(said) > MOST and about not in said):
                continue
            said[about] = time
            if len(said) > MOST:
                last = (f"after {MOST} of them, further ones are not reported",)
                finding = finding._replace(label="", notes=last)
            self._say(finding._replace(place=f"@ {clock.text(time)}"))


LASTING = 100
"""Units that an instant may spend for each triple that is stated, the background included, for each query, or
rule with an AGGREGATE, that looks at what lasts.
"""

TRIPLE = 10_000
"""A triple of a message adds 1/TRIPLE of the budget to the allowance."""

ANSWER = 25
"""Units of a fact that a query has over what lasts: rules see it."""


class Spending:
    """Owns the allowance of a run, and what the instant in progress has spent."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._allowance = Allowance(budget)
        self._free = self._used = 0
        self.deepest = 0
        """The most that was ever missing of the allowance."""

    def begin(self, triples: int, statements: int, readers: int) -> None:
        """An instant begins, with so many triples in its messages, over so many statements; `readers`: the
        number of queries, and of rules with an AGGREGATE.
        """
        self._allowance.add(triples * max(1, self.budget // TRIPLE))
        self._free, self._used = LASTING * (statements + triples) * readers, 0

    @property
    def left(self) -> int:
        """Units that the instant may still spend."""
        return max(0, self._free + self._allowance.left - self._used)

    def limit(self, most: int) -> int:
        """What a piece of work may take that has a limit of its own."""
        left = self._free + self._allowance.left - self._used
        return most if most <= left else max(0, left)

    def spend(self, units: int) -> None:
        self._used += units

    def spend_of(self, meter: Meter) -> None:
        """Spend what a meter was charged since it was opened, or its limit."""
        self._used += min(meter.used, meter.limit)

    def end(self) -> None:
        """The instant is done, or refused."""
        if self._used > self._free:
            self._allowance.take(min(self._used - self._free, self._allowance.left))
            self._used = self._free
            self.deepest = max(self.deepest, self.spent)

    @property
    def spent(self) -> int:
        """What is missing of the allowance, for a snapshot."""
        return self._allowance.most - self._allowance.left

    def restore(self, spent: int) -> None:
        self._allowance.left = max(0, self._allowance.most - spent)

    def explained(self, error: ProgramError) -> ProgramError:
        """An error of the instant, which says so if earlier instants had spent most of the allowance."""
        if self._allowance.left >= self.budget // 2:
            return error
        note = (
            f"an instant may spend {LASTING} units for each triple that is stated and each query, and a run "
            f"{self.budget:,} more, of which {self.spent:,} were spent before"
        )
        return ProgramError([one._replace(notes=(*one.notes, note)) for one in error.diagnostics])
