"""A detector's state as a value, and back.

Place:   engine.py's `snapshot` and `restore`; the pipeline and the deployment's journal keep the value.
Method:  one part per rule digest (digest.py), which says which columns served it and since when it has been
         deployed; columns stand once, however many rules share them. A rule that comes later than others
         starts empty even if it could share their columns: rules of different epochs never do. What columns
         hold are facts, so that a rule finds its past even where it now shares columns in another way.
Why not: pickle. It ties a state to the code that wrote it and runs what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dotr.errors import Diagnostic, EngineError
from dotr.events import Fact, Time
from dotr.ir.program import Program
from dotr.ir.rules import Position, Rule
from dotr.rdf.terms import XSD_FLOAT, Term
from dotr.rdf.values import number, single
from dotr.tesla.buckets import own_condition
from dotr.tesla.columns import Column
from dotr.tesla.network import Network, Options
from dotr.tesla.thresholds import Filtered, comparison

VERSION = 1
"""Of snapshots. A change of what columns hold, or of how rules are planned, is a new one."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a snapshot gave: rules that kept their state, rules that start empty, rules no longer there."""

    kept: tuple[str, ...]
    empty: tuple[str, ...]
    gone: tuple[str, ...]


_Test: TypeAlias = tuple[int, str, Term]
"""What a rule's facts of a column pass: (place, operator, constant) of a `Filtered`."""


class UnfilteredError(Exception):
    """A fact of a stream of its own that may have been an xsd:float, which compared unlike the xsd:double it
    is now: among the facts of a base, rules would find it that never had it, or not find it that had it.
    `stream` cannot have the facts of a base.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream


def _positions(rule: Rule) -> list[Position]:
    return [conjunct.position for conjunct in rule.conjuncts]


def _plain(by: Filtered | None) -> list[Any] | None:
    return None if by is None else [by.place, by.operator, by.constant]


def _kept(dump: Mapping[str, list[Any]], test: _Test | None, network: Network) -> Mapping[str, list[Any]]:
    """What a column held of a rule's own stream."""
    if test is None or "facts" not in dump:
        return dump
    passes = own_condition(comparison(*test), network.options.clock)
    return {"facts": [fact for fact in dump["facts"] if passes(fact)]}


class _Floats:
    """Owns what is known of the terms that streams of their own bring into a base: may they be compared as
    they are? Each term is looked at once.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._harmless: set[tuple[str, Term]] = set()
        self._tests: dict[str, list[Callable[[Fact], bool]]] = {}

    def check(self, dump: Mapping[str, list[Any]], stream: str) -> None:
        """Raise UnfilteredError unless a stream, whose own facts a column held, can have those of a base."""
        by = self._options.filtered.get(stream)
        if by is None:
            return
        for _, values, *_ in dump.get("facts", ()):
            term = values[by.place]
            if term is not None and (by.base, term) not in self._harmless:
                if self._ambiguous(by.base, term):
                    raise UnfilteredError(stream)
                self._harmless.add((by.base, term))

    def _ambiguous(self, base: str, term: Term) -> bool:
        """Whether an xsd:float of this value passes other comparisons of the base."""
        value = number(term)
        if not isinstance(value, float) or single(value) != value:
            return False
        if base not in self._tests:
            options = self._options
            of_base = dict.fromkeys(
                (b.operator, b.constant) for b in options.filtered.values() if b.base == base
            )
            self._tests[base] = [own_condition(comparison(0, *test), options.clock) for test in of_base]
        wide: Fact = (0, (term,), 0, "")
        narrow: Fact = (0, (f"{term[: term.rindex('^')]}^<{XSD_FLOAT}>",), 0, "")
        return any(passes(wide) != passes(narrow) for passes in self._tests[base])


def save(program: Program, network: Network, digests: Sequence[str], first: Time | None) -> dict[str, Any]:
    """Everything the future depends on, as a value that JSON can hold; shares nothing with the network."""
    network.sweep_all()
    number = {column: i for i, column in enumerate(network.columns.values())}
    return {
        "version": VERSION,
        "first": first,
        "now": network.now,
        "epochs": 1 + max(network.epochs, default=0),
        "rules": {
            digest: {
                "rule": rule.name,
                "epoch": network.epochs[index],
                "dropped": network.dropped[index],
                "columns": [number[column] for column in network.columns_of[index]],
                "filters": [_plain(network.options.filtered.get(p.stream)) for p in _positions(rule)],
            }
            for index, (digest, rule) in enumerate(zip(digests, program.rules, strict=True))
        },
        "columns": [column.dump() for column in network.columns.values()],
    }


def load(
    program: Program,
    digests: Sequence[str],
    state: Mapping[str, Any],
    build: Callable[[Sequence[int], Time | None], Network],
) -> tuple[Network, Restored]:
    """A network, built for the epochs given to `build`, with the state of the rules that are unchanged.

    Raises EngineError D5010 for a snapshot of a version that is not read, UnfilteredError.
    """
    if state.get("version") != VERSION:
        raise EngineError(
            Diagnostic(
                "D5010",
                f"the detector's state has version {state.get('version')}, this dotr reads {VERSION}",
                hint="replay the stream from the start, or use the dotr that wrote it",
            )
        )
    parts = state["rules"]
    network = build([parts[d]["epoch"] if d in parts else state["epochs"] for d in digests], state["now"])
    wanted: dict[Column[Any], dict[tuple[int, _Test | None], None]] = {}
    floats = _Floats(network.options)
    for index, digest in enumerate(digests):
        if digest in parts:
            part = parts[digest]
            network.dropped[index] = part["dropped"]
            positions = _positions(program.rules[index])
            of_rule = zip(network.columns_of[index], part["columns"], part["filters"], positions, strict=True)
            for column, old, test, position in of_rule:
                if test is None:
                    floats.check(state["columns"][old], position.stream)
                wanted.setdefault(column, {})[old, None if test is None else tuple(test)] = None
    for column, olds in wanted.items():
        column.load([_kept(state["columns"][old], test, network) for old, test in olds])
    named = [(rule.name, digest in parts) for rule, digest in zip(program.rules, digests, strict=True)]
    names = {name for name, _ in named}
    known_ = frozenset(digests)
    gone = [part["rule"] for digest, part in parts.items() if digest not in known_]
    return network, Restored(
        kept=tuple(name for name, known in named if known),
        empty=tuple(name for name, known in named if not known),
        gone=tuple(name for name in gone if name not in names),
    )
