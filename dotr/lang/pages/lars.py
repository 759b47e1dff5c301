"""Pages of D16xx: what holds, .lars files.

Place:   read by explain.py. Examples of kind LARS stand beside two queries, `temp(?v)` and `seen(?room, ?o)`.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_PREFIX = "PREFIX : <http://example.org/>\n"
_TEMP = "QUERY temp := { SELECT ?v WHERE { ?o :value ?v } }\n"
_CIRCLE = _PREFIX + "LARS <circle.lars>    # again() :- Alarm() WITHIN 1 min .\n" + _TEMP
_USE = _PREFIX + "LARS <cooling.lars>\n" + _TEMP


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.LARS)


PAGES: Final = (
    _page(
        "D1601",
        "a .lars file cannot be read here",
        "A rule is a head, `:-`, literals separated by commas, and a dot. An atom is a name and "
        "its arguments "
        "in brackets; a window stands behind it.",
        "alarm() :- temp(?v) WITHIN 10 s FILTER(?v > 90) .",
        "alarm() :- temp(?v) WITHIN 10 s, FILTER(?v > 90) .",
    ),
    _page(
        "D1602",
        "AT without a window",
        "`a() AT ?t` alone would hold for every time at which a() ever held, so that nothing could ever be "
        "forgotten. A window bounds it.",
        "hot() AT ?t :- temp(?v) AT ?t, FILTER(?v > 90) .",
        "hot() AT ?t :- temp(?v) AT ?t WITHIN 10 s, FILTER(?v > 90) .",
    ),
    _page(
        "D1603",
        "not a number of facts or time points",
        "`WITHIN n FACTS` and `AT LEAST k` take a whole number from 1 on.",
        "hot() :- temp(?v) AT LEAST 0 WITHIN 10 s, FILTER(?v > 90) .",
        "hot() :- temp(?v) AT LEAST 3 WITHIN 10 s, FILTER(?v > 90) .",
    ),
    _page(
        "D1604",
        "a name that nothing defines",
        "An atom of a body is named after a QUERY or a RULE of the deployment, or after a head of "
        "a .lars file.",
        "alarm() :- temps(?v) WITHIN 10 s, FILTER(?v > 90) .",
        "alarm() :- temp(?v) WITHIN 10 s, FILTER(?v > 90) .",
    ),
    _page(
        "D1605",
        "a variable that nothing binds, or two things do",
        "Atoms that are not negated bind their variables and the time behind AT; BIND and "
        "aggregates bind one "
        "variable each, which has no other value. The head, FILTER and BIND only read.",
        "quiet(?room) :- NOT seen(?room, ?o) WITHIN 1 min .",
        "quiet(?room) :- seen(?room, ?p) WITHIN 1 h, NOT seen(?room, ?o) WITHIN 1 min .",
    ),
    _page(
        "D1606",
        "a name has one number of arguments",
        "A query's arguments are the variables it selects, a rule's those of its WITH, a head's "
        "those of the "
        "first rule for it.",
        "near(?room) :- seen(?room) WITHIN 1 min .",
        "near(?room) :- seen(?room, ?o) WITHIN 1 min .",
    ),
    _page(
        "D1607",
        "a deployment has one timeline",
        "All .lars files together state one STEP, longer than 0; a file without one shares that of "
        "the others.",
        "STEP 1 s\nSTEP 1 min",
        "STEP 1 s",
    ),
    _page(
        "D1608",
        "a length of time off the timeline",
        "Windows and offsets are multiples of STEP: between two points of the timeline there is nothing to "
        "look at.",
        "STEP 2 s\nhot() :- temp(?v) WITHIN 5 s, FILTER(?v > 90) .",
        "STEP 1 s\nhot() :- temp(?v) WITHIN 5 s, FILTER(?v > 90) .",
    ),
    Page(
        "D1609",
        "a timeline needs a STEP",
        "The times of this stream are dates, and no .lars file says how far apart the points are "
        "at which its "
        "rules are read. With integer times it is one unit.",
        "alarm() :- temp(?v) WITHIN 10 s .      # over a stream with dates",
        "STEP 1 s\nalarm() :- temp(?v) WITHIN 10 s .",
        PageKind.OTHER,
    ),
    _page(
        "D1610",
        "a window of facts over what is derived",
        "`WITHIN n FACTS` counts facts of queries and of rules. How many atoms LARS rules derive "
        "depends on how "
        "they are written, so they are not counted (Laser, section 2).",
        "hot(?v) :- temp(?v), FILTER(?v > 90) .\nagain(?v) :- hot(?v) WITHIN 3 FACTS .",
        "again(?v) :- temp(?v) WITHIN 3 FACTS, FILTER(?v > 90) .",
    ),
    _page(
        "D1611",
        "an atom outside of its own window",
        "`WITHIN n FACTS OF (…)` keeps the last facts of the queries named. An atom of another "
        "query is never "
        "among them.",
        "recent(?v) :- temp(?v) WITHIN 3 FACTS OF (seen) .",
        "recent(?v) :- temp(?v) WITHIN 3 FACTS OF (seen, temp) .",
    ),
    _page(
        "D1612",
        "what an aggregate shares with its rule stands in PER",
        "An aggregate has one row for each group. Its other variables are its own, so one that stands "
        "elsewhere in the rule is in PER, and PER names variables of its atom.",
        "busy(?room, ?n) :- COUNT(?o) AS ?n OVER seen(?room, ?o) WITHIN 1 min .",
        "busy(?room, ?n) :- COUNT(?o) AS ?n OVER seen(?room, ?o) WITHIN 1 min PER ?room .",
    ),
    _page(
        "D1613",
        "a time point is not a term",
        "The variable behind AT ranges over points of the timeline. It stands behind AT only.",
        "hot(?t) :- temp(?v) AT ?t WITHIN 10 s .",
        "hot(?v) AT ?t :- temp(?v) AT ?t WITHIN 10 s .",
    ),
    _page(
        "D1614",
        "an expression that a .lars file has not",
        "Rules are read at every point of the timeline, whether or not something comes, and depend on what "
        "their windows show alone: no NOW(), no aggregate outside of OVER.",
        "alarm() :- temp(?v), FILTER(?v > SECONDS(NOW())) .",
        "alarm() :- temp(?v), FILTER(?v > 90) .",
    ),
    _page(
        "D1615",
        "recursion through NOT or an aggregate",
        "What a head negates or counts must be known before the head is. Recursion through windows without "
        "NOT is fine.",
        "away() :- NOT home() .\nhome() :- away() WITHIN 5 s .",
        "home() :- seen(?room, ?o) .\naway() :- NOT home() WITHIN 5 s .",
    ),
    Page(
        "D1616",
        "a rule waits for what holds, which waits for the rule",
        "LARS has no strict windows, so where a head reads the events of a rule, that rule looks "
        "at the head "
        "with BEFORE or BETWEEN.",
        _CIRCLE + "RULE Alarm DEFINE { dotr_x a :Alarm } FROM temp AND NOT again WITHIN 1 s FROM temp",
        _CIRCLE + "RULE Alarm DEFINE { dotr_x a :Alarm } FROM temp AND NOT again WITHIN 1 s BEFORE temp",
    ),
    Page(
        "D1617",
        "a head that nothing reads",
        "What holds is seen by way of rules: ISTREAM when it begins, DSTREAM when it ends. A head "
        "that no rule "
        "of either kind reads is derived for nothing.",
        _USE + "RULE Alarm DEFINE { dotr_x a :Alarm } FROM ISTREAM alarm",
        _USE + "RULE Alarm DEFINE { dotr_x a :Alarm } FROM ISTREAM alarm\n"
        "RULE Quiet DEFINE { dotr_x a :Quiet } FROM ISTREAM quiet",
    ),
    _page(
        "D1618",
        "ALWAYS can hold at once",
        "Windows are cut at the beginning of the timeline: at the first point every window has "
        "that one point. "
        "This is said once, and is not a mistake; where it matters, ask for how long there have been facts.",
        "alarm() :- temp(?v) ALWAYS WITHIN 10 s, FILTER(?v > 90) .",
        "alarm() :- temp(?v) AT LEAST 11 WITHIN 10 s, FILTER(?v > 90) .",
    ),
)
