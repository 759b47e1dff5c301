"""Random whole programs as text, with background and stream: small, rich in ties and coincidences.

A program is drawn with meaning (names that exist, variables that are bound, layers of negation), so that most
of them deploy; the checks refuse the others. Every operator of the three languages can stand beside every
other. All is chosen by one Random: a seed is a case, and hypothesis may hold the dice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

HEADER = "PREFIX : <ex:>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
TURTLE = "@prefix : <ex:> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
MATH = "http://www.w3.org/2005/xpath-functions/math#"
RDFS = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"

ENTITIES = (":a", ":a", ":b", ":c")
LINKS = (":p", ":q")
CLASSES = (":A", ":B")
NUMBERS = ("0", "1", "1", "2", "3", "1.0", "0.5", "1e0", "2.5e0")
ODD = (
    '"x"',
    '"b"@en',
    "true",
    '"1"^^xsd:float',
    '"0.7"^^xsd:float',
    '"0.1"^^xsd:float',
    '"NaN"^^xsd:double',
    '"INF"^^xsd:double',
    "9223372036854775807",
    "9223372036854775808",
    '"18446744073709551615"^^xsd:unsignedLong',
    "1000000000000000000000000000000",
    '"2026-01-01T00:00:00Z"^^xsd:dateTime',
    '"2026-01-01T01:00:00+01:00"^^xsd:dateTime',
    '"z"^^xsd:integer',
    '"PT1S"^^xsd:dayTimeDuration',
    '"PT0.5S"^^xsd:dayTimeDuration',
    '"-PT2S"^^xsd:dayTimeDuration',
    '"P1M"^^xsd:yearMonthDuration',
    '"PT1S"^^xsd:duration',
    '"2026-01-01"^^xsd:date',
)
ORDER = ((":p", ":q"), (":q", ":d0"), (":d0", ":d1"))
LITERALS = NUMBERS * 2 + ODD
NEAR = (
    '"0.7"^^xsd:float',
    '"0.1"^^xsd:float',
    "0.7",
    "0.1",
    "0.69999998807907104492",
    "0.7e0",
    "1",
    "16777217",
)
LIMITS = (*NUMBERS, "0.7", "0.1", "0.7", "16777217")
"""Decimals that an xsd:float of the same text does not meet as the xsd:double of its value does."""


class Graph(Struct, frozen=True):
    time: Any
    """Seconds; a dateTime as a string in `whole_days.py`."""
    text: str
    cut: bool
    """Whether a snapshot is taken, and another engine goes on from it, before this graph."""


class Whole(Struct, frozen=True):
    rules: str
    datalog: str
    background: str
    stream: Sequence[Graph] = field(default_factory=list)

    def __str__(self) -> str:
        stream = "\n".join(f"@{graph.time} {graph.text}" for graph in self.stream)
        parts = {"Datalog": self.datalog, "background": self.background, "stream": stream}
        return self.rules + "".join(f"\n--- {name}\n{text}" for name, text in parts.items())


def one(r: Random, *of: str) -> str:
    return r.choice(of)


def often(r: Random, tenths: int) -> bool:
    """True so many times in ten; shrinks to False."""
    return r.randint(1, 10) > 10 - tenths


def wholes(r: Random) -> Whole:
    datalog = datalogs(r)
    if often(r, 2):
        background = near(r, backgrounds(r, "subProperty" in datalog))
        stream = [replace(graph, text=near(r, graph.text)) for graph in streams(r)]
        return Whole(crowds(r), datalog, background, stream)
    return Whole(
        crowds(r) if often(r, 3) else programs(r),
        datalog,
        backgrounds(r, "subProperty" in datalog),
        streams(r),
    )


# --- graphs


def triples(r: Random, blank: bool) -> str:
    subject = one(r, *ENTITIES, *(("_:x", "_:y") if blank else ()))
    match r.randint(0, 5):
        case 0 | 1:
            return f"{subject} :v {one(r, *LITERALS)} ."
        case 2:
            return f"{subject} a {one(r, *CLASSES)} ."
        case 3 if blank:
            return f"{subject} {one(r, *LINKS)} {one(r, '_:x', '_:y', *ENTITIES)} ."
        case _:
            return f"{subject} {one(r, *LINKS)} {one(r, *ENTITIES, *ENTITIES, '1')} ."


def near(r: Random, text: str) -> str:
    """With values that compare unlike as xsd:float, xsd:double and xsd:decimal."""
    return re.sub(r":v \S+ \.", lambda _: f":v {one(r, *NEAR)} .", text)


def backgrounds(r: Random, schema: bool) -> str:
    found = [triples(r, blank=False) for _ in range(r.randint(0, 6))]
    if schema:
        found += [f"{below} rdfs:subPropertyOf {above} ." for below, above in ORDER if often(r, 4)]
    return "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . " + TURTLE + " ".join(found)


def streams(r: Random) -> list[Graph]:
    time = r.choice((0, 1, -2))
    found = []
    for _ in range(r.choice((1, 3, 5, 7, 9, 9))):
        graph = [triples(r, blank=True) for _ in range(r.choice((0, 1, 2, 3, 4, 6, 8)))]
        found.append(Graph(time, TURTLE + " ".join(graph), often(r, 2)))
        time += r.choice((1, 1, 0, 2, 5))
    return found


# --- Datalog


def datalogs(r: Random) -> str:
    rules: list[str] = []
    schema = often(r, 2)
    if schema:
        rules.append("[?x, ?q, ?y] :- [?p, rdfs:subPropertyOf, ?q], [?x, ?p, ?y] .")
    for layer in range(r.randint(0, 3)):
        for _ in range(r.randint(1, 2)):
            rules.append(datalog_rules(r, layer))
    return HEADER + (RDFS if schema else "") + "\n".join(rules) + "\n" if rules else ""


def atoms(r: Random, layer: int, variables: Sequence[str], own: bool = False) -> str:
    """A positive or negated atom over stream relations and the derived ones below `layer` (or of it)."""
    upto = layer + 1 if own else layer
    links = [*LINKS, ":v", *(f":d{i}" for i in range(upto))]
    classes = [*CLASSES, *(f":D{i}" for i in range(upto))]
    subject = one(r, *variables)
    match r.randint(0, 8):
        case 0 | 1:
            return f"{one(r, *classes)}({subject})"
        case 2:
            return f"[{one(r, ':a', subject)}, {one(r, *links)}, {one(r, *variables)}]"
        case 3:
            return f"[{subject}, {one(r, *links)}, {one(r, ':b', '1', *variables)}]"
        case _:
            return f"{one(r, *links)}({subject}, {one(r, *variables)})"


def datalog_rules(r: Random, layer: int) -> str:
    head_link = f":d{layer}"
    if often(r, 2):
        functions = (
            "COUNT(?y)",
            "SUM(?y)",
            "MIN(?y)",
            "MAX(?y)",
            "AVG(?y)",
            "COUNT(DISTINCT ?y)",
            "COUNT(*)",
            "VARIANCE(?y)",
            "MEDIAN(DISTINCT ?y)",
            "PERCENTILE(?y, 0.3)",
        )
        function = one(r, *functions)
        first = atoms(r, layer, ("?x", "?y"))
        second = f"{one(r, *LINKS, ':v')}(?x, ?y)"
        inner = ", ".join([second, first][: r.randint(1, 2)])
        return f"[?x, {head_link}, ?n] :- AGGREGATE({inner} ON ?x BIND {function} AS ?n) ."
    first = f"{one(r, *LINKS, ':v', *(f':d{i}' for i in range(layer + 1)))}(?x, ?y)"
    body = [first]
    for _ in range(r.randint(0, 2)):
        body.append(atoms(r, layer, ("?x", "?y", "?z"), own=True))
    bound = [v for v in ("?x", "?y", "?z") if any(v in atom for atom in body)]
    if often(r, 3):
        body.append(f"NOT {atoms(r, layer, (*bound, '?w'))}")
    if often(r, 2):
        body.append(f"FILTER({conditions(r, bound).replace('NOW()', '1')})")
    ends = list(bound)
    if often(r, 1):
        body.append(f"BIND({one(r, *bound)} + 1 AS ?s)")
        ends = ["?s"]
    head = f"{head_link}({one(r, *bound)}, {one(r, *ends)})"
    if often(r, 3):
        head = f":D{layer}({one(r, *bound)})"
    if often(r, 1):
        head += f", {head_link}({one(r, *bound)}, :c)"
    return f"{head} :- {', '.join(body)} ."


# --- expressions


def conditions(r: Random, leaves: Sequence[str], depth: int = 1) -> str:
    left = one(r, *leaves)
    match r.randint(0, 9 if depth else 6):
        case 0 | 1:
            return f"{left} {one(r, '>', '<', '>=', '<=', '=', '!=')} {one(r, *NUMBERS)}"
        case 2:
            return f"{left} {one(r, '=', '!=', '<')} {one(r, *leaves)}"
        case 3:
            return f"{left} {one(r, '=', '!=', '<=')} {one(r, *LITERALS, *ENTITIES)}"
        case 4:
            among = f"{one(r, *LITERALS)}, {one(r, *ENTITIES)}, {one(r, *leaves)}"
            return f"{left} {one(r, 'IN', 'NOT IN')} ({among})"
        case 5:
            tests = ("isIRI(@)", "isNumeric(@)", "STRLEN(STR(@)) < 4", "isBlank(@)", "sameTerm(@, @@)")
            return (
                one(r, *tests, "DATATYPE(@) = xsd:integer").replace("@@", one(r, *leaves)).replace("@", left)
            )
        case 6:
            return f"{values(r, leaves)} {one(r, '=', '<', '>=')} {values(r, leaves)}"
        case 7:
            return f"!({conditions(r, leaves, depth - 1)})"
        case _:
            joined = one(r, "&&", "||")
            return f"({conditions(r, leaves, depth - 1)} {joined} {conditions(r, leaves, depth - 1)})"


def values(r: Random, leaves: Sequence[str]) -> str:
    left = one(r, *leaves)
    match r.randint(0, 9):
        case 0:
            return one(r, *LITERALS, *ENTITIES)
        case 1:
            return f"({left} {one(r, '+', '-', '*', '/')} {one(r, *leaves, '1', '2.0', '0')})"
        case 2:
            return f"COALESCE({left}, {one(r, *leaves, *ENTITIES)})"
        case 3:
            return f"IF({conditions(r, leaves, 0)}, {left}, {one(r, *leaves, '1')})"
        case 4:
            calls = ("STR(@)", "ABS(@)", "xsd:double(@)", "xsd:integer(@)", "LANG(@)", "CONCAT(STR(@), 'x')")
            calls += (f"<{MATH}sqrt>(@)", f"<{MATH}pow>(@, 2)", f"<{MATH}log>(@)", "DAYOFWEEK(@)", "DATE(@)")
            calls += ('LOCAL(@, "Europe/Brussels")', 'LOCAL(NOW(), "+03:00")')
            calls += ("DAYS(@)", "SECONDS(@)", "xsd:decimal(@)", "xsd:string(@)")
            return one(r, *calls, "ROUND(@)", "-@", "NOW()").replace("@", left)
        case _:
            return left


# --- queries: all project ?k ?v


def patterns(r: Random, variables: Sequence[str], full: bool) -> str:
    subject = one(r, *variables, variables[0])
    links = (*LINKS, ":v", ":v", ":d0", ":d1", ":d2")
    match r.randint(0, 12):
        case 0 | 1:
            return f"{subject} a {one(r, *CLASSES, ':D0', ':D1', ':D2')} ."
        case 2:
            return f"{subject} {one(r, *links)} {one(r, '1', '1.0', '[]', *ENTITIES)} ."
        case 3:
            return f"{one(r, *ENTITIES)} {one(r, *links)} {one(r, *variables)} ."
        case 4:
            path = one(r, ":p/:q", "^:p", ":p|:q", "(:p|^:q)/:v", ":q/:v", "!:p", "!(:p|^:q|a)")
            return f"{subject} {path} {one(r, *variables)} ."
        case 5 if full:
            path = one(r, ":p*", ":p+", "(:p|:q)+", ":p?/:v", "(:p/:q)*")
            return f"{subject} {path} {one(r, *variables)} ."
        case 6:
            return f"{subject} {one(r, '?x', '?v', '?k')} {one(r, *variables)} ."
        case _:
            return f"{subject} {one(r, *links)} {one(r, *variables)} ."


def groups(r: Random, full: bool, depth: int = 2) -> str:
    variables = ("?k", "?v", "?k", "?v", "?x")
    found = [patterns(r, variables, full) for _ in range(r.randint(1, 3))]

    def inner() -> str:
        return groups(r, full, depth - 1) if depth else patterns(r, variables, full)

    for _ in range(r.choice((0, 0, 1, 1, 2))):
        match r.randint(0, 9):
            case 0 | 1 | 2:
                found.append(f"FILTER({conditions(r, ('?k', '?v', '?x'))})")
            case 3:
                found.append(f"OPTIONAL {{ {inner()} }}")
            case 4:
                found.append(f"{{ {inner()} }} UNION {{ {inner()} }}")
            case 5:
                found.append(f"MINUS {{ {inner()} }}")
            case 6:
                found.append(f"FILTER {one(r, 'NOT EXISTS', 'EXISTS')} {{ {inner()} }}")
            case 7:
                found.append(f"BIND({values(r, ('?k', '?v', '?x'))} AS ?y{depth}{len(found)})")
            case 8:
                found.append(f"VALUES (?k ?x) {{ ({one(r, *ENTITIES)} UNDEF) (UNDEF {one(r, *LITERALS)}) }}")
            case _ if full and depth:
                kind = one(r, "", "DISTINCT")
                found.append(f"{{ SELECT {kind} ?k (MAX(?v) AS ?m) WHERE {{ {inner()} }} GROUP BY ?k }}")
            case _:
                found.append(f"{{ {inner()} }}")
    return " ".join(found)


AGGREGATES = (
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VARIANCE", "STDDEV_POP", "VAR_POP", "MEDIAN"),
    "PERCENTILE",
)


def share(function: str) -> str:
    return ", 0.3" if function == "PERCENTILE" else ""


def queries(r: Random) -> str:
    full = often(r, 2)
    if often(r, 2):
        return retracting_queries(r)
    group = groups(r, full)
    free = group.replace("?v", "?u")
    match r.randint(0, 9):
        case 0:
            function = one(r, *AGGREGATES)
            inner = one(r, "?x", "DISTINCT ?x", "?x")
            having = one(r, "", "", "HAVING(COUNT(*) > 1)", "HAVING(?v > 0)", "HAVING(MAX(?x) > 1)")
            inner += share(function)
            return f"{{ SELECT ?k ({function}({inner}) AS ?v) WHERE {{ {free} }} GROUP BY ?k {having} }}"
        case 1:
            free = free.replace("?k", "?g")
            return f"{{ SELECT (COUNT(*) AS ?k) (SUM(?x) AS ?v) WHERE {{ {free} }} }}"
        case 2:
            return f"{{ SELECT ?k ({values(r, ('?u', '?x'))} AS ?v) WHERE {{ {free} }} }}"
        case 3:
            key = one(r, "?v", "DESC(?v)", "?x ?k", f"({values(r, ('?v', '?x'))})")
            return f"{{ SELECT ?k ?v WHERE {{ {group} }} ORDER BY {key} LIMIT {one(r, '1', '2', '3')} }}"
        case 4:
            return f"{{ SELECT DISTINCT ?k ?v WHERE {{ {group} }} }}"
        case _:
            return f"{{ SELECT ?k ?v WHERE {{ {group} }} }}"


def retracting_queries(r: Random) -> str:
    """What MINUS, OPTIONAL or NOT EXISTS takes from a pattern, joined with another and counted."""
    first = one(r, "?k a :A .", "?k a :D0 .", "?k :p ?w .", "?k :v ?w .")
    other = one(r, "?k :q ?z", "?k :q :a", "?k a :B", "?k :d0 ?z", "?z :q ?k")
    change = one(r, "MINUS {{ {} }}", "OPTIONAL {{ {} }}", "FILTER NOT EXISTS {{ {} }}").format(other)
    joined = one(r, "?x :q ?k .", "?k :v ?x .", "?x :p ?k .", "?k :d1 ?x .")
    group = f"{{ {first} {change} }} {joined}" if "EXISTS" in change else f"{first} {change} {joined}"
    total = one(r, "COUNT(*)", "COUNT(DISTINCT ?x)", "SUM(?x)", "AVG(?x)", "MIN(?x)", "MAX(?x)", "STDDEV(?x)")
    if often(r, 2):
        return f"{{ SELECT (COUNT(*) AS ?k) ({total} AS ?v) WHERE {{ {group.replace('?k', '?g')} }} }}"
    return f"{{ SELECT ?k ({total} AS ?v) WHERE {{ {group} }} GROUP BY ?k }}"


def simple_queries(r: Random) -> str:
    """Queries that often have answers, many of one shape."""
    links = [f"?k {link} ?v" for link in (":v", ":v", ":v", ":p", ":q", ":d0", ":d1")]
    longer = ("?k :v ?v . ?k a :A", "?k :p ?x . ?x :v ?v", "?k a :D0 . OPTIONAL { ?k :v ?v }")
    group = one(r, *links, *longer, "?k a :A . BIND(1 AS ?v)")
    limit = f" FILTER(?v {one(r, '>', '>=', '<')} {one(r, *LIMITS)})" if often(r, 5) else ""
    return f"{{ SELECT ?k ?v WHERE {{ {group} {limit} }} }}"


# --- rules


def programs(r: Random) -> str:
    shared = [f"Q{i}" for i in range(r.randint(1, 3))]
    parts = [f"QUERY {name} := {queries(r) if often(r, 4) else simple_queries(r)}" for name in shared]
    count = r.randint(1, 4)
    for number in range(count):
        parts.append(rules(r, number, count, shared))
        if often(r, 4):
            parts += relatives(r, parts[-1])
    return HEADER + "\n\n".join(parts) + "\n"


def crowds(r: Random) -> str:
    """Many rules of one shape or two, which differ in thresholds: in queries, in ON, or in both."""
    found = []
    for shape in range(r.randint(1, 2)):
        first, second = (
            one(r, "?k :v ?v", "?k :v ?v", "?k :p ?x . ?k :v ?v", "?k a :A . OPTIONAL { ?k :v ?v }")
            for _ in range(2)
        )
        distinct = one(r, "", "", "DISTINCT ")
        filtered = [one(r, "FILTER(?v {} {})", "FILTER(?v {} {})", "") for _ in range(2)]
        compared = [one(r, ">", ">", ">=", "<", "<=") for _ in range(3)]
        which = one(r, "EACH", "EACH", "LAST", "LAST", "NOT", "LAST 2", "FIRST")
        window = f"WITHIN {r.choice((0, 3, 8))} s {one(r, 'FROM', 'FROM', 'BEFORE')} S"
        tests = [test for test in ("X.?k = S.?k", f"X.?v {compared[2]} {{}}") if often(r, 6)]
        on = f"ON {' && '.join(tests)}" if tests else ""
        further = one(r, "", "", "AND EACH Y := {second} WITHIN 5 s FROM {other} ON Y.?k = S.?k")
        further = further.replace("{other}", "S" if which == "NOT" else one(r, "S", "X"))
        gift = one(r, "S.?v", "S.?k") if which == "NOT" else one(r, "S.?v", "X.?v", "X.?k")
        consuming = "CONSUMING X" if which != "NOT" and often(r, 1) else ""
        constant = often(r, 4)
        for number in range(r.choice((1, 3, 6, 12, 20))):
            limits = [one(r, *LIMITS) for _ in range(3)]
            queries_ = [
                f"{{ SELECT {distinct}?k ?v WHERE {{ {pattern} {test.format(operator, limit)} }} }}"
                for pattern, test, operator, limit in zip(
                    (first, second), filtered, compared, limits, strict=False
                )
            ]
            found.append(
                f"RULE R{shape}_{number} DEFINE {{ dotr_e a :E ; :k ?k ; :v ?v }}\nFROM S := {queries_[0]}\n"
                f"AND {which} X := {queries_[1]} {window} {on.format(limits[2])}\n"
                f"{further.format(second=queries_[1])} "
                f"WITH ?k := {number if constant else 'S.?k'}, ?v := {gift} {consuming}"
            )
    r.shuffle(found)
    return crowd(found)


def crowd(rules_: Sequence[str]) -> str:
    return HEADER + "\n\n".join(rules_) + "\n"


def rules_of(text: str) -> list[str]:
    """What `crowd` put together."""
    return text.removeprefix(HEADER).removesuffix("\n").split("\n\n")


def relatives(r: Random, text: str) -> list[str]:
    """The same rule again under other names, most often with other thresholds and constants."""
    found = []
    for number in range(r.randint(1, 5)):
        other = re.sub(r"^RULE (\w+)", rf"RULE \1_{number}", text)
        if often(r, 8):
            other = re.sub(r"(\?v (?:>=?|<=?)) [0-9.e]+", lambda m: f"{m[1]} {one(r, *LIMITS)}", other)
        if often(r, 5):
            other = other.replace("dotr_e a :E", one(r, "dotr_e a :F", "dotr_e a :E . dotr_e a :G"))
        found.append(other)
    return found


def events(r: Random, name: str, number: int, count: int, shared: Sequence[str], trigger: bool) -> str:
    kind = r.randint(0, 9)
    if kind >= 8 and number + (not trigger) > 0:
        last = number - 1 if trigger else count - 1
        return f"{name} := R{r.randint(0, last)}"
    if kind >= 5:
        return f"{name} := {queries(r) if often(r, 1 if trigger else 3) else simple_queries(r)}"
    return f"{name} := {one(r, *shared)}"


def rules(r: Random, number: int, count: int, shared: Sequence[str]) -> str:
    tick = often(r, 2)
    if tick:
        trigger = f"EVERY {r.randint(1, 3)} s AS S"
    else:
        trigger = events(r, "S", number, count, shared, trigger=True)
    leaves = [] if tick else ["S.?k", "S.?v"]
    known, chosen, lines = ["S"], [], []
    totals: list[str] = []
    for i in range(r.randint(0, 3)):
        name = f"X{i}"
        event = events(r, name, number, count, shared, trigger=False)
        ahead = event.split()[-1] in [f"R{other}" for other in range(number, count)]
        strict = "BEFORE" if ahead else one(r, "FROM", "FROM", "BEFORE")
        window = f"WITHIN {r.choice((0, 1, 2, 3, 3, 5, 8))} s {strict} {one(r, *known)}"
        mine = [f"{name}.?k", f"{name}.?v"]
        on = joins(r, mine, leaves, totals, known, name)
        kind = r.randint(0, 7)
        if kind >= 5 and len(known) > 1 and often(r, 3):
            window = f"BETWEEN {known[-1]} AND {one(r, *known[:-1])}"
        if kind <= 4:
            selection = one(r, "EACH", "LAST", "FIRST", "LAST 2", "FIRST 3", "LAST")
            line = f"{selection} {event} {window} {on}"
            if crc32(line.encode()) % 3 == 0 and (grouped := per(line, mine[0])) is not None:
                lines.append(f"AND {grouped}")
                leaves = [*leaves, mine[0]]
                continue
            lines.append(f"AND {may_lack(line)}{line}")
            known.append(name)
            chosen.append(name)
            leaves = [*leaves, *mine]
        elif kind == 5:
            lines.append(f"AND NOT {event} {window} {on}")
        else:
            what = one(r, f"{name}.?v", f"{name}.?v", f"DISTINCT {name}.?v", values(r, [*mine, *leaves]))
            function = one(r, *AGGREGATES, "FIRST", "LAST")
            function = f"{function}({what}{share(function)})"
            if often(r, 2):
                function = "COUNT(*)"
            rest = f"{event} {window} {on}"
            lines.append(f"AND {function} AS ?t{i} OVER {few(rest)}{rest}")
            totals = [*totals, f"?t{i}"]
    all_leaves = [*leaves, *totals, *(f"{n}.time" for n in known)]
    if often(r, 2):
        lines.append(f"WHERE {conditions(r, all_leaves)}")
    give = [gifts(r, [*leaves, *leaves, *totals] or ["S.time"], known) for _ in range(2)]
    lines.append(f"WITH ?k := {give[0]}, ?v := {give[1]}")
    if chosen and often(r, 4):
        lines.append(f"CONSUMING {', '.join(r.sample(chosen, r.randint(1, len(chosen))))}")
    whole = "dotr_e a :E ; :k ?k ; :v ?v"
    template = one(r, whole, whole, whole, "dotr_e :x 1", "?k :is dotr_e . dotr_f :v ?v", "dotr_e ?k ?v")
    end = "" if tick else after("\n".join(lines))
    if end:
        trigger, lines = f"{trigger} {end}", [_from_due(line) for line in lines]
    template, lines = (template, lines) if tick else collecting(template, lines)
    return f"RULE R{number} DEFINE {{ {template} }}\nFROM {trigger}\n" + "\n".join(lines)


def collecting(template: str, lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    """A list of what came before its trigger for one rule of six, by its text, in one place of a triple."""
    dice = crc32(f"list {lines}".encode())
    if dice % 6:
        return template, lines
    what = ("C.?v", "DISTINCT C.?v", "C.?k", "C.?v + 1", "DISTINCT C.?k")[dice // 6 % 5]
    window = ("WITHIN 3 s FROM S", "WITHIN 5 s BEFORE S", "WITHIN 0 s BEFORE S")[dice // 30 % 3]
    on = ("", "ON C.?k = S.?k", "ON C.?v != S.?v")[dice // 90 % 3]
    triple = ("dotr_e :l ?l", "dotr_e :l ?l", "?l :in dotr_e", "?k ?l ?v")[dice // 270 % 4]
    at = next(number for number, line in enumerate(lines) if line.startswith(("WHERE", "WITH")))
    lines = [*lines[:at], f"AND COLLECT({what}) AS ?c OVER C := S {window} {on}", *lines[at:]]
    lines = [f"{line}, ?l := ?c" if line.startswith("WITH ") else line for line in lines]
    return f"{template} . {triple}", lines


def after(text: str) -> str:
    """`AFTER n s AS Due` for one rule of five, by its text: the others stay what they were for each seed."""
    chosen, seconds = crc32(text.encode()) % 5, crc32(text.encode()) // 5 % 4 + 1
    return f"AFTER {seconds} s AS Due" if chosen == 0 else ""


def may_lack(line: str) -> str:
    """OPTIONAL for one LAST or FIRST of four, by its text, as `after`."""
    one_or_none = re.match(r"(LAST|FIRST) [^0-9]", line) is not None
    return "OPTIONAL " if one_or_none and crc32(line.encode()) % 4 == 0 else ""


def per(line: str, key: str) -> str | None:
    """An EACH with groups by its first attribute; None for another conjunct, or one that reads more of it."""
    name = key.partition(".")[0]
    others = re.findall(rf"{name}\.\S+", line)
    if not line.startswith("EACH ") or any(not re.match(re.escape(key) + r"\W*$", other) for other in others):
        return None
    return line.replace(" WITHIN ", " PER (?k) WITHIN ", 1)


def few(line: str) -> str:
    """LAST n or FIRST n behind one OVER of three, by its text, as `after`."""
    return ("LAST 2 ", "FIRST 2 ", "LAST 3 ", *[""] * 6)[crc32(line.encode()) % 9]


def _from_due(line: str) -> str:
    """A conjunct whose window is, for every second one, measured from the time after the trigger."""
    if crc32(line.encode()) % 2:
        return re.sub(r"\b(FROM|BEFORE|AND) S\b", r"\1 Due", line)
    return line


def joins(
    r: Random,
    mine: Sequence[str],
    leaves: Sequence[str],
    totals: Sequence[str],
    known: Sequence[str],
    name: str,
) -> str:
    parts = []
    if leaves and often(r, 4):
        parts.append(f"{mine[0]} = {one(r, leaves[0], leaves[0], *leaves)}")
    if often(r, 2):
        parts.append(conditions(r, [*mine, *mine, *leaves, *totals]))
    if often(r, 1):
        parts.append(f"{name}.time {one(r, '<', '!=')} {one(r, *known)}.time")
    return f"ON {' && '.join(parts)}" if parts else ""


def gifts(r: Random, leaves: Sequence[str], known: Sequence[str]) -> str:
    match r.randint(0, 9):
        case 0:
            return f"{known[0]}.time - {one(r, *known)}.time"
        case 1:
            return f"{one(r, *known)}.time {one(r, '+', '-')} ({values(r, leaves)})"
        case 2:
            return values(r, leaves)
        case 3:
            return f"COALESCE({one(r, *leaves)}, 0)"
        case _:
            return one(r, *leaves)
