"""Jelly (RDF as protobuf frames): read as text of other formats, and written as frames.

Method:  pyjelly decodes rows, frame by frame; readers see N-Quads, N-Triples or a message log. A stream of
         quads or of graphs becomes N-Quads; where the stream says that each frame of triples is a graph
         (logical types GRAPHS and its subtypes), the frames become an RDF Message Log; a flat stream of
         triples is one document. The content of a term is escaped or refused here, so nothing in a frame can
         end its term; whether terms are well formed is checked by the readers, as for every text.
         Written (`-o x.jelly`): a stream of the logical type TIMESTAMPED_NAMED_GRAPHS in quads, like dotr's
         N-Quads: of each graph its stamp in the default graph, then its quads. A frame is what was handed
         over together; parts of a feed and of a batch are separate files.
Why not: a reader of graphs of its own: it would duplicate bookmarks, bounds, messages and dead letters.
Bad input: D2412 no Jelly, damaged, or with terms that RDF does not have · D2006 a frame beyond the bound ·
         D2413 pyjelly is not installed · D2023 frames without statements, without end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyoxigraph as ox

from dotr.errors import DataError, UsageError
from dotr.events import Clock, Composite
from dotr.io.decode.limits import says_nothing
from dotr.io.events import nquads
from dotr.rdf.terms import escape
from dotr.regex import regex

MAX_FRAME = 256 * 1024 * 1024
"""Bytes of one frame at most."""

MAX_QUIET = 1 << 18
"""Frames and rows in a row without a statement at most: a second of work, and days of a frame a second."""

_QUIET_BYTES = 64
"""Bytes of a frame that are counted as a row."""

_FLAT = (0, 1, 2)
"""Logical types whose frames mean nothing: unspecified, and flat triples and quads."""
_TRIPLES = 1
"""The physical type of triples."""

_IN_NO_IRI = regex('[\x00-\x20<>"{}|^`\\\\]')
_LABEL = regex(r"(?!x[0-9a-f]*$)[A-Za-z0-9][A-Za-z0-9_-]*")
_LANGUAGE = regex(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--(?:ltr|rtl))?")


def _adapter(options: Any) -> Any:
    from pyjelly.parse.decode import Adapter  # noqa: PLC0415  # an extra

    class Texts(Adapter):  # type: ignore[misc]  # pyjelly is an extra: nothing is known of it here
        """Terms and statements as N-Quads."""

        graph = ""

        def iri(self, iri: str) -> str:
            if _IN_NO_IRI.search(iri):
                raise ValueError(f"`{iri[:60]!a}` is not an IRI")
            return f"<{iri}>"

        def bnode(self, bnode: str) -> str:
            return f"_:{bnode}" if _LABEL.fullmatch(bnode) else f"_:x{bnode.encode().hex()}"

        def default_graph(self) -> str:
            return ""

        def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> str:
            if language:
                if not _LANGUAGE.fullmatch(language):
                    raise ValueError(f"`{language[:60]!a}` is not a language")
                return f'"{escape(lex)}"@{language}'
            return f'"{escape(lex)}"^^{self.iri(datatype)}' if datatype else f'"{escape(lex)}"'

        def triple(self, terms: Iterable[Any]) -> str:
            subject, predicate, object_ = terms
            return f"{subject} {predicate} {object_} {self.graph} .\n"

        def quad(self, terms: Iterable[Any]) -> str:
            subject, predicate, object_, graph = terms
            return f"{subject} {predicate} {object_} {graph} .\n"

        def graph_start(self, graph_id: Any) -> None:
            self.graph = graph_id

        def graph_end(self) -> None:
            self.graph = ""

        def namespace_declaration(self, name: str, iri: str) -> str:
            return ""

        def quoted_triple(self, terms: Iterable[Any]) -> str:
            raise ValueError("it has triples as terms, which are not read")

    return Texts(options)


class JellyText:
    """Owns a Jelly file and gives it as text, going forward only. Raises DataError.

    `quads`, `log`: how the text is written; N-Triples where it is neither. Known when it is opened.
    """

    def __init__(self, source: Any, name: str) -> None:
        self._source, self._name = source, name
        self._at = 0
        self._waiting = b""
        self.quads = self.log = False
        self._frames = self._read()
        self._first = next(self._frames, b"")

    def _read(self) -> Iterator[bytes]:
        """The text of each frame; of the first, it is known how all are written."""
        try:
            from google.protobuf.message import DecodeError  # noqa: PLC0415  # an extra
            from pyjelly.errors import JellyAssertionError, JellyConformanceError  # noqa: PLC0415
            from pyjelly.parse.decode import Decoder, options_from_frame  # noqa: PLC0415
        except ImportError:
            hint = "pip install 'dotr[jelly]'"
            raise DataError.of(
                "D2413", "Jelly needs a package that is not installed", place=self._name, hint=hint
            ) from None
        wrong = (
            DecodeError,
            JellyConformanceError,
            JellyAssertionError,
            ValueError,
            TypeError,
            LookupError,
            AssertionError,
            NotImplementedError,
        )
        decoder: Any = None
        frames = quiet = 0
        try:
            for frame in self._parsed():
                quiet += 1 + len(frame.rows) + frame.ByteSize() // _QUIET_BYTES
                if quiet > MAX_QUIET:
                    hint = "remove frames without a statement, or send several files"
                    raise says_nothing(self._name, MAX_QUIET, "frames and rows without a statement", hint)
                if decoder is None:
                    if not frame.rows:
                        continue
                    if frame.rows[0].WhichOneof("row") != "options":
                        raise ValueError("it does not begin with the options of a stream")
                    options = options_from_frame(frame, delimited=True)
                    decoder = Decoder(_adapter(options))
                    kind = options.stream_types
                    self.quads = kind.physical_type != _TRIPLES
                    self.log = not self.quads and kind.logical_type not in _FLAT
                    if self.log:
                        yield b'VERSION "1.2-messages"\n'
                text = "".join(decoder.iter_rows(frame))
                frames += 1
                if text:
                    quiet = 0
                yield (f"{text}MESSAGE\n" if self.log else text).encode()
        except wrong as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise self._damaged(f"frame {frames + 1}: {reason}") from None

    def _parsed(self) -> Iterator[Any]:
        from pyjelly.jelly import RdfStreamFrame  # noqa: PLC0415  # an extra

        head = self._exactly(3, some=True)
        if len(head) == 3 and not (head[0] != 10 or (head[1] == 10 and head[2] != 10)):
            yield RdfStreamFrame.FromString(head + self._exactly(MAX_FRAME, some=True))  # a lone frame
            return
        self._waiting = head
        while (size := self._size()) is not None:
            yield RdfStreamFrame.FromString(self._exactly(size))

    def _size(self) -> int | None:
        """The length before a frame (a varint of protobuf); None at the end."""
        size = shift = 0
        while byte := self._exactly(1, some=True):
            size |= (byte[0] & 127) << shift
            shift += 7
            if size > MAX_FRAME or shift > 35:
                raise self._damaged(f"a frame of more than {MAX_FRAME} bytes")
            if byte[0] < 128:
                return size
        if shift:
            raise self._damaged("it ends early")
        return None

    def _exactly(self, size: int, some: bool = False) -> bytes:
        """So many bytes, or fewer at the end if `some` will do."""
        content, self._waiting = self._waiting[:size], self._waiting[size:]
        while len(content) < size and (more := self._source.read(min(size - len(content), 1 << 20))):
            content += more
        if len(content) < size and not some:
            raise self._damaged("it ends early")
        return content

    def _damaged(self, reason: str) -> DataError:
        return DataError.of(
            "D2412",
            f"`{self._name}` cannot be read as Jelly",
            place=self._name,
            label=reason,
            hint="check the file with the tool that wrote it; `jelly-cli` shows what is in it",
        )

    # ------------------------------------------------------------------ as a file

    def read(self, size: int = -1, /) -> bytes:
        """The text of one frame at most, whatever is asked beyond it; all of it for a negative size."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        while not self._first:
            self._first = next(self._frames, b"")
            if not self._first:
                more = next(self._frames, None)
                if more is None:
                    return b""
                self._first = more
        part, self._first = self._first[:size], self._first[size:]
        self._at += len(part)
        return part

    read1 = read

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go forward."""
        assert whence == 0
        assert offset >= self._at
        while self._at < offset and self.read(min(1 << 20, offset - self._at)):
            pass
        return self._at

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> JellyText:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


NEEDS = "Jelly needs a package that is not installed"


class JellyFrames:
    """Owns the tables of one stream: its frames make sense in their order only. Raises UsageError D2413."""

    def __init__(self) -> None:
        try:
            from pyjelly import jelly  # noqa: PLC0415  # an extra
            from pyjelly.integrations.generic.serialize import GenericSinkTermEncoder  # noqa: PLC0415
            from pyjelly.serialize.flows import DatasetsFrameFlow  # noqa: PLC0415
            from pyjelly.serialize.streams import QuadStream, SerializerOptions  # noqa: PLC0415
        except ImportError:
            raise UsageError.of("D2413", NEEDS, hint="pip install 'dotr[jelly]'") from None
        kind = jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS
        options = SerializerOptions(logical_type=kind, flow=DatasetsFrameFlow(logical_type=kind))
        encoder = GenericSinkTermEncoder(lookup_preset=options.lookup_preset)
        self._stream = QuadStream(encoder=encoder, options=options)

    def frame(self, nquads: str) -> bytes:
        """A frame, its length before it; the first has the stream's options, whatever is in it."""
        stream = self._stream
        first = not stream.enrolled
        stream.enroll()
        for quad in ox.parse(nquads, ox.RdfFormat.N_QUADS):
            stream.quad(tuple(map(_term, (quad.subject, quad.predicate, quad.object, quad.graph_name))))
        frame = stream.flow.frame_from_dataset()
        if frame is None:
            assert not first, "the options are a row"
            return b""
        content: bytes = frame.SerializeToString(deterministic=True)
        return _length(len(content)) + content


class JellyEventWriter:
    """Owns one file of events, a stream of its own; `close` completes it. Raises OSError and D2413."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._frames, self._clock = JellyFrames(), clock
        self._file = open(path, "wb")  # noqa: SIM115  # closed by `close`

    def add(self, events: Sequence[Composite]) -> None:
        """Append events, in order, as one frame."""
        self._file.write(self._frames.frame(nquads(events, self._clock)))

    def close(self) -> None:
        """Complete the file, on disk; a second time nothing happens."""
        if self._file.closed:
            return
        with self._file as file:
            file.write(self._frames.frame(""))  # the options, where nothing else was written
            file.flush()
            os.fsync(file.fileno())


def _length(size: int) -> bytes:
    """A varint of protobuf."""
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size])


def _term(term: Any) -> Any:
    from pyjelly.integrations.generic import generic_sink as terms  # noqa: PLC0415  # an extra

    if isinstance(term, ox.NamedNode):
        return terms.IRI(term.value)
    if isinstance(term, ox.BlankNode):
        return terms.BlankNode(term.value)
    if isinstance(term, ox.DefaultGraph):
        return terms.DefaultGraph
    datatype = term.datatype.value
    plain = term.language is not None or datatype == "http://www.w3.org/2001/XMLSchema#string"
    return terms.Literal(term.value, term.language, None if plain else datatype)
