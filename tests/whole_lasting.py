"""Random whole programs where something lasts: those of whole.py with HOLD lines, streams of changes,
messages that insert and delete, and other rules from a time on.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from random import Random

from msgspec import Struct

from tests.whole import HEADER, LINKS, TURTLE, often, one, triples, wholes

OWN = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\nPREFIX owl: <http://www.w3.org/2002/07/owl#>\n"
SCHEMA = (
    ":A rdfs:subClassOf :B .",
    ":p rdfs:subPropertyOf :q .",
    ":q rdfs:domain :A .",
    ":A owl:disjointWith :B .",
    ":a owl:sameAs :b .",
    ":p a owl:TransitiveProperty .",
)
PREFIXES = (
    TURTLE + "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    "@prefix owl: <http://www.w3.org/2002/07/owl#> . "
)

HOLDS = """STEP 1 s
held(?k, ?v) :- Now(?k, ?v) WITHIN 3 s .
kept(?k, ?v) :- held(?k, ?v) ALWAYS WITHIN 2 s, NOT Lost(?k, ?v) WITHIN 1 s .
twice(?k, ?v) :- Come(?k, ?v) AT LEAST 2 WITHIN 6 s .
total(?k, ?v) :- COUNT(*) AS ?v OVER Come(?k, ?x) WITHIN 5 s PER ?k .
later(?k, ?v) AT ?t + 2 s :- Lost(?k, ?v) AT ?t WITHIN 1 s .
latest(?k, ?v) :- Now(?k, ?v) WITHIN 2 FACTS .
newest(?k, ?v) :- Come(?k, ?v) WITHIN 1 FACTS PER (?k) .
"""
"""The file h.lars, which some programs name."""

STREAMS = """
QUERY Now := { SELECT ?k ?v WHERE { ?k :p ?v } }
QUERY Come := ISTREAM Now
QUERY Lost := DSTREAM Now
"""


class Sent(Struct, frozen=True):
    """A message as text; `cut`: another engine goes on before it."""

    time: int
    graph: str | None
    insert: str | None
    delete: str | None
    cut: bool


class Lasting(Struct, frozen=True):
    """`rules`: (rules, Datalog) at first, `then` from times on; of two for one time the last counts."""

    rules: tuple[str, str]
    then: tuple[tuple[int, tuple[str, str]], ...]
    background: str
    stream: tuple[Sent, ...]

    def __str__(self) -> str:
        parts = [self.rules[0], f"--- Datalog\n{self.rules[1]}", f"--- background\n{self.background}"]
        for time, (rules, datalog) in self.then:
            parts.append(f"--- from {time} on\n{rules}\n--- Datalog\n{datalog}")
        return "\n".join([*parts, *map(str, self.stream)])


def lastings(r: Random) -> Lasting:
    found = wholes(r)
    entailment = one(r, *["none"] * 5, "rdfs", "owl2rl")
    first = program(r, found.rules, entailment), found.datalog
    then = []
    for _ in range(r.choice((0, 0, 1, 2, 2))):
        other = wholes(r)
        if often(r, 5):  # the same rules, held otherwise
            other = found
        time = then[0][0] if then and often(r, 2) else r.randint(-3, 20)
        then.append((time, (program(r, other.rules, entailment), other.datalog)))
    background = found.background
    if entailment != "none":
        background = PREFIXES + background + " ".join(line for line in SCHEMA if often(r, 4))
    stream = tuple(messages(r, times(r), entailment != "none"))
    return Lasting(first, tuple(then), background, stream)


def program(r: Random, text: str, entailment: str) -> str:
    """With lines of HOLD, and some queries taken as streams of changes."""
    lines = []
    for held in (*LINKS, ":v", ":d0", "a :A", "a :B"):
        if often(r, 5):
            latest = " LATEST" if not held.startswith("a ") and often(r, 4) else ""
            lines.append(f"HOLD {held}{latest}{times_named(r)}{durations(r)}")
    if often(r, 4):
        lines.append(f"HOLD *{times_named(r)}{durations(r)}")
    if entailment != "none":
        lines.append(f"ENTAILMENT {entailment}")
    more = "".join(holds(r)) if often(r, 2) else ""
    if more:
        lines.append("LARS <h.lars>")
    text = text.replace(HEADER, HEADER + OWN + "\n".join(lines) + "\n", 1).replace("NOW()", "1")
    share = r.choice((3, 6, 9))

    def moving(match: re.Match[str]) -> str:
        return f"{match[1]} := {one(r, 'ISTREAM', 'DSTREAM')} {match[2]}" if often(r, share) else match[0]

    text = re.sub(r"(?<!QUERY )\b(\w+) := (\{)", moving, text)
    text = re.sub(r"(?<!QUERY )\b(\w+) := (Q\d)", moving, text)
    never = {line.split()[1] for line in lines if line.endswith("FOR 0 s")}
    if often(r, 4):
        text = re.sub(
            r"(RULE \w+ DEFINE .*?)(?=\n\s*\n|\Z)", lambda rule: rule[1] + effects(r, never), text, flags=re.S
        )
    return text + more


def effects(r: Random, never: Container[str]) -> str:
    """What the events of a rule state and end, without predicates that are never held; or nothing."""
    if not often(r, 4):
        return ""
    verbs = [verb for verb in (*LINKS, ":v", ":d0", ":s") if verb not in never]
    about = one(r, "?k", "?v", ":a", ":b", "dotr_e", "dotr_n")
    stated = [f"{about} {one(r, *verbs)} {one(r, '?v', '?k', ':c', '1')}"]
    if "a" not in never and often(r, 3):
        stated.append(f"{one(r, '?k', ':a')} a {one(r, ':A', ':B')}")
    ended = [
        f"{one(r, '?k', ':a', '?s')} {one(r, *verbs, '?p')} {one(r, '?v', '?o', '?s')}"
        for _ in range(r.choice((1, 1, 2)))
    ]
    ended = [re.sub(r"\?([spo])\b", rf"?\g<1>{place}", one_) for place, one_ in enumerate(ended)]
    clauses = [f"INSERT {{ {' . '.join(stated)} }}", f"DELETE {{ {' . '.join(ended)} }}"]
    return "\n" + "\n".join(r.sample(clauses, r.choice((1, 1, 2))))


def holds(r: Random) -> Iterator[str]:
    """What holds over windows of what lasts, and rules that look at it."""
    yield STREAMS
    for number in range(r.randint(1, 4)):
        head = one(r, "held", "kept", "twice", "total", "later", "latest", "newest")
        changes = one(r, "ISTREAM ", "DSTREAM ", "")
        trigger = f"FROM X := {changes}{head}"
        if changes and number % 2:
            trigger = f"{trigger} AFTER {number} s AS Due"
        if often(r, 3):
            trigger = f"FROM EVERY {r.randint(1, 3)} s AS T AND EACH X := {changes}{head} WITHIN 2 s FROM T"
        yield f"RULE H{number} DEFINE {{ dotr_e a :H ; :k ?k }} {trigger} WITH ?k := X.?k, ?v := X.?v\n"


def times_named(r: Random) -> str:
    return one(r, "", "", " UNTIL :until", " FROM :from UNTIL :until", " FROM :from")


def durations(r: Random) -> str:
    return one(r, "", f" FOR {r.choice((0, 1, 2, 3, 5, 8))} s", f" FOR {r.choice((1, 2, 4))} s")


def times(r: Random) -> Iterator[int]:
    time = r.choice((0, 1, -2))
    for _ in range(r.choice((3, 6, 9, 12))):
        yield time
        time += r.choice((0, 1, 1, 1, 2, 4))


def messages(r: Random, times_: Iterable[int], schema: bool) -> Iterator[Sent]:
    said: list[str] = []  # what may be deleted
    for time in times_:
        for _ in range(r.choice((1, 1, 2))):
            graph = texts(r, blank=True, most=4) if often(r, 7) else None
            if graph and often(r, 6):
                graph += [period(r, time) for _ in range(r.randint(1, 3))]
            insert = texts(r, blank=often(r, 3), most=3) if often(r, 4) else None
            delete = None
            if often(r, 4):
                delete = [*texts(r, blank=False, most=2), *r.sample(said, min(len(said), r.randint(0, 4)))]
            said += [line for line in (*(graph or ()), *(insert or ())) if "_:" not in line]
            if schema and often(r, 1):
                insert = [*(insert or ()), one(r, *SCHEMA)]
            if schema and often(r, 1):
                delete = [*(delete or ()), one(r, *SCHEMA)]
            if graph is insert is delete is None:
                graph = []
            yield Sent(time, *map(document, (graph, insert, delete)), often(r, 2))


def period(r: Random, time: int) -> str:
    """A time that something has, ahead as a rule."""
    at = time + r.choice((-1, 0, 1, 2, 3, 5, 8))
    value = r.choice((*([str(at)] * 8), f'"{at}"', "'soon'"))
    return f":{r.choice('abc')} {one(r, ':from', ':until', ':until')} {value} ."


def document(lines: list[str] | None) -> str | None:
    return None if lines is None else PREFIXES + " ".join(lines)


def texts(r: Random, blank: bool, most: int) -> list[str]:
    return [triples(r, blank) for _ in range(r.randint(0, most))]
