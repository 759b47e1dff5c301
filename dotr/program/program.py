"""A checked program: composite event rules, HOLD lines, ISTREAM and DSTREAM queries, LARS rules.

Place:   lang/ delivers it, everything below executes it; emit/events.py drops the events of private rules.
Method:  private rules: those marked PRIVATE, and those that a run excludes (`--only`, `--except`). An
         excluded rule becomes private, and rules that no other rule then needs are removed, with their
         queries. The rest finds the same events: a rule does not depend on rules that it does not read.
         LARS rules: plain LARS with stratified negation (Beck, Dao-Tran, Eiter, 2018; Bazoobandi, Beck,
         Urbani: Laser, 2017), with tuple windows and aggregates; each rule is evaluated at every point of the
         timeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.errors import Diagnostic
from dotr.pictures.markup import element, fragment, text
from dotr.pictures.table import table
from dotr.program.own_functions import OwnFunction
from dotr.program.queries import BindAtom, Call, DatalogRule, Expression, FilterAtom, Select, Var
from dotr.program.rules import Rule
from dotr.rdf.terms import Term
from dotr.source import PLACES, Span, Syntax


class RelationToStream(StrEnum):
    """CQL's operators from a relation that changes to a stream of its changes."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


class Hold(Syntax, frozen=True):
    """How long a triple of a stream's graph lasts: triples of one predicate, members of one class, or (both
    None) those without their own line.

    `latest`: until the same subject gets other values of the predicate. `duration`: the limit in
    microseconds, 0 for not at all; None: until it is deleted. `start`, `until`: the predicates under which
    the graph has, for the subject, the time from which a triple holds and that at which it ends.
    """

    predicate: Term | None = None
    class_: Term | None = None
    latest: bool = False
    duration: int | None = None
    start: Term | None = None
    until: Term | None = None
    span: Span | None = None


class StandingQuery(Struct, frozen=True):
    """`ISTREAM q` or `DSTREAM q`: the answers that a query over what lasts gains or loses.

    `query`: the stream of the QUERY that it names, "" for an inline query.
    """

    operator: RelationToStream
    select: Select
    query: str = ""


Argument: TypeAlias = Term | Var
"""A constant (canonical) or a variable."""


class Modality(StrEnum):
    """At which points of its window an atom must hold."""

    SOMETIME = "SOMETIME"
    ALWAYS = "ALWAYS"
    AT = "AT"
    AT_LEAST = "AT LEAST"


class NamedAtom(Syntax, frozen=True):
    """`Name(argument, …)`: an atom of a query, of a composite event rule, or of a head."""

    name: str
    arguments: tuple[Argument, ...]
    span: Span | None = None


class TimeWindow(Syntax, frozen=True):
    """`WITHIN duration` (µs, a multiple of the step): the points of `[t − duration, t]` of the timeline."""

    duration: int
    span: Span | None = None

    @property
    def reach(self) -> int | None:
        """How far it looks back, in µs."""
        return self.duration

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams whose facts it counts: none."""
        return ()


class FactWindow(Syntax, frozen=True):
    """`WITHIN count FACTS [OF (stream, …)]`: the `count` last distinct atoms of `streams`.

    `streams` are queries or composite event rules; never empty in a checked program (without OF: the atom's
    own stream). `per`, of `WITHIN count FACTS PER (?k, …)`: the places of a key among the arguments of the
    atom, whose own stream it is; then it is the `count` last of each key.
    """

    count: int
    streams: tuple[str, ...]
    span: Span | None = None
    per: tuple[int, ...] = ()

    @property
    def reach(self) -> int | None:
        """How far it looks back has no bound in time."""
        return None


LarsWindow: TypeAlias = TimeWindow | FactWindow


class WindowAtom(Syntax, frozen=True):
    """`[NOT] atom [modality window]`. Without a window (`window` and `modality` None): the atom holds now.

    `at`: the variable of AT. `count`: of AT LEAST.
    """

    atom: NamedAtom
    modality: Modality | None = None
    window: LarsWindow | None = None
    at: str | None = None
    count: int = 0
    negated: bool = False
    span: Span | None = None


class WindowAggregate(Syntax, frozen=True):
    """`function([DISTINCT] argument) AS ?variable OVER atom window [PER ?v, …]`.

    One row per group; no group, no row. It ranges over pairs of an atom and a point of the window.
    `function`: as that of Summarise; argument None is `*`.
    """

    function: str
    argument: Expression | None
    distinct: bool
    variable: Var
    atom: NamedAtom
    window: LarsWindow
    group: tuple[Var, ...] = ()
    span: Span | None = None


LarsLiteral: TypeAlias = WindowAtom | WindowAggregate | FilterAtom | BindAtom


class LarsHead(Syntax, frozen=True):
    """`atom [AT ?at [± offset]]`. `offset` in µs, a multiple of the step; `at` None: now."""

    atom: NamedAtom
    at: str | None = None
    offset: int = 0
    span: Span | None = None


class LarsRule(Syntax, frozen=True):
    """`head :- body.`; an empty body holds at every point. Literals are in the order written."""

    head: LarsHead
    body: tuple[LarsLiteral, ...] = ()
    span: Span | None = None

    @property
    def durations(self) -> list[tuple[int, Span | None]]:
        """The lengths of its windows and offsets, in µs, with their places."""
        windows = [b.window for b in self.body if isinstance(b, WindowAtom | WindowAggregate)]
        found = [(window.duration, window.span) for window in windows if isinstance(window, TimeWindow)]
        return [*found, (abs(self.head.offset), self.head.span)] if self.head.offset else found


class LarsLayer(Struct, frozen=True):
    """Heads that are evaluated together: none of them negates or aggregates another.

    `rules`: indices into `LarsProgram.rules`, in program order. `before`: how many of the composite event
    rules, in the order of `Program.dependencies`, come before it.
    """

    names: tuple[str, ...]
    rules: tuple[int, ...]
    before: int = 0


class LarsProgram(Syntax, frozen=True):
    """All LARS rules of a deployment, in the order of the files and within them.

    `step`: the timeline's, in µs; None where no file states it (one unit of integer time). `attributes`: name
    of a head → the attributes of its facts for composite event rules: the variables of the first rule for the
    name; `_k` for a constant or a repeated variable at place k, from 1. `layers`: in order of evaluation at a
    point.
    """

    rules: tuple[LarsRule, ...] = ()
    step: int | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layers: tuple[LarsLayer, ...] = ()
    span: Span | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """The queries and composite event rules that the rules read, in order of first use."""
        found: dict[str, None] = {}
        for rule in self.rules:
            for literal in rule.body:
                if isinstance(literal, WindowAtom | WindowAggregate):
                    found[literal.atom.name] = None
                    if isinstance(literal.window, FactWindow):
                        found.update(dict.fromkeys(literal.window.streams))
        return tuple(name for name in found if name not in self.attributes)


SHOWN: Final = 20
"""How many rules a notebook shows."""


class Entailment(StrEnum):
    NONE = "none"
    RDFS = "rdfs"
    OWL2RL = "owl2rl"


class Program(Syntax, frozen=True):
    """`queries`: stream name → query ("Smoke", or "Fire.HighTemp" for an inline one), in program order.

    `background`: paths of RDF files or folders, resolved against the file that names them, in order.
    `datalog`: rules of all .dlog files and imports, in order. `prefixes` are for printing and `dotr query`.
    `named`: where the paths of `background` are written. `dependencies`: rules in an order in which every
    non-strict reference comes first (indices into `rules`). `holds`: HOLD lines, one for each predicate and
    class. `standing`: stream name → its ISTREAM or DSTREAM (for a QUERY always "ISTREAM Jam", whatever its
    position is called). `lars`: what holds, over windows. `functions`: those of one's own that it calls, by
    name; another process that gets the program imports them. `warnings`: findings of the checks that are not
    errors; the runner shows them.
    """

    queries: Mapping[str, Select] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    datalog: tuple[DatalogRule, ...] = ()
    background: tuple[str, ...] = ()
    entailment: Entailment = Entailment.NONE
    prefixes: Mapping[str, str] = field(default_factory=dict)
    dependencies: tuple[int, ...] = ()
    named: Mapping[str, Span] = field(default_factory=dict)
    holds: tuple[Hold, ...] = ()
    standing: Mapping[str, StandingQuery] = field(default_factory=dict)
    lars: LarsProgram = field(default_factory=LarsProgram)
    warnings: tuple[Diagnostic, ...] = ()
    functions: tuple[OwnFunction, ...] = ()

    def __repr__(self) -> str:
        """A summary in one line; `fingerprint` has everything."""
        return f"<dotr program: {', '.join(self._contents()) or 'empty'}>"

    def _repr_html_(self) -> str:
        """The summary and a table of the rules, for notebooks."""
        rows = [
            (
                rule.name,
                "private" if rule.private else "",
                rule.triggering.name,
                ", ".join(conjunct.position.name for conjunct in rule.conjuncts),
                " ".join(f"?{name}" for name in rule.variables),
            )
            for rule in self.rules[:SHOWN]
        ]
        head = ("rule", "", "trigger", "looks for", "variables")
        cells = [[text(cell) for cell in row] for row in rows]
        shown = table(head, cells, more=len(self.rules) - len(rows))
        return fragment(element("p", text(repr(self)[1:-1])), shown)

    def _contents(self) -> list[str]:
        """The number of parts of each kind, without zeros."""
        counts = (
            (len(self.rules), "rule"),
            (len(self.queries), "query"),
            (len(self.datalog), "Datalog rule"),
            (len(self.lars.rules), "LARS rule"),
            (len(self.holds), "HOLD"),
            (len(self.background), "background path"),
        )
        found = [f"{count:,} {_plural(kind) if count != 1 else kind}" for count, kind in counts if count]
        return found + ([] if self.entailment is Entailment.NONE else [f"entailment {self.entailment.value}"])

    @property
    def fingerprint(self) -> str:
        """Its semantics as text: equal for programs that do the same."""
        names = (name for name in self.__struct_fields__ if name not in PLACES)
        return repr([getattr(self, name) for name in names if name != "functions" or self.functions])

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """Names and versions of the functions of one's own that it calls."""
        return tuple((one.term, one.version) for one in self.functions)

    @property
    def selects(self) -> dict[str, Select]:
        """Stream name → the query whose answers, or changes of answers, are its facts."""
        return {**self.queries, **{name: standing.select for name, standing in self.standing.items()}}

    @property
    def asked(self) -> dict[str, Select]:
        """Stream name → query, for queries evaluated at every instant that a rule sees: without those of
        which rules use only the changes.
        """
        read = {position.stream for rule in self.rules for position in rule.positions}
        read.update(self.lars.reads)
        named = {standing.query for standing in self.standing.values()} - read
        return {name: select for name, select in self.queries.items() if name not in named}

    @property
    def lasting(self) -> bool:
        """Whether it declares that anything lasts, uses changes of what does, or has events that change
        it.
        """
        return bool(self.holds or self.standing or self.has_effects)

    @property
    def has_effects(self) -> bool:
        """Whether its events change what lasts (INSERT, DELETE)."""
        return any(rule.has_effects for rule in self.rules)

    @property
    def written(self) -> dict[str, Select]:
        """Like `selects`, every query once, under the stream it was written for."""
        changes = {name: standing.select for name, standing in self.standing.items() if not standing.query}
        return {**self.queries, **changes}

    def without(self, names: Iterable[str]) -> Program:
        """The program without some rules and the queries written inside them."""
        gone = frozenset(names)
        if not gone:
            return self
        kept = [index for index, rule in enumerate(self.rules) if rule.name not in gone]
        return replace(
            self.only(kept),
            lars=self._lars_of(kept),
            queries={
                name: select
                for name, select in self.queries.items()
                if "." not in name or name.partition(".")[0] not in gone
            },
        )

    def only(self, indices: Iterable[int]) -> Program:
        """The program with some of its rules, which refer to no others; without LARS rules if unrelated to
        them.
        """
        kept = sorted(indices)
        place = {old: new for new, old in enumerate(kept)}
        return replace(
            self,
            rules=tuple(self.rules[index] for index in kept),
            dependencies=tuple(place[index] for index in self.dependencies if index in place),
            lars=self._lars_of(kept) if any(map(self.has_to_do_with_lars, kept)) else LarsProgram(),
        )

    def _lars_of(self, kept: Sequence[int]) -> LarsProgram:
        """The LARS program if only these rules remain."""
        layers = [
            replace(layer, before=sum(i in kept for i in self.dependencies[: layer.before]))
            for layer in self.lars.layers
        ]
        return replace(self.lars, layers=tuple(layers))

    def has_to_do_with_lars(self, index: int) -> bool:
        """Whether a rule reads what holds, or LARS rules read its events."""
        rule = self.rules[index]
        return rule.name in self.lars.reads or any(position.held for position in rule.positions)

    def rule_index(self, name: str) -> int:
        return next(i for i, rule in enumerate(self.rules) if rule.name == name)


def _plural(kind: str) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("y") else kind if kind == "HOLD" else f"{kind}s"


def only(program: Program, names: Collection[str]) -> Program:
    """The program with every rule private except `names`."""
    rules = (rule if rule.name in names else replace(rule, private=True) for rule in program.rules)
    return replace(program, rules=tuple(rules))


def needed(program: Program) -> Program:
    """The program without private rules that no other rule's events depend on and that change nothing, and
    without their queries.
    """
    reads = {rule.name: [p.stream for p in rule.positions if p.chained] for rule in program.rules}
    found: set[str] = set()
    todo = [rule.name for rule in program.rules if not rule.private or rule.has_effects]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += reads[name]
    left = program.without(reads.keys() - found)
    used = {position.stream for rule in left.rules for position in rule.positions}
    gone = {p.stream for r in program.rules if r.name not in found for p in r.positions} - used
    return replace(left, queries={name: q for name, q in left.queries.items() if name not in gone})


def calls_in(value: Any) -> Iterator[str]:
    """What is called below a value of a program, by name."""
    if isinstance(value, Call):
        yield value.function
    if isinstance(value, tuple | list):
        for item in value:
            yield from calls_in(item)
    elif isinstance(value, Mapping):
        yield from calls_in(tuple(value.values()))
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            if name not in PLACES:
                yield from calls_in(getattr(value, name))
