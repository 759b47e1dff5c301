"""Saved knowledge bases and databases of deployments, damaged: for hostile.py.

Place:   classes of tests/fuzz/hostile.py, which runs them under its limits.
Method:  one whole file of each kind is made once a process, with the answers that it gives. Then bits are
         flipped, ends cut off, stretches overwritten: the answers are the same, or there is a diagnostic. Or
         content is changed and gets the hash that is right for it: then anything may be answered, but nothing
         may fail otherwise than with a diagnostic. A database has the name of the folder where it was made:
         that of another process is not the same, byte for byte.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from dotr import KnowledgeBase
from dotr.rdf import index as background
from dotr.service.database import OF_THEMSELVES, columns_of, digest, row_sum
from dotr.service.journal import TABLES

ASKED = """import sys
from dotr import KnowledgeBase
from dotr.errors import DotrError
try:
    kb = KnowledgeBase.open("a.kb", terms="canonical")
    print(len(kb), sorted(kb), sorted(kb.triples(which="derived")), kb.rules)
    print(list(map(tuple, kb.query("SELECT ?x ?l { ?x <urn:x:within> <urn:x:s3> ; <urn:x:label> ?l }"))))
    print(sorted(kb.delete("<urn:x:s7> <urn:x:in> <urn:x:s3> .").removed))
    print(kb.explain("<urn:x:s9> <urn:x:within> <urn:x:s1> ."))
    kb.save("b.kb")
except DotrError as error:
    sys.stderr.write(str(error))
    sys.exit(4)
"""
KB_RULES = """PREFIX : <urn:x:> [?x, :within, ?y] :- [?x, :in, ?y] .
[?x, :within, ?z] :- [?x, :within, ?y], [?y, :in, ?z] ."""
RULES = """PREFIX : <urn:x:>
HOLD :at LATEST
HOLD :door
QUERY at := { SELECT ?p ?r { ?p :at ?r } }
QUERY door := { SELECT ?a ?b { ?a :door ?b } }
RULE In DEFINE { dotr_i :in ?r ; :p ?p } FROM H := ISTREAM at WITH ?r := H.?r, ?p := H.?p
RULE Moved DEFINE { dotr_m :left ?r } FROM H := DSTREAM at AND LAST In WITHIN 90 s BEFORE H ON In.?p = H.?p
WITH ?r := H.?r
RULE Shut DEFINE { dotr_s :shut ?a } FROM D := DSTREAM door WITH ?a := D.?a
"""
CHANGES = (
    "UPDATE state SET snapshot = {blob}",
    "UPDATE state SET status = {json}",
    "UPDATE stated SET entry = {json}",
    "UPDATE stated SET triple = triple || {text}",
    "UPDATE positions SET position = {json}",
    "UPDATE positions SET part = {text}",
    "UPDATE meta SET value = {text} WHERE key != 'format'",
    "UPDATE kept SET content = {blob}",
    "UPDATE kept SET time = {json}",
    "INSERT OR REPLACE INTO planned VALUES (1, 5, {json}, {blob})",
    "UPDATE background SET triples = {blob}",
    "UPDATE outputs SET length = {text}",
    "UPDATE closed SET content = {blob}",
    "UPDATE closed SET content = {file}",
    "UPDATE texts SET text = text || {text}",
    "UPDATE files SET path = {text}",
    "INSERT INTO removed VALUES ({text}, {text})",
)
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, "", "x", "\x00", [], [[]], [1, 2], {}, {"a": 1}, {"clock": [True, 1]},
    ["<a>", "<b>", "<c>", "x"], [[["<a>"]]], "é" * 50,
)  # fmt: skip


class Damaged(NamedTuple):
    """Files, and what is printed where the answers are right; None: anything."""

    files: dict[str, bytes]
    right: bytes | None


@cache
def whole_base(large: bool) -> tuple[bytes, bytes]:
    """A saved knowledge base, and what ASKED prints of it."""
    with tempfile.TemporaryDirectory() as folder:
        with mock.patch.object(background, "LARGE", 10 if large else 10**6):
            kb = KnowledgeBase(terms="canonical")
            kb.insert(" ".join(
                f'<urn:x:s{n}> a <urn:x:T> ; <urn:x:in> <urn:x:s{n // 2}> ; <urn:x:label> "t {n}" .'
                for n in range(60)))  # fmt: skip
            kb.add_rules(KB_RULES)
            kb.save(Path(folder, "a.kb"))
        Path(folder, "asked.py").write_text(ASKED)
        said = subprocess.run(
            [sys.executable, "asked.py"], cwd=folder, capture_output=True, check=True
        ).stdout
        return Path(folder, "a.kb").read_bytes(), said


@cache
def whole_deployment() -> tuple[bytes, bytes, bytes]:
    """The database of a deployment that was fed, what is fed then, and the events of that."""
    noise, lines = random.Random(35), []
    for time in range(80):
        graph = f"<urn:x:p{noise.randrange(9)}> <urn:x:at> <urn:x:r{noise.randrange(4)}> ."
        part = noise.choice(["insert", "delete"])
        door = f"<urn:x:r{noise.randrange(4)}> <urn:x:door> <urn:x:r{noise.randrange(4)}> ."
        lines.append(json.dumps({"time": time, "graph": graph, part: door}) + "\n")
    rest = "".join(lines[60:]).encode()
    with tempfile.TemporaryDirectory() as folder:

        def dotr(*arguments: str) -> bytes:
            line = [sys.executable, "-m", "dotr", *arguments]
            return subprocess.run(line, cwd=folder, capture_output=True, check=True).stdout

        Path(folder, "rules.dotr").write_text(RULES)
        Path(folder, "first.jsonl").write_text("".join(lines[:60]))
        Path(folder, "rest.jsonl").write_bytes(rest)
        dotr("deploy", "rules.dotr", "--dir", "site", "--keep", "1h")
        dotr("feed", "first.jsonl", "--dir", "site", "-q", "--keep-open", "-o", "out.jsonl")
        database = Path(folder, "site", "deployment.db").read_bytes()
        return database, rest, dotr("feed", "rest.jsonl", "--dir", "site", "-q", "--format", "jsonl")


def damage(noise: random.Random, whole: bytes) -> bytes:
    """Bits that are flipped, an end that is missing, a stretch that is another, or twice there."""
    content = bytearray(whole)
    way = noise.choice(["bits", "bits", "bits", "end", "stretch", "copy"])
    if way == "end":
        return bytes(content[: noise.randrange(len(content))])
    if way == "bits":
        for _ in range(noise.choice([1, 1, 1, 2, 9])):
            content[noise.randrange(len(content))] ^= 1 << noise.randrange(8)
        return bytes(content)
    size = noise.choice([1, 4, 100, 4_096])
    place = noise.randrange(len(content))
    other = noise.randrange(len(content))
    stretch = noise.randbytes(size) if way == "stretch" else bytes(content[other : other + size])
    content[place : place + len(stretch)] = stretch
    return bytes(content[: len(whole)])


def base(noise: random.Random) -> Damaged:
    """A saved knowledge base, damaged, or made up."""
    whole, right = whole_base(noise.random() < 0.5)
    made_up = noise.random() < 0.4
    content = rehashed(noise, whole) if made_up else damage(noise, whole)
    return Damaged({"a.kb": content, "asked.py": ASKED.encode()}, None if made_up else right)


def rehashed(noise: random.Random, whole: bytes) -> bytes:
    """Another header, or other bytes in a part, and hashes that are right."""
    head = whole[: whole.index(b"\n") + 1]
    at, parts = len(head) + 16, []
    while at < len(whole):
        first = whole.index(b"\n", at) + 1
        at = first + int(whole[at : first - 1])
        parts.append(whole[first:at])
    header = json.loads(parts[0])
    if noise.random() < 0.6:
        header[noise.choice(list(header))] = noise.choice(JUNK)
        parts[0] = json.dumps(header).encode()
    else:
        number = noise.choice([1, 1, 2, 3])
        parts[number] = reindexed(noise, parts[1]) if number == 1 else damage(noise, parts[number] or b"x")
    hashed, body = blake2b(digest_size=16), b""
    for number, part in enumerate(parts):
        size = b"%d\n" % len(part)
        hashed.update(size if number == 1 and head.endswith(b"2\n") else size + part)
        body += size + part
    return head + hashed.digest() + body


def reindexed(noise: random.Random, closed: bytes) -> bytes:
    """A closed background with other bytes in its index or its rows, and hashes that are right."""
    start = closed.index(b"\n") + 1
    first = closed.index(b"\n", start + 16) + 1
    size = closed[start + 16 : first]
    index, rest = closed[first : first + int(size)], closed[first + int(size) :]
    if noise.random() < 0.3:
        rest = damage(noise, rest)
    elif index.startswith(b"dotr background 1\n"):
        body = damage(noise, index[34:])
        index = index[:18] + blake2b(body, digest_size=16).digest() + body
    else:
        index = resealed(noise, index)
    size = b"%d\n" % len(index)
    return closed[:start] + blake2b(size + rest, digest_size=16).digest() + size + index + rest


def resealed(noise: random.Random, index: bytes) -> bytes:
    """A mapped index with other bytes in its body; each block has its hash."""
    _, terms, text, predicates = (int.from_bytes(index[34 + 8 * n :][:8], "little") for n in range(4))
    head = index[34 : 34 + 32 + 40 * predicates]
    rest = len(index) - 34 - len(head)
    begins = 4 * (terms + 1)
    sums = next(s for s in range(24, rest, 8)
                if s == 8 * sum(-(-n >> 14) for n in (begins, text, rest - s - begins - text)))  # fmt: skip
    body = damage(noise, index[34 + len(head) + sums :])
    body += bytes(rest - sums - len(body))
    parts = (body[:begins], body[begins : begins + text], body[begins + text :])
    found = b"".join(
        blake2b(part[at : at + 16384], digest_size=8).digest()
        for part in parts
        for at in range(0, len(part), 16384)
    )
    return index[:18] + blake2b(head + found, digest_size=16).digest() + head + found + body


def deployment(noise: random.Random) -> Damaged:
    """A deployment's database, damaged, or with rows that were never committed and their sums."""
    whole, rest, right = whole_deployment()
    made_up = noise.random() < 0.4
    content = resummed(noise, whole) if made_up else damage(noise, whole)
    return Damaged({"site/deployment.db": content, "rest.jsonl": rest}, None if made_up else right)


def resummed(noise: random.Random, whole: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "deployment.db")
        path.write_bytes(whole)
        connection = sqlite3.connect(path)
        junk = json.dumps(noise.choice(JUNK))
        values: dict[str, Callable[[], str]] = {
            "json": lambda: quoted(junk),
            "text": lambda: quoted(str(noise.choice(JUNK))),
            "blob": lambda: f"x'{noise.choice([b'', noise.randbytes(9), packed(noise)]).hex()}'",
            "file": lambda: f"CAST({quoted('dotr file ' + junk)} AS BLOB)",
        }
        change = noise.choice(CHANGES).format(**{name: value() for name, value in values.items()})
        with connection:
            with suppress(sqlite3.IntegrityError):  # two rows of one key: nothing is changed
                connection.execute(change)
            for name in columns_of(TABLES):
                if name not in OF_THEMSELVES:
                    rows = connection.execute(f"SELECT * FROM {name}")  # noqa: S608  # a table of ours
                    total = f"{sum(row_sum(name, row) for row in rows) % 2**128:032x}"
                    connection.execute("UPDATE sums SET total = ? WHERE name = ?", (total, name))
            for (closed,) in connection.execute("SELECT content FROM closed").fetchall():
                connection.execute("UPDATE closed SET hash = ?", (digest(bytes(closed)),))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


def packed(noise: random.Random) -> bytes:
    return zlib.compress(json.dumps(noise.choice(JUNK)).encode())


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "") + "'"
