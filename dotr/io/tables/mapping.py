"""Mapping files: what makes graphs of the rows of a table.

Place:   `--map FILE` of the command line and `map=` in Python name one; rows.py reads tables through it.
Method:  a Turtle template whose leading comment lines give the rest:

             # time: seen|datetime("%d/%m/%Y %H:%M", "Europe/Berlin")
             PREFIX sosa: <http://www.w3.org/ns/sosa/>
             [] sosa:madeBySensor <urn:sensor:{id}> ; sosa:hasSimpleResult {t}^^xsd:decimal .

         A comment line `# insert:`, `# delete:` or `# graph:` alone begins the template of that part of a
         message; prefixes above the first of them hold in all.
         Template: every `{…}` is replaced by a word that occurs nowhere in the text, the Turtle parser reads
         the result once, and the words are found again inside the terms. So a template is full Turtle, rows
         need no parser, and the kind of term in which a cell stands determines how it is escaped.
         Paths in JSON (`a.b`, `a.0.b`, `a[0]`, `attributes[key=host].value`, and `$.records[*]` of rows): a
         column is first a key, as it stands; else keys, places in arrays from 0 on, and in an array of
         objects the first whose field has the value. `$` is the document, or the line: where `# rows:` makes
         several rows of it, `[*]` in a cell is the element of the row, so `{$.id}` is what all rows of a line
         share.
Why not: R2RML or RML: ten lines of RDF for one line of Turtle with braces; the escaping of cells is R2RML's.
         Filling in the text and parsing it: a cell could end a string and go on in Turtle. JSONPath: a cell
         is one value, and filters, slices and scripts find any number of them.
Bad input: D2401, with the line of the mapping.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from os.path import basename, splitext
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dotr.errors import DataError
from dotr.io.decode.documents import STREAM_BASE, Format, decode, format_of, plain_name, read_bytes
from dotr.io.decode.rdf import parse_triples
from dotr.io.graphs import TABLES, table_format
from dotr.io.time_reading import AMBIGUOUS, NONEXISTENT, TimeReading
from dotr.lang.grammar.cursor import WELL_KNOWN, nearest
from dotr.rdf.terms import Term, literal_parts
from dotr.regex import regex

Argument: TypeAlias = str | float


class ColumnFilter(Struct, frozen=True):
    """`datetime("%d/%m/%Y", "Europe/Berlin")`: a name and what is in its brackets."""

    name: str
    arguments: tuple[Argument, ...] = ()


class Cell(Struct, frozen=True):
    """`{column|filter|filter}`."""

    column: str
    filters: tuple[ColumnFilter, ...] = ()

    @property
    def is_iri(self) -> bool:
        """Whether it is an IRI as written."""
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
"""The characters next to a cell that is part of a prefixed name."""
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
            hint = 'write {column} or {column|filter("argument")}; in a string a brace is {{ or }}'
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
            raise wrong("a brace in a string that is not a cell", place, "write it twice: {{ or }}")
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
            raise wrong(
                "a cell in a datatype", self._name, "write a constant datatype, such as ^^xsd:decimal"
            )
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


ABSENT: Final = object()
"""What is found where there is nothing; null is something."""

EVERY: Final = -1
"""The step `[*]`."""

Step: TypeAlias = str | int | tuple[str, str]
"""A key (or a place of an array), a place, or a field and its value."""

_FIRST = r"[^.\[\]]+"
_BRACKET = r"\[(?:[0-9]{1,9}|\*|[^\[\]=]+=(?:\"(?:[^\"\\]|\\.)*+\"|[^\[\]\"]*+))\]"
_PATH = regex(rf"(?:{_FIRST})?(?:{_BRACKET})*+(?:\.{_FIRST}(?:{_BRACKET})*+)*+")
_STEP = regex(rf"\.?(?P<key>{_FIRST})|(?P<bracket>{_BRACKET})")


def steps_of(text: str) -> tuple[Step, ...]:
    """The steps of a path; of a name that is none, its parts between dots."""
    if not _PATH.fullmatch(text):
        return tuple(text.split("."))
    found: list[Step] = []
    for step in _STEP.finditer(text):
        if (key := step["key"]) is not None:
            found.append(key)
            continue
        inner = step["bracket"][1:-1]
        if inner == "*":
            found.append(EVERY)
        elif inner.isdigit():
            found.append(int(inner))
        else:
            name, _, value = inner.partition("=")
            found.append((name.strip(), _unquoted(value.strip())))
    return tuple(found) or (text,)


def _unquoted(text: str) -> str:
    return regex(r"\\(.)").sub(r"\1", text[1:-1]) if text[:1] == '"' else text


def walk(value: Any, steps: Sequence[Step]) -> Any:
    """What is at a place; ABSENT where there is nothing. No step is EVERY."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, ABSENT) if isinstance(step, str) else _meeting(value, step)
        elif isinstance(value, list):
            value = _element(value, step)
        else:
            return ABSENT
    return value


def _meeting(value: dict[str, Any], step: Step) -> Any:
    """An object, if it meets the condition that a step is."""
    return value if isinstance(step, tuple) and _said(value.get(step[0])) == step[1] else ABSENT


def _element(values: list[Any], step: Step) -> Any:
    if isinstance(step, tuple):
        name, wanted = step
        found = (one for one in values if isinstance(one, dict) and _said(one.get(name)) == wanted)
        return next(found, ABSENT)
    if isinstance(step, str):
        if not (step.isascii() and step.isdigit() and len(step) < 10):
            return ABSENT
        step = int(step)
    return values[step] if step < len(values) else ABSENT


def _said(value: Any) -> Any:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


FORMATS = tuple(dict.fromkeys(TABLES.values()))
PARTS = ("graph", "insert", "delete")
_KEYS = (
    *("time", "format", "files", "rows", "delimiter", "quote", "columns", "missing", "encoding"),
    *("ambiguous", "nonexistent"),
)
_SETTING = regex(r"#\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
_SECTION = regex(r"#\s*(graph|insert|delete)\s*:\s*")
_DIRECTIVE = regex(r"\s*@?(?:prefix|base)\b", re.IGNORECASE)
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


class TableMapping(Struct, frozen=True):
    """A mapping as read: a value. Parts that there are none of are None.

    `files`: patterns of names that it is for; none is every table. `columns`: of a table without a header.
    """

    name: str
    time: Cell | None
    graph: tuple[TemplateTriple, ...] | None
    insert: tuple[TemplateTriple, ...] | None = None
    delete: tuple[TemplateTriple, ...] | None = None
    format: str = ""
    files: tuple[str, ...] = ()
    delimiter: str = ""
    quoted: bool = True
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    ambiguous: str = ""
    """How a local time that came twice is read; "": as the run has it."""
    nonexistent: str = ""
    """The same of one that never came."""
    rows: tuple[Step, ...] | None = None
    """The steps after `$` to the rows of a document, or of a line, of JSON; None: it is a row."""

    def reading(self, reading: TimeReading) -> TimeReading:
        """How times are read in a run that reads them so."""
        if not (self.ambiguous or self.nonexistent):
            return reading
        ambiguous, nonexistent = self.ambiguous or reading.ambiguous, self.nonexistent or reading.nonexistent
        return reading._replace(ambiguous=ambiguous, nonexistent=nonexistent)

    def used(self) -> list[Cell]:
        """Every cell that is used, that of the time first, each once."""
        parts = (self.graph, self.insert, self.delete)
        time = [] if self.time is None else [self.time]
        return list(dict.fromkeys([*time, *(cell for part in parts if part for cell in cells_of(part))]))

    def fits(self, file: str) -> bool:
        """Whether a file is read through it."""
        if file == "-":
            return not self.files
        name = basename(plain_name(file))
        if self.files:
            return any(fnmatch(name, pattern) or fnmatch(basename(file), pattern) for pattern in self.files)
        known = TABLES.get(splitext(name)[1].lower())
        return known is not None and self.format in ("", known)

    def declares(self, file: str) -> bool:
        """Whether `# format:` says how a file is written whose name does not; `.json` may have lines."""
        if self.files or not self.format:
            return False
        known = TABLES.get(splitext(plain_name(file))[1].lower())
        return format_of(file) is None and (known is None or (known, self.format) == ("json", "jsonl"))

    def format_of(self, file: str) -> str:
        """How the table in a file is written."""
        return self.format or table_format(file)


def read_mapping(path: str, base: str = STREAM_BASE) -> TableMapping:
    """The mapping of a file. Raises DataError."""
    return parse_mapping(decode(read_bytes(path), path), path, base)


@lru_cache(maxsize=64)
def parse_mapping(text: str, name: str = "<mapping>", base: str = STREAM_BASE) -> TableMapping:
    """The mapping that a string defines. Raises DataError D2401."""
    lines = text.replace("\r\n", "\n").split("\n")
    settings = _settings(lines, name)
    templates = {part: parse_template(template, name, base) for part, template in _templates(lines).items()}
    if not templates.get("graph"):
        templates.pop("graph", None) if len(templates) > 1 else None
    if not any(templates.values()):
        raise wrong("this mapping has no template", name, "write Turtle with {column} where a cell goes")
    time, place = settings.get("time"), f"{name}:1"
    format_ = settings.get("format", "").lower()
    if format_ not in ("", *FORMATS):
        raise wrong(f"`{format_}` is not a format of tables", place, f"one of {', '.join(FORMATS)}")
    return TableMapping(
        name,
        None if time is None else parse_cell(time, place),
        templates.get("graph"),
        templates.get("insert"),
        templates.get("delete"),
        format_,
        tuple(_listed(settings.get("files", ""))),
        _delimiter(settings.get("delimiter", ""), place),
        settings.get("quote", "").lower() != "none",
        tuple(_listed(settings.get("columns", ""))),
        ("", *_listed(settings.get("missing", ""))),
        _encoding(settings.get("encoding", "utf-8"), place),
        _choice(settings, "ambiguous", AMBIGUOUS, place),
        _choice(settings, "nonexistent", NONEXISTENT, place),
        _rows(settings.get("rows"), format_, place),
    )


def _settings(lines: Sequence[str], name: str) -> dict[str, str]:
    """What the leading comment lines say. A comment that is nearly a setting is a slip."""
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            break
        found = _SETTING.fullmatch(line)
        if found is None or _SECTION.fullmatch(line):
            continue
        key = found[1].lower()
        if key in settings:
            raise wrong(f"`{key}` is given twice", f"{name}:{number}", "keep one of them")
        if key in _KEYS:
            settings[key] = found[2]
        elif near := nearest(key, _KEYS):
            raise wrong(f"`# {found[1]}:` is not a setting of mappings", f"{name}:{number}", near)
    return settings


def _templates(lines: Sequence[str]) -> dict[str, str]:
    """Part → its template, with an empty line for every line that is not of it."""
    parts = {"graph": [""] * len(lines)}
    part, sections = "graph", False
    head: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        if found := _SECTION.fullmatch(line):
            part, sections = found[1], True
            parts.setdefault(part, [""] * len(lines))
        elif not sections and _DIRECTIVE.match(line):
            head.append((number, line))
        else:
            parts[part][number] = line
    for template in parts.values():
        for number, line in head:
            template[number] = line
    return {part: "\n".join(template) for part, template in parts.items()}


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _rows(text: str | None, format_: str, place: str) -> tuple[Step, ...] | None:
    if text is None:
        return None
    steps = steps_of(text)
    if steps[0] != "$" or len(text) > _LONGEST:
        raise wrong(
            f"`{text[:60]}` is not a path to rows", place, "write # rows: $[*], or # rows: $.records[*]"
        )
    if format_ not in ("", "json", "jsonl"):
        raise wrong(f"`# rows:` is for JSON, and the format is {format_}", place, "leave it out")
    return steps[1:]


_LONGEST = 1000


def _delimiter(text: str, place: str) -> str:
    delimiter = _DELIMITERS.get(text.lower(), text)
    if len(delimiter) > 1 or delimiter in ('"', "\n", "\r"):
        raise wrong(f"`{text}` is not a delimiter", place, "write one character, or tab")
    return delimiter


def _choice(settings: Mapping[str, str], key: str, known: Sequence[str], place: str) -> str:
    """One of some words, "" where nothing is said."""
    value = settings.get(key, "").lower()
    if value and value not in known:
        raise wrong(f"`{value}` is not a value of `# {key}:`", place, f"one of {', '.join(known)}")
    return value


def _encoding(text: str, place: str) -> str:
    """The name of an encoding in which a line of ASCII is the same bytes as in ASCII."""
    try:
        codec = codecs.lookup(text).name
        same = 'a,;"\n'.encode(codec) == b'a,;"\n'
    except (LookupError, UnicodeError):
        same = False
    if not same:
        hint = "write utf-8 (the default), latin-1, cp1252; convert others first: iconv -f utf-16 -t utf-8"
        raise wrong(f"tables in `{text}` are not read", place, hint)
    return codec
