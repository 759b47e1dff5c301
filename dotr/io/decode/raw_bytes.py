"""The original bytes of one graph of a quad document: for dead letters.

Place:   used by reader.py, and only where documents may be refused.
Method:  what was read of a file is kept on a tape until the graphs before it are through. Of N-Quads that are
         streamed, a graph is the bytes between two graphs; of N-Quads grouped whole, its lines; of TriG, its
         blocks, found by their braces, whose names pyoxigraph spells out.
Why not: keep the bytes with every graph: few are refused.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.decode.parsing import parse_quads
from dotr.io.decode.quad_lines import placed_lines
from dotr.rdf.terms import Term
from dotr.regex import regex

_SKIPPED = regex(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+"""|\'\'\'(?:[^'\\]++|\\.|'(?!''))*+\'\'\'
    |"(?:[^"\\\r\n]++|\\.)*+"|'(?:[^'\\\r\n]++|\\.)*+'
    |<[^<>"{}|^`\\\s]*+>|\#[^\n]*+|(?P<open>\{)|(?P<close>\})''',
    re.VERBOSE | re.DOTALL,
)
_LABEL = regex(r"(?:<[^<>\s]*>|[^\s<>{}\"';,.][^\s<>{}\"';,]*)\s*\Z")
_DIRECTIVE = regex(r"(?:@?prefix\s+[^\s:<>]*:|@?base)\s*<[^<>\s]*>", re.IGNORECASE)


class RawBytes(Struct):
    """Owns the bytes read of a document, from `start` on, that are not yet through.

    What has more than `limit` bytes that are not is forgotten from the head (0: nothing is).
    """

    start: int
    limit: int = 0
    _parts: deque[bytes] = field(default_factory=deque)
    _size: int = 0

    def take(self, content: bytes) -> None:
        """The next bytes were read."""
        self._parts.append(content)
        self._size += len(content)
        while self.limit and self._size > self.limit:
            self._drop()

    def _drop(self) -> None:
        part = self._parts.popleft()
        self.start += len(part)
        self._size -= len(part)

    def passed(self, end: int) -> None:
        """What is before byte `end` is not needed any more."""
        while self._parts and self.start + len(self._parts[0]) <= end:
            self._drop()

    def between(self, start: int, end: int) -> bytes | None:
        """Bytes of the document, None if they are not on the tape."""
        if not self.start <= start < end <= self.start + self._size:
            return None
        content = b"".join(self._parts)
        return content[start - self.start : end - self.start]

    def everything(self) -> bytes | None:
        """All that was read, None if its head is gone."""
        return None if self.start else b"".join(self._parts)


def pieces(content: bytes, format_: Format, name: str, base: str | None) -> dict[Term, bytes]:
    """Graph name → its part of a whole document of N-Quads (with what unreadable lines stand before it; those
    at the end are under "") or TriG. What cannot be distinguished is left out.
    """
    if format_ is Format.NQUADS:
        return _lines(content, name)
    found: dict[Term, bytes] = {}
    try:
        blocks = list(_blocks(content.decode()))
        header = " ".join(_turtle(directive) for directive in _DIRECTIVE.findall(content.decode()))
        named = "".join(
            f"{label} {{ <urn:x:{i}> <urn:x:p> <urn:x:o> }}\n" for i, (label, _) in enumerate(blocks)
        )
        for subject, _p, _o, graph in parse_quads(f"{header}\n{named}", format_, name, base):
            block = blocks[int(subject[len("<urn:x:") : -1])][1].encode()
            found[graph] = found[graph] + b"\n" + block if graph in found else block
    except (DataError, UnicodeDecodeError):
        return {}
    return found


def _turtle(directive: str) -> str:
    """A directive in the form that has no dot."""
    return directive.removeprefix("@")


def _lines(content: bytes, name: str) -> dict[Term, bytes]:
    raw = content.split(b"\n")
    found: dict[Term, list[bytes]] = {}
    lost: list[bytes] = []
    for (s, p, _o, g), number, _end in placed_lines(content, name, 1, 0, forgiving=True):
        if not p:
            lost.append(raw[number - 1])
            continue
        found.setdefault(g or s, []).extend([*lost, raw[number - 1]])
        lost.clear()
    if lost:
        found[""] = lost
    return {key: b"".join(line + b"\n" for line in lines) for key, lines in found.items()}


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The graph blocks of a TriG document with the label of each; blocks of the default graph have none."""
    depth = begun = 0
    clean: list[str] = []  # the text since the last block, without comments
    since = 0
    for token in _SKIPPED.finditer(text):
        if token["open"]:
            depth += 1
            if depth == 1:
                clean.append(text[since : token.start()])
                begun = token.start()
        elif token["close"]:
            depth -= 1
            if depth == 0:
                head = "".join(clean)
                label = _LABEL.search(head)
                if label is not None:
                    written = label[0].strip()
                    yield written, f"{written} {text[begun : token.end()]}"
                clean.clear()
                since = token.end()
        elif depth == 0 and token[0].startswith("#"):
            clean.append(text[since : token.start()])
            since = token.end()
