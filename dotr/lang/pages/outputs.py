"""Pages of D415x: which events go out, and in which format.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

PAGES: Final = (
    Page(
        "D4151",
        "a format that is not written there",
        "The name of an output says its format: .txt .jsonl .trig .nq .csv .parquet .jelly. An ending that "
        "says a format which the command does not write is refused, not filled with another; `--format` goes "
        "before the name.",
        "dotr run fire.dotr events/ -o fires.ttl",
        "dotr run fire.dotr events/ -o fires.trig",
        PageKind.OTHER,
    ),
    Page(
        "D5212",
        "a file that begins otherwise",
        "An output of a deployment goes on where it stopped. The columns of a CSV file are its first line, "
        "the prefixes of a TriG file its first lines: rules that have others go on in another file.",
        "dotr feed more/ -o fires.csv   # after a rule got another variable",
        "dotr feed more/ -o fires2.csv",
        PageKind.OTHER,
    ),
    Page(
        "D4150",
        "no rule of this name has events to choose",
        "`--only` and `--except` name rules of the program, separated by commas. The events of a PRIVATE "
        "rule never leave, so there is nothing to choose.",
        "dotr run fire.dotr events/ --only Fier",
        "dotr run fire.dotr events/ --only Fire",
        PageKind.OTHER,
    ),
)
