"""`dotr lsp`: a language server over standard input and output.

Place:   speaks the protocol through pygls; editing.py knows the answers.
Method:  a text is looked at when no newer one has come for a moment, so that edits of a large file do not
         queue; questions are asked of the text as it is. What cannot be read has no answer, and ends nothing.
         A signal ends the process there and then: a thread waits for what the editor says next, and nothing
         has to be saved.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import unquote

import click

from dotr import __version__
from dotr.cli.editing import Analysis, analyse, completions, definition, hover
from dotr.cli.process import POLITE, STOPPED
from dotr.cli.show import note
from dotr.errors import DataError, Diagnostic, DotrError, EngineError, Severity
from dotr.io.files.rule_texts import SCHEME, read_rules_text, shipped
from dotr.lang.printer import format_text
from dotr.source import Source, Span

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

_PAUSE = 0.05
"""Seconds without a newer text after which one is looked at."""

_LONGEST = 256 * 1024 * 1024
"""Bytes of a message: a rule file of the largest size, escaped."""

_SHOWN = 200
"""Diagnostics of a document that are published; nobody reads more."""


@click.command(short_help="A language server for editors.")
def command() -> None:
    """Serve an editor: diagnostics, hover, definitions, completion, formatting.

    Needs the extra `lsp`: pip install 'dotr[lsp]'.
    """
    try:
        server = make_server()
    except ImportError:
        raise EngineError.of(
            "D4205", "the language server needs pygls", hint="pip install 'dotr[lsp]'"
        ) from None
    for number in (signal.SIGINT, *POLITE):
        signal.signal(number, _stopped)
    server.start_io(cast("BinaryIO", _Messages(sys.stdin.buffer)))


def _stopped(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        note("stopped")
        sys.stderr.flush()
    os._exit(STOPPED)


class _Messages:
    """Owns what the editor says, for pygls: lines of a head, and bodies of a size that a program may have."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        return self._stream.readline(_LONGEST)

    def read(self, size: int) -> bytes:
        """Raises DataError D2006 for more than `_LONGEST` bytes."""
        if size > _LONGEST:
            raise DataError.of(
                "D2006",
                f"a message of the editor has {size:,} bytes",
                place="<stdin>",
                hint=f"rule files have at most {_LONGEST:,} bytes: open a smaller one",
            )
        return self._stream.read(size)


def make_server() -> LanguageServer:
    """A server without a client yet. Raises ImportError without pygls."""
    from lsprotocol import types  # noqa: PLC0415  # an extra
    from pygls import uris  # noqa: PLC0415  # an extra
    from pygls.lsp.server import LanguageServer  # noqa: PLC0415  # an extra
    from pygls.workspace import TextDocument  # noqa: PLC0415  # an extra

    server = LanguageServer("dotr", __version__)
    known: dict[str, Analysis] = {}
    newest: dict[str, object] = {}
    severities = {
        Severity.ERROR: types.DiagnosticSeverity.Error,
        Severity.WARNING: types.DiagnosticSeverity.Warning,
        Severity.INFO: types.DiagnosticSeverity.Information,
    }
    kinds = {
        "keyword": types.CompletionItemKind.Keyword,
        "function": types.CompletionItemKind.Function,
        "query": types.CompletionItemKind.Interface,
        "rule": types.CompletionItemKind.Class,
        "attribute": types.CompletionItemKind.Field,
        "variable": types.CompletionItemKind.Variable,
        "prefix": types.CompletionItemKind.Module,
        "term": types.CompletionItemKind.Value,
    }

    def path_of(uri: str) -> str:
        return str(uris.to_fs_path(uri) or uri)

    def text_of(uri: str) -> str | None:
        """The text of a document, as the editor has it if it is open; None if there is none to read."""
        document = server.workspace.text_documents.get(unquote(uri))  # as pygls keeps them
        if document is not None:
            return str(document.source)
        try:
            return read_rules_text(path_of(uri))
        except (OSError, ValueError, DotrError):
            return None

    def read(path: str) -> str:
        """The text of a file: as the editor has it, if it is open."""
        if not path.startswith(SCHEME):
            for document in server.workspace.text_documents.values():
                if path == path_of(document.uri):
                    return str(document.source)
        return read_rules_text(path)

    def range_of(span: Span) -> types.Range:
        return types.Range(position(span.source, span.start), position(span.source, span.end))

    def position(source: Source, offset: int) -> types.Position:
        line, column = source.position(offset)
        before = source.line(line)[: column - 1]
        return types.Position(line - 1, len(before.encode("utf-16-le")) // 2)

    def location(span: Span) -> types.Location | None:
        name = span.source.name
        path = str(shipped(name.removeprefix(SCHEME))) if name.startswith(SCHEME) else name
        uri = uris.from_fs_path(str(Path(path).absolute()))
        return None if uri is None else types.Location(uri, range_of(span))

    def look(uri: str) -> Analysis | None:
        text = text_of(uri)
        if text is None:
            known.pop(uri, None)
            return None
        known[uri] = analyse(path_of(uri), text, read, known.get(uri))
        return known[uri]

    def publish(uri: str) -> None:
        analysis = look(uri)
        if analysis is None:
            return
        own = [
            one for one in analysis.found if one.span is None or one.span.source.name == analysis.source.name
        ]
        others = len(analysis.found) - len(own)
        own.sort(key=lambda one: one.severity is not Severity.ERROR)
        shown = [protocol(one) for one in own[:_SHOWN]]
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        for more, where in ((len(own) - _SHOWN, "here"), (others, "in files that this one names")):
            if more > 0:
                text = f"{more} more {where}"
                shown.append(types.Diagnostic(start, text, types.DiagnosticSeverity.Warning, source="dotr"))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown))

    def protocol(one: Diagnostic) -> types.Diagnostic:
        start = types.Range(types.Position(0, 0), types.Position(0, 1))
        parts = [one.message, *([f"found: {one.label}"] if one.label else []), *one.notes]
        parts += [f"hint: {one.hint}"] if one.hint else []
        return types.Diagnostic(
            range_of(one.span) if one.span is not None else start,
            "\n".join(parts),
            severities[one.severity],
            one.code,
            source="dotr",
        )

    def current(uri: str) -> Analysis | None:
        analysis = known.get(uri)
        return analysis if analysis is not None and analysis.source.text == text_of(uri) else look(uri)

    def offset(params: Any, analysis: Analysis) -> int:
        document = TextDocument(params.text_document.uri, analysis.source.text)
        return document.offset_at_position(params.position)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def changed(params: Any) -> None:
        uri = params.text_document.uri
        newest[uri] = turn = object()
        await asyncio.sleep(_PAUSE)
        if newest.get(uri) is turn:
            publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        known.pop(params.text_document.uri, None)
        newest.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        analysis = current(params.text_document.uri)
        text = None if analysis is None else hover(analysis, offset(params, analysis))
        return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        analysis = current(params.text_document.uri)
        span = None if analysis is None else definition(analysis, offset(params, analysis))
        return None if span is None else location(span)

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", ":", "?"])
    )
    def completed(params: types.CompletionParams) -> list[types.CompletionItem]:
        analysis = current(params.text_document.uri)
        found = [] if analysis is None else completions(analysis, offset(params, analysis))
        return [
            types.CompletionItem(one.label, kind=kinds[one.kind], detail=one.detail or None) for one in found
        ]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        written = text_of(params.text_document.uri)
        if written is None:
            return None
        source = Source(path_of(params.text_document.uri), written)
        try:
            text = format_text(source)
        except DotrError:
            return None  # what is wrong is published already
        whole = types.Range(types.Position(0, 0), position(source, len(source.text)))
        return [] if text == source.text else [types.TextEdit(whole, text)]

    return server
