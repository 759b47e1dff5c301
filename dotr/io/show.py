"""Terms and triples that a user writes, and tables as aligned text.

Place:   the command line's `--triple` and `--where`, and the values of `Engine.why_not`, are read with a
         program's prefixes; `status`, `query` and `compare` print the tables.
Method:  a table is no wider than its terminal; where no width is known, nothing is cut.
Bad input: D4174 no term or triple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dotr.errors import DataError, UsageError
from dotr.io.decode.rdf import parse_triples
from dotr.rdf.terms import Term, Triple


def read_triple(text: str, prefixes: Mapping[str, str], what: str) -> Triple:
    """A triple in Turtle. `what` names the option it comes from. Raises UsageError D4174."""
    head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items())
    try:
        (found,) = parse_triples(f"{head}{text} .", name=what, skipped=len(prefixes))
    except (DataError, ValueError):
        raise UsageError.of(
            "D4174",
            f"{what} cannot be read: `{text}`",
            hint="write terms as in Turtle, with the program's prefixes",
        ) from None
    return found


def read_term(text: str, prefixes: Mapping[str, str], what: str) -> Term:
    """A term in Turtle. Raises UsageError D4174."""
    try:
        return read_triple(f"<urn:s> <urn:p> {text}", prefixes, what)[2]
    except UsageError:
        message = f"{what}: `{text}` is not a term in Turtle"
        raise UsageError.of("D4174", message, hint=term_hint(text)) from None


def term_hint(text: str) -> str:
    """How to write what was not read as a term."""
    if ":" in text or '"' in text or "<" in text:
        return "write it in Turtle, with the prefixes of the rules"
    return f'write a string in quotation marks, `"{text}"`, a name with a prefix of the rules, `:{text}`'


_LEAST: Final = 6
"""Columns are not made narrower than this."""

_GAP: Final = "  "


def aligned(rows: Sequence[Sequence[str]], width: int | None = None, left: int | None = None) -> str:
    """Rows of equal length as lines; the first `left` columns are aligned to the left (None: all), the others
    to the right. Where they are wider than `width`, the widest columns are cut, which `…` shows.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        widths = _narrow(widths, width - len(_GAP) * (len(widths) - 1))
    lines = []
    for row in rows:
        cells = [_cut(cell, size) for cell, size in zip(row, widths, strict=True)]
        placed = (
            cell.ljust(size) if left is None or place < left else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(cells, widths, strict=True))
        )
        lines.append(_GAP.join(placed).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _narrow(widths: Sequence[int], most: int) -> list[int]:
    """The widest columns made narrower, so that all fit if they can."""
    longest = min(max(widths), max(most, _LEAST))
    while longest > _LEAST and sum(min(width, longest) for width in widths) > most:
        longest -= 1
    return [min(width, longest) for width in widths]


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"
