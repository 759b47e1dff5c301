"""A test file as values: what is given to the rules of which programs, and what must come.

Place:   made by suite_reader.py, run by case_runs.py. Scalars are kept as text with their places: what a
         term or a time is depends on the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

from dotr.events import Time
from dotr.source import Source, Span


class Scalar(Struct, frozen=True):
    """A scalar of the file as written, without its quotes. `key`: where the key stands that has it."""

    text: str
    span: Span
    key: Span | None = None

    @property
    def named(self) -> Span:
        """Where its name is written."""
        return self.key or self.span


class MessageStep(Struct, frozen=True):
    """`{ at, graph, insert, delete }`: one message."""

    at: Scalar
    graph: Scalar | None
    insert: Scalar | None
    delete: Scalar | None


class FilesStep(Struct, frozen=True):
    """`{ from: PATH, map: MAPPING }`: everything of a source, a table through a mapping."""

    path: Scalar
    mapping: Scalar | None = None


class GivenFact(Struct, frozen=True):
    """A fact of a query, as the temporal part sees it, instead of a graph it would be extracted from."""

    stream: Scalar
    at: Scalar
    values: Mapping[str, Scalar]


class FactsStep(Struct, frozen=True):
    """`{ facts: { Query: [ { at, attribute: term, … } ] } }`."""

    facts: tuple[GivenFact, ...]


Step: TypeAlias = MessageStep | FilesStep | FactsStep


class ExpectedEvent(Struct, frozen=True):
    """`{ rule, at, attribute: term, … }`: attributes that are not named may have any value; `at` None: at any
    time.
    """

    rule: Scalar
    at: Scalar | None
    values: Mapping[str, Scalar]
    span: Span


class ExpectedState(Struct, frozen=True):
    """`{ at, triples, not }`: what K(at) has and what it has not, as Turtle."""

    at: Scalar
    triples: Scalar | None
    absent: Scalar | None


class Case(Struct, frozen=True):
    """One test. `only`: no event comes but what is expected; those of PRIVATE rules never come out."""

    name: str
    span: Span
    stream: tuple[Step, ...] = ()
    expect: tuple[ExpectedEvent, ...] = ()
    never: tuple[ExpectedEvent, ...] = ()
    only: bool = False
    holds: tuple[ExpectedState, ...] = ()

    @property
    def gives_facts(self) -> bool:
        return any(isinstance(step, FactsStep) for step in self.stream)


class Suite(Struct, frozen=True):
    """A test file. `rules`: paths as written; or `text`, the program. `unit` and `lateness` in µs."""

    source: Source
    rules: tuple[Scalar, ...]
    text: Scalar | None = None
    background: tuple[Scalar, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)
    unit: Time = 1_000_000
    lateness: Time = 0
    cases: tuple[Case, ...] = ()

    @property
    def path(self) -> str:
        return self.source.name
