"""Pages of D25xx: what a sample of the stream says about a program.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D2501",
        "nothing has this name",
        "An IRI of the program that is nowhere in the background or the sample, in no position, and that no "
        "Datalog rule derives. The nearest one that is there is named: in other letters, spelled almost so, "
        "or in another namespace.",
        "FILTER(?kind = :vibration)   # the data say :Vibration",
        "FILTER(?kind = :Vibration)",
    ),
    _page(
        "D2511",
        "a comparison of kinds that do not go together",
        "In every row of the sample the two sides are of kinds that are never equal and never in order, as a "
        "number and a text. Such a comparison is an error or false, and nothing says so at run time.",
        "ON Spike.?m = Temp.?c   # ?m is an IRI, ?c a decimal",
        "ON Spike.?m = Temp.?m",
    ),
    _page(
        "D2512",
        "a condition that is true in no row",
        "The rows are those that it is asked about: answers without their filters, pairs of events before "
        "ON, matches before WHERE. The message says between which values the variables lie.",
        "FILTER(?v > 800)   # ?v lies between 0 and 32.8",
        "FILTER(?v > 8)",
    ),
    _page(
        "D2513",
        "a condition that is true in every row",
        "Not wrong, but it decides nothing on this sample.",
        "FILTER(?celsius > -300)",
        "FILTER(?celsius > 45)",
    ),
    _page(
        "D2514",
        "values of several kinds",
        'A comparison is true for one kind at most: of `8` and `"8"` only one is greater than 5.',
        'three sensors write 8, one writes "8"',
        "FILTER(xsd:decimal(?v) > 5)",
    ),
    _page(
        "D2515",
        "another property that holds times",
        "The time of a graph is taken from one place. Where it has other properties with times, this one may "
        "be the one that is meant.",
        "dotr run fire.dotr 12.ttl   # the time is the file's name",
        "dotr run fire.dotr 12.ttl --time-path http://example.org/measuredAt",
    ),
    _page(
        "D2516",
        "integer times that count something else",
        "Counted in seconds they lie thousands of years ahead: thirteen digits are milliseconds since 1970, "
        "sixteen microseconds. With the wrong unit every window is too short.",
        "dotr run fire.dotr log.jsonl   # times such as 1767225600000",
        "dotr run fire.dotr log.jsonl --time-unit ms",
    ),
    _page(
        "D2517",
        "a pattern that nothing matches",
        "The patterns of a query are asked for one by one, each beside those before it. This is the first "
        "that leaves no row; so the query has no facts in the sample.",
        "?o a :Vibration ; :in ?hall   # it is the machine that is in a hall",
        "?o a :Vibration ; :machine/:in ?hall",
    ),
    _page(
        "D2518",
        "a window in which nothing lies",
        "There are facts of both, but never one in the window of the other.",
        "AND LAST Spike WITHIN 5 ms FROM Temp   # the nearest one is 3.8 s before",
        "AND LAST Spike WITHIN 5 s FROM Temp",
    ),
    _page(
        "D2519",
        "a WITH variable without a value",
        "An error or an unbound value drops the match. Here it drops all of them.",
        "WITH ?mean := ?total / ?n   # ?n is 0",
        "WITH ?mean := COALESCE(?total / ?n, 0)",
    ),
)
