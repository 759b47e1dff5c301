"""Saved knowledge bases that were damaged, cut off, overwritten or made up: right answers or a diagnostic."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from dotr import KnowledgeBase
from dotr.errors import DotrError, EngineError
from dotr.io import outputs
from dotr.knowledge_base import knowledge_base
from dotr.rdf import index as background
from dotr.rdf.mapped import BEFORE, MAGIC

TEXT = "@prefix : <http://example.org/> . " + " ".join(
    f':s{n} a :Thing ; :in :s{n // 2} ; :label "thing {n}" . ' for n in range(40)
)
RULES = """PREFIX : <http://example.org/>
[?x, :within, ?y] :- [?x, :in, ?y] .
[?x, :within, ?z] :- [?x, :within, ?y], [?y, :in, ?z] ."""
QUERY = "PREFIX : <http://example.org/> SELECT ?x ?l { ?x :within :s3 ; :label ?l }"


@pytest.fixture(params=["dicts", "blocks"])
def saved(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved knowledge base of each kind of file."""
    monkeypatch.setattr(background, "LARGE", 10 if request.param == "blocks" else 1_000_000)
    path = tmp_path / "saved.kb"
    made().save(path)
    return path


def made() -> KnowledgeBase:
    kb = KnowledgeBase(terms="canonical")
    kb.insert(TEXT)
    kb.add_rules(RULES)
    return kb


def answers(path: Path) -> Any:
    """Everything that a knowledge base says: all of it, what is derived, rows of a query, a change."""
    kb = KnowledgeBase.open(path, terms="canonical")
    rows = list(map(tuple, kb.query(QUERY)))
    derived = sorted(kb.triples(which="derived"))
    everything = sorted(kb)
    gone = kb.delete("@prefix : <http://example.org/> . :s7 :in :s3 .")
    return rows, derived, everything, sorted(gone.removed), kb.rules, len(kb)


def refused(path: Path, right: Any) -> str:
    """The code of the diagnostic; "" where the answers are right. Fails where they are wrong."""
    try:
        found = answers(path)
    except DotrError as error:
        return error.diagnostics[0].code
    assert found == right
    return ""


def test_whatever_byte_is_damaged_the_answers_are_right_or_there_is_a_diagnostic(saved: Path) -> None:
    right, whole = answers(saved), saved.read_bytes()
    noise = random.Random(35)
    codes = set()
    for _ in range(250):
        place, bit = noise.randrange(len(whole)), 1 << noise.randrange(8)
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        codes.add(refused(saved, right))
    assert "D5103" in codes
    assert codes <= {"", "D5103", "D5104"}


def test_wherever_a_file_is_cut_off_it_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in {*range(60), *range(60, len(whole), 97), len(whole) - 1}:
        saved.write_bytes(whole[:length])
        with pytest.raises(EngineError, match="D5103"):
            KnowledgeBase.open(saved)


def parts_of(whole: bytes) -> list[bytes]:
    """The four parts of a file."""
    at, found = whole.index(b"\n") + 1 + 16, []
    while at < len(whole):
        first = whole.index(b"\n", at) + 1
        at = first + int(whole[at : first - 1])
        found.append(whole[first:at])
    return found


def file_of(whole: bytes, parts: list[bytes]) -> bytes:
    """A file with other parts, and the hash that is right for them."""
    head = whole[: whole.index(b"\n") + 1]
    digest, body = blake2b(digest_size=16), b""
    for number, part in enumerate(parts):
        size = b"%d\n" % len(part)
        digest.update(size if number == 1 and head.endswith(b"2\n") else size + part)
        body += size + part
    return head + digest.digest() + body


def changed(key: str, value: Any) -> Callable[[list[bytes]], None]:
    """Another header."""

    def change(parts: list[bytes]) -> None:
        header = json.loads(parts[0])
        if value is None:
            del header[key]
        else:
            header[key] = value
        parts[0] = json.dumps(header).encode()

    return change


def part(number: int, content: bytes) -> Callable[[list[bytes]], None]:
    def change(parts: list[bytes]) -> None:
        parts[number] = content

    return change


NONSENSE = {
    "no JSON": part(0, b"{"),
    "a list": part(0, b"[]"),
    "nested": part(0, b"[" * 100_000),
    "no UTF-8": part(0, b'"\xff"'),
    "no index": part(1, b""),
    "an index of another kind": part(1, b"dotr closed 9\n"),
    "labels that are no UTF-8": part(3, b"_:a\xff"),
    "rules that are none": changed("rules", ["p(X) :- q(X)"]),
    "rules of numbers": changed("rules", [1]),
    "no rules": changed("rules", None),
    "an entailment that is none": changed("entailment", "all"),
    "a unit that is none": changed("time_unit", "year"),
    "prefixes of numbers": changed("prefixes", {"a": 1}),
    "marks of less than nothing": changed("marks", {"<http://example.org/within>": -9}),
    "marks of nothing": changed("marks", {}),
    "marks of one relation": changed("marks", {"<http://example.org/in>": 25}),
    "an end of two": changed("until", [["<a>", "<b>"]]),
    "a clock of words": changed("integer", "yes"),
    "now is a word": changed("now", "soon"),
    "no calls": changed("calls", None),
    "a base of half a character": changed("base", "urn:dotr\ud800stream"),
    "a base that is none": changed("base", "no iri"),
    "prefixes that are none": changed("prefixes", {"a": "http://example.org/> ."}),
    "a prefix of two words": changed("prefixes", {"a b": "http://example.org/"}),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_that_has_its_hash_is_refused(saved: Path, what: str) -> None:
    whole = saved.read_bytes()
    parts = parts_of(whole)
    assert file_of(whole, parts) == whole
    NONSENSE[what](parts)
    saved.write_bytes(file_of(whole, parts))
    with pytest.raises(EngineError, match=r"D5103|D5101"):
        answers(saved)


def test_damage_within_the_index_is_reported_with_the_file(saved: Path) -> None:
    whole = saved.read_bytes()
    parts = parts_of(whole)
    for at in (*range(20), *range(len(parts[1]) - 3, len(parts[1]))):
        changed = [*parts]
        changed[1] = parts[1][:at] + bytes([parts[1][at] ^ 4]) + parts[1][at + 1 :]
        saved.write_bytes(file_of(whole, changed))
        with pytest.raises(EngineError, match="D5103") as raised:
            answers(saved)
        assert raised.value.diagnostics[0].place == str(saved)


def test_a_part_of_less_than_nothing_does_not_go_round(tmp_path: Path) -> None:
    path = tmp_path / "endless.kb"
    path.write_bytes(b"dotr knowledge base 1\n" + bytes(16) + b"-3\n")
    with pytest.raises(EngineError, match="D5103"):
        KnowledgeBase.open(path)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(DotrError, match="D2003"):
        KnowledgeBase.open(path)
    with pytest.raises(EngineError, match="D4201"):
        made().save(path)
    assert path.is_fifo()


OVERWRITTEN = """
import sys
from dotr import KnowledgeBase
from dotr.errors import EngineError
from dotr.rdf import index as background
background.LARGE = 10
path, = sys.argv[1:]
kb = KnowledgeBase(terms="canonical")
kb.insert(" ".join(f"<urn:s{n}> <urn:p{n % 50}> <urn:o{n}{'x' * 40}> ." for n in range(20000)))
kb.save(path)
kb = KnowledgeBase.open(path, terms="canonical")
assert kb.ask("ASK { <urn:s3> <urn:p3> ?o }")
with open(path, "r+b") as file:
    file.truncate(5000)
assert kb.ask("ASK { <urn:s3> <urn:p3> ?o }")
try:
    print(len(list(kb)))
except EngineError as error:
    print(error.diagnostics[0].code)
"""


def test_a_file_that_is_overwritten_while_it_is_open_is_a_diagnostic_and_no_signal(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OVERWRITTEN, str(tmp_path / "a.kb")], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "D5103\n"), done.stderr


def test_a_large_file_is_not_read_when_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LARGE", 10)
    kb = KnowledgeBase(terms="canonical")
    kb.insert(" ".join(f"<urn:s{n}> <urn:p> <urn:o{n}> ." for n in range(40_000)))
    path = tmp_path / "large.kb"
    kb.save(path)
    opened: list[knowledge_base.CopiedFile] = []

    class Seen(knowledge_base.CopiedFile):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            opened.append(self)

    monkeypatch.setattr(knowledge_base, "CopiedFile", Seen)
    kb = KnowledgeBase.open(path, terms="canonical")
    (file,) = opened
    blocks = len(file._there)
    assert blocks > 100
    assert sum(file._there) <= 10
    assert kb.ask("ASK { <urn:s77> <urn:p> <urn:o77> }")
    assert sum(file._there) <= 40
    assert len(list(kb)) == 40_000


def test_a_file_of_the_format_before_is_read_whole_and_saved_in_that_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "LARGE", 10)
    path = tmp_path / "saved.kb"
    made().save(path)
    right, whole = answers(path), path.read_bytes()
    parts = parts_of(whole)
    parts[1] = as_before(parts[1])
    path.write_bytes(file_of(whole, parts))
    assert answers(path) == right
    KnowledgeBase.open(path).save(path)
    assert path.read_bytes() == whole
    place = parts[1].index(b"thing 7")
    parts[1] = parts[1][:place] + b"thang 7" + parts[1][place + 7 :]
    path.write_bytes(file_of(whole, parts))
    with pytest.raises(EngineError, match="D5103"):
        KnowledgeBase.open(path)


def as_before(closed: bytes) -> bytes:
    """A closed background as it was written before its blocks had hashes."""
    at = closed.index(b"\n") + 1 + 16
    first = closed.index(b"\n", at) + 1
    index, rest = closed[first : first + int(closed[at : first - 1])], closed[first:]
    rest = rest[len(index) :]
    start = len(MAGIC) + 16
    _, terms, text, predicates = (int.from_bytes(index[start + 8 * n :][:8], "little") for n in range(4))
    head = index[start : start + 32 + 40 * predicates]
    body = index[start + len(head) :]
    numbers = len(body) - 4 * (terms + 1) - text  # and the hashes of blocks, each of which is one here
    sums = 8 * sum(-(-size >> 14) for size in (4 * (terms + 1), text, numbers))
    body = body[sums:]

    def hashed(content: bytes) -> bytes:
        return blake2b(content, digest_size=16).digest()

    seal = hashed(head)
    old = BEFORE + hashed(seal + head + body) + seal + head + body
    return b"dotr closed 2\n%d\n" % len(old) + old + rest


def test_many_save_to_one_path_at_once_and_readers_find_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "saved.kb"
    kb = made()
    kb.save(path)
    wrong: list[BaseException] = []

    def save() -> None:
        try:
            for _ in range(10):
                kb.save(path)
                assert len(KnowledgeBase.open(path)) == len(kb)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=save) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [file.name for file in tmp_path.iterdir()] == ["saved.kb"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_file_of_before_and_nothing_else(
    saved: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    before = saved.read_bytes()

    def full(_file: int) -> None:
        raise error

    monkeypatch.setattr(outputs.os, "fsync", full)
    with pytest.raises((EngineError, KeyboardInterrupt)):
        made().save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == ["saved.kb"]
