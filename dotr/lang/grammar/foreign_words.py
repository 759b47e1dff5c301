"""Words of other stream languages, and how what they mean is written here.

Place:   asked by the parsers where a word stands that is not ours.
Method:  Esper's EPL, Flink SQL and its MATCH_RECOGNIZE, C-SPARQL and CQELS, and SQL's own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.lang.grammar.tokens import Token

EMIT: Final = "what a rule emits stands behind DEFINE: `RULE Name DEFINE { dotr_x a :Alarm } FROM …`"
_DEFINITION: Final = "write `RULE Name DEFINE { … } FROM …`, or `QUERY Name := { SELECT … }`"
PATTERN: Final = (
    "a pattern is written from its last event back: `FROM B AND LAST A WITHIN 5 min BEFORE B ON A.?x = B.?x`"
)
_WINDOW: Final = "every conjunct has a window of its own: `WITHIN 5 min FROM Event`"
_GROUPS: Final = "an aggregate is over what its ON lets pass: `OVER Near := Air … ON Near.?room = Air.?room`"

HINTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("CONSTRUCT", "EMIT", "INSERT", "OUTPUT", "RETURN", "THEN", "YIELD"), EMIT),
    **dict.fromkeys(("CREATE", "REGISTER", "DEFINITION", "VIEW"), _DEFINITION),
    "SELECT": "a query is named: `QUERY Name := { SELECT … }`",
    **dict.fromkeys(("SEQ", "PATTERN", "MATCH_RECOGNIZE", "FOLLOWED", "FOLLOWEDBY"), PATTERN),
    **dict.fromkeys(("RANGE", "STEP", "WINDOW", "HOP", "TUMBLE", "SLIDE", "SESSION"), _WINDOW),
    "STREAM": "an event is a query over the stream that dotr is run with: `Name := { SELECT … }`",
    **dict.fromkeys(("GROUP", "PARTITION"), _GROUPS),
    "HAVING": "conditions over aggregates stand behind WHERE: `WHERE ?mean > 45`",
    **dict.fromkeys(("IF", "WHEN"), "what starts a rule stands behind FROM, behind the DEFINE"),
}
"""Word, in upper case → how it is written here."""

_EVENTS: Final = ("SEQ", "PATTERN", "STREAM", "WINDOW", "MATCH_RECOGNIZE")
_BEHIND: Final = ("(", "[", "iri", "pname", "name")


def foreign_word(token: Token) -> str:
    """The hint for a word that is not ours, where no name may stand; empty for others."""
    return HINTS.get(token.key, "") if token.kind == "name" else ""


def foreign_event(token: Token, following: Token, ours: frozenset[str]) -> str:
    """The hint where the name of an event is wanted and a word stands that is not a name there; `ours` are
    the keywords that may follow a name.
    """
    if token.key in _EVENTS and (following.key in _BEHIND or following.kind in _BEHIND):
        return "" if following.key in ours else HINTS[token.key]
    return ""
