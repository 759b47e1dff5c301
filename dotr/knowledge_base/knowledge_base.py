"""`dotr.KnowledgeBase`: an incremental RDF reasoner for Python.

Place:   the public surface of this room. Reads what callers give (caller_input.py), labels blank nodes
         (blank_scopes.py), lets one writer or many readers in (locks.py); model.py does the rest.
Method:  language.md, "What lasts", without streams: everything that follows is materialised and maintained.
         A transaction reads all it was given before it changes anything, and then does all of it or nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from os import PathLike, fspath
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

from dotr.budget import BUDGET
from dotr.datalog.maintenance import Maintained
from dotr.datalog.materialiser import Limits
from dotr.errors import NOT_WRITTEN, DotrError, EngineError, UsageError
from dotr.events import Clock, Time
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.python_graphs import GraphLike, own_term, own_triple, rdflib_term
from dotr.io.timestamps import UNITS
from dotr.ir import Entailment
from dotr.joins.body import View
from dotr.joins.graph_relations import ALL
from dotr.knowledge_base import saving
from dotr.knowledge_base.blank_scopes import Scopes
from dotr.knowledge_base.caller_input import (
    Part,
    Paths,
    background_parts,
    entailment_of,
    part_of,
    read_text,
    read_time,
    rules_of_files,
    rules_of_text,
    same_kind,
)
from dotr.knowledge_base.changes import Change, Watch, as_user_has
from dotr.knowledge_base.contradictions import Contradiction
from dotr.knowledge_base.expiry import Expiry
from dotr.knowledge_base.locks import ReadWriteLock
from dotr.knowledge_base.model import Model
from dotr.knowledge_base.prepared_queries import Answers, PreparedQuery, Query, as_select
from dotr.knowledge_base.rule_sets import RuleSet
from dotr.knowledge_base.triple_proofs import Proof
from dotr.lang import parse_datalog, parse_query
from dotr.lang.printer import datalog_rule_text
from dotr.rdf.order import values_key
from dotr.rdf.terms import RDF_TYPE, Term, Triple

if TYPE_CHECKING:
    import rdflib

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
        budget: int = BUDGET,
    ) -> None:
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
        self._queries: OrderedDict[tuple[object, ...], Query] = OrderedDict()
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
        rules that are unsafe, not stratifiable or explode (D4001, D4003), ContradictionError, DataError for
        what cannot be read, D2202 for a blank node that is to be deleted and was not handed out.
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
        return Change(outcome, useless, self._as_rdflib)

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
        made = Query(parse_query(query, "<query>", known, canonical=True), self._limits.budget)
        with self._remembering:
            self._queries[key] = made
            if len(self._queries) > _REMEMBERED:
                self._queries.popitem(last=False)
        return PreparedQuery(self, made)

    def answers(self, query: Query, values: Mapping[str, Any]) -> Answers:
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
        Query(select, self._limits.budget).refuse_time()
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
            saved = saving.Saved(header, closed, marks, sorted(self._scopes.known))
        saving.write(fspath(path), saved)

    @classmethod
    def open(cls, path: str | PathLike[str], *, terms: str = "rdflib", budget: int = BUDGET) -> KnowledgeBase:
        """The knowledge base that was saved, as it was; nothing is derived again.

        Raises EngineError D5103, D5104 for what is not such a file, damaged, or of another version.
        """
        saved = saving.read(fspath(path))
        header = saved.header
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
