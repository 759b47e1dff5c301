"""What a rule ranges over: the facts of a stream, under a name of the rule's own."""

from __future__ import annotations

from dotr.source import Span, Syntax


class Position(Syntax, frozen=True):
    """An event position of a rule: its local name and the stream it ranges over.

    `stream` is a key of `Program.queries`, or the name of a rule (`chained`). An inline query's stream is
    "Rule.Position". `variables` are the stream's attributes, in the order of a fact's values. `held`: it
    ranges over a head of a .lars file, or (`stream` is "ISTREAM head", "DSTREAM head") over its changes.
    """

    name: str
    stream: str
    variables: tuple[str, ...]
    chained: bool = False
    span: Span | None = None
    held: bool = False

    @property
    def within_instant(self) -> bool:
        """Whether its facts are found while the rules of an instant run: those of rules, and of heads."""
        return self.chained or self.held

    @property
    def of_head(self) -> bool:
        """Whether it ranges over a head itself: a fact at every point at which it holds."""
        return self.held and " " not in self.stream
