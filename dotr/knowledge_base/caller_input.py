"""What a caller gives: files, texts and graphs, rules and times, read into values of the house.

Place:   under knowledge_base.py. Reads files through io/, texts through lang/ and io/decode/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field

from dotr.errors import DataError, UsageError
from dotr.events import Clock, Time
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.decode.parsing import parse_triples
from dotr.io.files.background_documents import read_background
from dotr.io.files.rule_texts import read_rules_text
from dotr.io.python_graphs import GraphLike, triples_of
from dotr.io.timestamps import TimeError, parse_datetime
from dotr.ir import DatalogRule, Entailment
from dotr.knowledge_base.rule_sets import form, shipped_rules
from dotr.lang import load_program, parse_datalog
from dotr.rdf.terms import Triple

_MOST = 2**63


def read_time(at: int | datetime | str, unit: int) -> tuple[Time, Clock]:
    """A time and how it was written: an int in units of `unit` µs, an aware datetime, or ISO 8601 text.

    Raises UsageError D4104, DataError D2103, D2105, and what the text is refused for.
    """
    if isinstance(at, bool) or not isinstance(at, int | datetime | str):
        raise UsageError.of(
            "D4104", f"{at!r} is not a time", hint="give an int, an aware datetime or ISO 8601 text"
        )
    if isinstance(at, int):
        time = at * unit
    elif isinstance(at, datetime):
        if at.tzinfo is None:
            raise DataError.of("D2103", f"`{at.isoformat()}` has no time zone", hint="use an aware datetime")
        time = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    else:
        try:
            time = parse_datetime(at)
        except TimeError as error:
            raise DataError.of(error.code, error.message, hint=error.hint) from None
    if not -_MOST <= time < _MOST:
        raise DataError.of("D2105", f"`{at}` lies beyond 64 bits of microseconds", hint="check the time_unit")
    return time, Clock(isinstance(at, int), unit)


def same_kind(clock: Clock | None, other: Clock) -> Clock:
    """The clock of a knowledge base that has times of one kind. Raises DataError D2102."""
    if clock is not None and clock.integer is not other.integer:
        kinds = {True: "an integer", False: "a dateTime"}
        raise DataError.of(
            "D2102",
            f"this time is {kinds[other.integer]}, those before it are not",
            notes=("one knowledge base uses one kind of time",),
            hint="write all times alike",
        )
    return other if clock is None else clock


Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]


class Part(Struct):
    """Triples of one scope of blank nodes. `is_text`: its labels can mean nobody else's; `is_file`: they are
    labelled already.
    """

    triples: list[Triple] = field(default_factory=list)
    is_text: bool = False
    is_file: bool = False


def background_parts(sources: Iterable[Any], base: str = STREAM_BASE) -> list[Part]:
    """The parts of what a knowledge base begins with: paths, rdflib graphs, iterables of triples.

    Raises DataError for what cannot be read, UsageError D4105 for what is not a graph.
    """
    found = []
    for source in sources:
        if isinstance(source, str | PathLike):
            source = [source]
        if isinstance(source, list | tuple) and source and all(isinstance(s, str | PathLike) for s in source):
            found.append(Part(read_background([str(path) for path in source], base), is_file=True))
        else:
            found.append(Part(triples_of(source, base)))
    return found


def part_of(given: GraphLike | None, base: str, prefixes: Mapping[str, str]) -> Part:
    """What is to be inserted or deleted: Turtle text, a Path, or a graph. Raises as `background_parts`."""
    if given is None:
        return Part()
    if isinstance(given, Path):
        return Part(read_background([str(given)], base), is_text=True, is_file=True)
    if isinstance(given, str):
        return Part(read_text(given, base, prefixes), is_text=True)
    return Part(triples_of(given, base), isinstance(given, bytes))


def read_text(text: str, base: str, prefixes: Mapping[str, str]) -> list[Triple]:
    """The triples of Turtle text, in which these prefixes hold. Raises DataError."""
    head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items())
    return parse_triples(head + text, base=base, skipped=len(prefixes))


class Rules(Struct):
    """What files of rules say: rules, prefixes, and of .dotr files the prologue."""

    rules: tuple[DatalogRule, ...] = ()
    prefixes: dict[str, str] = field(default_factory=dict)
    entailment: Entailment = Entailment.NONE
    background: tuple[str, ...] = ()


def rules_of_files(paths: Paths) -> Rules:
    """Rules from .dlog files, and from the prologue of .dotr files. Raises ProgramError."""
    names = [str(paths)] if isinstance(paths, str | PathLike) else [str(path) for path in paths]
    if not names:
        return Rules()
    program = load_program(names, read_rules_text)
    shipped = set(map(form, shipped_rules(program.entailment.value)))
    own = tuple(rule for rule in program.datalog if form(rule) not in shipped)
    return Rules(own, dict(program.prefixes), program.entailment, tuple(program.background))


def rules_of_text(
    text: str | PathLike[str] | None, name: str, prefixes: Mapping[str, str]
) -> tuple[DatalogRule, ...]:
    """Datalog text, or the file of a Path. Raises ProgramError."""
    if text is None:
        return ()
    if isinstance(text, PathLike):
        return rules_of_files(text).rules
    if not isinstance(text, str):
        raise UsageError.of(
            "D4181", f"{text!r} is not a text of rules", hint="give Datalog text, or a pathlib.Path"
        )
    return parse_datalog(text, name, prefixes)


def entailment_of(name: str) -> Entailment:
    """Raises UsageError D4182."""
    try:
        return Entailment(str(name).lower())
    except ValueError:
        known = ", ".join(one.value for one in Entailment)
        raise UsageError.of("D4182", f"`{name}` is not an entailment", hint=f"write one of {known}") from None
