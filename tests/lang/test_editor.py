"""The TextMate grammars: as generated, and a scope for every token of everything that is a program here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dotr.errors import Diagnostics
from dotr.lang.editor.textmate import HERE, VOCABULARY, file_of, text_of
from dotr.lang.grammar.cursor import tokenize
from dotr.source import Source

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/golden", "examples", "patterns", "rules", "dotr/templates")
REJECTED = "rejected"


@pytest.mark.parametrize("language", VOCABULARY)
def test_a_grammar_is_what_is_generated(language: str) -> None:
    assert file_of(language).read_text(encoding="utf-8") == text_of(language)


def test_the_folder_is_an_extension_that_has_every_grammar() -> None:
    package = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
    assert [one["language"] for one in package["contributes"]["grammars"]] == list(VOCABULARY)
    for one in package["contributes"]["grammars"]:
        assert (HERE / one["path"]).exists()


def scopes(text: str, grammar: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """(start, end, scope) of a text as TextMate finds them: by line, the leftmost match, of these the first
    pattern's; a pattern with a beginning goes on until its end.
    """
    rules = [(re.compile(r["match"] if "match" in r else r["begin"]), r) for r in grammar["patterns"]]
    at, end_of = 0, None
    for line in text.split("\n"):
        place = 0
        while place <= len(line):
            if end_of is not None:
                pattern, scope, begun = end_of
                escape = re.compile(rf"\\.|{pattern}")
                found = escape.search(line, place)
                while found and found[0].startswith("\\"):
                    found = escape.search(line, found.end())
                if not found:
                    break
                yield begun, at + found.end(), scope
                place, end_of = found.end(), None
                continue
            matches = [
                (m.start(), n, m, r)
                for n, (p, r) in enumerate(rules)
                if (m := p.search(line, place)) and m[0]
            ]
            if not matches:
                break
            _, _, match, rule = min(matches, key=lambda found: found[:2])
            place = match.end()
            if "begin" in rule:
                end_of = rule["end"], rule["name"], at + match.start()
            else:
                yield at + match.start(), at + match.end(), rule["name"]
        at += len(line) + 1


LARS = """PREFIX : <http://e#>  # what holds
STEP 1 s
steam(?v) AT ?t :- temp(?v) AT ?t WITHIN 10 s, FILTER(?v >= 100) .
freeze() :- NOT alarm(), ALWAYS cold() WITHIN 1 min, p(?b, :c) WITHIN 3 FACTS OF (q, r) .
busy(?r, ?n) :- COUNT(?o) AS ?n OVER seen(?r, ?o) WITHIN 1 min PER ?r, hot() AT LEAST 3 WITHIN 5s .
"""


def programs() -> list[Path]:
    found = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix[1:] in VOCABULARY]
    return [p for p in found if REJECTED not in p.parts]


@pytest.mark.parametrize("language", VOCABULARY)
def test_every_token_has_a_scope(language: str) -> None:
    grammar = json.loads(text_of(language))
    files = [path for path in programs() if path.suffix == f".{language}"]
    assert files or language == "lars"
    texts = {str(path): path.read_text(encoding="utf-8") for path in files}
    if language == "lars":
        texts["text"] = LARS
    for path, text in texts.items():
        found = list(scopes(text, grammar))
        covered = bytearray(len(text) + 1)
        for start, end, _ in found:
            covered[start:end] = b"\x01" * (end - start)
        for token in tokenize(Source(path, text), Diagnostics())[:-1]:
            missing = [i for i in range(token.start, token.end) if not covered[i] and not text[i].isspace()]
            assert not missing, f"{path}: {token.text!r}"


def test_words_have_the_scope_of_what_they_are() -> None:
    text = 'RULE Fire FROM Smoke WITHIN 5 min ON Hot.?room = "a" WITH ?t := COUNT(?x) # end'
    found = {
        text[s:e]: scope.removesuffix(".dotr") for s, e, scope in scopes(text, json.loads(text_of("dotr")))
    }
    assert found["RULE"] == found["WITHIN"] == "keyword.control"
    assert found["Fire"] == "entity.name.type"
    assert found["5 min"] == "constant.numeric.duration"
    assert found["Hot.?room"] == "variable.other.attribute"
    assert found['"a"'] == "string.quoted.double"
    assert found["# end"] == "comment.line.number-sign"
