"""Pages of D10xx: how .dotr and .dlog files are written.

Place:   read by explain.py. `rooms.dlog` and `lost.dotr` of the examples exist where tests run them.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page

_SMOKE = (
    "PREFIX : <http://example.org/>\nQUERY Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :room ?room } }\n"
)

PAGES: Final = (
    Page(
        "D1000",
        "a file cannot be read",
        "A path in BACKGROUND, RULES and IMPORT is relative to the file that names it, not to the "
        "folder in which\n"
        "dotr was started. `<dotr:patterns/…>` and `<dotr:rules/…>` are files of the package.",
        "RULES <room.dlog>",
        "RULES <rooms.dlog>",
    ),
    Page(
        "D1001",
        "a character that does not begin a token",
        "Often a quotation mark or an operator that a word processor made beautiful, or a single `&`.",
        "QUERY A := { SELECT ?x WHERE { ?x ?p ?y FILTER(?y = “hot”) } }",
        'QUERY A := { SELECT ?x WHERE { ?x ?p ?y FILTER(?y = "hot") } }',
    ),
    Page(
        "D1002",
        "a string that does not end",
        "A string in single or double quotation marks ends in the line in which it begins. Three "
        "quotation marks\n"
        "hold text of several lines.",
        'QUERY A := { SELECT ?x WHERE { ?x ?p "hot } }',
        'QUERY A := { SELECT ?x WHERE { ?x ?p "hot" } }',
    ),
    Page(
        "D1003",
        "a backslash that escapes nothing",
        "In strings a backslash begins one of \\t \\b \\n \\r \\f \\\\ \\\" \\' \\uXXXX \\UXXXXXXXX. A "
        "regular\n"
        "expression that needs a backslash needs two of them here.",
        'QUERY A := { SELECT ?x WHERE { ?x ?p ?y FILTER(REGEX(?y, "\\d")) } }',
        'QUERY A := { SELECT ?x WHERE { ?x ?p ?y FILTER(REGEX(?y, "\\\\d")) } }',
    ),
    Page(
        "D1004",
        "something else is expected here",
        "The clauses of a rule stand in this order: DEFINE, FROM, AND …, WHERE, WITH, CONSUMING. Every "
        "conjunct but\n"
        "the trigger has a window. A rule ends where the next begins; no dot or semicolon ends it.",
        _SMOKE
        + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke\nAND NOT Smoke2 := Smoke ON Smoke2.?room = "
        "Smoke.?room",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke\n"
        "AND NOT Smoke2 := Smoke WITHIN 5 min BEFORE Smoke ON Smoke2.?room = Smoke.?room",
    ),
    Page(
        "D1005",
        "brackets in brackets in brackets",
        "Expressions, groups and imports may nest 64 levels deep (imports 32). Nobody could read more, "
        "and no engine\n"
        "should be made to.",
        "PREFIX : <http://example.org/>\nQUERY A := { SELECT ?x WHERE { ?x :p ?y FILTER("
        + "(" * 70
        + "?y > 1"
        + ")" * 70
        + ") } }",
        "PREFIX : <http://example.org/>\nQUERY A := { SELECT ?x WHERE { ?x :p ?y FILTER(?y > 1) } }",
    ),
    Page(
        "D1006",
        "too many findings",
        "After 100 findings a text is not read on: it is some other kind of file, or its beginning is "
        "broken in a way\n"
        "that makes the rest unreadable. Correct the first findings first.",
        "\n".join(["% %"] * 60),
        "PREFIX : <http://example.org/>\nQUERY A := { SELECT ?x WHERE { ?x a :Smoke } }",
    ),
    Page(
        "D1007",
        "a relative IRI without a BASE",
        "A name such as <Smoke> needs something to be relative to. Paths of files are not touched by BASE.",
        "QUERY A := { SELECT ?x WHERE { ?x a <Smoke> } }",
        "BASE <http://example.org/>\nQUERY A := { SELECT ?x WHERE { ?x a <Smoke> } }",
    ),
    Page(
        "D1008",
        "not a valid IRI",
        'An IRI has no blanks, no `<>"{}|^`, a percent sign only before two hexadecimal digits, a port that\n'
        "is a number.",
        "QUERY A := { SELECT ?x WHERE { ?x a <http://example.org/%zz> } }",
        "QUERY A := { SELECT ?x WHERE { ?x a <http://example.org/%20> } }",
    ),
    Page(
        "D1009",
        "a keyword is not a name",
        "The words of the grammar (RULE, FROM, LAST, COUNT, WITHIN …) are keywords in any case and name "
        "nothing.",
        "PREFIX : <http://example.org/>\nQUERY Last := { SELECT ?x WHERE { ?x a :Smoke } }",
        "PREFIX : <http://example.org/>\nQUERY LastSmoke := { SELECT ?x WHERE { ?x a :Smoke } }",
    ),
    Page(
        "D1010",
        "an operator of another language",
        "Conditions are joined with && and ||, as in SPARQL; AND joins events.",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke\n"
        "WHERE Smoke.?room = :r1 OR Smoke.?room = :r2",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x a :Fire }\nFROM Smoke\n"
        "WHERE Smoke.?room = :r1 || Smoke.?room = :r2",
    ),
    Page(
        "D1011",
        "a template names nothing at random",
        "`[ ]`, `( )` and `_:b` would get another name at every run. A fresh name `dotr_x` becomes an "
        "IRI that is made\n"
        "from what matched: replay, restart and several machines agree on it.",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :where [ :room ?room ] }\nFROM Smoke\nWITH ?room := Smoke.?room",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :where dotr_place . dotr_place :room ?room }\nFROM Smoke\nWITH "
        "?room := Smoke.?room",
    ),
    Page(
        "D1012",
        "this cannot stand in a template",
        "A template is triples over constants, variables of WITH and fresh names. A literal is never a "
        "subject, a\n"
        "predicate is an IRI or a variable, and values of events come through WITH.",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :room Smoke.?room }\nFROM Smoke",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :room ?room }\nFROM Smoke\nWITH ?room := Smoke.?room",
    ),
    Page(
        "D1014",
        "an attribute is written with its question mark",
        "`Smoke.?room` is the value of ?room in the fact bound to Smoke; `Smoke.time` is its time.",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :room ?room }\nFROM Smoke\nWITH ?room := Smoke.room",
        _SMOKE + "RULE Fire\nDEFINE { dotr_x :room ?room }\nFROM Smoke\nWITH ?room := Smoke.?room",
    ),
    Page(
        "D1015",
        "no such entailment, or two of them",
        "ENTAILMENT is none, rdfs or owl2rl, and the same in all files that are deployed together.",
        "ENTAILMENT owl",
        "ENTAILMENT owl2rl",
    ),
    Page(
        "D1016",
        "a file under the wrong keyword",
        "RULES names Datalog (.dlog), BACKGROUND names RDF, IMPORT names a .dotr library.",
        "RULES <building.ttl>",
        "BACKGROUND <building.ttl>",
    ),
)
