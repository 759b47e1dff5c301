"""Text → tokens, for .dotr, .dlog and SPARQL alike.

Place:   the first step of every parser in lang/; knows no grammar.
Method:  one master regular expression, longest match as in SPARQL 1.1 (sec. 19.8), plus `:=`, `:-`, `Name.?v`
         and `Name.time` as single tokens. Every quantifier that could backtrack is possessive, and a run like
         `a.a.a` that turned out to end without a colon is not looked at for a prefix again: linear time.
Why not: a grammar tool. Positions, recovery and messages are the point here, and a generated lexer is slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from dotr.errors import Diagnostics
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
    """Character classes of names: a first letter, that with `_`, behind it, with `-`, with `-` and `:`."""

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
"""A text with more findings than this is not read on: it is not a program."""


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
    """The tokens of a text without blanks and comments; the last one has kind `end`.

    Lexical errors go to `found` and the text behind them is read on. Linear in the text.
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
    """Start and end of every comment of a text."""
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
        "%": "a `%` stands only in names behind a colon, as `%20`",
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
        + ("; a string over several lines stands between three quotation marks" if len(quote) == 1 else ""),
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
            hint="known are \\t \\b \\n \\r \\f \\\\ \\\" \\' \\uXXXX; a backslash itself is `\\\\`",
        )
        return "\ufffd"

    return _ESCAPE.sub(value, text)
