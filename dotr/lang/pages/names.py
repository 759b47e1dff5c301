"""Pages of D11xx and D13xx: names, what they stand for, and where they are known.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_PREFIX = "PREFIX : <http://example.org/>\n"
_SMOKE = _PREFIX + "QUERY Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :room ?room } }\n"
_TEMP = "QUERY Temp := { SELECT ?room ?val WHERE { ?o a :Temp ; :room ?room ; :val ?val } }\n"
_FIRE = "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke\n"
_CHAIN = """RULE {0}
DEFINE {{ dotr_x a :{0} }}
FROM Smoke
AND NOT {1} WITHIN 5 min {2} Smoke
"""

PAGES: Final = (
    Page(
        "D1101",
        "a prefix is not declared",
        "A PREFIX holds in the whole file, whatever line it stands in, and inside the queries of the "
        "file; not in\n"
        "files that it imports.",
        "QUERY Smoke := { SELECT ?o WHERE { ?o a ex:Smoke } }",
        "PREFIX ex: <http://example.org/>\nQUERY Smoke := { SELECT ?o WHERE { ?o a ex:Smoke } }",
    ),
    Page(
        "D1102",
        "a prefix is never used",
        "Not an error: but often the sign of a prefix that was meant and another that was written.",
        "PREFIX ex: <http://example.org/>\n" + _PREFIX + "QUERY Smoke := { SELECT ?o WHERE { ?o a :Smoke } }",
        _PREFIX + "QUERY Smoke := { SELECT ?o WHERE { ?o a :Smoke } }",
    ),
    Page(
        "D1103",
        "a prefix is declared twice",
        "A prefix holds in the whole file, so it can stand for one namespace only.",
        _PREFIX + "PREFIX : <http://example.com/>\nQUERY Smoke := { SELECT ?o WHERE { ?o a :Smoke } }",
        _PREFIX
        + "PREFIX com: <http://example.com/>\nQUERY Smoke := { SELECT ?o WHERE { ?o a :Smoke, com:Smoke } }",
    ),
    Page(
        "D1104",
        "a rule or query is defined twice",
        "Names of rules and queries are unique in a deployment, over all its files.",
        _SMOKE + "QUERY Smoke := { SELECT ?o WHERE { ?o a :Smoke } }",
        _SMOKE + "QUERY AnySmoke := { SELECT ?o WHERE { ?o a :Smoke } }",
    ),
    Page(
        "D1105",
        "a name stands for two events of one rule",
        "To use one query in two positions, give the second a name of its own: `Again := Smoke`. Both "
        "then range\n"
        "over the same facts and may pick the same one.",
        _SMOKE + _FIRE + "AND EACH Smoke WITHIN 5 min BEFORE Smoke ON true",
        _SMOKE + _FIRE + "AND EACH Again := Smoke WITHIN 5 min BEFORE Smoke ON true",
    ),
    Page(
        "D1106",
        "no query or rule of this name",
        "An event is a QUERY, a rule, or a query written in place.",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smok",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke",
    ),
    Page(
        "D1107",
        "a position hides a query or rule",
        "Names of positions are local to their rule, but hide nothing: whoever reads `Smoke` anywhere "
        "means the same.",
        _SMOKE
        + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke := { SELECT ?o WHERE { ?o a :BlackSmoke } }",
        _PREFIX
        + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Black := { SELECT ?o WHERE { ?o a :BlackSmoke } }",
    ),
    Page(
        "D1108",
        "WITH binds a variable twice",
        "Every variable of WITH has one value.",
        _SMOKE + _FIRE + "WITH ?room := Smoke.?room, ?room := Smoke.time",
        _SMOKE + _FIRE + "WITH ?room := Smoke.?room, ?when := Smoke.time",
    ),
    Page(
        "D1110",
        "files import each other in a circle",
        "An import brings the rules of a file in at its place; in a circle there would be no end of them.",
        "IMPORT <circle.dotr> AS Circle",
        "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10 min\n" + _SMOKE,
    ),
    Page(
        "D1111",
        "a parameter has no value",
        "A library says with PARAMETER which queries and values it needs. The import gives them behind WITH.",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10 min",
    ),
    Page(
        "D1112",
        "no such parameter",
        "The names on the left of `:=` are those that the library declares.",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patient := 10 min",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10 min",
    ),
    Page(
        "D1113",
        "a parameter of the wrong kind",
        "Where a rule says `WITHIN ?patience`, the value is a duration: a number with a unit.",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10 min",
    ),
    Page(
        "D1114",
        "a parameter cannot be bound",
        "A value parameter is put in as a term wherever `?name` stands, so no query or aggregate may "
        "give it a value.",
        _PREFIX + "PARAMETER ?limit := 60\nQUERY Hot := { SELECT ?limit WHERE { ?o :val ?limit } }",
        _PREFIX
        + "PARAMETER ?limit := 60\nQUERY Hot := { SELECT ?val WHERE { ?o :val ?val FILTER(?val > ?limit) } }",
    ),
    Page(
        "D1115",
        "a query handed to a library selects too little",
        "`PARAMETER QUERY Beat(?s)` asks for a query that selects ?s; it may select more.",
        _SMOKE.replace("?room", "?place")
        + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10 min",
        _SMOKE + "IMPORT <lost.dotr> AS Lost WITH Beat := Smoke, ?patience := 10 min",
    ),
    Page(
        "D1116",
        "a parameter is named twice",
        "A parameter is declared once, and given one value.",
        _PREFIX + "PARAMETER ?limit := 60\nPARAMETER ?limit := 70\n"
        "QUERY Hot := { SELECT ?val WHERE { ?o :val ?val FILTER(?val > ?limit) } }",
        _PREFIX
        + "PARAMETER ?limit := 60\nQUERY Hot := { SELECT ?val WHERE { ?o :val ?val FILTER(?val > ?limit) } }",
    ),
    Page(
        "D1118",
        "a value for a parameter that is not there",
        "`--param` gives a value to a PARAMETER that the rule file itself declares, instead of its default: "
        "a number, a duration, a text or an IRI. Parameters of libraries get theirs from IMPORT, which may "
        "hand on one of the file.",
        "dotr compare fire.dotr log.jsonl --param limt=60,70",
        "dotr compare fire.dotr log.jsonl --param limit=60,70",
        PageKind.OTHER,
    ),
    Page(
        "D1117",
        "a query that nothing uses",
        "Not an error: but it is evaluated at every instant, or misspelt where it should be used.",
        _SMOKE + _TEMP + _FIRE,
        _SMOKE + _TEMP + _FIRE + "AND EACH Temp WITHIN 5 min BEFORE Smoke ON Temp.?room = Smoke.?room",
    ),
    Page(
        "D1301",
        "no event of this name in the rule",
        "A rule knows its trigger and its conjuncts by the names they have in it.",
        _SMOKE + _FIRE + "AND EACH Again := Smoke WITHIN 5 min BEFORE Smok ON true",
        _SMOKE + _FIRE + "AND EACH Again := Smoke WITHIN 5 min BEFORE Smoke ON true",
    ),
    Page(
        "D1302",
        "an event is used before its conjunct",
        "Conjuncts are chosen in the order written; each refers to the trigger or to an earlier one.",
        _SMOKE + _TEMP + _FIRE + "AND EACH A := Temp WITHIN 5 min BEFORE B ON true\n"
        "AND EACH B := Temp WITHIN 5 min BEFORE Smoke ON true",
        _SMOKE + _TEMP + _FIRE + "AND EACH B := Temp WITHIN 5 min BEFORE Smoke ON true\n"
        "AND EACH A := Temp WITHIN 5 min BEFORE B ON true",
    ),
    Page(
        "D1303",
        "a NOT or an aggregate is not a single event",
        "NOT binds nothing, and an aggregate stands for all its candidates: no window is measured from "
        "them, and\n"
        "their values are known in their own conjunct only.",
        _SMOKE + _TEMP + _FIRE + "AND NOT Temp WITHIN 5 min BEFORE Smoke ON true\nWITH ?v := Temp.?val",
        _SMOKE + _TEMP + _FIRE + "AND LAST Temp WITHIN 5 min BEFORE Smoke ON true\nWITH ?v := Temp.?val",
    ),
    Page(
        "D1304",
        "no aggregate of this name",
        "In ON, WHERE and WITH a bare ?v is the value of an aggregate, known behind its conjunct. "
        "Attributes of events\n"
        "are written `Event.?v`.",
        _SMOKE + _FIRE + "WHERE ?room = :r1",
        _SMOKE + _FIRE + "WHERE Smoke.?room = :r1",
    ),
    Page(
        "D1305",
        "DEFINE uses what WITH does not bind",
        "The variables of a template are those of WITH.",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :room ?room }\nFROM Smoke",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :room ?room }\nFROM Smoke\nWITH ?room := Smoke.?room",
    ),
    Page(
        "D1306",
        "this cannot be consumed",
        "CONSUMING names conjuncts with EACH, LAST or FIRST: the facts they chose are not candidates "
        "again. The trigger\n"
        "fires once anyway, NOT chooses nothing, and an aggregate sees all.",
        _SMOKE + _TEMP + _FIRE + "AND LAST Temp WITHIN 5 min BEFORE Smoke ON true\nCONSUMING Smoke",
        _SMOKE + _TEMP + _FIRE + "AND LAST Temp WITHIN 5 min BEFORE Smoke ON true\nCONSUMING Temp",
    ),
    Page(
        "D1307",
        "rules wait for each other within one instant",
        "A rule that refers to another with `WITHIN … FROM` sees its events of the same instant, so the "
        "other runs\n"
        "first. In a circle no rule is first. A reference that looks back only (BEFORE, BETWEEN) breaks "
        "the circle.",
        _SMOKE + _CHAIN.format("A", "B", "FROM") + _CHAIN.format("B", "A", "FROM"),
        _SMOKE + _CHAIN.format("A", "B", "BEFORE") + _CHAIN.format("B", "A", "FROM"),
    ),
    Page(
        "D1308",
        "a tick has a time and nothing else",
        "`EVERY 1 min AS Tick` triggers a rule; it has no attributes and is not a stream of facts.",
        _SMOKE + "RULE Quiet\nDEFINE { dotr_x :at ?t }\nFROM EVERY 1 min AS Tick\n"
        "AND NOT Smoke WITHIN 1 h FROM Tick\nWITH ?t := Tick.?time",
        _SMOKE + "RULE Quiet\nDEFINE { dotr_x :at ?t }\nFROM EVERY 1 min AS Tick\n"
        "AND NOT Smoke WITHIN 1 h FROM Tick\nWITH ?t := Tick.time",
    ),
    Page(
        "D1309",
        "two aggregates of one name",
        "Aggregates of a rule have names of their own.",
        _SMOKE + _TEMP + _FIRE + "AND AVG(T.?val) AS ?v OVER T := Temp WITHIN 5 min FROM Smoke ON true\n"
        "AND MAX(U.?val) AS ?v OVER U := Temp WITHIN 5 min FROM Smoke ON true\nWHERE ?v > 5",
        _SMOKE + _TEMP + _FIRE + "AND AVG(T.?val) AS ?v OVER T := Temp WITHIN 5 min FROM Smoke ON true\n"
        "AND MAX(U.?val) AS ?top OVER U := Temp WITHIN 5 min FROM Smoke ON true\nWHERE ?v > 5 && ?top > 9",
    ),
    Page(
        "D1310",
        "an event does not have this attribute",
        "The attributes of an event are the variables that its query selects, or the WITH variables of "
        "its rule.",
        _SMOKE + _FIRE + "WITH ?r := Smoke.?rom",
        _SMOKE + _FIRE + "WITH ?r := Smoke.?room",
    ),
    Page(
        "D1311",
        "an event without a graph",
        "A rule that others read may need no graph of its own: its WITH variables are what they see. Where "
        "nobody reads it,\n"
        "an event without a triple says nothing but its time.",
        _SMOKE + "RULE Fire DEFINE { } FROM Smoke",
        _SMOKE + "RULE Fire DEFINE { dotr_x a :Fire } FROM Smoke",
    ),
    Page(
        "D1312",
        "a private rule that nobody reads",
        "The events of a PRIVATE rule are there for other rules: they are not printed, stored or counted. "
        "Where no other rule reads them, the rule has no effect.",
        _SMOKE + "PRIVATE RULE Fire DEFINE { dotr_x a :Fire } FROM Smoke",
        _SMOKE + "PRIVATE RULE Burning DEFINE { } FROM Smoke WITH ?room := Smoke.?room\n"
        "RULE Fire DEFINE { dotr_x a :Fire ; :room ?room } FROM Burning WITH ?room := Burning.?room",
    ),
)
