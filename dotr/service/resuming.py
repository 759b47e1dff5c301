"""The pipeline of a deployment: its closed background is loaded where it was kept, and closed where not.

Place:   `dotr feed` goes on with what this gives; `dotr deploy` keeps what it compiled under the same key.
Method:  the key is a hash of everything that the closure follows from: the explicit background (known by the
         hash in the deployment, files added for one feed by their bytes), all Datalog rules, the relations
         that queries read, and dotr's version. One entry is kept, in the journal, with a hash of its own
         content. What does not fit or is damaged is closed again and kept instead.
Why not: closing at every start: under OWL 2 RL over 100k triples that is seconds, loading is a tenth of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from dotr.budget import BUDGET
from dotr.core.deployment import Deployment, Settings
from dotr.core.enrich import wanted
from dotr.core.pipeline import Pipeline
from dotr.errors import NOT_WRITTEN, EngineError
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, content_hash, read_bytes
from dotr.io.decode.ntriples import split_triples
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.io.files.background_documents import read_background
from dotr.io.files.sources import resolve
from dotr.ir import Program
from dotr.rdf.terms import Triple
from dotr.service.journal import Journal
from dotr.version import __version__


class Added(Struct, frozen=True):
    """Background files beside the deployed ones, for one feed."""

    paths: Sequence[str] = ()
    base: str = STREAM_BASE
    limit: int = MAX_DOCUMENT
    choices: ParseChoices | None = None

    def triples(self) -> list[Triple]:
        return read_background(self.paths, self.base, self.limit, choices=self.choices)

    def hashes(self) -> list[str]:
        """What the triples follow from. Reads the files, parses none."""
        files = resolve(self.paths)
        choices = self.choices or STRICT
        read = [] if choices.rdf12 == STRICT.rdf12 else [choices.rdf12]
        read += [f"{iri} {content_hash(text.encode())}" for iri, text in sorted(choices.contexts.items())]
        return [self.base, *read, *(f"{file} {content_hash(read_bytes(file, self.limit))}" for file in files)]


NOTHING_ADDED = Added()


def resumed(
    journal: Journal,
    program: Program,
    added: Added = NOTHING_ADDED,
    *,
    materialize_all: bool = False,
    budget: int = BUDGET,
    verify: bool = False,
    **more: Any,
) -> Pipeline:
    """The pipeline of a deployment before its state is restored; `more` is handed on to it. Raises
    ProgramError, DataError, EngineError.
    """
    settings = Settings(materialize_all=materialize_all, budget=budget)
    return Pipeline(_compiled(journal, program, added, settings), verify=verify, **more)


def _compiled(journal: Journal, program: Program, added: Added, settings: Settings) -> Deployment:
    """Closes the background only where the journal has not kept it, and keeps it then."""

    def background() -> list[Triple]:
        return split_triples(journal.background()) + added.triples()

    key = closed_key(program, journal.deployed().background, added, settings.materialize_all)
    kept = journal.closed(key)
    if kept is not None:
        deployment = Deployment(program, background, settings, closed=kept)
        with suppress(EngineError, *NOT_WRITTEN):  # damaged, or of another version: closed again
            deployment.load()
            return deployment
    deployment = Deployment(program, background, settings)
    journal.keep_closed(key, deployment.closed_background())
    return deployment


def closed_key(
    program: Program, background: str, added: Added = NOTHING_ADDED, materialize_all: bool = False
) -> str:
    """A name for the closed background; `background` is the hash of the deployed triples."""
    hashes = added.hashes() if added.paths else ()
    parts = [
        __version__,
        program.entailment,
        *map(repr, program.datalog),
        "needed",
        *sorted(wanted(program, materialize_all)),
        "background",
        background,
        *hashes,
    ]
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
