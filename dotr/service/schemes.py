"""What reads and writes each kind of URI: one table for all commands, and for packages of others.

Place:   `dotr feed` makes its sources and outputs here, and `dotr serve` those that packages of others read
         and write; a path without a scheme is `file`. `webhook:https://…`, a URL of another scheme behind it,
         is a URI of the scheme `webhook`.
Method:  a table of our own, the `Connectors` that the caller has (brokers and hooks lie above this room),
         then entry points: `dotr.sources` and `dotr.outputs` name a function by a scheme. Those are looked up
         when a URI asks for one, so nothing is imported that nobody uses.
Bad input: D4213 a scheme that nothing reads or writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.errors import UsageError
from dotr.io.events import BINARY, Formatter, formatter
from dotr.io.feeds import FileSource, GraphSource
from dotr.io.graphs import SourceOptions
from dotr.io.merged_source import IDLE, MergedSource
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program
from dotr.regex import regex
from dotr.service.journal import Journal
from dotr.service.outputs import AppendingFile, EventParts, FileSink, Sink

FILE: Final = "file"

_SCHEME = regex(r"([a-z][a-z0-9+.-]+):(?://|[a-z][a-z0-9+.-]+://|\?).*")


class SourceRequest(Struct, frozen=True):
    """The sources of one scheme. `fail`: raise what cannot be read; `follow`: go on with what comes."""

    uris: Sequence[str]
    options: SourceOptions
    fail: bool = True
    follow: bool = False


class OutputRequest(Struct, frozen=True):
    """One output. `format`: of events; `changes`: they have a sign, as corrections need it."""

    uri: str
    journal: Journal
    program: Program
    format: str
    overwrite: bool = False
    changes: bool = False


MakeSource: TypeAlias = Callable[[SourceRequest], GraphSource]
MakeOutput: TypeAlias = Callable[[OutputRequest], Sink]


class Connectors(Struct, frozen=True):
    """What a caller connects to beside files, by scheme. `idle`: name of a source → seconds of silence after
    which others do not wait for it; of those that are not there IDLE.
    """

    sources: Mapping[str, MakeSource] = {}
    outputs: Mapping[str, MakeOutput] = {}
    idle: Mapping[str, float] = {}


NO_CONNECTORS: Final = Connectors()


def _files(request: SourceRequest) -> GraphSource:
    paths = [uri.removeprefix("file://") for uri in request.uris]
    return FileSource(paths, request.options, fail=request.fail, follow=request.follow)


def file_output(request: OutputRequest) -> Sink:
    """A file, or a folder of files, exactly once. Raises RefusedError, EngineError."""
    journal, path, overwrite = request.journal, request.uri.removeprefix("file://"), request.overwrite
    formatted: Callable[..., tuple[str, Formatter]] = formatter
    if request.changes:
        from dotr.io.changes import changes_formatter  # noqa: PLC0415  # start-up: few feeds correct

        formatted = changes_formatter
    elif request.format in BINARY:
        return EventParts(journal, path, overwrite, request.format)
    head, write = formatted(request.format, request.program.prefixes, request.program.rules)
    file = AppendingFile(journal, path, request.format, overwrite, packed=True)
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


def source_of(
    uris: Sequence[str],
    options: SourceOptions,
    *,
    fail: bool,
    follow: bool,
    connectors: Connectors = NO_CONNECTORS,
) -> GraphSource:
    """One source of all URIs; those of several schemes, and of connectors, are merged by time. Raises
    UsageError D4213.
    """
    groups: dict[str, list[str]] = {}
    for uri in uris:
        scheme = scheme_of(uri)
        groups.setdefault(uri if scheme in connectors.sources else scheme, []).append(uri)
    table = {**SOURCES, **connectors.sources}
    makers = [_maker("dotr.sources", table, scheme_of(of[0]), of[0]) for of in groups.values()]
    made: list[GraphSource] = [
        make(SourceRequest(of, options, fail, follow))
        for make, of in zip(makers, groups.values(), strict=True)
    ]
    idle = {one.name: connectors.idle.get(one.name, IDLE) for one in made}
    return made[0] if len(made) == 1 else MergedSource(made, idle)


def output_of(request: OutputRequest, connectors: Connectors = NO_CONNECTORS) -> Sink:
    """One output. Raises UsageError D4213, D4165."""
    table = {**OUTPUTS, **connectors.outputs}
    if request.changes and scheme_of(request.uri) not in table:
        raise without_changes(request.uri)
    sink: Sink = _maker("dotr.outputs", table, scheme_of(request.uri), request.uri)(request)
    return sink


def without_changes(uri: str) -> UsageError:
    """UsageError D4165: an output of an installed package, which knows of no event that is taken back."""
    return UsageError.of(
        "D4165",
        f"the package that writes `{_shown(uri)}` gets no events in a run with corrections",
        hint="write to a file, a broker or a web hook, which get them",
    )


def check_source(uri: str) -> None:
    """Raise UsageError D4213 where nothing reads a URI."""
    _maker("dotr.sources", SOURCES, scheme_of(uri), uri)


def check_output(uri: str) -> None:
    """Raise UsageError D4213 where nothing writes to a URI."""
    _maker("dotr.outputs", OUTPUTS, scheme_of(uri), uri)


_LOGIN = regex(r"//[^/?]*@")
_URL_BEHIND = regex(r"([^:/]+:[^:/]+://[^/?]*).+")


def _shown(uri: str) -> str:
    """A URI without what may be a secret: who logs in, or what stands behind the host of a URL of a hook."""
    behind = _URL_BEHIND.fullmatch(uri)
    return _LOGIN.sub("//…@", uri if behind is None else f"{behind[1]}/…")


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
        f"nothing is {what} `{_shown(uri)}`: there is no scheme `{scheme}`",
        notes=(f"there are {', '.join(known)}",),
        hint=nearest(scheme, known) or "give a file, or install what connects to it",
    )
