"""Mapping files: what makes graphs of the rows of a table.

Place:   `--map FILE` of the command line and `map=` in Python name one; files/table_reader.py reads tables
         through it.
Method:  a Turtle template whose leading comment lines say what else there is to know:

             # time: seen|datetime("%d/%m/%Y %H:%M", "Europe/Berlin")
             PREFIX sosa: <http://www.w3.org/ns/sosa/>
             [] sosa:madeBySensor <urn:sensor:{id}> ; sosa:hasSimpleResult {t}^^xsd:decimal .

         A comment line `# insert:`, `# delete:` or `# graph:` alone begins the template of that part of a
         message; prefixes above the first of them hold in all.
Why not: R2RML or RML: ten lines of RDF say what one line of Turtle with braces says; the escaping of cells is
         R2RML's.
Bad input: D2401.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from os.path import basename, splitext

from msgspec import Struct
from msgspec.structs import replace

from dotr.io.decode.compression import plain_name
from dotr.io.decode.documents import STREAM_BASE, decode, read_bytes
from dotr.io.tables.graph_template import Cell, TemplateTriple, cells_of, parse_cell, parse_template, wrong
from dotr.io.tables.json_paths import Step, steps_of
from dotr.io.tables.names import TABLES, table_format
from dotr.io.time_reading import AMBIGUOUS, NONEXISTENT, TimeReading
from dotr.lang.grammar.base import nearest
from dotr.regex import regex

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
    """What a local time that came twice is; "": the run says it."""
    nonexistent: str = ""
    """The same of one that never came."""
    rows: tuple[Step, ...] | None = None
    """The steps behind `$` to the rows of a document, or of a line, of JSON; None: it is a row."""

    def reading(self, reading: TimeReading) -> TimeReading:
        """How times are read in a run that reads them so."""
        if not (self.ambiguous or self.nonexistent):
            return reading
        ambiguous, nonexistent = self.ambiguous or reading.ambiguous, self.nonexistent or reading.nonexistent
        return replace(reading, ambiguous=ambiguous, nonexistent=nonexistent)

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

    def format_of(self, file: str) -> str:
        """How the table in a file is written."""
        return self.format or table_format(file)


def read_mapping(path: str, base: str = STREAM_BASE) -> TableMapping:
    """The mapping of a file. Raises DataError."""
    return parse_mapping(decode(read_bytes(path), path), path, base)


@lru_cache(maxsize=64)
def parse_mapping(text: str, name: str = "<mapping>", base: str = STREAM_BASE) -> TableMapping:
    """The mapping that a text says. Raises DataError D2401."""
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
            raise wrong(f"`{key}` is said twice", f"{name}:{number}", "say it once")
        if key in _KEYS:
            settings[key] = found[2]
        elif near := nearest(key, _KEYS):
            raise wrong(f"`# {found[1]}:` says nothing", f"{name}:{number}", near)
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
            f"`{text[:60]}` is not a way to rows", place, "write # rows: $[*], or # rows: $.records[*]"
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
