"""Pages of D15xx and D416x: what lasts.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_PREFIX = "PREFIX : <http://example.org/>\n"
_JAM = _PREFIX + "QUERY Jam := { SELECT DISTINCT ?road WHERE { ?road a :Congested } }\n"
_RULE = "RULE Jammed\nDEFINE { dotr_x a :Jammed }\nFROM "

PAGES: Final = (
    Page(
        "D1501",
        "LATEST is for a predicate",
        "HOLD :status LATEST keeps a value until the same subject gets another of that predicate. A class "
        "has no values that could replace one another, nor has everything at once.",
        _PREFIX + "HOLD a :Open LATEST",
        _PREFIX + "HOLD :state LATEST",
    ),
    Page(
        "D1502",
        "membership is held class by class",
        "HOLD a :Congested keeps the members of one class; HOLD * also keeps those of classes without a line "
        "of their own.",
        "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\nHOLD rdf:type FOR 5 min",
        _PREFIX + "HOLD a :Congested FOR 5 min",
    ),
    Page(
        "D1503",
        "a predicate is held in two ways",
        "A predicate, a class and `*` have one line each in a deployment, libraries included; the same line "
        "twice is one.",
        _PREFIX + "HOLD :in FOR 10 min\nHOLD :in LATEST",
        _PREFIX + "HOLD :in LATEST FOR 10 min",
    ),
    Page(
        "D1504",
        "a library may not say how long everything lasts",
        "`HOLD *` is about the whole stream of whoever imports the file: it stands in the main file only.",
        "IMPORT <hold.dotr> AS Library   # which says: HOLD * FOR 10 s",
        "HOLD * FOR 10 s",
    ),
    Page(
        "D1505",
        "an exception of nothing",
        "FOR 0 s takes a predicate or a class out of `HOLD *`. Without such a line nothing holds it anyway.",
        _PREFIX + "HOLD :reading FOR 0 s",
        _PREFIX + "HOLD * FOR 10 min\nHOLD :reading FOR 0 s",
    ),
    Page(
        "D1506",
        "ISTREAM and DSTREAM take a QUERY",
        "They compare the answers of a query before and after a change of what lasts. A rule's events happen "
        "at instants, and a stream of changes has no answers that could change again.",
        _JAM + _RULE + "Jam\nRULE Again DEFINE { dotr_x a :Again } FROM Begun := ISTREAM Jammed",
        _JAM + _RULE + "Begun := ISTREAM Jam",
    ),
    Page(
        "D1507",
        "NOW() under ISTREAM or DSTREAM",
        "What lasts changes when a message comes or a period ends, not because time goes by: a query whose "
        "answers depend on the time of asking has no changes there. The event has a time: Begun.time.",
        _PREFIX + _RULE + "Late := ISTREAM { SELECT ?x WHERE { ?x :due ?t FILTER(?t < NOW()) } }",
        _PREFIX + _RULE + "Due := ISTREAM { SELECT ?x ?t WHERE { ?x :due ?t } }\nWHERE Due.?t < Due.time",
    ),
    Page(
        "D4160",
        "what lasts is not run there",
        "HOLD, ISTREAM, DSTREAM and messages that insert or delete are for runs in one process.",
        "dotr batch rooms.dotr --log log.parquet --out events",
        "dotr run rooms.dotr log.parquet",
        PageKind.OTHER,
    ),
)
