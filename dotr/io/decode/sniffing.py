"""How a document is written whose name does not say it: standard input and pipes.

Place:   asked by reader.py with the first bytes.
Method:  frames of Jelly begin with the options of their stream; an object is JSON lines; a line of four
         terms is N-Quads; anything else is TriG, of which Turtle and N-Triples are part. Our own N-Quads
         begin with a line that is a plain triple, so lines are waited for until one decides.
"""

from __future__ import annotations

import re

from dotr.io.decode.documents import Format, format_of
from dotr.regex import regex

SNIFF = 1 << 16
_THREE_TERMS = (
    rb'^[ \t]*(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)[ \t]*'
)
_TRIPLE_LINE = regex(_THREE_TERMS + rb"\.\s*(?:#.*)?$")
_QUAD_LINE = regex(_THREE_TERMS + rb'(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*\.\s*$', re.MULTILINE)


def undecided(head: bytes, file: str) -> bool:
    """Whether more must be seen: a line at least, and without a name a line that is not also a plain
    triple.
    """
    head = head.lstrip()
    if b"\n" not in head or format_of(file) is not None:
        return b"\n" not in head
    lines = head.split(b"\n")[:-1]
    return all(not line.strip() or line.lstrip()[:1] == b"#" or _TRIPLE_LINE.match(line) for line in lines)


def is_jelly(head: bytes) -> bool:
    """Whether a document begins with a frame of Jelly, its length before it or not. Its first row is the
    stream's options, and the lengths of the row and of the options in it fit: no text of RDF begins so.
    """
    return _options_row(head) or _options_row(head[_varint(head, 0)[1] :])


def _options_row(frame: bytes) -> bool:
    """Whether a frame (rows are its field 1, options field 1 of a row) begins with a row of options."""
    row, at = _varint(frame, 1)
    options, end = _varint(frame, at + 1)
    return frame[:1] == b"\n" and frame[at : at + 1] == b"\n" and options > 0 and row == options + end - at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """(a number of protobuf, where it ends); (0, the end of the content) where it is cut off."""
    value = 0
    for shift, byte in enumerate(content[at : at + 5]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, at + shift + 1
    return 0, len(content)


def guess(head: bytes) -> Format:
    """How standard input is written: JSON lines, N-Quads, or some Turtle (read as TriG)."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb'\{\s*(?:"|\})', start):
        return Format.JSONLINES
    return line_format(head)


def line_format(head: bytes) -> Format:
    """N-Quads when a line has a graph name, else TriG, of which Turtle and N-Triples are part."""
    return Format.NQUADS if _QUAD_LINE.search(head) else Format.TRIG
