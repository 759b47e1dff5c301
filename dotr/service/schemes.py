"""What reads and writes each kind of URI: one table for all commands, and for packages of others.

Place:   `dotr feed` makes its sources and outputs here; a path without a scheme is `file`.
Method:  a table of our own, then entry points: `dotr.sources` and `dotr.outputs` name a function by a scheme.
         Those are looked up when a URI asks for one, so nothing is imported that nobody uses.
Bad input: D4213 a scheme that nothing reads or writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.errors import UsageError
from dotr.io.events import BINARY, formatter
from dotr.io.feeds import FileSource, GraphSource
from dotr.io.graphs import SourceOptions
from dotr.io.merged_source import MergedSource
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program
from dotr.regex import regex
from dotr.service.journal import Journal
from dotr.service.outputs import AppendingFile, EventParts, FileSink, Sink

FILE: Final = "file"

_SCHEME = regex(r"([a-z][a-z0-9+.-]+)://.*")


class SourceRequest(Struct, frozen=True):
    """The sources of one scheme. `fail`: raise what cannot be read; `follow`: go on with what comes."""

    uris: Sequence[str]
    options: SourceOptions
    fail: bool = True
    follow: bool = False


class OutputRequest(Struct, frozen=True):
    """One output. `format`: of events."""

    uri: str
    journal: Journal
    program: Program
    format: str
    overwrite: bool = False


MakeSource: TypeAlias = Callable[[SourceRequest], GraphSource]
MakeOutput: TypeAlias = Callable[[OutputRequest], Sink]


def _files(request: SourceRequest) -> GraphSource:
    paths = [uri.removeprefix("file://") for uri in request.uris]
    return FileSource(paths, request.options, fail=request.fail, follow=request.follow)


def file_output(request: OutputRequest) -> Sink:
    """A file, or a folder of files, exactly once. Raises RefusedError, EngineError."""
    journal, path, overwrite = request.journal, request.uri.removeprefix("file://"), request.overwrite
    if request.format in BINARY:
        return EventParts(journal, path, overwrite, request.format)
    file = AppendingFile(journal, path, request.format, overwrite, packed=True)
    head, write = formatter(request.format, request.program.prefixes, request.program.rules)
    if file.length:  # what stands there must have the same head
        file.refuse_other_head(head)
    else:
        file.write(head)
    return FileSink(write, file)


SOURCES: Final[Mapping[str, MakeSource]] = {FILE: _files}
"""Scheme → what reads its URIs."""

OUTPUTS: Final[Mapping[str, MakeOutput]] = {FILE: file_output}
"""Scheme → what writes there."""


def scheme_of(uri: str) -> str:
    """The scheme of a URI; `file` for a path."""
    found = _SCHEME.fullmatch(uri)
    return FILE if found is None else found[1]


def source_of(uris: Sequence[str], options: SourceOptions, *, fail: bool, follow: bool) -> GraphSource:
    """One source of all URIs; those of several schemes are merged by time. Raises UsageError D4213."""
    by_scheme: dict[str, list[str]] = {}
    for uri in uris:
        by_scheme.setdefault(scheme_of(uri), []).append(uri)
    makers = {scheme: _maker("dotr.sources", SOURCES, scheme, of[0]) for scheme, of in by_scheme.items()}
    made = [makers[scheme](SourceRequest(of, options, fail, follow)) for scheme, of in by_scheme.items()]
    return made[0] if len(made) == 1 else MergedSource(made)


def output_of(request: OutputRequest) -> Sink:
    """One output. Raises UsageError D4213."""
    sink: Sink = _maker("dotr.outputs", OUTPUTS, scheme_of(request.uri), request.uri)(request)
    return sink


def _maker(group: str, table: Mapping[str, Any], scheme: str, uri: str) -> Any:
    """What makes something of a scheme."""
    if scheme in table:
        return table[scheme]
    others = {entry.name: entry for entry in entry_points(group=group)}
    if scheme in others:
        return others[scheme].load()
    known = sorted({*table, *others})
    what = "read from" if group == "dotr.sources" else "written to"
    raise UsageError.of(
        "D4213",
        f"nothing is {what} `{uri}`: there is no scheme `{scheme}`",
        notes=(f"there are {', '.join(known)}",),
        hint=nearest(scheme, known) or "give a file, or install what connects to it",
    )
