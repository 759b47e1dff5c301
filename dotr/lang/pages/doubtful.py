"""Pages of D132x: what is well formed but hardly meant.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page

_PREFIX = "PREFIX : <http://example.org/>\n"
_TEMP = _PREFIX + "QUERY Temp := { SELECT ?m ?c WHERE { ?o :machine ?m ; :celsius ?c } }\n"
_SPIKE = "QUERY Spike := { SELECT ?m ?v WHERE { ?o :machine ?m ; :vibration ?v } }\n"
_BEAT = _PREFIX + "QUERY Beat := { SELECT ?sensor WHERE { ?o :madeBy ?sensor } }\n"
_HOT = "RULE Hot DEFINE { dotr_x a :Hot }\nFROM Temp\n"
_SPIKED = _TEMP + _SPIKE + _HOT + "AND LAST Spike WITHIN 5 min FROM Temp"
_LOST = (
    "RULE Lost DEFINE {{ dotr_x :of ?s }}\nFROM EVERY 1 min AS Look\n"
    "AND {0} Beat WITHIN 6 min FROM Look\n"
    "AND NOT Later := Beat WITHIN 5 min FROM Look ON Later.?sensor = Beat.?sensor\nWITH ?s := Beat.?sensor"
)

PAGES: Final = (
    Page(
        "D1321",
        "every pair matches",
        "ON says which events belong together. Without it, or where it does not compare the two, any event "
        "of the window will do, although both have a variable of the same name. `ON true` says that this is "
        "meant.",
        _SPIKED,
        _SPIKED + " ON Spike.?m = Temp.?m",
    ),
    Page(
        "D1322",
        "a condition without its event",
        "ON is tested for each candidate. One that looks at other events alone is the same for all of them: "
        "it belongs to WHERE, or lacks the candidate's side.",
        _SPIKED + " ON Temp.?c > 50",
        _SPIKED + " ON Spike.?m = Temp.?m\nWHERE Temp.?c > 50",
    ),
    Page(
        "D1323",
        "a comparison of a thing with itself",
        "Both sides are the same expression, so the answer is the same for every row that has a value.",
        _SPIKED + " ON Spike.?m = Spike.?m && Spike.?m = Temp.?m",
        _SPIKED + " ON Spike.?m = Temp.?m",
    ),
    Page(
        "D1324",
        "a comparison of constants",
        "Nothing that comes can change its answer. Mostly a question mark is missing.",
        _PREFIX + "QUERY Temp := { SELECT ?c WHERE { ?o :celsius ?c FILTER(50 < 60) } }",
        _PREFIX + "QUERY Temp := { SELECT ?c WHERE { ?o :celsius ?c FILTER(?c < 60) } }",
    ),
    Page(
        "D1325",
        "a text where a number or a time is meant",
        '`"50"` is a text of two characters. A number is never greater or less than a text: the comparison '
        "is an error, and an error counts as false. Numbers stand without quotation marks, times with their "
        "type.",
        _PREFIX + 'QUERY Temp := { SELECT ?c WHERE { ?o :celsius ?c FILTER(?c > "50") } }',
        _PREFIX + "QUERY Temp := { SELECT ?c WHERE { ?o :celsius ?c FILTER(?c > 50) } }",
    ),
    Page(
        "D1326",
        "an aggregate that nothing reads",
        "An aggregate gives a value and prevents nothing: over no event COUNT is 0, and AVG has no value. "
        "Where no condition and no binding uses it, it has no effect.",
        _TEMP + _HOT + "AND COUNT(*) AS ?n OVER Near := Temp WITHIN 5 min FROM Temp ON Near.?m = Temp.?m",
        _TEMP
        + _HOT
        + "AND COUNT(*) AS ?n OVER Near := Temp WITHIN 5 min FROM Temp ON Near.?m = Temp.?m\nWHERE ?n > 5",
    ),
    Page(
        "D1327",
        "LAST where EACH is meant",
        "LAST chooses one event among all that pass ON. A rule of silence asks of every sensor whether it "
        "was heard since; after LAST it asks so of the one that was heard last of all.",
        _BEAT + _LOST.format("LAST"),
        _BEAT + _LOST.format("EACH"),
    ),
    Page(
        "D1328",
        "a rule that can never have an event",
        "Its conditions contradict each other, or it waits for an event that cannot come: of a rule that can "
        "never have one, or its own first one.",
        _TEMP + _HOT + "WHERE Temp.?c > 50 && Temp.?c < 10",
        _TEMP + _HOT + "WHERE Temp.?c > 50 || Temp.?c < 10",
    ),
)
