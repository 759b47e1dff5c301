"""TextMate grammars of .dotr, .dlog and .lars, generated from the vocabulary that the parsers know.

Place:   `python -m dotr.lang.editor.textmate` writes the files beside it; a test holds them to it.
Method:  flat grammars: a list of patterns, the first that matches at a place counts. Only long strings have
         a beginning and an end, since TextMate sees a line at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dotr.lang.grammar.dotr import CONTEXTUAL, HOLDING, KEYWORDS
from dotr.lang.grammar.expressions import ARGUMENTS, QUERY_AGGREGATES
from dotr.lang.grammar.lars import RESERVED
from dotr.lang.grammar.sequences import OWN_WORDS
from dotr.lang.operators import AFTER, CALENDAR, PER
from dotr.program import RelationToStream
from dotr.program.names import UNITS

HERE: Final = Path(__file__).parent

SPARQL: Final = (
    *(
        "SELECT",
        "ASK",
        "DISTINCT",
        "REDUCED",
        "WHERE",
        "FILTER",
        "OPTIONAL",
        "UNION",
        "MINUS",
        "GRAPH",
        "BIND",
    ),
    *(
        "VALUES",
        "UNDEF",
        "EXISTS",
        "NOT",
        "IN",
        "AS",
        "GROUP",
        "BY",
        "HAVING",
        "ORDER",
        "ASC",
        "DESC",
        "LIMIT",
    ),
    *("OFFSET", "SEPARATOR", "PREFIX", "BASE"),
)
DATALOG: Final = ("PREFIX", "BASE", "NOT", "FILTER", "BIND", "AGGREGATE", "ON", "AS")
_LONG: Final = (('"""', "string.quoted.triple.double"), ("'''", "string.quoted.triple.single"))
_NAME: Final = "[A-Za-z][A-Za-z0-9_]*"
_VARIABLE: Final = r"[?$][A-Za-z0-9_\u00b7-\uffff]+"
_PREFIXED: Final = r"(?:[A-Za-z\u00c0-\uffff](?:[\w\u00c0-\uffff.-]*[\w\u00c0-\uffff-])?)?:(?!=)"
_ONE: Final = r"(?:[\w\u00b7-\uffff:-]|%[0-9A-Fa-f]{2}|\\.)"
_LOCAL: Final = rf"(?:{_ONE}(?:\.*{_ONE})*)?"
"""A local name: escaped characters by a backslash, dots inside only."""


_EDGE: Final = r"\b"


def _words(words: Iterable[str]) -> str:
    return rf"{_EDGE}(?i:{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})\b(?![-.:]\w)"


def _patterns(language: str, keywords: Sequence[str], functions: Iterable[str]) -> list[dict[str, str]]:
    rules = [
        ("comment.line.number-sign", r"#.*$"),
        ("constant.other.iri", r"<[^\x00-\x20<>\"{}|^`]*>"),
        ("keyword.operator.definition", r":=|:-"),
        ("variable.other.attribute", rf"\b{_NAME}\.{_VARIABLE}"),
        ("variable.other.attribute.time", rf"\b{_NAME}\.(?i:time)\b"),
        ("variable.other.blank", r"_:[\w\u00b7-\uffff](?:[\w\u00b7-\uffff.-]*[\w\u00b7-\uffff-])?"),
        ("entity.name.tag.prefixed", _PREFIXED + _LOCAL),
        ("variable.other", _VARIABLE),
        ("constant.numeric.duration", rf"\b[0-9]+(?:\.[0-9]+)?\s*{_words(UNITS).removeprefix(_EDGE)}"),
        ("constant.numeric", r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
        ("constant.language.boolean", r"\b(?i:true|false)\b"),
        ("keyword.control", _words(keywords)),
        ("support.function", _words(functions) + r"(?=\s*\()"),
        ("keyword.other.type", r"\ba\b(?=\s)"),
        ("entity.name.type", rf"\b{_NAME}\b"),
        ("string.quoted.double", r'"(?:[^"\\\n]|\\.)*"'),
        ("string.quoted.single", r"'(?:[^'\\\n]|\\.)*'"),
        ("storage.type.language", r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*"),
        ("keyword.operator.datatype", r"\^\^"),
        ("keyword.operator", r"&&|\|\||!=|<=|>=|[=<>!?+*/|^-]"),
        ("punctuation", r"[{}()\[\],;.]"),
    ]
    return [{"name": f"{name}.{language}", "match": match} for name, match in rules]


def grammar(language: str) -> dict[str, Any]:
    """The grammar of `dotr`, `dlog` or `lars`, as VS Code, Sublime, JetBrains and GitHub read it."""
    keywords, functions = VOCABULARY[language]
    escape = {"match": r"\\.", "name": f"constant.character.escape.{language}"}
    long: list[dict[str, Any]] = [
        {"name": f"{name}.{language}", "begin": mark, "end": mark, "patterns": [escape]}
        for mark, name in _LONG
    ]
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": language,
        "scopeName": f"source.{language}",
        "fileTypes": [language],
        "patterns": [*long, *_patterns(language, keywords, functions)],
    }


_DOTR: Final = (
    *(*KEYWORDS, *CONTEXTUAL, *(word.value for word in RelationToStream), *HOLDING, AFTER, PER, *CALENDAR),
    *OWN_WORDS,
    *SPARQL,
)
_FUNCTIONS: Final = (*ARGUMENTS, *QUERY_AGGREGATES)

VOCABULARY: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "dotr": (tuple(dict.fromkeys(_DOTR)), _FUNCTIONS),
    "dlog": (DATALOG, _FUNCTIONS),
    "lars": (tuple(sorted({*RESERVED, "PREFIX", "BASE", "OVER", "AS", "DISTINCT"})), _FUNCTIONS),
}
"""Language → its keywords and its functions."""


def file_of(language: str) -> Path:
    return HERE / f"{language}.tmLanguage.json"


def text_of(language: str) -> str:
    """The file of a grammar."""
    return json.dumps(grammar(language), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for name in VOCABULARY:
        file_of(name).write_text(text_of(name), encoding="utf-8")
