"""`dotr lsp`: a language server over standard input and output.

Place:   speaks the protocol through pygls; editing.py knows the answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dotr import __version__
from dotr.cli.editing import Analysis, analyse, completions, definition, hover
from dotr.errors import Diagnostic, DotrError, EngineError, Severity
from dotr.io.files.rule_texts import read_rules_text
from dotr.io.files.shipped import SCHEME, shipped
from dotr.lang.printer import format_text
from dotr.source import Source, Span

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer


@click.command(short_help="A language server for editors.")
def command() -> None:
    """Serve an editor: diagnostics, hover, definitions, completion, formatting.

    Needs the extra `lsp`: pip install 'dotr[lsp]'.
    """
    try:
        server = make_server()
    except ImportError:
        raise EngineError(
            Diagnostic("D4205", "the language server needs pygls", hint="pip install 'dotr[lsp]'")
        ) from None
    server.start_io()


def make_server() -> LanguageServer:
    """A server without a client yet. Raises ImportError without pygls."""
    from lsprotocol import types  # noqa: PLC0415  # an extra
    from pygls import uris  # noqa: PLC0415  # an extra
    from pygls.lsp.server import LanguageServer  # noqa: PLC0415  # an extra

    server = LanguageServer("dotr", __version__)
    known: dict[str, Analysis] = {}
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

    def read(path: str) -> str:
        """The text of a file: as the editor has it, if it is open."""
        if not path.startswith(SCHEME):
            uri = uris.from_fs_path(path)
            if uri in server.workspace.text_documents:
                return str(server.workspace.text_documents[uri].source)
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

    def look(uri: str) -> Analysis:
        text = server.workspace.get_text_document(uri).source
        path = path_of(uri)
        known[uri] = analyse(path, text, read, known.get(uri))
        return known[uri]

    def publish(uri: str) -> None:
        analysis = look(uri)
        own = [
            one for one in analysis.found if one.span is None or one.span.source.name == analysis.source.name
        ]
        others = len(analysis.found) - len(own)
        shown = [protocol(one) for one in own]
        if others:
            start = types.Range(types.Position(0, 0), types.Position(0, 0))
            text = f"{others} more in files that this one names"
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

    def current(uri: str) -> Analysis:
        text = server.workspace.get_text_document(uri).source
        analysis = known.get(uri)
        return analysis if analysis is not None and analysis.source.text == text else look(uri)

    def offset(params: Any) -> int:
        document = server.workspace.get_text_document(params.text_document.uri)
        return document.offset_at_position(params.position)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def changed(params: Any) -> None:
        publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        known.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        text = hover(current(params.text_document.uri), offset(params))
        return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        span = definition(current(params.text_document.uri), offset(params))
        return None if span is None else location(span)

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", ":", "?"])
    )
    def completed(params: types.CompletionParams) -> list[types.CompletionItem]:
        found = completions(current(params.text_document.uri), offset(params))
        return [
            types.CompletionItem(one.label, kind=kinds[one.kind], detail=one.detail or None) for one in found
        ]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        source = Source(
            path_of(params.text_document.uri),
            server.workspace.get_text_document(params.text_document.uri).source,
        )
        try:
            text = format_text(source)
        except DotrError:
            return None  # what is wrong is published already
        whole = types.Range(types.Position(0, 0), position(source, len(source.text)))
        return [] if text == source.text else [types.TextEdit(whole, text)]

    return server
