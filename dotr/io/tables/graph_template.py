"""Templates of graphs: Turtle with `{column}` where a cell goes.

Place:   under mapping.py; compiled_mapping.py makes functions of what is read here.
Method:  every `{…}` is replaced by a word that stands nowhere in the text, the Turtle parser reads the result
         once, and the words are found again inside the terms that it made. So a template is as Turtle as a
         document, and the parser is not needed for rows: where a cell goes, and how it is escaped there, is
         known from the kind of term it stands in.
Why not: fill in text and parse it: a cell could then end a string and go on in Turtle.
Bad input: D2401, with the line of the mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.decode.parsing import parse_triples
from dotr.lang.grammar.base import WELL_KNOWN
from dotr.rdf.terms import Term, literal_parts
from dotr.regex import regex

Argument: TypeAlias = str | float


class ColumnFilter(Struct, frozen=True):
    """`datetime("%d/%m/%Y", "Europe/Berlin")`: a name and what stands in its brackets."""

    name: str
    arguments: tuple[Argument, ...] = ()


class Cell(Struct, frozen=True):
    """`{column|filter|filter}`."""

    column: str
    filters: tuple[ColumnFilter, ...] = ()

    @property
    def is_iri(self) -> bool:
        """Whether it is an IRI as it stands."""
        return bool(self.filters) and self.filters[-1].name == "iri"


class IriSlot(Struct, frozen=True):
    """`<http://example.org/{id}>`: cells are percent-encoded between the parts of text."""

    parts: tuple[str | Cell, ...]


class LiteralSlot(Struct, frozen=True):
    """A literal with cells in it. `datatype`: an IRI without brackets; "" and no language is a plain text."""

    parts: tuple[str | Cell, ...]
    datatype: str = ""
    language: str = ""


class BareSlot(Struct, frozen=True):
    """`{column}` alone: a term of the kind that the last filter makes, else a plain text."""

    cell: Cell


Slot: TypeAlias = Term | IriSlot | LiteralSlot | BareSlot
TemplateTriple: TypeAlias = tuple[Slot, Slot, Slot]

_KNOWN = " ".join(f"PREFIX {prefix}: <{iri}>" for prefix, iri in WELL_KNOWN.items())
"""Prefixes that everybody knows, xsd among them; a template may declare them otherwise."""

_ARGUMENT = r"""\s*+(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|[^\s"'(),|{}]++)\s*+"""
_FILTER = rf"\s*+[a-z]++\s*+(?:\((?:{_ARGUMENT}(?:,{_ARGUMENT})*+)?\s*+\))?\s*+"
_CELL = rf"\{{[^{{}}|\n]+(?:\|{_FILTER})*\}}"
_CELLS = regex(_CELL)
_IN_TEXT = regex(rf"{_CELL}|\{{\{{|\}}\}}|[{{}}]")
_TOKENS = regex(
    rf'''(?P<text>"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^'\\]|\\.|'(?!''))*\'\'\'
    |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<iri><(?:{_CELL}|[^<>"{{}}|^`\s])*>)|(?P<comment>\#[^\n]*)|(?P<cell>{_CELL})|(?P<other>[{{}}])''',
    re.VERBOSE | re.DOTALL,
)
_BEFORE, _AFTER = regex(r"[\w:%}\-]"), regex(r"[\w:%{\-]")
"""What stands beside a cell that is part of a prefixed name."""
_ONE_FILTER = regex(rf"\|({_FILTER})")
_ONE_ARGUMENT = regex(_ARGUMENT)
_NUMBER = regex(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ESCAPED = regex(r"\\(.)")


def parse_cell(text: str, place: str) -> Cell:
    """`{column|filter}`, with or without its braces. Raises DataError D2401."""
    inner = text.strip()
    inner = inner if inner.startswith("{") else f"{{{inner}}}"
    if not _CELLS.fullmatch(inner):
        raise wrong(f"`{text}` is not a cell", place, 'write {column}, or {column|filter("argument")}')
    column, _, rest = inner[1:-1].partition("|")
    filters = tuple(_filter(found[1]) for found in _ONE_FILTER.finditer("|" + rest)) if rest else ()
    return Cell(column.strip(), filters)


def _filter(text: str) -> ColumnFilter:
    name, _, rest = text.strip().partition("(")
    arguments = _ONE_ARGUMENT.findall(rest.rstrip()[:-1]) if rest else []
    return ColumnFilter(name.strip(), tuple(_argument(one.strip()) for one in arguments))


def _argument(text: str) -> Argument:
    if text[0] in "\"'":
        return _ESCAPED.sub(r"\1", text[1:-1])
    return float(text) if _NUMBER.fullmatch(text) else text


def parse_template(text: str, name: str, base: str) -> tuple[TemplateTriple, ...]:
    """The triples of a template in its order. `text` keeps the lines of the mapping `name`.

    Raises DataError D2401.
    """
    words = _Words(text, name)
    turtle = _TOKENS.sub(words.replaced, text)
    try:
        triples = parse_triples(f"{_KNOWN}\n{turtle}", Format.TURTLE, name, base, skipped=1)
    except DataError as error:
        first = error.diagnostics[0]
        hint = first.hint or "a template is Turtle with {column} where a cell goes"
        raise wrong(words.restored(first.message), first.place, hint, words.restored(first.label)) from None
    labels: dict[Term, Term] = {}  # parsers draw names for []
    blanks = [term for triple in triples for term in triple if term[0] == "_" and words.plain(term)]
    for blank in blanks:
        labels.setdefault(blank, f"_:row{len(labels)}")
    slots = ((labels.get(s, s), p, labels.get(o, o)) for s, p, o in triples)
    return tuple((words.slot(s), words.slot(p), words.slot(o)) for s, p, o in slots)


class _Words:
    """Owns the words that stand for the cells of one template."""

    def __init__(self, text: str, name: str) -> None:
        self._name, self._text = name, text
        self._stem = next(stem for n in range(len(text) + 1) if (stem := f"cell{n}of") not in text)
        self._cells: list[tuple[Cell, bool]] = []
        self._find = regex(rf"{self._stem}([0-9]+)x")
        self._absolute = f"{self._stem}iri:"
        """A scheme before IRIs that begin with a whole one, which are not relative to any base."""
        self._line, self._at = 1, 0

    def replaced(self, found: re.Match[str]) -> str:
        """A token of the template with words for its cells; of each token once, in order."""
        self._line += self._text.count("\n", self._at, found.start())
        self._at = found.start()
        place = f"{self._name}:{self._line}"
        if found["comment"] is not None:
            return found[0]
        if found["other"] is not None:
            rest = self._text[found.start() :].split("\n")[0][:60]
            hint = 'write {column} or {column|filter("argument")}; in a text a brace is {{ or }}'
            raise wrong(f"`{rest}` is not a cell", place, hint)
        if found["iri"] is not None:
            iri = _CELLS.sub(lambda cell: self._word(cell[0], place), found[0])
            first = self._find.match(iri, 1)
            if first and self._cells[int(first[1])][0].is_iri:
                return f"<{self._absolute}{iri[1:]}"
            return iri
        if found["text"] is not None:
            return _IN_TEXT.sub(lambda part: self._in_text(part[0], place), found[0])
        start, end = found.span()
        if _BEFORE.match(self._text[max(0, start - 1) : start]) or _AFTER.match(self._text, end):
            return self._word(found[0], place)  # part of a prefixed name
        return f'"{self._word(found[0], place, bare=True)}"'

    def _in_text(self, part: str, place: str) -> str:
        if part in ("{{", "}}"):
            return part[0]
        if len(part) == 1:
            raise wrong("a brace in a text that is not a cell", place, "write it twice: {{ or }}")
        return self._word(part, place)

    def _word(self, cell: str, place: str, bare: bool = False) -> str:
        self._cells.append((parse_cell(cell, place), bare))
        return f"{self._stem}{len(self._cells) - 1}x"

    def restored(self, text: str) -> str:
        """A message with the columns for the words."""
        text = text.replace(self._absolute, "")
        return self._find.sub(lambda found: f"{{{self._cells[int(found[1])][0].column}}}", text)

    def plain(self, term: Term) -> bool:
        """Whether a term has no cell in it."""
        return self._find.search(term) is None

    def slot(self, term: Term) -> Slot:
        """A term of the template, which may have cells in it."""
        if self.plain(term):
            return term
        if term[0] == "_":
            hint = "a blank node belongs to its row anyway: write [] or _:b"
            raise wrong(f"a cell in the blank node `{self.restored(term)}`", self._name, hint)
        if term[0] == "<":
            return IriSlot(tuple(self._parts(term[1:-1].removeprefix(self._absolute))))
        lexical, datatype, language = literal_parts(term)
        parts = tuple(self._parts(lexical))
        if self._find.search(datatype):
            raise wrong("a cell in a datatype", self._name, "write the datatype out")
        if term[-1] == '"' and len(parts) == 1:
            found = self._find.fullmatch(lexical)
            if found and self._cells[int(found[1])][1]:
                return BareSlot(self._cells[int(found[1])][0])
        if language:
            return LiteralSlot(parts, language=language)
        return LiteralSlot(parts, "" if term[-1] == '"' else datatype)

    def _parts(self, text: str) -> Iterator[str | Cell]:
        at = 0
        for found in self._find.finditer(text):
            if found.start() > at:
                yield text[at : found.start()]
            yield self._cells[int(found[1])][0]
            at = found.end()
        if at < len(text):
            yield text[at:]


def cells_of(triples: Sequence[TemplateTriple]) -> Iterator[Cell]:
    """Every cell of a template, in its order."""
    for triple in triples:
        for slot in triple:
            if isinstance(slot, BareSlot):
                yield slot.cell
            elif not isinstance(slot, str):
                yield from (part for part in slot.parts if isinstance(part, Cell))


def wrong(message: str, place: str, hint: str = "", label: str = "") -> DataError:
    """A mapping that cannot be read."""
    return DataError.of("D2401", message, place=place, label=label, hint=hint)
