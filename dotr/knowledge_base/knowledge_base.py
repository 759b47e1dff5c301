"""`dotr.KnowledgeBase`: an incremental RDF reasoner for Python.

Place:   the public surface of this room: reads the files, strings, graphs, rules and times that callers give,
         labels blank nodes, locks, saves, reports changes and watched queries; model.py does the rest.
Method:  language.md, "What lasts", without streams: everything that follows is materialised and maintained. A
         transaction reads all its input before it changes anything, and then does all of it or nothing.
         Blank nodes: a label that the knowledge base made, and gave away in answers, means that node; any
         other label is local to the call and gets a new label from the content of the call and its number
         (rdf/blanks.py), so that runs agree. In strings every label is local.
         Locks: many readers or one writer. A waiting writer goes before readers that come later, so that it
         is not starved; a thread that is already reading continues. A reader therefore sees the state between
         two transactions.
         Saving: the file is closed and indexed, so that opening it derives nothing. It has a line with the
         version, a hash of the rest, then four parts with their sizes: a header in JSON, the closed index
         (enrich/closing.py, rdf/index.py), which rows are derived (one bit per row), the labels of blank
         nodes. It is written beside its target and moved there, so that a reader never finds half a file. The
         file of a large index is version 2: its hash leaves out the index, which is copied into memory as it
         is read and has a hash for each of its blocks.
Bad input: D5103 no saved knowledge base, or a damaged one · D5104 another version.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from os import PathLike, fspath
from pathlib import Path
from threading import Condition, Lock, RLock, local
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

import pyoxigraph as ox
from msgspec import Struct, field

from dotr.budget import BUDGET
from dotr.enrich.closing import Closed, load_background, saved_lists
from dotr.enrich.maintenance import Maintained
from dotr.enrich.materialiser import Limits
from dotr.errors import NOT_WRITTEN, DataError, DotrError, EngineError, UsageError
from dotr.events import Clock, Time, refuse_blank
from dotr.extract.operators import Row
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.decode.rdf import parse_triples
from dotr.io.events import TermFormatter
from dotr.io.outputs import write_whole
from dotr.io.python_values import GraphLike, own_term, own_triple, triples_of
from dotr.io.rules_and_background import CopiedFile, read_background, read_rules_text
from dotr.io.time import UNITS, TimeError, parse_datetime
from dotr.joins.plan import ALL, Relation, View
from dotr.knowledge_base.model import Contradiction, Model, Proof, RuleSet, form, shipped_rules
from dotr.knowledge_base.prepared_queries import (
    Answers,
    PlannedQuery,
    PreparedQuery,
    Solution,
    as_select,
    shown,
)
from dotr.lang import load_program, parse_datalog, parse_query
from dotr.lang.printer import datalog_rule_text
from dotr.lasting.model import Outcome
from dotr.lasting.periods import Expiry
from dotr.pictures.markup import Html, element, fragment, text
from dotr.pictures.table import table
from dotr.program import DatalogRule, Entailment, Select
from dotr.program.own_functions import called_by, refuse_other, register
from dotr.program.program import calls_in
from dotr.rdf.blanks import label_stream
from dotr.rdf.mapped import sized
from dotr.rdf.rdflib_terms import rdflib_term
from dotr.rdf.terms import RDF_TYPE, Term, Triple
from dotr.rdf.values import values_key
from dotr.regex import regex

if TYPE_CHECKING:
    import rdflib

_MOST = 2**63


def read_time(at: int | datetime | str, unit: int) -> tuple[Time, Clock]:
    """A time and how it was written: an int in units of `unit` µs, an aware datetime, or an ISO 8601 string.

    Raises UsageError D4104, DataError D2103, D2105, and what the text is refused for.
    """
    if isinstance(at, bool) or not isinstance(at, int | datetime | str):
        raise UsageError.of(
            "D4104", f"{at!r} is not a time", hint="give an int, an aware datetime or an ISO 8601 string"
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
            "D4181", f"{text!r} is not a string of rules", hint="give Datalog text, or a pathlib.Path"
        )
    return parse_datalog(text, name, prefixes)


def entailment_of(name: str) -> Entailment:
    """Raises UsageError D4182."""
    try:
        return Entailment(str(name).lower())
    except ValueError:
        known = ", ".join(one.value for one in Entailment)
        raise UsageError.of("D4182", f"`{name}` is not an entailment", hint=f"write one of {known}") from None


class Scopes:
    """Owns the labels of blank nodes that the knowledge base has, and the number of calls that made some.

    `exact`: labels mean themselves always (a store of rdflib, whose nodes have names).
    """

    def __init__(self, known: Iterable[Term] = (), calls: int = 0, exact: bool = False) -> None:
        self.known = set(known)
        self.calls = calls
        self.exact = exact

    def note(self, triples: Iterable[Triple]) -> None:
        """These labels are the knowledge base's own."""
        for subject, _, object_ in triples:
            if subject[0] == "_":
                self.known.add(subject)
            if object_[0] == "_":
                self.known.add(object_)

    def labelled(self, triples: Sequence[Triple], is_text: bool) -> list[Triple]:
        """The triples of one part of one call, blank nodes labelled. `keep` them once they are inserted."""
        if self.exact or not any(s[0] == "_" or o[0] == "_" for s, _, o in triples):
            return list(triples)
        masked = [(self._mask(s, is_text), p, self._mask(o, is_text)) for s, p, o in triples]
        (found,) = label_stream([masked], self.calls, "call ")
        return [(_unmask(s), p, _unmask(o)) for s, p, o in found]

    def keep(self, triples: Iterable[Triple]) -> None:
        """A call has come through: its labels are known, and the next one has another number."""
        before = len(self.known)
        if not self.exact:
            self.note(triples)
        if len(self.known) > before:
            self.calls += 1

    def named(self, triples: Sequence[Triple], is_text: bool) -> list[Triple]:
        """Triples to be deleted. Raises DataError D2202 for blank nodes that are not ours."""
        if not self.exact:
            ours = set() if is_text else self.known
            refuse_blank(
                [t for t in triples if any(term[0] == "_" and term not in ours for term in (t[0], t[2]))],
                "delete",
            )
        return list(triples)

    def _mask(self, term: Term, is_text: bool) -> Term:
        return f"<{term}>" if term[0] == "_" and not is_text and term in self.known else term


def _unmask(term: Term) -> Term:
    return term[1:-1] if term[:2] == "<_" else term


class ReadWriteLock:
    """Owns who is inside. A thread that reads may not write until it has left."""

    def __init__(self) -> None:
        self._changed = Condition(Lock())
        self._readers = 0
        self._waiting = 0
        self._writing = False
        self._mine = local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Be one of the readers. A thread may nest these, and read while it writes."""
        depth = getattr(self._mine, "depth", 0)
        if depth == 0 and not self.is_writing:
            with self._changed:
                while self._writing or self._waiting:
                    self._changed.wait()
                self._readers += 1
            try:
                self._mine.depth = 1
                yield
            finally:
                self._mine.depth = 0
                with self._changed:
                    self._readers -= 1
                    if not self._readers:
                        self._changed.notify_all()
            return
        self._mine.depth = depth + 1
        try:
            yield
        finally:
            self._mine.depth = depth

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one."""
        with self._changed:
            self._waiting += 1
            while self._writing or self._readers:
                self._changed.wait()
            self._waiting -= 1
            self._writing = True
        self._mine.writes = True
        try:
            yield
        finally:
            self._mine.writes = False
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    @property
    def is_reading(self) -> bool:
        """Whether this thread is one of the readers."""
        return getattr(self._mine, "depth", 0) > 0

    @property
    def is_writing(self) -> bool:
        """Whether this thread is the writer."""
        return bool(getattr(self._mine, "writes", False))


_SHOWN: Final = 20
"""Rows that a notebook shows."""

_COUNTED: Final = 200_000
"""Triples up to which a notebook shows how many there are of each predicate."""


class Change:
    """The net change of one transaction: stated and derived triples, each once, in canonical order.

    True if anything changed. `useless_deletes`: deletions of what was not stated; `useless_removals`: rules
    to be removed that were not there.
    """

    def __init__(
        self, outcome: Outcome, useless_removals: int, as_rdflib: bool, prefixes: Mapping[str, str]
    ) -> None:
        self._outcome = outcome
        self._prefixes = prefixes
        self._as_rdflib = as_rdflib
        self.useless_deletes = outcome.useless
        self.useless_removals = useless_removals

    def __bool__(self) -> bool:
        return bool(self._outcome.net)

    @cached_property
    def added(self) -> tuple[Any, ...]:
        """The triples that hold now and did not before."""
        return self._triples(self._outcome.net.added)

    @cached_property
    def removed(self) -> tuple[Any, ...]:
        """The triples that hold no more."""
        return self._triples(self._outcome.net.removed)

    def _triples(self, triples: Iterable[Triple]) -> tuple[Any, ...]:
        return tuple(as_user_has(triple, self._as_rdflib) for triple in triples)

    def of(self, watch: Watch) -> list[tuple[Solution, int]]:
        """How the answers of a watched query changed: (row, +n or −n), in canonical order of rows, of one row
        what went before what came.
        """
        changes = self._outcome.differences.get(watch.select, ())
        pairs = sorted(
            ((watch.own(row), n) for row, n in changes), key=lambda pair: (values_key(pair[0]), pair[1])
        )
        return [(shown(row, watch.variables, self._as_rdflib), n) for row, n in pairs]

    def __repr__(self) -> str:
        net = self._outcome.net
        return f"<change: {len(net.added)} added, {len(net.removed)} removed>"

    def _repr_html_(self) -> str:
        """What was added and removed, for notebooks."""
        net, terms = self._outcome.net, TermFormatter(self._prefixes)
        changes = [("+", triple) for triple in sorted(net.added)] + [("−", t) for t in sorted(net.removed)]
        rows = [
            [text(cell) for cell in (sign, terms.term(s), terms.predicate(p), terms.term(o))]
            for sign, (s, p, o) in changes[:_SHOWN]
        ]
        listed = table(("", "subject", "predicate", "object"), rows, more=max(0, len(changes) - _SHOWN))
        return fragment(element("p", text(repr(self)[1:-1])), listed)


class Watch:
    """A query whose answers are followed: `change.of(watch)`. Made by `KnowledgeBase.watch`."""

    def __init__(self, owner: KnowledgeBase, select: Select, variables: tuple[str, ...]) -> None:
        self._owner = owner
        self.select = select
        self.variables = variables

    def own(self, row: Row) -> Row:
        """A row over the query's own variables: of an ASK over none."""
        return row if self.variables else ()

    @property
    def answers(self) -> Answers:
        """All answers of now."""
        return self._owner.answers_of(self)

    def close(self) -> None:
        """Follow the query no more."""
        self._owner.unwatch(self)


def as_user_has(triple: Triple, as_rdflib: bool) -> tuple[Any, Any, Any]:
    """A triple of canonical terms, or of rdflib's."""
    if not as_rdflib:
        return triple
    subject, predicate, object_ = triple
    return rdflib_term(subject), rdflib_term(predicate), rdflib_term(object_)


_NAME = b"dotr knowledge base "
_WHOLE, _MAPPED = b"1", b"2"
_DIGEST = 16
_PARTS, _CLOSED = 4, 1
"""How many parts there are, and which has the index."""


class Saved(Struct, frozen=True):
    """What a file is to have: `header` is a value that JSON can hold, `closed` the index, `marks` which rows
    are derived, `labels` the blank nodes that were handed out.
    """

    header: dict[str, Any]
    closed: Closed
    marks: Mapping[Relation, bytes]
    labels: list[Term]


class OpenedBase(Struct, frozen=True):
    """What a file has; the index lies in `data[start:end]`. The header has the keys and kinds of values that
    were saved.
    """

    header: dict[str, Any]
    data: CopiedFile
    start: int
    end: int
    marks: Mapping[Relation, bytes]
    labels: list[Term]

    def lists(self) -> tuple[Triple, ...]:
        """The OWL list axioms of the index."""
        return saved_lists(self.data, self.start, self.end)

    def closed(self, rules: Sequence[DatalogRule]) -> Closed:
        """The index, under these rules. Raises EngineError D5103."""
        try:
            return load_background(rules, self.data, None, self.start, self.end, self.marks)
        except NOT_WRITTEN:
            raise self.data.damaged() from None
        except EngineError as error:
            if error.diagnostics[0].code == "D5101":  # its parts do not know the file
                raise self.data.damaged() from None
            raise


def write(path: str, saved: Saved) -> None:
    """Write a file. Raises EngineError where the disk does not take it."""
    sizes = {relation: len(bits) for relation, bits in saved.marks.items()}
    header = json.dumps({**saved.header, "marks": sizes}, ensure_ascii=False, separators=(",", ":")).encode()
    parts = [
        [header],
        saved.closed.contents(),
        [b"".join(saved.marks.values())],
        ["\n".join(saved.labels).encode()],
    ]
    version = _MAPPED if saved.closed.index.large else _WHOLE
    digest = blake2b(digest_size=_DIGEST)
    chunks: list[Any] = []
    for number, part in enumerate(parts):
        size = b"%d\n" % sum(memoryview(piece).nbytes for piece in part)
        chunks += [size, *part]
        for piece in (size, *part) if number != _CLOSED or version == _WHOLE else (size,):
            digest.update(piece)
    write_whole(path, [_NAME, version, b"\n", digest.digest(), *chunks])


def read(path: str) -> OpenedBase:
    """Open a file. Raises EngineError D5103, D5104, DataError D2003."""
    damaged = _damaged(path)
    data = CopiedFile(path, damaged)
    end = data.find(b"\n", 0, 64)
    if data[: len(_NAME)] != _NAME or end < 0:
        raise damaged
    version = data[len(_NAME) : end]
    if version not in (_WHOLE, _MAPPED):
        raise EngineError.of(
            "D5104",
            f"`{path}` was saved in another version of the format",
            place=path,
            label=version.decode("ascii", "replace"),
            hint=f"this dotr reads versions up to {int(_MAPPED)}: make the knowledge base again from its "
            "sources",
        )
    start = end + 1 + _DIGEST
    try:
        places = sized(data, start, len(data), _PARTS)
        digest = blake2b(digest_size=_DIGEST)
        at = start
        for number, (first, last) in enumerate(places):
            digest.update(data[at : first if number == _CLOSED and version == _MAPPED else last])
            at = last
        if digest.digest() != data[end + 1 : start]:
            raise damaged
        texts = [
            b"" if number == _CLOSED else data[first:last] for number, (first, last) in enumerate(places)
        ]
        header = json.loads(texts[0])
        json.dumps(header, ensure_ascii=False).encode()  # UnicodeEncodeError: half a character
        if not _is_header(header):
            raise damaged
        labels = texts[3].decode()
    except (ValueError, RecursionError):
        raise damaged from None
    marks: dict[Relation, bytes] = {}
    at = 0
    for relation, size in header.pop("marks").items():
        marks[relation] = texts[2][at : at + size]
        at += size
    if at != len(texts[2]):
        raise damaged
    return OpenedBase(header, data, *places[_CLOSED], marks, labels.split("\n") if labels else [])


def _is_header(found: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a header with everything in it."""
    if not isinstance(found, dict):
        return False
    strings: dict[str, Any] = {key: found.get(key) for key in ("entailment", "base", "time_unit")}
    numbers = [found.get("calls"), *_values(found.get("marks"))]
    until = found.get("until")
    return (
        all(isinstance(value, str) for value in (*strings.values(), *_values(found.get("prefixes"))))
        and _is_iri(strings["base"])
        and all(map(_FITS_BRACKETS.fullmatch, found["prefixes"].values()))
        and all(map(_PREFIX.fullmatch, found["prefixes"]))
        and all(type(value) is int and value >= 0 for value in numbers)
        and all(type(found.get(key)) is bool for key in ("datatypes", "strict", "exact"))
        and found.get("integer", 0) in (None, True, False)
        and type(found.get("now", "")) in (int, type(None))
        and _are(found.get("rules"), str)
        and isinstance(until, list)
        and all(
            isinstance(row, list) and len(row) == 4 and _are(row[:3], str) and type(row[3]) is int
            for row in until
        )
    )


_FITS_BRACKETS = regex(r"[^\x00-\x20<>\"{}|^`\\]*")
"""An IRI as it stands in Turtle, be it relative."""
_PREFIX = regex(r"[^\s:<>]*")


def _is_iri(text: str) -> bool:
    """Whether a string can be the base of others."""
    try:
        ox.NamedNode(text)
    except ValueError:
        return False
    return True


def _values(found: object) -> list[object]:
    """The values of an object of JSON; None, which nothing may be, for something else."""
    return list(found.values()) if isinstance(found, dict) else [None]


def _are(found: object, kind: type) -> bool:
    return isinstance(found, list) and all(isinstance(one, kind) for one in found)


def _damaged(path: str) -> EngineError:
    return EngineError.of(
        "D5103",
        f"`{path}` is not a saved knowledge base, or a damaged one",
        place=path,
        hint="make it again from its sources, and save it again",
    )


_REMEMBERED = 256
"""Queries whose plans are kept by their text."""


class KnowledgeBase:
    """Triples, rules, and everything that follows, kept true while both change.

    `background`: paths of RDF files, rdflib graphs, iterables of triples. `rules`: paths of .dlog files (of
    .dotr files the prologue counts). `entailment`: "none", "rdfs" or "owl2rl"; `datatypes`: check literals
    as well (dt-* of owl2rl). `contradictions`: "refuse" raises ContradictionError for what contradicts
    itself, "keep" takes it in. `terms`: what is handed out, "rdflib" or "canonical" (N-Triples text).
    `prefixes` hold in queries, rules and triples given as text; those of rule files do, too. `base`: what
    relative IRIs are resolved against. `time_unit` ("s", "ms", "us"): what integer times count.
    `blank_nodes`: a label means a node of the "call" it is in, or wherever it stands the same ("label").
    `functions`: IRI → function of Python, which rules and queries of this process can call from then on.
    `budget`: units of work of one transaction's rules, and of a query; more is an explosion.
    Raises ProgramError for the rules, DataError for the data, UsageError for the call.

    Any number of threads may read while one writes; each read sees whole transactions.
    """

    def __init__(
        self,
        *background: str | PathLike[str] | GraphLike,
        rules: Paths = (),
        entailment: str = "none",
        datatypes: bool = False,
        contradictions: str = "refuse",
        terms: str = "rdflib",
        prefixes: Mapping[str, str] | None = None,
        base: str = STREAM_BASE,
        time_unit: str = "s",
        blank_nodes: str = "call",
        functions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        budget: int = BUDGET,
    ) -> None:
        register(functions)
        exact = _one_of(blank_nodes, "blank_nodes", ("call", "label")) == "label"
        found = rules_of_files(rules)
        kind = entailment_of(entailment)
        if kind is Entailment.NONE:
            kind = found.entailment
        rule_set, _ = RuleSet((), kind, datatypes).changed(found.rules, ())
        self._begin(terms, {**found.prefixes, **(prefixes or {})}, base, time_unit, Scopes(exact=exact))
        strict = _one_of(contradictions, "contradictions", ("refuse", "keep")) == "refuse"
        self._limits = Limits(budget=budget)
        stated: dict[Triple, None] = {}
        for part in background_parts([*found.background, *background], base):
            triples = self._labelled(part)
            stated.update(dict.fromkeys(triples))
            if part.is_file:
                self._scopes.note(triples)
            else:
                self._scopes.keep(triples)
        self._strict = strict
        self._model = Model(rule_set, stated, limits=self._limits, strict=strict, prefixes=self.prefixes)

    def _begin(self, terms: str, prefixes: dict[str, str], base: str, time_unit: str, scopes: Scopes) -> None:
        if time_unit not in UNITS:
            raise UsageError.of("D4102", f"`{time_unit}` is not a time unit", hint="use s, ms or us")
        self._as_rdflib = _one_of(terms, "terms", ("rdflib", "canonical")) == "rdflib"
        self.prefixes = prefixes
        self._base, self._time_unit = base, time_unit
        self._scopes = scopes
        self._expiry = Expiry()
        self._clock: Clock | None = None
        self._now: Time | None = None
        self._lock = ReadWriteLock()
        self._turn = RLock()
        self._thinking = Lock()
        self._queries: OrderedDict[tuple[object, ...], PlannedQuery] = OrderedDict()
        self._remembering = Lock()
        self._watches: dict[int, Watch] = {}

    # -- transactions

    def update(
        self,
        insert: GraphLike | None = None,
        delete: GraphLike | None = None,
        *,
        add_rules: str | PathLike[str] | None = None,
        remove_rules: str | PathLike[str] | None = None,
        until: int | datetime | str | None = None,
    ) -> Change:
        """One transaction: first what is deleted and removed, then what is inserted and added.

        Triples: Turtle text, a pathlib.Path, an rdflib graph, or an iterable of triples; rules: Datalog text
        or a pathlib.Path. `until`: when the inserted statements end. What only follows cannot be deleted: it
        is not stated (`change.useless_deletes`). Nothing has changed where this raises: ProgramError for
        rules that are unsafe, not stratifiable or explode (D4001, D4003), or a watched query that takes too
        much work (D4132), ContradictionError, DataError for what cannot be read, D2202 for a blank node that
        is to be deleted and was not handed out.
        """
        self._refuse_inside_reading()
        with self._turn:
            end = None if until is None else self._end(until)
            parts = [part_of(given, self._base, self.prefixes) for given in (insert, delete)]
            given = self._labelled(parts[0])
            gone = self._scopes.named(parts[1].triples, parts[1].is_text)
            rule_set, useless = self._model.rules.changed(
                rules_of_text(add_rules, "<rules>", self.prefixes),
                rules_of_text(remove_rules, "<rules>", self.prefixes),
            )
            with self._lock.writing():
                change = self._apply(given, gone, rule_set, useless, end)
                if end is not None:
                    self._clock = same_kind(self._clock, end[1])
            return change

    def insert(self, triples: GraphLike, until: int | datetime | str | None = None) -> Change:
        """State triples, until a time or until they are deleted. Raises as `update`."""
        return self.update(insert=triples, until=until)

    def delete(self, triples: GraphLike) -> Change:
        """End every statement of these triples. Raises as `update`."""
        return self.update(delete=triples)

    def add_rules(self, rules: str | PathLike[str]) -> Change:
        """Add Datalog rules. Raises as `update`."""
        return self.update(add_rules=rules)

    def remove_rules(self, rules: str | PathLike[str]) -> Change:
        """Remove rules: those of the same parsed form, up to the names of variables. Raises as `update`."""
        return self.update(remove_rules=rules)

    def advance(self, to: int | datetime | str) -> Change:
        """Go on to a time: statements end that were inserted until then or earlier.

        Raises UsageError D4183 for a time before the last one, and as `update`; nothing has changed then.
        """
        self._refuse_inside_reading()
        with self._turn:
            time, clock = read_time(to, UNITS[self._time_unit])
            clock = same_kind(self._clock, clock)
            if self._now is not None and time < self._now:
                raise UsageError.of(
                    "D4183",
                    f"{clock.text(time)} lies before {clock.text(self._now)}, the last advance",
                    hint="time never goes back",
                )
            with self._lock.writing():
                change = self._apply([], self._expiry.due(time), self._model.rules, 0, None)
                self._now, self._clock = time, clock
            return change

    def _apply(
        self,
        given: list[Triple],
        gone: list[Triple],
        rules: RuleSet,
        useless: int,
        end: tuple[Time, Clock] | None,
    ) -> Change:
        model, ends = self._model, self._expiry.until
        left = set(gone)
        lasting: set[Triple] = set()
        if end is not None:
            states = model.kept.states
            lasting = {t for t in given if t not in left and t not in ends and states(t)}
        outcome = model.change(given, list(dict.fromkeys(gone)), rules)
        self._expiry.end(gone)
        until = None if end is None else end[0]
        self._expiry.begin((triple for triple in given if triple not in lasting), until)
        self._scopes.keep(given)
        return Change(outcome, useless, self._as_rdflib, dict(self.prefixes))

    def _labelled(self, part: Part) -> list[Triple]:
        return part.triples if part.is_file else self._scopes.labelled(part.triples, part.is_text)

    def _end(self, until: int | datetime | str) -> tuple[Time, Clock]:
        time, clock = read_time(until, UNITS[self._time_unit])
        clock = same_kind(self._clock, clock)
        if self._now is not None and time <= self._now:
            raise UsageError.of(
                "D4184",
                f"a statement until {clock.text(time)} would have ended: it is {clock.text(self._now)}",
                hint="`until` lies after the last advance",
            )
        return time, clock

    def _refuse_inside_reading(self) -> None:
        if self._lock.is_reading:
            raise UsageError.of(
                "D4185",
                "a transaction inside `with kb.reading():` would wait for itself",
                hint="write after the block",
            )

    # -- reading

    def reading(self) -> AbstractContextManager[None]:
        """`with kb.reading():` everything that this thread reads inside is of one state; writers wait."""
        return self._lock.reading()

    def query(self, query: str, /, **values: Any) -> Answers:
        """The answers of a SELECT over everything that holds; `values` of variables may be given.

        In canonical order where the query has none, so that LIMIT needs no ORDER BY. Raises ProgramError for
        the query, UsageError D4186 for an ASK.
        """
        return self.prepare(query)(**values)

    def ask(self, query: str, /, **values: Any) -> bool:
        """Whether an ASK is true, or a SELECT has an answer. Raises ProgramError."""
        return self.prepare(query).ask(**values)

    def prepare(self, query: str, prefixes: Mapping[str, str] | None = None) -> PreparedQuery:
        """A query to be asked again and again, by `prepared(room=term)`; it is planned once. `prefixes` hold
        in it beside those of this object.
        """
        known = {**self.prefixes, **(prefixes or {})}
        key = (query, *sorted(known.items()))
        with self._remembering:
            found = self._queries.get(key)
            if found is not None:
                self._queries.move_to_end(key)
                return PreparedQuery(self, found)
        made = PlannedQuery(parse_query(query, "<query>", known, canonical=True), self._limits.budget)
        with self._remembering:
            self._queries[key] = made
            if len(self._queries) > _REMEMBERED:
                self._queries.popitem(last=False)
        return PreparedQuery(self, made)

    def answers(self, query: PlannedQuery, values: Mapping[str, Any]) -> Answers:
        """The answers of a prepared query."""
        given = {name: own_term(value) for name, value in values.items()}
        with self._lock.reading():
            now = None if self._now is None or self._clock is None else (self._now, self._clock)
            rows = query.rows(self._model, now, given)
        return Answers(query.variables, rows, self._as_rdflib)

    def watch(self, query: str) -> Watch:
        """Follow the answers of a SELECT or ASK: `change.of(watch)` has what each transaction did to them.

        Raises ProgramError for the query, UsageError D4112 for one that asks for NOW().
        """
        self._refuse_inside_reading()
        select = parse_query(query, "<query>", self.prefixes)
        plain = as_select(select) if select.ask else select
        PlannedQuery(select, self._limits.budget).refuse_time()
        with self._turn, self._lock.writing():
            self._model.stand(plain)
            watch = Watch(self, plain, () if select.ask else select.variables)
            self._watches[id(watch)] = watch
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Follow a query no more."""
        with self._turn, self._lock.writing():
            known = self._watches.pop(id(watch), None)
            if known is not None and all(one.select != watch.select for one in self._watches.values()):
                self._model.drop(watch.select)

    def answers_of(self, watch: Watch) -> Answers:
        """All answers of a watched query."""
        with self._lock.reading(), self._thinking:
            rows = [watch.own(row) for row in self._model.answers(watch.select)]
        return Answers(watch.variables, sorted(rows, key=values_key), self._as_rdflib)

    # -- triples

    def __len__(self) -> int:
        """How many triples hold, stated and derived."""
        return len(self._model.kept)

    def __contains__(self, triple: object) -> bool:
        own = self._triple(triple)
        with self._lock.reading():
            return own in self._model.kept

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """All triples that hold, of one state, in no particular order that means anything but a fixed one."""
        return self.triples()

    def triples(
        self,
        subject: Any = None,
        predicate: Any = None,
        object: Any = None,  # noqa: A002  # the term of the field
        *,
        which: str = "all",
    ) -> Iterator[tuple[Any, Any, Any]]:
        """The triples of one state that have these terms where one is given.

        `which`: "all", "stated" or "derived" ones.
        """
        _one_of(which, "which", ("all", "stated", "derived"))
        asked = [None if term is None else own_term(term) for term in (subject, predicate, object)]
        with self._lock.reading():
            found = self._found(asked)
            if which != "all":
                with self._thinking:
                    states = self._model.kept.states
                    found = [triple for triple in found if states(triple) is (which == "stated")]
        return (as_user_has(triple, self._as_rdflib) for triple in found)

    def _found(self, asked: list[Term | None]) -> list[Triple]:
        kept = self._model.kept
        if asked == [None, None, None]:
            return list(kept)
        return self._model.reader().find(ALL, asked, View.OLD)  # type: ignore[return-value]  # three columns

    def vocabulary(self) -> list[Term]:
        """The predicates and classes that there are, in code point order, as canonical terms."""
        with self._lock.reading():
            index = self._model.kept.index
            found = {p for p, column in list(index.forward.items()) if column}
            return sorted(found.union(index.backward.get(RDF_TYPE, ())))

    def is_stated(self, triple: Any) -> bool:
        """Whether a triple holds because it is stated, and not only because it follows."""
        own = self._triple(triple)
        with self._lock.reading(), self._thinking:
            return self._model.kept.states(own)

    def graph(self, which: str = "all") -> rdflib.Graph:
        """What holds ("stated" or "derived" alone, if asked) as an rdflib.Graph of its own."""
        import rdflib  # noqa: PLC0415  # half a second of start-up that many runs do not need

        graph = rdflib.Graph()
        for prefix, iri in self.prefixes.items():
            graph.bind(prefix, iri)
        with self._lock.reading():
            found = self.triples(which=which)
        for triple in found:
            graph.add(triple if self._as_rdflib else tuple(map(rdflib_term, triple)))  # type: ignore[arg-type]  # of rdflib
        return graph

    def _triple(self, triple: Any) -> Triple:
        """A triple as a caller names one: three terms, or Turtle text with the prefixes of this object."""
        if not isinstance(triple, str):
            return own_triple(triple)
        found = read_text(f"{triple.strip().removesuffix('.')} .", self._base, self.prefixes)
        if len(found) != 1:
            raise UsageError.of(
                "D4105", f"{triple!r} is not a triple", hint="write subject, predicate and object"
            )
        return found[0]

    # -- why

    def explain(self, triple: Any) -> Proof:
        """Why a triple holds: the smallest proof down to what is stated; or what the rules lack for it.

        `triple`: three terms, or Turtle text with the prefixes of this object.
        """
        own = self._triple(triple)
        with self._lock.reading(), self._thinking:
            why = self._model.derivations()
            return Proof(why.proof(own) if why.holds(own) else why.why_absent(own), self.prefixes)

    def contradictions(self) -> list[Contradiction]:
        """What contradicts itself, each with its proof; nothing, unless contradictions are kept."""
        with self._lock.reading(), self._thinking:
            return self._model.contradictions()

    # -- rules, time
    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of its own, as text; those of the entailment are not among them."""
        return tuple(datalog_rule_text(rule, self.prefixes) for rule in self._model.rules.own)

    @property
    def entailment(self) -> str:
        """Which rules it has beside its own: "none", "rdfs" or "owl2rl"."""
        return self._model.rules.entailment.value

    def __repr__(self) -> str:
        return f"<knowledge base: {len(self)} triples, {len(self._model.rules.own)} rules, {self.entailment}>"

    def _repr_html_(self) -> str:
        """What it has, by predicate, and its rules, for notebooks."""
        write = TermFormatter(self.prefixes).predicate
        with self._lock.reading():
            large = len(self._model.kept) > _COUNTED
            counts = Counter(() if large else (predicate for _, predicate, _ in self._model.kept))
        most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        rows = [[text(write(predicate)), text(f"{count:,}")] for predicate, count in most[:_SHOWN]]
        counted = table(("predicate", "triples"), rows, {1}, more=max(0, len(most) - _SHOWN))
        rules = [[element("code", text(rule))] for rule in self.rules[:_SHOWN]]
        listed = table(("rules",), rules, more=max(0, len(self.rules) - _SHOWN)) if rules else Html("")
        return fragment(element("p", text(repr(self)[1:-1])), counted, listed)

    # -- files

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, closed and indexed. A file that is there is replaced, whole or not.

        Raises EngineError where the disk does not take it.
        """
        with self._lock.reading(), self._thinking:
            closed, marks = self._model.kept.saved()
            clock = self._clock
            header = {
                "rules": [datalog_rule_text(rule, {}) for rule in self._model.rules.own],
                "functions": [[one.term, one.version] for one in called_by(calls_in(self._model.rules.own))],
                "entailment": self.entailment,
                "datatypes": self._model.rules.datatypes,
                "strict": self._strict,
                "prefixes": self.prefixes,
                "base": self._base,
                "time_unit": self._time_unit,
                "integer": None if clock is None else clock.integer,
                "now": self._now,
                "calls": self._scopes.calls,
                "exact": self._scopes.exact,
                "until": [[*triple, end] for triple, end in sorted(self._expiry.until.items())],
            }
            saved = Saved(header, closed, marks, sorted(self._scopes.known))
        write(fspath(path), saved)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        terms: str = "rdflib",
        functions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        budget: int = BUDGET,
    ) -> KnowledgeBase:
        """The knowledge base that was saved, as it was; nothing is derived again. `functions`: those that its
        rules call; a file names no module, for opening one runs nothing.

        Raises EngineError D5103, D5104 for what is not such a file, damaged, or of another version,
        UsageError D4156 for functions that are not here, or in another version.
        """
        register(functions)
        saved = read(fspath(path))
        header = saved.header
        for term, version in header.get("functions", ()):
            refuse_other(term, version, "when it was saved")
        try:
            own = parse_datalog("\n".join(header["rules"]), fspath(path))
            rules = RuleSet(own, Entailment(header["entailment"]), header["datatypes"])
            unit = UNITS[header["time_unit"]]
            everything = rules.over(saved.lists())
        except (DotrError, *NOT_WRITTEN):
            raise saved.data.damaged() from None
        found = cls.__new__(cls)
        scopes = Scopes(saved.labels, header["calls"], header["exact"])
        found._begin(terms, header["prefixes"], header["base"], header["time_unit"], scopes)
        found._limits, found._strict = Limits(budget=budget), header["strict"]
        try:
            closed = saved.closed(everything)
        except DotrError as error:
            raise EngineError(error.diagnostics) from None
        kept = Maintained(everything, closed=closed, marks=saved.marks, limits=found._limits)
        found._model = Model(
            rules, limits=found._limits, strict=found._strict, prefixes=found.prefixes, kept=kept
        )
        found._expiry = Expiry({(s, p, o): end for s, p, o, end in header["until"]})
        if header["integer"] is not None:
            found._clock = Clock(header["integer"], unit)
        found._now = header["now"]
        return found


def _one_of(value: str, name: str, allowed: tuple[str, ...]) -> str:
    """Raises UsageError D4187."""
    if value not in allowed:
        raise UsageError.of(
            "D4187", f"{name}={value!r} is not possible", hint=f"write {' or '.join(map(repr, allowed))}"
        )
    return value
