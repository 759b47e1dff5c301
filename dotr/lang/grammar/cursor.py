"""The base of every parser in lang/: tokens, a cursor over them, names and IRIs, findings, recovery.

Place:   one cursor per source string, which all its parsers (expressions.py, sparql.py, dotr.py, …) share.
Method:  recursive descent. A syntax error is recorded and raised as `Skip`, which is caught by the nearest
         construct that knows where it ends: a clause, an embedded query, a rule. What parses but means
         nothing (an undeclared prefix, a forbidden function) is only recorded: one run reports everything
         wrong.
         Tokens: the same for .dotr, .dlog and SPARQL. One master regular expression, longest match as in
         SPARQL 1.1 (sec. 19.8), plus `:=`, `:-`, `Name.?v` and `Name.time` as single tokens. Every quantifier
         that could backtrack is possessive, and a run like `a.a.a` that turned out to end without a colon is
         not tried as a prefix again: linear time.
         IRIs: resolved against BASE by RFC 3986, sec. 5.2 (strict), on the string: nothing is decoded, no
         scheme is special.
         Parameters: the terms and durations that parameters of a .dotr file stand for while it is read.
         Foreign words: how to write here what a word of another language means (Esper's EPL, Flink SQL and
         its MATCH_RECOGNIZE, C-SPARQL and CQELS, SQL), for messages at unexpected words.
Why not: a grammar tool: positions, recovery and messages are the point here, and a generated lexer is slower.
         urllib.parse.urljoin: it knows a list of schemes and leaves `urn:` and the like alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple, assert_never

import pyoxigraph as ox
from msgspec import Struct

from dotr.errors import DataError, Diagnostics
from dotr.lang.checks.comparisons import STAND_IN
from dotr.lang.grammar.syntax import Duration, Name, ParameterValue, Reference
from dotr.rdf.terms import (
    FALSE,
    RDF_TYPE,
    TRUE,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Term,
    canonical,
    iri,
    literal,
)
from dotr.regex import regex
from dotr.source import Source, Span

_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_ESCAPED = rf"%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?#@%]|{_UCHAR}"
_NAME = r"[A-Za-z][A-Za-z0-9_]*+"
_LETTERS = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_MARKS = "\u00b7\u0300-\u036f\u203f-\u2040"


class _Letters(NamedTuple):
    """Character classes of names: a first letter, that with `_`, after it, with `-`, with `-` and `:`."""

    first: str
    start: str
    inner: str
    chars: str
    local: str


_EXACT: Final = _Letters(
    f"[A-Za-z{_LETTERS}]",
    f"[A-Za-z_{_LETTERS}]",
    f"[A-Za-z_{_LETTERS}0-9{_MARKS}]",
    f"[A-Za-z_{_LETTERS}0-9{_MARKS}\\-]",
    f"[A-Za-z_{_LETTERS}0-9{_MARKS}\\-:]",
)
_QUICK: Final = _Letters(  # everything beyond ASCII, by what is left out: such classes compile in no time
    r"[^\x00-@\[-`{-\x7f]",
    r"[^\x00-@\[-\^`{-\x7f]",
    r"[^\x00-/:-@\[-\^`{-\x7f]",
    r"[^\x00-,./:-@\[-\^`{-\x7f]",
    r"[^\x00-,./;-@\[-\^`{-\x7f]",
)


def _master(letters: _Letters, prefixes: bool) -> re.Pattern[str]:
    """The regular expression of a token."""
    start, inner, chars = letters.start, letters.inner, letters.chars
    local = (
        rf"(?:{start}|[:0-9]|{_ESCAPED})(?:{letters.local}++|{_ESCAPED}|\.++(?:{letters.local}|{_ESCAPED}))*+"
    )
    prefix = rf"(?:(?:{letters.first}|{_UCHAR})(?:{chars}++|{_UCHAR}|\.++{chars})*+)?" if prefixes else ""
    var = rf"[?$](?:{start}|[0-9]|{_UCHAR})(?:{inner}|{_UCHAR})*+"
    return regex(
        r"|".join(
            (
                r"(?P<blank>[ \t\r\n\f\ufeff]++)",
                r"(?P<comment>#[^\n\r]*+)",
                rf"(?P<iri><(?:[^\x00-\x20<>\"{{}}|^`\\]|{_UCHAR})*+>)",
                r"(?P<define>:=|:-)",
                rf"(?P<pname>{prefix}:(?:{local}|(?!=)))",
                rf"(?P<attribute>{_NAME}\.{var})",
                rf"(?P<timeof>{_NAME}\.[tT][iI][mM][eE](?![A-Za-z0-9_]))",
                rf"(?P<name>{_NAME})",
                rf"(?P<var>{var})",
                r"(?P<double>(?:[0-9]++\.[0-9]*+|\.[0-9]++|[0-9]++)[eE][+-]?[0-9]++)",
                r"(?P<decimal>[0-9]*+\.[0-9]++)",
                r"(?P<integer>[0-9]++)",
                (
                    r'(?P<string>"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""'
                    r"|'''(?:[^'\\]++|\\[\s\S]|'(?!''))*+'''"
                    r'|"(?!"")(?:[^"\\\n\r]++|\\[^\n\r])*+"'
                    r"|'(?!'')(?:[^'\\\n\r]++|\\[^\n\r])*+')"
                ),
                rf"(?P<label>_:(?:{start}|[0-9])(?:{chars}++|\.++{chars})*+)",
                r"(?P<language>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+)",
                r"(?P<op>\^\^|\|\||&&|!=|<=|>=|[{}()\[\],;.|/^*+\-?!=<>])",
                r'(?P<open>"""[\s\S]*+|\'\'\'[\s\S]*+|["\'][^\n\r]*+)',
            )
        )
    )


_TOKEN: Final = _master(_QUICK, prefixes=True)
_WITHIN_RUN: Final = _master(_QUICK, prefixes=False)
_RUN: Final = regex(rf"(?:{_QUICK.chars}|\.|{_UCHAR})++")
_WORDS: Final = frozenset(("pname", "attribute", "var", "label"))
_STRAY: Final = regex(r"""[_\\]+|[^ \t\r\n\f\ufeff#<>:A-Za-z0-9?$"'_\\@^|&!=(){}\[\],;.*/+\-]+""")


@lru_cache(maxsize=2)
def _exact(prefixes: bool) -> re.Pattern[str]:
    """SPARQL's very letters. They take a tenth of a second to compile, so only who needs them pays."""
    return _master(_EXACT, prefixes)


_MEANT: Final = {"&": "&&", "≤": "<=", "≥": ">=", "≠": "!=", "×": "*", "−": "-"}
_TYPOGRAPHIC: Final = regex(r'[“”„]([^“”"\\\n\r]*+)[“”"]')
_ESCAPE: Final = regex(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([\s\S]))")
_ECHAR: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}


MOST_FINDINGS: Final = 100
"""A string with more findings than this is not read on: it is not a program."""


class Token(Struct):
    """One token. `key` is what parsers compare: a name in upper case, an operator's text, else the kind.

    Kinds: iri define pname attribute timeof name var double decimal integer string label language op end.
    """

    kind: str
    key: str
    text: str
    start: int
    end: int

    @property
    def torn(self) -> bool:
        """Whether it is a string that does not end."""
        return self.kind == "string" and len(self.text) != self.end - self.start


def tokenize(source: Source, found: Diagnostics) -> list[Token]:
    """The tokens of a string without blanks and comments; the last one has kind `end`.

    Lexical errors go to `found` and the text after them is read on. Linear in the text.
    """
    text = source.text
    tokens: list[Token] = []
    append = tokens.append
    position, length = 0, len(text)
    no_prefix_from = 0  # before this character no prefix ends
    match = _TOKEN.match
    while position < length:
        hit = match(text, position) if position >= no_prefix_from else _WITHIN_RUN.match(text, position)
        if hit is not None and hit.lastgroup in _WORDS and not hit.group().isascii():
            hit = _exact(position >= no_prefix_from).match(text, position)
        if hit is None:
            if len(found.found) >= MOST_FINDINGS:
                place = Span(source, position, position + 1)
                found.error("D1006", "too many findings; the rest is not read", place)
                break
            if position >= no_prefix_from:
                no_prefix_from = _no_prefix_from(text, position)
            position = _stray(source, position, found, append)
            continue
        kind = hit.lastgroup
        start, position = position, hit.end()
        if kind == "blank" or kind == "comment":
            continue
        part = hit.group()
        if kind == "name":
            append(Token("name", part.upper(), part, start, position))
            if start >= no_prefix_from and position < length and text[position] in ".-\\":
                no_prefix_from = _no_prefix_from(text, start)
        elif kind == "op" or kind == "define":
            append(Token("op", part, part, start, position))
        elif kind == "open":
            _unterminated(source, start, position, found)
            append(Token("string", "string", part[:1] + part[:1], start, position))
        else:
            assert kind is not None
            append(Token(kind, kind, part, start, position))
    append(Token("end", "end", "", length, length))
    return tokens


def _no_prefix_from(text: str, start: int) -> int:
    """How far no prefix ends, where a run of name characters was found to end without a colon."""
    run = _RUN.match(text, start)
    return run.end() if run is not None and text[run.end() : run.end() + 1] != ":" else 0


def comments(source: Source) -> list[tuple[int, int]]:
    """Start and end of every comment of a string."""
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(source.text):
        hit = _TOKEN.match(source.text, position)
        if hit is not None and hit.lastgroup == "comment":
            spans.append((position, hit.end()))
        position = hit.end() if hit is not None else position + 1
    return spans


def _stray(source: Source, start: int, found: Diagnostics, append: Callable[[Token], None]) -> int:
    """Report characters that begin no token, as one finding; return where to go on.

    Where it is plain what was meant, that token is appended.
    """
    meant = _MEANT.get(source.text[start])
    if meant is not None:
        append(Token("op", meant, meant, start, start + 1))
        span = Span(source, start, start + 1)
        found.error("D1001", f"`{source.text[start]}` does not begin a token", span, hint=f"write `{meant}`")
        return start + 1
    quoted = _TYPOGRAPHIC.match(source.text, start)
    if quoted is not None:
        append(Token("string", "string", f'"{quoted.group(1)}"', start, quoted.end()))
        found.error(
            "D1001",
            f"`{source.text[start]}` does not begin a token",
            Span(source, start, quoted.end()),
            hint='write straight quotation marks: "…"',
        )
        return quoted.end()
    hit = _STRAY.match(source.text, start) or _RUN.match(source.text, start)
    end = hit.end() if hit is not None else start + 1
    part = source.text[start : min(end, start + 20)]
    shown = "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in part)
    hint = {
        "$": "a variable is `$` or `?` with a name",
        "_": "names begin with a letter",
        "%": "a `%` is allowed only in names after a colon, as in `%20`",
    }.get(source.text[start], "")
    found.error("D1001", f"`{shown}` does not begin a token", Span(source, start, end), hint=hint)
    return end


def _unterminated(source: Source, start: int, end: int, found: Diagnostics) -> None:
    quote = (
        source.text[start : start + 3]
        if source.text[start : start + 3] in ('"""', "'''")
        else source.text[start]
    )
    stop = min(end, source.text.find("\n", start) if "\n" in source.text[start:end] else end)
    found.error(
        "D1002",
        "this string does not end",
        Span(source, start, stop),
        hint=f"close it with `{quote}`"
        + ("; a string of several lines needs three quotation marks" if len(quote) == 1 else ""),
    )


def string_value(token: Token, source: Source, found: Diagnostics) -> str:
    """The text that a string token stands for; bad escapes are reported and kept as they are."""
    text = token.text
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    body = text[width : len(text) - width]
    return unescape(body, token, source, found, strings=True) if "\\" in body else body


def unescape(text: str, token: Token, source: Source, found: Diagnostics, *, strings: bool = False) -> str:
    r"""Resolve `\uXXXX` and, in strings, `\n` and its like. Surrogates and unknown escapes are reported."""

    def value(hit: re.Match[str]) -> str:
        code = hit.group(1) or hit.group(2)
        if code is not None:
            number = int(code, 16)
            if number < 0x110000 and not 0xD800 <= number < 0xE000:
                return chr(number)
        elif not strings:
            return hit.group()
        elif hit.group(3) in _ECHAR:
            return _ECHAR[hit.group(3)]
        found.error(
            "D1003",
            f"`{hit.group()}` is not an escape sequence",
            Span(source, token.start, token.end),
            hint="write one of \\t \\b \\n \\r \\f \\\\ \\\" \\' \\uXXXX; a backslash itself is `\\\\`",
        )
        return "\ufffd"

    return _ESCAPE.sub(value, text)


_PARTS: Final = regex(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME: Final = regex(r"[^:/?#]*:")


def is_absolute(reference: str) -> bool:
    """Whether it begins with a scheme, right or wrong: the first segment of a relative one has no colon."""
    return _SCHEME.match(reference) is not None


def resolve(base: str, reference: str) -> str:
    """The absolute IRI of a valid reference. `base` is absolute. Linear."""
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is None:
        base_scheme, base_authority, base_path, base_query, _ = _split(base)
        scheme = base_scheme
        if authority is None:
            authority = base_authority
            if path == "":
                path = base_path
                query = base_query if query is None else query
            elif not path.startswith("/"):
                path = _merge(base_authority, base_path, path)
    path = _without_dots(path)
    out = f"{scheme}:"
    if authority is not None:
        out += f"//{authority}"
    out += path
    if query is not None:
        out += f"?{query}"
    if fragment is not None:
        out += f"#{fragment}"
    return out


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    hit = _PARTS.match(text)
    assert hit is not None, "the pattern matches every text"
    return hit.group(1), hit.group(2), hit.group(3) or "", hit.group(4), hit.group(5)


def _merge(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove `.` and `..` segments (sec. 5.2.4)."""
    if "." not in path:
        return path
    rooted = path.startswith("/")
    segments = path.split("/")
    out: list[str] = []
    for segment in segments[1:] if rooted else segments:
        if segment == "..":
            if out:
                out.pop()
        elif segment != ".":
            out.append(segment)
    if segments[-1] in (".", ".."):
        out.append("")
    return ("/" if rooted else "") + "/".join(out)


DEEPEST: Final = 64
"""Brackets in brackets, and the height of an expression's tree."""


class Skip(Exception):  # noqa: N818  # not an error but a jump: the finding is recorded already
    """Parsing cannot go on here."""


def nearest(name: str, known: Iterable[str], sign: str = "") -> str:
    """A did-you-mean hint, or nothing when no known name is near."""
    candidates = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    found = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean `{sign}{folded[found[0]]}`?" if found else ""


@lru_cache(maxsize=65536)
def valid_iri(value: str) -> bool:
    """Whether the RDF store accepts this absolute IRI."""
    try:
        ox.NamedNode(value)
    except ValueError:
        return False
    return True


class Cursor:
    """Owns the place in one text's tokens, the findings made there, and the prefixes that hold."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        self.source = source
        self.found = Diagnostics() if found is None else found
        self.tokens = tokenize(source, self.found)
        self.at = 0
        self.token = self.tokens[0]
        self.prefixes: dict[str, str] = {}
        self.used: set[str] = set()
        self.declared: dict[str, Span] = {}
        self.base: str | None = None
        self.code = "D1004"  # of syntax errors: D1201 inside a query, D3001 in Datalog
        self.depth = 0  # of brackets
        self.undeclared: set[str] = set()  # prefixes that have been reported

    # -- tokens ------------------------------------------------------------

    @property
    def key(self) -> str:
        return self.token.key

    def peek(self, ahead: int = 1) -> Token:
        """A token further on; the end token stands for everything after it."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Take the current token. The end token is never passed."""
        token = self.token
        if token.kind != "end":
            self.at += 1
            self.token = self.tokens[self.at]
        return token

    def jump(self, at: int) -> None:
        self.at = min(at, len(self.tokens) - 1)
        self.token = self.tokens[self.at]

    def accept(self, key: str) -> Token | None:
        return self.advance() if self.token.key == key else None

    def expect(self, key: str, what: str = "", hint: str = "") -> Token:
        if self.token.key == key:
            return self.advance()
        raise self.fail(what or f"`{key}`", hint)

    def split_attribute(self) -> None:
        """Inside a query `true.?x` is `true`, `.`, `?x`: put the three tokens in place of the one."""
        token = self.token
        dot = token.text.index(".")
        name, rest = token.text[:dot], token.text[dot + 1 :]
        middle = token.start + dot
        variable = rest[0] in "?$"
        self.tokens[self.at : self.at + 1] = [
            Token("name", name.upper(), name, token.start, middle),
            Token("op", ".", ".", middle, middle + 1),
            Token(
                "var" if variable else "name",
                "var" if variable else rest.upper(),
                rest,
                middle + 1,
                token.end,
            ),
        ]
        self.token = self.tokens[self.at]

    # -- places and findings ------------------------------------------------------------

    def span(self, token: Token | None = None) -> Span:
        token = token or self.token
        return Span(self.source, token.start, token.end)

    def since(self, start: Token | int) -> Span:
        """From a token to the last one taken."""
        begin = start if isinstance(start, int) else start.start
        end = self.tokens[self.at - 1].end if self.at else begin
        return Span(self.source, begin, max(begin, end))

    def shown(self, token: Token | None = None) -> str:
        """How a message calls a token."""
        token = token or self.token
        if token.kind == "end":
            return "the end of the text"
        return f"`{token.text if len(token.text) <= 40 else token.text[:37] + '…'}`"

    def shown_since(self, token: Token) -> str:
        """The text from a token to the last one taken."""
        return self.source.text[token.start : self.tokens[self.at - 1].end]

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        label: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.found.error(code, message, span, label, hint, notes)
        if len(self.found.found) == MOST_FINDINGS:
            self.found.error("D1006", "too many findings; the rest is not read", self.span())
        if len(self.found.found) >= MOST_FINDINGS:
            self.jump(len(self.tokens))
            raise Skip

    def fail(self, expected: str, hint: str = "", token: Token | None = None) -> Skip:
        """Record a syntax error at the current token; the caller raises what it returns."""
        token = token or self.token
        if self.at and self.tokens[self.at - 1].torn:
            return Skip()  # an unterminated string has taken with it what is missed here
        self.error(self.code, f"expected {expected}, found {self.shown(token)}", self.span(token), hint=hint)
        return Skip()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One more bracket. Raises Skip when there are too many for anybody to read."""
        if self.depth >= DEEPEST:
            self.error(
                "D1005",
                f"brackets nest deeper than {DEEPEST} levels",
                self.span(),
                hint="split the text into several queries, rules or WITH variables",
            )
            raise Skip
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    @contextmanager
    def scope(self, code: str) -> Iterator[None]:
        """Prefixes and BASE declared inside end with it; its syntax errors have a code of their own."""
        prefixes, base, outer, used = self.prefixes, self.base, self.code, self.used
        self.prefixes, self.code, self.used = dict(prefixes), code, set()
        try:
            yield
        finally:
            self.used |= used
            self.prefixes, self.base, self.code = prefixes, base, outer

    # -- terms ------------------------------------------------------------

    def iri_text(self, token: Token) -> str:
        """The text between `<` and `>`, escapes resolved; not resolved against BASE."""
        text = token.text[1:-1]
        return unescape(text, token, self.source, self.found) if "\\" in text else text

    def absolute(self, text: str, token: Token) -> str:
        """An IRI reference resolved against BASE; findings leave a stand-in that is a valid IRI."""
        value = text
        if not is_absolute(text):
            if self.base is None:
                self.error(
                    "D1007",
                    f"`<{text}>` is a relative IRI and there is no BASE",
                    self.span(token),
                    hint="write the whole IRI, or `BASE <http://…>` above",
                )
                return "urn:dotr:unresolved"
            value = resolve(self.base, text)
        if not valid_iri(value):
            self.error("D1008", f"`<{value}>` is not a valid IRI", self.span(token))
            return "urn:dotr:unresolved"
        return value

    def iri_term(self) -> Term:
        """Take `<iri>` or `prefix:name` as a term."""
        token = self.token
        if token.kind == "iri":
            self.advance()
            return iri(self.absolute(self.iri_text(token), token))
        if token.kind == "pname":
            self.advance()
            return iri(self.expand(token))
        raise self.fail("an IRI")

    def expand(self, token: Token) -> str:
        """`prefix:local` as an IRI. An undeclared prefix is reported once per text."""
        prefix, local = token.text.split(":", 1)
        if "\\" in prefix:
            prefix = unescape(prefix, token, self.source, self.found)
        if "\\" in local:
            local = unescape(local, token, self.source, self.found)
            local = "".join(_unslash(local))
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            if prefix not in self.undeclared:
                self.undeclared.add(prefix)
                span = Span(self.source, token.start, token.start + len(prefix) + 1)
                hint = nearest(prefix, self.prefixes, "") if prefix else ""
                well_known = WELL_KNOWN.get(prefix)
                if well_known and not hint:
                    hint = f"add `PREFIX {prefix}: <{well_known}>`"
                hint = hint or f"add `PREFIX {prefix}: <http://…>`"
                self.error("D1101", f"the prefix `{prefix}:` is not declared", span, hint=hint)
            return "urn:dotr:unresolved"
        self.used.add(prefix)
        value = namespace + local
        if not valid_iri(value):
            self.error("D1008", f"`<{value}>` is not a valid IRI", self.span(token))
            return "urn:dotr:unresolved"
        return value

    def at_iri(self) -> bool:
        return self.token.kind in ("iri", "pname")

    def at_literal(self) -> bool:
        return self.token.kind in ("string", "integer", "decimal", "double") or self.key in ("TRUE", "FALSE")

    def literal_term(self) -> Term:
        """Take an unsigned literal, canonical. The current token begins one."""
        token = self.advance()
        if token.kind != "string":
            return self.number_term(token, token.text) if token.kind != "name" else _BOOLEANS[token.key]
        lexical = string_value(token, self.source, self.found)
        if self.token.kind == "language":
            return canonical(literal(lexical, language=self.advance().text[1:]))
        if self.accept("^^"):
            return self._canonical(token, literal(lexical, self.iri_term()[1:-1]))
        return literal(lexical)

    def number_term(self, token: Token, text: str) -> Term:
        return self._canonical(token, literal(text, NUMBERS[token.kind]))

    def _canonical(self, token: Token, term: Term) -> Term:
        """A literal that a token begins, canonical; one that cannot be is reported."""
        try:
            return canonical(term)
        except DataError as error:
            (one,) = error.diagnostics
            self.error(one.code, one.message, self.since(token), one.label, one.hint)
            return term

    def signed_number(self) -> Term | None:
        """Take `-5` or `+5` when a sign is directly before a number."""
        follower = self.peek()
        if self.key in ("-", "+") and follower.kind in NUMBERS and follower.start == self.token.end:
            sign = self.advance().text
            return self.number_term(self.token, sign + self.advance().text)
        return None

    def constant(self) -> Term | None:
        """Take an IRI or a literal, which may have a sign; None at anything else."""
        if self.at_iri():
            return self.iri_term()
        number = self.signed_number()
        if number is not None or not self.at_literal():
            return number
        return self.literal_term()

    def variable(self) -> Token:
        """Take a variable."""
        token = self.token
        if token.kind != "var":
            raise self.fail("a variable", f"write `?{token.text}`" if token.kind == "name" else "")
        return self.advance()

    def variable_name(self, token: Token) -> str:
        name = token.text[1:]
        return unescape(name, token, self.source, self.found) if "\\" in name else name

    # -- prologues ------------------------------------------------------------

    def declare_prefix(self, own: dict[str, Span] | None = None) -> None:
        """Take `PREFIX p: <iri>`. `own` holds the prefixes that this scope declared so far."""
        self.expect("PREFIX")
        token = self.token
        if token.kind != "pname" or not token.text.endswith(":") or token.text.count(":") != 1:
            hint = f"write `PREFIX {token.text}: <…>`" if token.kind == "name" else ""
            raise self.fail("a prefix such as `ex:`", hint)
        self.advance()
        if self.token.kind != "iri":
            raise self.fail("an IRI in angle brackets")
        value = self.absolute(self.iri_text(self.token), self.token)
        self.advance()
        prefix = token.text[:-1]
        if "\\" in prefix:
            prefix = unescape(prefix, token, self.source, self.found)
        if own is not None:
            if prefix in own and self.prefixes.get(prefix) != value:
                self.error(
                    "D1103",
                    f"the prefix `{prefix}:` is declared twice, differently",
                    self.span(token),
                    f"it stood for <{self.prefixes[prefix]}>",
                    "rename one of them",
                    (f"first declared at {own[prefix]}",),
                )
                return
            if prefix in own:
                self.found.warning(
                    "D1103",
                    f"the prefix `{prefix}:` is declared twice",
                    self.span(token),
                    hint="delete one line",
                )
            own.setdefault(prefix, self.span(token))
        self.prefixes[prefix] = value

    def report_unused(
        self, own: Mapping[str, Span] | None = None, written: Collection[str] = frozenset()
    ) -> None:
        """Warn about declared prefixes that nothing used, except for the namespaces in `written`."""
        for prefix, span in (self.declared if own is None else own).items():
            if prefix not in self.used and self.prefixes.get(prefix) not in written:
                self.found.warning(
                    "D1102", f"the prefix `{prefix}:` is never used", span, hint="delete the line"
                )

    def declare_base(self) -> None:
        self.expect("BASE")
        if self.token.kind != "iri":
            raise self.fail("an IRI in angle brackets")
        self.base = self.absolute(self.iri_text(self.token), self.token)
        self.advance()


def _unslash(local: str) -> Iterator[str]:
    """The local name without the backslashes of `\\-` and its like."""
    escaped = False
    for character in local:
        if character == "\\" and not escaped:
            escaped = True
            continue
        escaped = False
        yield character


NUMBERS: Final[Mapping[str, str]] = {"integer": XSD_INTEGER, "decimal": XSD_DECIMAL, "double": XSD_DOUBLE}
_BOOLEANS: Final[Mapping[str, Term]] = {"TRUE": TRUE, "FALSE": FALSE}
TYPE: Final = RDF_TYPE
WELL_KNOWN: Final[Mapping[str, str]] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "math": "http://www.w3.org/2005/xpath-functions/math#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "prov": "http://www.w3.org/ns/prov#",
    "saref": "https://saref.etsi.org/core/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "ngsi-ld": "https://uri.etsi.org/ngsi-ld/",
}


class Parameters:
    """Owns the terms and durations of the parameters, by name; one without a value stands for either."""

    def __init__(self, cursor: Cursor, values: Mapping[str, ParameterValue] | None = None) -> None:
        self._cursor = cursor
        self.symbolic = False  # whether parameters are read as names, for printing
        self.terms: dict[str, Term] = {}
        self.durations: dict[str, Duration] = {}
        for name, value in (values or {}).items():
            self.set(name, value)

    def set(self, name: str, value: ParameterValue) -> None:
        """Let a parameter stand for a value in the whole text."""
        match value:
            case Duration():
                self.durations[name] = value
            case Reference():
                raise AssertionError("references are read for printing only")
            case str():
                self.terms[name] = value
            case _:
                assert_never(value)

    def stand_in(self, name: Name) -> None:
        """A parameter without a value: a file of patterns is checked with a stand-in for it."""
        self.terms[name.text] = f"{STAND_IN}{name.text}>"
        self.durations[name.text] = Duration(1_000_000, name.span)

    def __contains__(self, name: str) -> bool:
        return name in self.terms or name in self.durations

    def term(self, name: str, token: Token) -> Term | None:
        """The term that a variable stands for; None for one that is not a parameter. Reports durations."""
        term = self.terms.get(name)
        if term is None and name in self.durations:
            self._cursor.error("D1113", f"`?{name}` is a duration, not a term", self._cursor.span(token),
                               hint="durations belong after WITHIN and EVERY")  # fmt: skip
        return term

    def refuse_binding(self, name: str, span: Span, what: str) -> None:
        """Report a parameter where `what` is bound."""
        if name in self:
            self._cursor.error(
                "D1114",
                f"`?{name}` is a parameter and cannot be bound",
                span,
                hint=f"give the {what} another name",
            )

    def unknown(self, name: str, token: Token) -> None:
        """Report a name that stands for nothing of the kind that was looked for."""
        known = {*self.terms, *self.durations}
        kind = "a duration" if name in self.durations else "not a parameter of this file"
        hint = nearest(name, known - {name}, "?") or f"declare it: `PARAMETER ?{name}`"
        self._cursor.error("D1112", f"`?{name}` is {kind}", self._cursor.span(token), hint=hint)


EMIT: Final = "write what a rule emits after DEFINE: `RULE Name DEFINE { dotr_x a :Alarm } FROM …`"
_DEFINITION: Final = "write `RULE Name DEFINE { … } FROM …`, or `QUERY Name := { SELECT … }`"
PATTERN: Final = (
    "a pattern is written from its last event back: `FROM B AND LAST A WITHIN 5 min BEFORE B ON A.?x = B.?x`"
)
_WINDOW: Final = "every conjunct has a window of its own: `WITHIN 5 min FROM Event`"
_GROUPS: Final = (
    "an aggregate is over the events that pass its ON: `OVER Near := Air … ON Near.?room = Air.?room`"
)

HINTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("CONSTRUCT", "EMIT", "INSERT", "OUTPUT", "RETURN", "THEN", "YIELD"), EMIT),
    **dict.fromkeys(("CREATE", "REGISTER", "DEFINITION", "VIEW"), _DEFINITION),
    "SELECT": "a query is named: `QUERY Name := { SELECT … }`",
    **dict.fromkeys(("SEQ", "PATTERN", "MATCH_RECOGNIZE", "FOLLOWED", "FOLLOWEDBY"), PATTERN),
    **dict.fromkeys(("RANGE", "STEP", "WINDOW", "HOP", "TUMBLE", "SLIDE", "SESSION"), _WINDOW),
    "STREAM": "an event is a query over the stream that dotr is run with: `Name := { SELECT … }`",
    **dict.fromkeys(("GROUP", "PARTITION"), _GROUPS),
    "HAVING": "write conditions over aggregates after WHERE: `WHERE ?mean > 45`",
    **dict.fromkeys(("IF", "WHEN"), "write the trigger of a rule after FROM, which follows DEFINE"),
}
"""Word, in upper case → how it is written here."""

_EVENTS: Final = ("SEQ", "PATTERN", "STREAM", "WINDOW", "MATCH_RECOGNIZE")
_BEHIND: Final = ("(", "[", "iri", "pname", "name")


def foreign_word(token: Token) -> str:
    """The hint for a word of another language where no name is allowed; empty for others."""
    return HINTS.get(token.key, "") if token.kind == "name" else ""


def foreign_event(token: Token, following: Token, ours: frozenset[str]) -> str:
    """The hint for a word that is not a name where the name of an event is expected; `ours` are the keywords
    that may follow a name.
    """
    if token.key in _EVENTS and (following.key in _BEHIND or following.kind in _BEHIND):
        return "" if following.key in ours else HINTS[token.key]
    return ""
