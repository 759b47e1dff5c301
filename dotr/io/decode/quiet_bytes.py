"""What goes on and says nothing: blanks, comments, declarations and empty brackets, counted while it is read.

Place:   under every reader of text; documents.py, quads.py, message_logs.py, json_lines.py and the readers of
         files ask it.
Method:  a few kilobytes can be unpacked to gigabytes of comments, which take a parser minutes and are worth
         nothing. So what is read is looked at part by part, before it is parsed: bytes in a row in which
         nothing is said are bounded by a sixteenth of --max-document (16 MiB at least, and never more than
         --max-document), which is about a second of work in every format.
Why not: bound the ratio of compression: a long run of equal readings has any.
Bad input: D2023.
"""

from __future__ import annotations

from dotr.errors import DataError
from dotr.regex import regex

_LEAST = 16 << 20
_QUIET = "bytes of blank lines and comments"
_BLANK_LINES = regex(rb"(?:\s++|\#[^\n]*+)*+\Z")
_BLANK_TEXT = regex(rb"(?:[\s{}]++|\#[^\n]*+)*+\Z")
_DECLARED = regex(
    rb"(?:\s++|\#[^\n]*+|@?(?i:prefix)\s++[^\s<>]*+\s*+<[^<>\s]*+>(?:\s*+\.)?+"
    rb"|@?(?i:base)\s++<[^<>\s]*+>(?:\s*+\.)?+|(?:(?i:graph)\s++)?+(?:<[^<>\s]*+>|_?[\w.-]*+:[\w.-]*+)?+\s*+\{\s*+\})*+\Z"
)
"""Declarations and empty graphs, too."""
_BLANK_XML = regex(rb"(?:\s++|<!--(?:[^-]++|-(?!->))*+(?:-->|\Z))*+\Z")
_BRACKETS = b" \t\r\n[]{},"


def quiet_limit(limit: int) -> int:
    """Bytes in a row that may say nothing, where a document may have `limit`."""
    return min(limit, max(_LEAST, limit // 16))


def is_quiet(lines: bytes) -> bool:
    """Whether whole lines are blank, or comments behind `#`."""
    return lines.isspace() or _BLANK_LINES.match(lines) is not None


def says_nothing(
    place: str,
    limit: int,
    what: str = _QUIET,
    hint: str = "take them out, or raise --max-document",
) -> DataError:
    """A source that goes on without a statement, a row or a message; `limit` of what there were."""
    return DataError.of(
        "D2023",
        f"`{place}` goes on and says nothing",
        place=place,
        label=f"more than {limit} {what} in a row",
        hint=hint,
    )


class QuietBytes:
    """Owns the count of bytes in a row that say nothing, in the parts of the source `name`.

    `comments`: what begins one, `#` or `<!--`; `{}` for JSON, which has empty brackets instead. `limit`: of
    one document.
    """

    def __init__(self, name: str, limit: int, comments: str = "#") -> None:
        self._name, self._limit = name, quiet_limit(limit)
        self._said = {"#": self._lines, "<!--": self._xml, "{}": self._json}[comments]
        self._what = "bytes of empty brackets" if comments == "{}" else _QUIET
        self._count = 0
        self._open = False
        """Whether a comment goes on from one part to the next."""
        self._begun = b""

    def take(self, part: bytes) -> bytes:
        """The next part, given back. Raises DataError D2023."""
        self._count = self._count + len(part) if self._said(part) else 0
        if self._count > self._limit:
            raise says_nothing(self._name, self._limit, self._what)
        return part

    def _lines(self, part: bytes) -> bool:
        start = (part.find(b"\n") + 1 or len(part)) if self._open else 0
        nothing = _BLANK_TEXT.match(part, start) is not None
        last = part.rfind(b"\n") + 1
        if not nothing and _DECLARED.match(part[part.find(b"\n") + 1 : last]):
            self._open = False
            return last > len(part) // 2  # whole lines, most of the part
        begun = b"#" in part[last:] if nothing else last and part[last:].lstrip()[:1] == b"#"
        self._open = bool(begun) or (nothing and self._open and not last)
        return nothing

    def _xml(self, part: bytes) -> bool:
        part = self._begun + part
        nothing = _BLANK_XML.match(part) is not None
        self._begun = b""
        if not nothing:
            cut = part.rfind(b"<", -3)  # half of what begins a comment
            if cut < 0 or not b"<!--".startswith(part[cut:]) or not _BLANK_XML.match(part[:cut]):
                return False
            self._begun = part[cut:]
        elif part.rfind(b"<!--") > part.rfind(b"-->"):
            self._begun = b"<!-- " + part[-2:]
        return True

    def _json(self, part: bytes) -> bool:
        return not part.translate(None, _BRACKETS)
