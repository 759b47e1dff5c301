"""A knowledge base as a file: closed and indexed, so that opening it derives nothing.

Place:   called by knowledge_base.py; the index writes itself (datalog/closing.py, rdf/background.py).
Method:  a line with the version, a hash of the rest, then four parts with their sizes: a header in JSON, the
         closed index, which rows are derived (a bit a row), the labels of blank nodes. A file is written
         beside its place and moved there, so that a reader never finds half of one.
Bad input: D5103 no saved knowledge base, or a damaged one · D5104 another version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from dotr.errors import Diagnostic, EngineError
from dotr.io.decode.documents import unreadable
from dotr.io.files.outputs import unwritable
from dotr.joins.graph_relations import Relation
from dotr.late import dataclass
from dotr.rdf.terms import Term

_NAME = b"dotr knowledge base "
_VERSION = 1
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Saved:
    """What a file has: `header` is a value that JSON can hold, `closed` the bytes of the index, `marks` which
    rows are derived, `labels` the blank nodes that were handed out.
    """

    header: dict[str, Any]
    closed: bytes
    marks: Mapping[Relation, bytes]
    labels: list[Term]


def write(path: str, saved: Saved) -> None:
    """Write a file. Raises EngineError where the disk does not take it."""
    sizes = {relation: len(bits) for relation, bits in saved.marks.items()}
    header = json.dumps({**saved.header, "marks": sizes}, ensure_ascii=False, separators=(",", ":")).encode()
    parts = [header, saved.closed, b"".join(saved.marks.values()), "\n".join(saved.labels).encode()]
    digest = blake2b(digest_size=_DIGEST)
    chunks: list[bytes | memoryview] = []
    for part in parts:
        chunks += [b"%d\n" % len(part), part]
    for chunk in chunks:
        digest.update(chunk)
    beside = f"{path}.new"
    try:
        with open(beside, "wb") as file:
            file.write(b"%s%d\n" % (_NAME, _VERSION) + digest.digest())
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise unwritable(path, error) from None


def read(path: str) -> Saved:
    """Read a file. Raises EngineError D5103, D5104, DataError D2003."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise unreadable(path, error) from None
    end = data.find(b"\n", 0, 64)
    if not data.startswith(_NAME) or end < 0:
        raise _damaged(path)
    version = data[len(_NAME) : end]
    if version != b"%d" % _VERSION:
        raise EngineError(
            Diagnostic(
                "D5104",
                f"`{path}` was saved in another version of the format",
                place=path,
                label=version.decode("ascii", "replace"),
                hint=f"this dotr reads version {_VERSION}: make the knowledge base again from its sources",
            )
        )
    start = end + 1 + _DIGEST
    view = memoryview(data)
    if blake2b(view[start:], digest_size=_DIGEST).digest() != data[end + 1 : start]:
        raise _damaged(path)
    parts = []
    at = start
    while at < len(data):
        end = data.index(b"\n", at)
        size = int(data[at:end])
        parts.append(view[end + 1 : end + 1 + size])
        at = end + 1 + size
    header = json.loads(bytes(parts[0]))
    marks: dict[Relation, bytes] = {}
    at = 0
    for relation, size in header.pop("marks").items():
        marks[relation] = bytes(parts[2][at : at + size])
        at += size
    labels = str(parts[3], "utf-8")
    return Saved(header, bytes(parts[1]), marks, labels.split("\n") if labels else [])


def _damaged(path: str) -> EngineError:
    return EngineError(
        Diagnostic(
            "D5103",
            f"`{path}` is not a saved knowledge base, or a damaged one",
            place=path,
            hint="make it again from its sources, and save it again",
        )
    )
