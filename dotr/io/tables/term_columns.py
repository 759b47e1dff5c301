"""Columns of cells to columns of terms: many rows of a table at once.

Place:   compiled_mapping.py makes one `TermColumn` for every place of a cell in a template.
Method:  the cells of a column are joined by line ends and looked at by one regular expression: what a term
         is made of stands between two texts, so joining by those texts makes all terms at once. Characters
         that must be encoded are found in the joined text. A column of few values, and one in which a cell
         is not in its usual form, goes through the table of single cells, which decides what is an error.
Why not: a call a cell: 1 to 3 µs where values do not repeat; numpy or Arrow: their texts are as slow to make.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias

from dotr.io.tables.cells import UNRESERVED_CHARACTERS
from dotr.rdf.canonical import USUAL_DATETIME
from dotr.rdf.memo import Memo
from dotr.rdf.terms import XSD, Term, escape
from dotr.regex import regex

Lines: TypeAlias = Callable[[str], str | None]
"""Joined cells to what stands for them in terms, line by line; None where a cell is not in its usual form."""

_FEW = 4
"""Cells a distinct value has on average in a column of few values, at least."""


class TermColumn:
    """How a column becomes terms. `one`: the table of single cells, None where one is missing.

    `usual` is asked of the cells behind their filters; None: every cell goes through `one`.
    """

    __slots__ = ("_after", "_before", "_filtered", "_missing", "_one", "_usual")

    def __init__(
        self,
        one: Memo[str | None, Term | None],
        missing: Collection[str],
        filtered: Callable[[Sequence[str]], Sequence[str]] | None = None,
        usual: Lines | None = None,
        ends: tuple[str, str] = ("", ""),
    ) -> None:
        self._one, self._missing = one, frozenset(missing)
        self._filtered, self._usual = filtered, usual
        self._before, self._after = ends

    def __call__(self, cells: Sequence[str | None]) -> list[Term | None]:
        """The terms of a column; None where a value is missing. Raises CellError for some cell of it."""
        values = set(cells)
        if self._usual is None or len(values) * _FEW <= len(cells):
            table = {value: self._one[value] for value in values}
            return [table[cell] for cell in cells]
        missing = self._missing
        if None not in values and missing.isdisjoint(values):
            return self._terms(cells)  # type: ignore[arg-type]  # there is no None in it
        present = iter(self._terms([cell for cell in cells if cell is not None and cell not in missing]))
        return [None if cell is None or cell in missing else next(present) for cell in cells]

    def _terms(self, cells: Sequence[str]) -> list[Term | None]:
        texts = cells if self._filtered is None else self._filtered(cells)
        joined = "\n".join(texts)
        assert self._usual is not None
        if joined.count("\n") == len(cells) - 1 and (made := self._usual(joined)) is not None:
            between = f"{self._after}\n{self._before}"
            terms: list[Term | None] = [
                *(f"{self._before}{made.replace(chr(10), between)}{self._after}".split("\n"))
            ]
            return terms
        return list(map(self._one.__getitem__, cells))


# ------------------------------------------------------------------ usual cells


def _lines_of(pattern: str) -> re.Pattern[str]:
    return regex(rf"(?:(?:{pattern})\n)*+(?:{pattern})", re.ASCII)


_PLAIN_IRIS = regex(r"[A-Za-z0-9._~\-\n]*")
_RESERVED = regex(rf"[^{UNRESERVED_CHARACTERS}\n]")
_PLAIN_TEXTS = regex(r"[ !#-\[\]-~\n]*")
_ESCAPED = regex('["\\\\\x00-\x09\x0b-\x1f\x7f]')
_percent: Memo[str, str] = Memo(lambda char: "".join(f"%{byte:02X}" for byte in char.encode()))


def in_iris(joined: str) -> str | None:
    """Lines as parts of IRIs; None where one has half a character."""
    if _PLAIN_IRIS.fullmatch(joined):
        return joined
    try:
        return _RESERVED.sub(lambda found: _percent[found[0]], joined)
    except UnicodeEncodeError:
        return None


def in_literals(joined: str) -> str | None:
    """Lines as parts of literals; None where one has half a character."""
    if _PLAIN_TEXTS.fullmatch(joined):
        return joined
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            return None
    return _ESCAPED.sub(lambda found: escape(found[0]), joined)


def as_they_are(joined: str) -> str | None:
    """Lines that were written here."""
    return joined


def _canonical(pattern: str) -> Lines:
    """Lines that are canonical literals as they stand."""
    fits = _lines_of(pattern).fullmatch
    return lambda joined: joined if fits(joined) else None


def _numbers(whole: int, fraction: int) -> Lines:
    """Decimals of at most so many digits before and behind the point whose canonical text differs in zeros at
    the end, if at all. Of at most 15 digits together such a text is that of an xsd:double, too.
    """
    digits = rf"-?+(?:0|[1-9][0-9]{{0,{whole - 1}}}+)(?:\.[0-9]{{0,{fraction - 1}}}[1-9])?"
    fits = _lines_of(rf"(?!-0(?![0-9.])){digits}").fullmatch

    def lines(joined: str) -> str | None:
        if fits(joined):
            return joined
        joined = "\n".join([text if text[-1:] != "0" else _shortened(text) for text in joined.split("\n")])
        return joined if fits(joined) else None

    return lines


def _shortened(text: str) -> str:
    """A decimal without the zeros at its end, and what is not one as it is."""
    whole, point, fraction = text.partition(".")
    if not point or not whole or not fraction.isdigit():
        return text
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


USUAL: Final[Mapping[str, Lines]] = {
    f"{XSD}integer": _canonical(r"-?+[1-9][0-9]{0,17}+|0"),
    f"{XSD}decimal": _numbers(18, 18),
    f"{XSD}double": _numbers(8, 7),
    f"{XSD}boolean": _canonical("true|false"),
    f"{XSD}dateTime": _canonical(
        rf"{USUAL_DATETIME}(?:\.[0-9]{{0,17}}[1-9])?(?:Z|[+-](?!00:00)(?:0[0-9]|1[0-3]):[0-5][0-9])?"
    ),
}
"""Datatype → what says of lines that all of them are in its lexical space, and makes them canonical."""
