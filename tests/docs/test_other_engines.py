"""The recipes of coming-from.md give the answers that the other engines' documentation gives.

The rules are those of the page. Their queries are replaced where one event may take both parts. Each stream
is a sequence of letters, one event a minute from minute 0 on (a dot: none).
"""

from __future__ import annotations

import re

import pytest

from dotr.api import Engine, Event
from dotr.cli.help import pages
from tests.docs.pages import blocks

PAGE = pages()["coming-from"].read_text(encoding="utf-8")
FILES = {
    found[1]: block.text for block in blocks(PAGE) if (found := re.search(r'title="([^"]+)"', block.note))
}
PREFIX = {"flink.dotr": "http://example.org/shop#", "esper.dotr": "http://example.org/house#"}
ROW = "SELECT ?k ?v WHERE { ?o a :Row ; :key ?k ; :value ?v }"
"""Of one kind: whatever comes can be A, and can be B."""
ONE_KIND = {"A": ROW, "B": ROW}
HOT = "SELECT ?room ?v WHERE { ?o a :Any ; :in ?room ; :celsius ?v }"
WARMER = {"Hot": HOT, "Smoke": HOT}


def program(file: str, rule: str, queries: dict[str, str]) -> str:
    prologue, *rules = re.split(r"^RULE ", FILES[file], flags=re.MULTILINE)
    for name, query in queries.items():
        written = f"QUERY {name} := {{ {query} }}"
        prologue = re.sub(rf"QUERY {name} +:= .*", lambda _, text=written: text, prologue)
    (text,) = (text for text in rules if text.split()[0] == rule)
    return f"{prologue}\nRULE {text}"


def triples(file: str, letter: str, minute: int) -> str:
    """An event: its letter says what it is, its value is the minute (of houses 100 more)."""
    if file == "flink.dotr":
        return f"[] a :{letter.upper()}, :Row ; :key :k ; :value {minute} ."
    kinds = {"a": f":celsius {100 + minute}", "b": "a :Smoke", "d": "a :Drill"}
    return f"[] a :Any ; :in :r ; {kinds.get(letter, 'a :Other')} ."


def answers(file: str, rule: str, stream: str, queries: dict[str, str] | None = None) -> list[str]:
    """Each event: the values that it gives, and its own minute."""
    engine = Engine.from_text(program(file, rule, queries or {}))
    found = []
    for minute, letter in enumerate(stream):
        if letter != ".":
            graph = f"@prefix : <{PREFIX[file]}> . {triples(file, letter, minute)}"
            found += engine.push(graph, at=minute * 60)
    found += engine.advance(60 * len(stream))
    return [said(event) for event in found]


GIVEN = ("a", "b", "v", "p", "sum")


def said(event: Event) -> str:
    values = [int(float(str(v))) % 100 for name, v in event.bindings.items() if name in GIVEN]
    return " ".join(map(str, [*values, event.time // 60]))


ESPER = "abcbadabeafb"
"""The sequence A1 B1 C1 B2 A2 D1 A3 B3 E1 A4 F1 B4 of Esper's reference, sec. 7.5.2."""


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        # every A -> every B, of which a match within five minutes of its A
        ("Pair", ["0 1", "0 3", "4 7", "6 7", "6 11", "9 11"]),
        ("FirstSmoke", ["0 1", "4 7", "6 7", "9 11"]),
        ("Anew", ["0 1", "4 7", "9 11"]),
    ],
)
def test_esper_patterns_of_its_reference(rule: str, wanted: list[str]) -> None:
    assert answers("esper.dotr", rule, ESPER) == wanted


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("Pair", ["0 1", "0 2", "1 2", "0 3", "1 3", "2 3"]),
        ("FirstSmoke", ["0 1", "1 2", "2 3"]),
        ("Anew", ["0 1", "2 3"]),
    ],
)
def test_esper_patterns_of_one_kind_of_event(rule: str, wanted: list[str]) -> None:
    assert answers("esper.dotr", rule, "aaaa", WARMER) == wanted


@pytest.mark.parametrize(
    ("rule", "stream", "wanted"),
    [
        # "a b" over a, c, b1, b2: the page on contiguity of FlinkCEP
        ("Next", "acbb", []),
        ("FollowedBy", "acbb", ["0 2 2"]),
        ("FollowedByAny", "acbb", ["0 2 2", "0 3 3"]),
        # after a match: nothing that begins with its first event; nothing before the end of its last
        ("SkipToNext", "acbb", ["0 2 2"]),
        ("SkipToNext", "aabb", ["0 2 2", "1 2 2"]),
        ("SkipPast", "aabb", ["0 2 2"]),
        ("SkipPast", "abab", ["0 1 1", "2 3 3"]),
        ("SkipPast", "aababb", ["0 2 2", "3 4 4"]),
        # within(10 min) is open, and reported at the tick when it is over
        ("NotFollowedBy", "a.........b..", ["0 10"]),
        ("NotFollowedBy", "a........b...", []),
        ("NotFollowedBy", "aa...........", ["0 10", "1 11"]),
        # windows without a row give none
        ("Tumble", "aa...a...............", ["1 5", "5 10"]),
        ("Hop", "aa...a...............", ["1 5", "6 10", "5 15"]),
    ],
)
def test_flink_as_its_documentation_has_it(rule: str, stream: str, wanted: list[str]) -> None:
    assert answers("flink.dotr", rule, stream) == wanted


@pytest.mark.parametrize(
    ("rule", "stream", "wanted"),
    [
        ("Next", "aaa", ["0 1 1", "1 2 2"]),
        ("FollowedBy", "aaa", ["0 1 1", "1 2 2"]),
        ("FollowedByAny", "aaa", ["0 1 1", "0 2 2", "1 2 2"]),
        ("SkipToNext", "aaa", ["0 1 1", "1 2 2"]),
        ("SkipPast", "aaaaa", ["0 1 1", "2 3 3"]),
        ("NotFollowedBy", "a..a.............", ["3 13"]),
        ("Rising", "aaa", ["0 1 1", "1 2 2"]),
    ],
)
def test_flink_where_one_kind_of_event_takes_both_parts(rule: str, stream: str, wanted: list[str]) -> None:
    assert answers("flink.dotr", rule, stream, ONE_KIND) == wanted


def test_a_window_of_esper_ends_when_an_event_is_as_old_as_it() -> None:
    engine = Engine.from_text(program("esper.dotr", "Mean", {}))
    found = []
    for minute in (0, 9, 10):
        graph = f"@prefix : <{PREFIX['esper.dotr']}> . {triples('esper.dotr', 'a', minute)}"
        found += engine.push(graph, at=minute * 60)
    found += engine.finish()
    assert [float(str(event["mean"])) for event in found] == [100, 104.5, 109.5]
