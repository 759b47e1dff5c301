"""`dotr lsp` through a real client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

RULES = """PREFIX : <http://example.org/b#>
QUERY Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :in ?room } }
QUERY Heat := { SELECT ?room ?c WHERE { ?o :c ?c ; :in ?room } }
IMPORT <dotr:patterns/cooldown.dotr> AS Calm WITH Event := Heard, ?period := 1 h
QUERY Heard := { SELECT ?key WHERE { ?o :by ?key } }
RULE Fire
DEFINE { dotr_fire a :Fire ; :in ?room }
FROM Smoke
AND LAST Hot := Heat WITHIN 5 min FROM Smoke
  ON Hot.?room = Smoke.?room && STR(Hot.?c) != "😀" && Hot.?c > 45
WITH ?room := Smoke.?room
"""


class Session:
    """A client, its server, and one open document."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client, self.uri = client, uri
        self.text, self.version = "", 0
        self.published: asyncio.Queue[list[types.Diagnostic]] = asyncio.Queue()

    async def write(self, text: str) -> list[types.Diagnostic]:
        """The document has another text; what is said about it."""
        self.text, self.version = text, self.version + 1
        if self.version == 1:
            item = types.TextDocumentItem(self.uri, "dotr", 1, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            changed = types.VersionedTextDocumentIdentifier(uri=self.uri, version=self.version)
            whole = types.TextDocumentContentChangeWholeDocument(text=text)
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(changed, [whole]))
        return await asyncio.wait_for(self.published.get(), 30)

    def at(self, word: str, inside: int = 0, occurrence: int = 0) -> dict[str, Any]:
        """The parameters of a question about a place."""
        offset = -1
        for _ in range(occurrence + 1):
            offset = self.text.index(word, offset + 1)
        before = self.text[: offset + inside]
        line = before.count("\n")
        column = len(before.rpartition("\n")[2].encode("utf-16-le")) // 2
        document = types.TextDocumentIdentifier(self.uri)
        return {"text_document": document, "position": types.Position(line, column)}


def session(tmp_path: Path, talk: Callable[[Session], Awaitable[None]], uri: str = "") -> None:
    """Run a conversation with a server of its own, about a file or another `uri`."""

    async def main() -> None:
        client = LanguageClient("test", "1")
        path = tmp_path / "fire.dotr"
        one = Session(client, uri or path.as_uri())

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            one.published.put_nowait(list(params.diagnostics))

        await client.start_io(sys.executable, "-m", "dotr", "lsp", env={**os.environ})
        await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        try:
            await talk(one)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_whole_session(tmp_path: Path) -> None:
    async def talk(s: Session) -> None:
        # diagnostics, as one types
        wrong = await s.write(RULES.replace("Smoke.?room && ", "Smoke.?rom && "))
        assert [d.code for d in wrong] == ["D1310"]
        assert wrong[0].range.start.line == 9
        assert "did you mean `?room`" in wrong[0].message
        assert await s.write(RULES) == []
        # hover: the type and the plan of a position, of a query, of a rule; an IRI in full
        hovered = await s.client.text_document_hover_async(types.HoverParams(**s.at("Hot.?room", 1)))
        assert hovered is not None
        text = hovered.contents.value  # type: ignore[union-attr]
        assert "facts of query `Heat` (?room, ?c)" in text
        assert "keeps" in text
        assert "for 5 min" in text
        query = await s.client.text_document_hover_async(types.HoverParams(**s.at("Heat", 1)))
        assert "used by Fire" in query.contents.value  # type: ignore[union-attr]
        rule = await s.client.text_document_hover_async(types.HoverParams(**s.at("Fire", 1)))
        assert "horizon: 5 min" in rule.contents.value  # type: ignore[union-attr]
        iri = await s.client.text_document_hover_async(types.HoverParams(**s.at(":Smoke", 2)))
        assert iri.contents.value == "`<http://example.org/b#Smoke>`"  # type: ignore[union-attr]
        # definitions: a query, positions, an attribute behind a surrogate pair, a prefix, a library
        for word, inside, occurrence, line in (
            ("Smoke", 1, 2, 1),
            ("Smoke", 1, 3, 7),
            ("Hot.?room", 1, 0, 8),
            ("Hot.?c >", 5, 0, 2),
            (":Fire", 0, 0, 0),
        ):
            found = await s.client.text_document_definition_async(
                types.DefinitionParams(**s.at(word, inside, occurrence))
            )
            assert isinstance(found, types.Location), word
            assert (found.uri, found.range.start.line) == (s.uri, line), word
        assert (
            await s.write(
                RULES.replace(
                    "FROM Smoke\n", "FROM Smoke\nAND NOT Calm_Once WITHIN 1 h BEFORE Smoke ON true\n"
                )
            )
            is not None
        )
        far = await s.client.text_document_definition_async(types.DefinitionParams(**s.at("Calm_Once", 2)))
        assert isinstance(far, types.Location)
        assert far.uri.endswith("patterns/cooldown.dotr")
        # completion in the middle of an edit: attributes of a position, names, keywords, known terms
        broken = RULES.replace("Hot.?c > 45", "Hot.")
        assert await s.write(broken)
        items = await s.client.text_document_completion_async(types.CompletionParams(**s.at("&& Hot.", 7)))
        assert [item.label for item in items] == ["?c", "?room", "time"]  # type: ignore[union-attr]
        names = await s.client.text_document_completion_async(types.CompletionParams(**s.at("FROM Smoke", 5)))
        labels = {item.label for item in names}  # type: ignore[union-attr]
        assert {"Smoke", "Heat", "Fire", "Calm_Once", "WITHIN", "COALESCE"} <= labels
        terms = await s.client.text_document_completion_async(
            types.CompletionParams(**s.at(":in ?room }", 1))
        )
        assert {":Smoke", ":in", ":c"} <= {item.label for item in terms}  # type: ignore[union-attr]
        # formatting
        await s.write(RULES.replace("RULE Fire", "rule   Fire"))
        document = types.TextDocumentIdentifier(s.uri)
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        edits = await s.client.text_document_formatting_async(
            types.DocumentFormattingParams(document, options)
        )
        assert edits is not None
        assert len(edits) == 1
        assert "RULE Fire" in edits[0].new_text

    session(tmp_path, talk)


@pytest.mark.parametrize(
    "text", ["", "RULE", 'QUERY Q := { SELECT "', "IMPORT <nowhere.dotr>", "PREFIX : <http://e#>\n" * 3]
)
def test_nothing_that_is_half_written_ends_it(tmp_path: Path, text: str) -> None:
    async def talk(s: Session) -> None:
        await s.write(text + " ")
        for params in (types.HoverParams, types.DefinitionParams, types.CompletionParams):
            place = {"text_document": types.TextDocumentIdentifier(s.uri), "position": types.Position(0, 0)}
            ask = {
                types.HoverParams: s.client.text_document_hover_async,
                types.DefinitionParams: s.client.text_document_definition_async,
                types.CompletionParams: s.client.text_document_completion_async,
            }[params]
            await ask(params(**place))

    session(tmp_path, talk)


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "file:///nowhere/new%20one.dotr"])
def test_a_text_that_was_never_saved_is_looked_at(tmp_path: Path, uri: str) -> None:
    async def talk(s: Session) -> None:
        assert await s.write(RULES) == []
        hovered = await s.client.text_document_hover_async(types.HoverParams(**s.at("Hot.?room", 1)))
        assert hovered is not None
        assert "facts of query `Heat`" in hovered.contents.value  # type: ignore[union-attr]
        assert [d.code for d in await s.write(RULES + "RULE")] == ["D1004"]

    session(tmp_path, talk, uri)


def test_positions_and_documents_that_are_not_there_have_no_answer(tmp_path: Path) -> None:
    (tmp_path / "folder.dotr").mkdir()

    async def talk(s: Session) -> None:
        await s.write(RULES)
        for uri, line in (
            (s.uri, 2**31 - 1),
            ((tmp_path / "nowhere.dotr").as_uri(), 0),
            ((tmp_path / "folder.dotr").as_uri(), 0),
            ("file:///%00.dotr", 0),
            ("untitled:none", 0),
            ("", 0),
        ):
            document, position = types.TextDocumentIdentifier(uri), types.Position(line, 2**31 - 1)
            assert await s.client.text_document_hover_async(types.HoverParams(document, position)) is None
            asked = types.DefinitionParams(document, position)
            assert await s.client.text_document_definition_async(asked) is None
            await s.client.text_document_completion_async(types.CompletionParams(document, position))
            if uri != s.uri:
                options = types.FormattingOptions(tab_size=2, insert_spaces=True)
                formatting = types.DocumentFormattingParams(document, options)
                assert await s.client.text_document_formatting_async(formatting) is None
        assert await s.client.text_document_hover_async(types.HoverParams(**s.at("Fire", 1))) is not None

    session(tmp_path, talk)


def test_a_large_text_that_is_typed_in_is_looked_at_once(tmp_path: Path) -> None:
    large = RULES + "".join(f"QUERY Q{n} := {{ SELECT ?v WHERE {{ ?o :v{n} ?v }} }}\n" for n in range(2_000))

    async def talk(s: Session) -> None:
        found = await s.write(large)
        assert len(found) == 201
        assert found[-1].message == "1800 more here"
        for number in range(50):
            changed = types.VersionedTextDocumentIdentifier(uri=s.uri, version=2 + number)
            whole = types.TextDocumentContentChangeWholeDocument(text=large + " " * number + "RULE")
            s.client.text_document_did_change(types.DidChangeTextDocumentParams(changed, [whole]))
        found = await asyncio.wait_for(s.published.get(), 60)
        assert any(d.severity == types.DiagnosticSeverity.Error for d in found)
        assert s.published.qsize() < 10

    session(tmp_path, talk)


def test_messages_that_are_none_are_reported_and_the_session_goes_on(tmp_path: Path) -> None:
    frames = [
        b"{", b"[]", b"null", b"[" * 5_000, b"\xff\xfe", b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":9,"method":"textDocument/hover","params":7}',
        b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":3}}',
    ]  # fmt: skip
    begin = b'{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"capabilities":{}}}'
    end = [b'{"jsonrpc":"2.0","id":"z","method":"shutdown"}', b'{"jsonrpc":"2.0","method":"exit"}']
    sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in (begin, *frames, *end))
    done = subprocess.run(
        [sys.executable, "-m", "dotr", "lsp"],
        input=sent,
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert b'"id": "z"' in done.stdout.replace(b'"id":"z"', b'"id": "z"')


def test_a_rename_is_an_edit_of_the_document_or_refused_with_the_reason(tmp_path: Path) -> None:
    async def talk(s: Session) -> None:
        await s.write(RULES)
        at = s.at("Hot.?c", 1)
        where = await s.client.text_document_prepare_rename_async(types.PrepareRenameParams(**at))
        assert isinstance(where, types.Range)
        edit = await s.client.text_document_rename_async(types.RenameParams(new_name="Warm", **at))
        assert edit is not None
        assert edit.changes is not None
        (edits,) = edit.changes.values()
        assert [one.new_text for one in edits] == ["Warm"] * 4
        with pytest.raises(JsonRpcException, match="wrong"):
            await s.client.text_document_rename_async(types.RenameParams(new_name="Smoke", **at))

    session(tmp_path, talk)


def test_a_definition_is_found_in_an_imported_file(tmp_path: Path) -> None:
    (tmp_path / "queries.dotr").write_text(
        "PREFIX : <urn:>\nQUERY Door := { SELECT ?d WHERE { ?d a :Door } }\n"
        "RULE Opened DEFINE { dotr_o a :Opened ; :of ?d } FROM Door WITH ?d := Door.?d\n"
    )

    async def talk(s: Session) -> None:
        text = (
            "PREFIX : <urn:>\nIMPORT <queries.dotr>\n"
            "RULE Twice DEFINE { dotr_t a :Twice } FROM Opened "
            "AND LAST Earlier := Opened WITHIN 5 s BEFORE Opened ON Earlier.?d = Opened.?d\n"
        )
        assert await s.write(text) == []
        found = await s.client.text_document_definition_async(
            types.DefinitionParams(**s.at("Opened WITHIN", 1))
        )
        assert isinstance(found, types.Location)
        assert found.uri.endswith("/queries.dotr")
        assert found.range.start.line == 2

    session(tmp_path, talk)
