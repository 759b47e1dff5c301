"""What is measured: programs and streams, made from seeds, the same on every machine.

Place:   one value for all runners. `Workload` is what a user would have in files; `patterns` say the same
         rules once more as plain values, for the baselines, which read no rule language.
Method:  the default scenario of the paper (section 5) and its variations: sensors equip objects, objects are
         placed in rooms, Datalog puts sensors into rooms; graphs of one triple, one a second.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

NAMESPACE = "http://example.org/bench#"
SENSORS, PER_ROOM = 10, 2
SECOND = 1_000_000


@dataclass(frozen=True)
class Query:
    """An event position: its name, the variables it selects, and its WHERE part with the prefix `:`."""

    name: str
    variables: tuple[str, ...]
    where: str

    @property
    def text(self) -> str:
        return f"SELECT {' '.join(f'?{v}' for v in self.variables)} WHERE {{ {self.where} }}"


@dataclass(frozen=True)
class Conjunct:
    """`AND selection query WITHIN seconds FROM` the trigger, on equal values of `key` if there is one."""

    selection: str
    query: Query
    seconds: int
    key: str | None = "room"


@dataclass(frozen=True)
class Pattern:
    """A rule. `template`: predicate → (position, variable); the event has the class `kind` besides."""

    name: str
    kind: str
    trigger: Query
    conjuncts: tuple[Conjunct, ...]
    template: tuple[tuple[str, int, str], ...]

    def text(self) -> str:
        """The rule in the language."""
        names = [self.trigger.name, *(c.query.name for c in self.conjuncts)]
        with_ = [
            f"?v{i} := {names[position]}.?{variable}"
            for i, (_, position, variable) in enumerate(self.template)
        ]
        triples = "".join(f" ; :{predicate} ?v{i}" for i, (predicate, _, _) in enumerate(self.template))
        lines = [
            f"RULE {self.name}",
            f"DEFINE {{ dotr_id1 a :{self.kind}{triples} }}",
            f"FROM {self.trigger.name} := {{ {self.trigger.text} }}",
        ]
        for c in self.conjuncts:
            on = f" ON {c.query.name}.?{c.key} = {self.trigger.name}.?{c.key}" if c.key else ""
            lines.append(
                f"AND {c.selection} {c.query.name} := {{ {c.query.text} }} "
                f"WITHIN {c.seconds} s FROM {self.trigger.name}{on}"
            )
        return "\n".join([*lines, f"WITH {', '.join(with_)}"])


@dataclass(frozen=True)
class Workload:
    """A deployment and a stream. `documents` are (time in `unit`, Turtle); `background` is N-Triples."""

    name: str
    rules: str
    datalog: str
    background: str
    documents: Sequence[tuple[int, str]]
    patterns: tuple[Pattern, ...] = ()
    unit: str = "s"
    closures: tuple[tuple[str, str, str], ...] = field(default=())
    """The Datalog rules again, as (head predicate, first and second predicate of the body)."""


def iri(name: str) -> str:
    return f"<{NAMESPACE}{name}>"


def program(patterns: Sequence[Pattern]) -> str:
    return f"PREFIX : <{NAMESPACE}>\n\n" + "\n\n".join(pattern.text() for pattern in patterns) + "\n"


def datalog(closures: Sequence[tuple[str, str, str]]) -> str:
    rules = [f":{head}(?s, ?r) :- :{first}(?s, ?o), :{second}(?o, ?r) ." for head, first, second in closures]
    return "\n".join([f"PREFIX : <{NAMESPACE}>", *rules, ""])


def rooms_of_sensors(extra: int) -> str:
    """The background: sensors, objects, rooms, and `extra` attributes of sensors that no rule asks for."""
    lines = []
    for sensor in range(1, SENSORS + 1):
        room = (sensor - 1) // PER_ROOM + 1
        lines.append(f"{iri(f'sensor{sensor}')} {iri('equips')} {iri(f'object{sensor}')} .")
        lines.append(f"{iri(f'object{sensor}')} {iri('placed_in')} {iri(f'room{room}')} .")
    for room in range(1, SENSORS // PER_ROOM + 1):
        lines.append(
            f'{iri(f"room{room}")} {iri("number")} "{room}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        )
    for number in range(extra):
        lines.append(
            f'{iri(f"sensor{number % SENSORS + 1}")} {iri(f"attribute{number // SENSORS}")} "{number}" .'
        )
    return "\n".join(lines) + "\n"


def closures(count: int) -> tuple[tuple[str, str, str], ...]:
    """The rule that puts sensors into rooms, and others like it whose conclusions no query asks for."""
    others = [(f"is_near{number}", "equips", "placed_in") for number in range(1, count)]
    return (("is_in_room", "equips", "placed_in"), *others)


def readings(graphs: int, kinds: Sequence[str], triggers: float, seed: int) -> list[tuple[int, str]]:
    """One-triple graphs, one a second: `:sensorK :read_kind value`, the first kind with the given chance."""
    chance = random.Random(seed)
    documents = []
    for second in range(1, graphs + 1):
        others = kinds[1:]
        kind = (
            kinds[0]
            if chance.random() < triggers or not others
            else others[int(chance.random() * len(others))]
        )
        sensor = int(chance.random() * SENSORS) + 1
        value = 20 + int(chance.random() * 81)
        documents.append((second, f"{iri(f'sensor{sensor}')} {iri(f'read_{kind}')} {value} ."))
    return documents


def reading(name: str, kind: str, threshold: str) -> Query:
    where = f"?s :read_{kind} ?val . ?s :is_in_room ?room FILTER(?val > {threshold})"
    return Query(name, ("room", "val"), where)


def above(number: int, threshold: str, seconds: int = 300) -> Pattern:
    """A reading A above a threshold after the last reading B above it, of that room, in five minutes."""
    return Pattern(
        f"Event{number}",
        f"Event{number}",
        reading("A", "valA", threshold),
        (Conjunct("LAST", reading("B", "valB", threshold), seconds),),
        (("at_room", 0, "room"), ("value", 0, "val")),
    )


def default(
    graphs: int,
    thresholds: Sequence[str] = tuple(map(str, range(1, 11))),
    rules: int = 11,
    extra: int = 10_000,
) -> Workload:
    """The paper's default scenario: ten rules of one form that differ in a constant, all of which pass."""
    patterns = tuple(above(number, threshold) for number, threshold in enumerate(thresholds, start=1))
    return Workload(
        "default",
        program(patterns),
        datalog(closures(rules)),
        rooms_of_sensors(extra),
        readings(graphs, ("valA", "valB"), 0.2, seed=1),
        patterns,
        closures=closures(rules),
    )


def sequence(graphs: int, length: int, selection: str, count: int = 10, extra: int = 10_000) -> Workload:
    """`count` rules over `length` events of that room; windows grow with the length for EACH, so that every
    position has about 1.5 candidates and matches do not explode."""
    kinds = [f"val{number}" for number in range(1, length + 1)]
    others = length - 1
    rooms = SENSORS // PER_ROOM
    seconds = 300 if selection == "LAST" else max(1, round(1.5 * rooms * others / 0.8))
    patterns = tuple(
        Pattern(
            f"Event{number}",
            f"Event{number}",
            reading("E1", kinds[0], str(number)),
            tuple(
                Conjunct(selection, reading(f"E{place}", kind, str(number)), seconds)
                for place, kind in enumerate(kinds[1:], start=2)
            ),
            (("at_room", 0, "room"), ("value", 0, "val")),
        )
        for number in range(1, count + 1)
    )
    return Workload(
        f"{selection.lower()} {length}",
        program(patterns),
        datalog(closures(11)),
        rooms_of_sensors(extra),
        readings(graphs, kinds, 0.2, seed=2),
        patterns,
        closures=closures(11),
    )


def thresholds(count: int, firing: str) -> list[str]:
    """Constants of `count` rules: those that fire are below every value. `firing`: `none`, `1%`, `all`."""
    passing = {"none": 0, "1%": max(1, count // 100), "all": count}[firing]
    low = [f"{1 + 18 * number / count:.4f}" for number in range(passing)]
    high = [f"{101 + number / count:.4f}" for number in range(count - passing)]
    return low + high


def shapes(count: int) -> str:
    """`count` rules no two of which have one form; each gives about one event a trigger."""
    selections = ("LAST B", "FIRST B", "LAST 1 B", "FIRST 1 B")
    conditions = (
        "",
        " && B.?val >= 20",
        " && A.?val + B.?val > 39",
        " && B.?room != :room9",
        " && A.?val * B.?val > 0",
    )
    negations = (
        "",
        (
            "AND NOT N := { SELECT ?room WHERE { ?s :read_valN ?v . ?s :is_in_room ?room } } "
            "WITHIN 60 s FROM A ON N.?room = A.?room"
        ),
        "AND NOT N := { SELECT ?v WHERE { ?s :read_valN ?v } } BETWEEN B AND A",
    )
    aggregates = (
        "",
        (
            "AND COUNT(*) AS ?n OVER C := { SELECT ?room WHERE { ?s :read_valB ?v . ?s :is_in_room ?room } } "
            "WITHIN 30 s FROM A ON C.?room = A.?room"
        ),
        "AND MAX(C.?v) AS ?n OVER C := { SELECT ?v WHERE { ?s :read_valB ?v } } WITHIN 30 s FROM A",
        "AND SUM(C.?v) AS ?n OVER C := { SELECT ?v WHERE { ?s :read_valA ?v } } WITHIN 30 s FROM A",
    )
    wheres = ("", "WHERE A.?val > 10", "WHERE A.?val + 1 > 10 && B.?val > 1", "WHERE A.time - B.time < 1000")
    templates = (
        "{ dotr_id1 a :Shape ; :at_room ?v0 ; :value ?v1 }",
        "{ dotr_id1 :value ?v1 ; a :Shape ; :at_room ?v0 }",
        "{ :log :has dotr_id1 . dotr_id1 :at_room ?v0 ; :value ?v1 }",
    )
    queries = (
        "?s :read_{k} ?val . ?s :is_in_room ?room",
        "?s :is_in_room ?room . ?s :read_{k} ?val FILTER(?val > 1)",
        "?s :equips/:placed_in ?room . ?s :read_{k} ?val",
        "?s :read_{k} ?val . ?s :is_in_room ?room . ?room :number ?number",
    )
    rules = []
    for number in range(count):
        rest, parts = number, []
        for choices in (queries, selections, conditions, templates, negations, aggregates, wheres):
            rest, place = divmod(rest, len(choices))
            parts.append(choices[place])
        query, selection, condition, template, negation, aggregate, where = parts
        a, b = (query.replace("{k}", kind) for kind in ("valA", "valB"))
        clauses = (
            f"RULE Shape{number + 1}\nDEFINE {template}",
            f"FROM A := {{ {Query('A', ('room', 'val'), a).text} }}",
            f"AND {selection} := {{ {Query('B', ('room', 'val'), b).text} }}",
            f"WITHIN 300 s FROM A ON A.?room = B.?room{condition}",
            *(negation, aggregate, where),
            "WITH ?v0 := A.?room, ?v1 := A.?val\n",
        )
        rules.append("\n".join(clauses))
    return f"PREFIX : <{NAMESPACE}>\n\n" + "\n".join(rules)


def different_shapes(graphs: int, count: int, extra: int = 10_000) -> Workload:
    workload = default(graphs, thresholds=("1",), extra=extra)
    return Workload(
        f"{count} shapes", shapes(count), workload.datalog, workload.background, workload.documents
    )


def endless(graphs: int, triggers: float, start: int = 0) -> Workload:
    """Ever-new IRIs, in subjects, keys and values: nothing that is kept may grow with the stream.

    The part of the stream from `start` on; the parts of one stream have the same rules.
    """
    query = Query("B", ("key", "val"), "?s :read_valB ?val . ?s :of ?key")
    pattern = Pattern(
        "Event1",
        "Event1",
        Query("A", ("key", "val"), "?s :read_valA ?val . ?s :of ?key"),
        (Conjunct("LAST", query, 300, key="key"),),
        (("of", 0, "key"),),
    )
    chance = random.Random(start)
    documents = []
    for second in range(start + 1, start + graphs + 1):
        kind = "valA" if chance.random() < triggers else "valB"
        node, key = iri(f"reading{second}"), iri(f"key{second // 5}")
        value = iri(f"value{second}")
        documents.append((second, f"{node} {iri(f'read_{kind}')} {value} ; {iri('of')} {key} ."))
    return Workload("endless", program((pattern,)), "", "", documents, (pattern,))
