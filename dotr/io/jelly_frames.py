"""Graphs and events as frames of Jelly: what `-o x.jelly` writes.

Place:   conversion.py and files/event_sinks.py hand over N-Quads of what came together; parts of a feed and
         of a batch are files of their own.
Method:  a stream of the logical type TIMESTAMPED_NAMED_GRAPHS in quads, as N-Quads of dotr are: of each graph
         its stamp in the default graph, then its quads. A frame is what was handed over.
Bad input: D2413 pyjelly is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyoxigraph as ox

from dotr.errors import UsageError
from dotr.events import Clock, Composite
from dotr.io.event_formats import nquads

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
