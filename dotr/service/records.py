"""What a deployment's journal keeps, as values.

Place:   between service/journal.py and those who commit to it and read from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from msgspec import Struct, field

from dotr.core.periods import Entry
from dotr.io.graph_source import Position
from dotr.rdf.terms import Triple
from dotr.service.kept_tables import KeptChange
from dotr.service.lasting_tables import PlannedProgram


class OutputLength(NamedTuple):
    """How long an output is at a commit; `tail` as in `OutputRow`."""

    length: int
    tail: str = ""


class OutputRow(NamedTuple):
    """An output: `tail` is the hash of the last bytes of what was committed, "" where none is known."""

    format: str
    length: int
    tail: str = ""


class Deployed(Struct, frozen=True):
    """What is deployed: root files in order, the text of every rule file, rules taken out.

    `removed`: (root file, rule name). Another file may have a rule of that name.
    """

    files: tuple[str, ...] = ()
    texts: Mapping[str, str] | None = None
    removed: frozenset[tuple[str, str]] = frozenset()
    background: str = ""
    """The hash of the background's triples."""


class Commit(Struct, frozen=True):
    """What one commit of a feed changes. `positions`: of sources, by their names and those of partitions.

    `stated`: `Pipeline.stated()`, which is not in the snapshot; `given`: messages that came with the command;
    `adopted`: whether what was planned is what is deployed now; `kept`: for explanations.
    """

    snapshot: Mapping[str, Any]
    status: Mapping[str, Any]
    positions: Mapping[tuple[str, str], Position]
    outputs: Mapping[str, OutputLength]
    stated: Mapping[Triple, Entry | None] = field(default_factory=dict)
    given: Sequence[str] = ()
    adopted: bool = False
    kept: KeptChange | None = None


def planned(plan: PlannedProgram) -> Deployed:
    """What a plan deploys."""
    content = plan.content
    removed = frozenset((file, rule) for file, rule in content["removed"])
    return Deployed(tuple(content["files"]), content["texts"], removed, content["background"])


def digest_of(deployed: Deployed) -> str:
    """A hash of what is deployed: the rules run as they were written, or not at all."""
    texts = sorted((deployed.texts or {}).items())
    content = json.dumps([deployed.files, texts, sorted(deployed.removed), deployed.background])
    return digest(content.encode()).hex()


def digest(content: bytes) -> bytes:
    """The hash that detects damage."""
    return blake2b(content, digest_size=16).digest()
