"""What a document may cost its parser: levels, attributes, entities, growth, empty content.

Method:  whatever makes the parser recurse (JSON-LD, triple terms) or costs it the depth of every node
         (RDF/XML) is measured before parsing, by a scan that jumps over strings and comments and starts only
         where a document has enough brackets. Growth (a long prefix in many short names) is measured as
         statements are written.
         Empty content: a few kilobytes can be unpacked to gigabytes of blanks, comments, declarations and
         empty brackets, which take a parser minutes. So `QuietBytes` examines every text part by part as it
         is read, before it is parsed: consecutive bytes without a statement are bounded by a sixteenth of
         --max-document (16 MiB at least, and never more than --max-document), which is about a second of work
         in every format.
Why not: a process of its own for every document: 30 ms each. A larger stack: deeper documents exist. A bound
         on the ratio of compression: a long run of equal readings has any ratio.
Bad input: D2007 grows without bound · D2020 too many levels, attributes, contexts or prefixes · D2023 empty
         content without end.
"""

from __future__ import annotations

import io
import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NoReturn

from dotr.errors import DataError
from dotr.regex import regex

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MAX_NESTING: Final = 200
"""Levels of one document: brackets of JSON-LD, elements of RDF/XML, triple terms. Stacks end at thousands."""

MAX_ATTRIBUTES: Final = 1_000
"""Attributes of one element of RDF/XML, whose parser compares each with all others."""

MAX_CONTEXT_TERMS: Final = 20_000_000
"""Terms of JSON-LD contexts that are copied, each context being copied wherever another is added: about a
microsecond each."""

MAX_PREFIXES: Final = 1 << 16
"""Characters of the prefixes that messages or transactions leave to those after them, which copy them."""

MAX_TERM: Final = 16 * 1024 * 1024
"""Bytes of one term as pyoxigraph reads it: its buffer."""

_ENTITIES: Final = 256 * 1024 * 1024
_ENTITY_SIZE: Final = 1_000_000
_GROWTH, _GROWN, _ALWAYS, _AT_MOST = 256, 64 << 20, 16, 2 << 30

_STRING = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS = regex(r"[^\[\]{}]++")
_ESCAPED = regex(r"\\u00(?:40|63|6f|6e|74|65|78)", re.IGNORECASE)  # of "@context"
_LEVEL: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
_TERM_LEVELS = regex(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+"""|\'\'\'(?:[^'\\]++|\\.|'(?!''))*+\'\'\'
    |"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+"|'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'
    |<[^<>"{}|^`\\\s]*+>|\#[^\n]*+|(?P<open><<\()|(?P<close>\)>>)''',
    re.VERBOSE | re.DOTALL,
)
_TAG = regex(
    r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<![^>]*+>?
    |<(?P<end>/)?(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>?""",
    re.VERBOSE | re.DOTALL,
)
_ENTITY = regex(r'<!ENTITY\s+([^\s%"]+)\s+"([^"]*)"')
_ENTITY_USE = regex(r"&([^\s;&#]+);")


def refuse_deep_terms(text: str, name: str) -> None:
    """Raise DataError D2020 for a document of the Turtle family whose triple terms nest too deep."""
    if "<<(" not in text or text.count("<<(") <= MAX_NESTING:
        return
    depth = 0
    for token in _TERM_LEVELS.finditer(text):
        if token["open"]:
            depth += 1
            if depth > MAX_NESTING:
                refuse_levels(name, f"{name}:{text.count(chr(10), 0, token.start()) + 1}")
        elif token["close"]:
            depth -= 1


def refuse_costly_json(text: str, name: str) -> None:
    """Raise DataError D2020 for JSON-LD whose arrays and objects nest too deep, or whose contexts are taken
    up too often.
    """
    if text.count("[") + text.count("{") > MAX_NESTING:
        brackets = _NO_BRACKETS.sub("", _STRING.sub("", text))
        if max(accumulate(map(_LEVEL.__getitem__, brackets)), default=0) > MAX_NESTING:
            refuse_levels(name, name)
    if text.count("@context") > 1 or _ESCAPED.search(text):
        _refuse_contexts(text, name)


def _refuse_contexts(text: str, name: str) -> None:
    try:
        value = json.loads(text, parse_int=str)
    except ValueError:
        return  # reported by the parser
    if _copied_terms(value) > MAX_CONTEXT_TERMS:
        raise DataError.of(
            "D2020",
            f"the contexts of `{name}` extend one another too often",
            place=name,
            label=f"more than {MAX_CONTEXT_TERMS:,} terms would be copied",
            hint="give the document one context, at its head",
        )


def _copied_terms(document: object) -> int:
    """How many terms a JSON-LD parser copies at most: all that hold, for every context that is taken up."""
    copied = objects = terms = scoped = 0
    waiting: list[tuple[object, int]] = [(document, 0)]
    while waiting:
        node, held = waiting.pop()
        if isinstance(node, list):
            waiting.extend((item, held) for item in node if isinstance(item, dict | list))
        elif isinstance(node, dict):
            objects += 1
            types = node.get("@type")
            objects += len(types) if isinstance(types, list) else 0
            if "@context" in node:
                own, inner = _context_size(node["@context"])
                held += own
                copied += held
                terms, scoped = max(terms, held), scoped + inner
            waiting.extend(
                (value, held)
                for key, value in node.items()
                if key != "@context" and isinstance(value, dict | list)
            )
    return copied + (objects * terms if scoped else 0)


def _context_size(context: object) -> tuple[int, int]:
    """(terms of a context, contexts inside its definitions)."""
    terms = scoped = 0
    waiting = [context]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            terms += len(node)
            scoped += "@context" in node
            waiting.extend(node.values())
    return terms, scoped


def refuse_costly_xml(text: str, name: str) -> None:
    """Raise DataError for RDF/XML whose entities would swell (D2007), or whose elements nest too deep or have
    too many attributes (D2020).
    """
    _refuse_entity_bomb(text, name)
    if text.count("<") <= MAX_NESTING and text.count("=") <= MAX_ATTRIBUTES:
        return
    depth = 0
    for tag in _TAG.finditer(text):
        if tag["end"]:
            depth -= 1
            continue
        start, end = tag.span()
        if text[start + 1 : start + 2] in "!?":
            continue
        if end - start > MAX_ATTRIBUTES and text.count("=", start, end) > MAX_ATTRIBUTES:
            _refuse_attributes(name, f"{name}:{text.count(chr(10), 0, start) + 1}")
        depth += text[end - 2 : end] != "/>"
        if depth > MAX_NESTING:
            refuse_levels(name, f"{name}:{text.count(chr(10), 0, start) + 1}")


def refuse_levels(name: str, place: str) -> NoReturn:
    """Raise DataError D2020 for a document that nests too deep."""
    raise DataError.of(
        "D2020",
        f"`{name}` nests deeper than a document may",
        place=place,
        label=f"more than {MAX_NESTING} levels",
        hint="give inner nodes names, and describe them side by side",
    )


def refuse_prefixes(size: int, name: str, place: str) -> None:
    """Raise DataError D2020 where the prefixes that are carried on have too many characters."""
    if size > MAX_PREFIXES:
        raise DataError.of(
            "D2020",
            f"`{name}` passes on more prefixes than it may",
            place=place,
            label=f"more than {MAX_PREFIXES:,} characters",
            hint="write IRIs in full where a prefix is used once",
        )


def _refuse_attributes(name: str, place: str) -> NoReturn:
    raise DataError.of(
        "D2020",
        f"an element of `{name}` has more attributes than one may",
        place=place,
        label=f"more than {MAX_ATTRIBUTES}",
        hint="write properties as elements",
    )


def _refuse_entity_bomb(text: str, name: str) -> None:
    sizes: dict[str, int] = {}
    for entity, value in _ENTITY.findall(text):
        if entity in sizes:  # XML takes the first, the parser the last, of comments, too
            raise _swells(f"the entity `{entity}` of `{name}` is declared twice", name)
        sizes[entity] = len(value) + sum(sizes.get(inner, 0) for inner in _ENTITY_USE.findall(value))
    total = sum(sizes.get(used, 0) for used in _ENTITY_USE.findall(text)) if sizes else 0
    if total > _ENTITIES or max(sizes.values(), default=0) > _ENTITY_SIZE:
        raise _swells(f"the XML entities of `{name}` expand without bound", name)


def _swells(message: str, name: str) -> DataError:
    return DataError.of("D2007", message, place=name, hint="write the IRIs in full")


def may_grow_to(size: int) -> int:
    """Bytes that the statements of a document of `size` bytes may have, written out in full."""
    return max(min(_GROWN + _GROWTH * size, _AT_MOST), _ALWAYS * size)


class Overgrown(Exception):  # noqa: N818  # not an error by itself: reported by who knows the document's name
    """The statements of a document are larger than they may be."""


class BoundedOutput(io.BytesIO):
    """Owns statements as they are written out; raises Overgrown beyond `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._left = limit

    def write(self, part: ReadableBuffer, /) -> int:
        size = super().write(part)
        self._left -= size
        if self._left < 0:
            raise Overgrown
        return size


def grows(name: str) -> DataError:
    return DataError.of(
        "D2007",
        f"`{name}` expands without bound",
        place=name,
        label="a short text whose names are long when they are written in full",
        hint="write shorter prefixes",
    )


def has_long_term(statements: bytes) -> bool:
    """Whether a line of N-Triples or N-Quads has a term that no parser of such lines would read again."""
    return len(statements) > MAX_TERM and max(map(len, statements.split(b"\n"))) > MAX_TERM


def long_term(name: str) -> DataError:
    return DataError.of(
        "D2021",
        f"`{name}` has a term or a comment that is too long",
        place=name,
        label=f"{MAX_TERM} bytes or more",
        notes=("--max-document bounds whole documents and does not change this limit",),
        hint="keep such content in a file, and its address in the graph",
    )


def no_memory(name: str) -> DataError:
    return DataError.of(
        "D2022",
        f"memory ran out while `{name}` was read",
        place=name,
        hint="split the document, or lower --max-document so that such documents are refused earlier",
    )


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
    """Consecutive bytes that may be without content, where a document may have `limit`."""
    return min(limit, max(_LEAST, limit // 16))


def is_quiet(lines: bytes) -> bool:
    """Whether whole lines are blank, or comments after `#`."""
    return lines.isspace() or _BLANK_LINES.match(lines) is not None


def says_nothing(
    place: str,
    limit: int,
    what: str = _QUIET,
    hint: str = "take them out, or raise --max-document",
) -> DataError:
    """A source that continues without a statement, a row or a message for more than `limit` of `what`."""
    return DataError.of(
        "D2023",
        f"`{place}` continues without content",
        place=place,
        label=f"more than {limit} {what} in a row",
        hint=hint,
    )


class QuietBytes:
    """Owns the count of consecutive bytes without content, in the parts of the source `name`.

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
