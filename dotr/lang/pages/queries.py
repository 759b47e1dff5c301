"""Pages of D12xx: embedded SPARQL.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_PREFIX = "PREFIX : <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


def _query(text: str) -> str:
    prefixes = _PREFIX if "xsd:" in text else _PREFIX.split("\n")[0] + "\n"
    return f"{prefixes if ':' in text else ''}QUERY A := {{ {text} }}"


PAGES: Final = (
    Page(
        "D1201",
        "a query that cannot be read",
        "A query is SPARQL 1.1. One syntax error is reported for each query, and the file is read on.",
        _query("SELECT ?x, ?y WHERE { ?x :p ?y }"),
        _query("SELECT ?x ?y WHERE { ?x :p ?y }"),
    ),
    Page(
        "D1202",
        "a rule embeds SELECT queries",
        "Each solution is an event. ASK has none, CONSTRUCT is what DEFINE does, and nothing can be "
        "changed from a rule.",
        _query("ASK { ?x a :Smoke }"),
        _query("SELECT * WHERE { ?x a :Smoke }"),
    ),
    Page(
        "D1203",
        "a query has no door to the outside",
        "A query sees one graph: what holds at an instant. FROM, GRAPH and SERVICE would look at others.",
        _query("SELECT ?x WHERE { SERVICE <http://example.org/sparql> { ?x a :Sensor } }"),
        "BACKGROUND <sensors.ttl>\n" + _query("SELECT ?x WHERE { ?x a :Sensor }"),
    ),
    Page(
        "D1204",
        "a query has no events",
        "`Event.?v` and `Event.time` stand in ON, WHERE and WITH; a query sees one instant.",
        _query("SELECT ?x WHERE { ?x :val ?v FILTER(?v > Smoke.?v) }"),
        _query("SELECT ?x ?v WHERE { ?x :val ?v }"),
    ),
    Page(
        "D1205",
        "a function that no rule may use",
        "RAND, UUID, STRUUID and BNODE give other values at every replay; SAMPLE and GROUP_CONCAT "
        "depend on an order\n"
        "that nobody fixed.",
        _query("SELECT (SAMPLE(?x) AS ?any) WHERE { ?x a :Smoke }"),
        _query("SELECT (MIN(?x) AS ?any) WHERE { ?x a :Smoke }"),
    ),
    Page(
        "D1206",
        "EXISTS needs a graph",
        "ON, WHERE and WITH compare values of events; graphs are gone by then. Ask in the event's query.",
        _PREFIX.split("\n")[0]
        + "\nRULE Fire DEFINE { dotr_x a :Fire }\nFROM Smoke := { SELECT ?room WHERE { ?o :room ?room } }\n"
        "WHERE EXISTS { ?room a :Lab }",
        _PREFIX.split("\n")[0] + "\nRULE Fire DEFINE { dotr_x a :Fire }\n"
        "FROM Smoke := { SELECT ?room WHERE { ?o :room ?room . ?room a :Lab } }",
    ),
    Page(
        "D1207",
        "LIMIT and OFFSET need ORDER BY",
        "Without it, and in a subquery, which answers are kept depends on an order that nobody fixed.",
        _query("SELECT ?x WHERE { ?x :val ?v } LIMIT 1"),
        _query("SELECT ?x WHERE { ?x :val ?v } ORDER BY DESC(?v) LIMIT 1"),
    ),
    Page(
        "D1208",
        "a variable gets a second value",
        "BIND, AS and GROUP BY (… AS ?x) make a new variable.",
        _query("SELECT ?x ?v WHERE { ?x :val ?v BIND(?v + 1 AS ?v) }"),
        _query("SELECT ?x ?w WHERE { ?x :val ?v BIND(?v + 1 AS ?w) }"),
    ),
    Page(
        "D1209",
        "an aggregate in the wrong place",
        "Aggregates of a query stand in SELECT, HAVING and ORDER BY, not inside each other; those over "
        "events are\n"
        "conjuncts: `AND AVG(T.?v) AS ?mean OVER T WITHIN … FROM …`.",
        _query("SELECT ?room WHERE { ?x :room ?room ; :val ?v FILTER(AVG(?v) > 5) } GROUP BY ?room"),
        _query("SELECT ?room WHERE { ?x :room ?room ; :val ?v } GROUP BY ?room HAVING(AVG(?v) > 5)"),
    ),
    Page(
        "D1210",
        "a variable has many values in a group",
        "In a grouped query only GROUP BY variables and aggregates have one value.",
        _query("SELECT ?room ?v WHERE { ?x :room ?room ; :val ?v } GROUP BY ?room"),
        _query("SELECT ?room (MAX(?v) AS ?top) WHERE { ?x :room ?room ; :val ?v } GROUP BY ?room"),
    ),
    Page(
        "D1211",
        "SELECT * cannot be grouped",
        "Name the variables of GROUP BY, and the aggregates.",
        _query("SELECT * WHERE { ?x :room ?room } GROUP BY ?room"),
        _query("SELECT ?room (COUNT(*) AS ?n) WHERE { ?x :room ?room } GROUP BY ?room"),
    ),
    Page(
        "D1212",
        "a variable is selected twice",
        "The selected variables are the attributes of an event, each with a name of its own.",
        _query("SELECT ?x ?x WHERE { ?x a :Smoke }"),
        _query("SELECT ?x WHERE { ?x a :Smoke }"),
    ),
    Page(
        "D1213",
        "a row of VALUES has the wrong length",
        "One value for each variable, UNDEF where there is none.",
        _query("SELECT ?x WHERE { ?x :room ?r ; :floor ?f VALUES (?r ?f) { (:r1) } }"),
        _query("SELECT ?x WHERE { ?x :room ?r ; :floor ?f VALUES (?r ?f) { (:r1 UNDEF) } }"),
    ),
    Page(
        "D1214",
        "a blank node label in two groups",
        "In a query `_:b` is a variable that is known in its own group of triples only.",
        _query("SELECT ?r WHERE { _:o a :Smoke OPTIONAL { _:o :room ?r } }"),
        _query("SELECT ?r WHERE { ?o a :Smoke OPTIONAL { ?o :room ?r } }"),
    ),
    Page(
        "D1215",
        "a function with the wrong number of arguments",
        "See SPARQL 1.1, section 17.4. BOUND takes a variable.",
        _query("SELECT ?x WHERE { ?x :name ?n FILTER(CONTAINS(?n)) }"),
        _query('SELECT ?x WHERE { ?x :name ?n FILTER(CONTAINS(?n, "lab")) }'),
    ),
    Page(
        "D1216",
        "no such function",
        "Functions named by IRI are the casts of XML Schema types.",
        _query("SELECT ?x WHERE { ?x :val ?v FILTER(xsd:number(?v) > 5) }"),
        _query("SELECT ?x WHERE { ?x :val ?v FILTER(xsd:decimal(?v) > 5) }"),
    ),
    Page(
        "D1217",
        "a selected variable that nothing binds",
        "It would be unbound in every event. Mostly a slip of the pen.",
        _query("SELECT ?rom WHERE { ?x :room ?room }"),
        _query("SELECT ?room WHERE { ?x :room ?room }"),
    ),
    Page(
        "D1218",
        "a variable has no value where it is used",
        "An expression sees the variables of its own group (and, in OPTIONAL, of the group around it), "
        "not those of\n"
        "braces further out.",
        _query("SELECT ?x WHERE { ?x :val ?v { ?x a :Sensor FILTER(?v > 5) } }"),
        _query("SELECT ?x WHERE { ?x :val ?v ; a :Sensor FILTER(?v > 5) }"),
    ),
    Page(
        "D1219",
        "a comparison that never holds",
        "SPARQL does not say that an IRI and a number, or a text and a number, are different in size: "
        "it is an error,\n"
        "and the solution is gone without a word.",
        _query('SELECT ?x WHERE { ?x :val ?v FILTER(STRLEN(?v) > "5") }'),
        _query("SELECT ?x WHERE { ?x :val ?v FILTER(STRLEN(?v) > 5) }"),
    ),
    Page(
        "D1220",
        "a query that nothing can match",
        "With `--sample SOURCE`: a predicate or class that neither the background, nor a Datalog head, "
        "nor the sample has.",
        "dotr check fire.dotr --sample events/\n# fire.dotr asks for :is_in_rom, the background says "
        ":is_in_room",
        "dotr check fire.dotr --sample events/\n# fire.dotr asks for :is_in_room",
        PageKind.OTHER,
    ),
    Page(
        "D1221",
        "two queries are the same",
        "They are evaluated once. As one QUERY both places range over the same facts; written twice "
        "they never share one.",
        _PREFIX.split("\n")[0]
        + "\nRULE Two DEFINE { dotr_x a :Two }\nFROM A := { SELECT ?x WHERE { ?x a :Smoke } }\n"
        "AND EACH B := { SELECT ?y WHERE { ?y a :Smoke } } WITHIN 5 min BEFORE A",
        _PREFIX.split("\n")[0]
        + "\nQUERY Smoke := { SELECT ?x WHERE { ?x a :Smoke } }\nRULE Two DEFINE { dotr_x a :Two }\n"
        "FROM Smoke\nAND EACH B := Smoke WITHIN 5 min BEFORE Smoke ON B.?x = Smoke.?x",
    ),
    Page(
        "D1222",
        "two queries differ in the constants of their filters",
        "Nothing to correct: such queries share one evaluation and an index over the constants.",
        _query("SELECT ?x WHERE { ?x :val ?v FILTER(?v > 60) }")
        + "\nQUERY B := { SELECT ?x WHERE { ?x :val ?v FILTER(?v > 70) } }",
        _query("SELECT ?x WHERE { ?x :val ?v FILTER(?v > 60) }"),
    ),
    Page(
        "D1223",
        "a word that is nearly one of the background's",
        "Fine if the stream brings it. `--sample SOURCE` looks into the stream too.",
        "QUERY A := { SELECT ?r WHERE { ?s :is_in_rom ?r } }\n# the background says :is_in_room",
        "QUERY A := { SELECT ?r WHERE { ?s :is_in_room ?r } }",
        PageKind.OTHER,
    ),
    Page(
        "D1290",
        "the full SPARQL engine cannot run a query",
        "A query that is right, but more than the engine takes. Its own words stand in the note.",
        "a query that asks for too much",
        "two queries that ask for half of it each",
        PageKind.OTHER,
    ),
)
