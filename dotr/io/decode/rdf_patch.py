"""RDF Patch as a stream: one transaction `TX … TC`, one message.

Place:   called by io/reader.py with the lines of a file.
Method:  RDF Patch of Apache Jena, text form: a row a line. `A` rows are the message's insertion, `D` rows its
         deletion; of several rows of one triple the last counts. `PA` and `PD` add and remove prefixes;
         `H time "…"` is the time of the transactions after it, other headers are ignored. The terms of
         a transaction are parsed at once, by the parser that reads every other format.
Why not: quads. There is one graph that lasts.
Bad input: D2204 what is not a row, or stands outside of a transaction · D2205 what a patch may say and this
         stream may not: a graph, `TA` · what documents.py reports, at the row's line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.events import GraphOrMessage, message_of
from dotr.io.decode.documents import STREAM_BASE, Format, decode
from dotr.io.decode.json_lines import Line
from dotr.io.decode.limits import refuse_prefixes
from dotr.io.decode.rdf import parse_runs
from dotr.rdf.terms import Triple
from dotr.regex import regex

_IRI = r'<[^<>"{}|^`\s]*>'
_NAME = r"(?:[A-Za-z][\w.\-]*)?:[^\s<>\"'{}|^`]*"
_TERM = regex(
    rf'\s*(?:(?P<blank><_:[^<>\s]*>|_:[^\s<>"]+)|{_IRI}|(?P<name>{_NAME})'
    rf'|(?P<text>"(?:[^"\\]|\\.)*")(?:@[\w\-]+|\^\^{_IRI}|\^\^(?P<kind>{_NAME}))?)'
)
_ROW = regex(r"\s*([A-Z]+)\s*(.*?)\s*\.\s*\Z", re.DOTALL)
_PREFIX = regex(rf'"?([A-Za-z][\w.\-]*|):?"?\s+(?:({_IRI})|"([^"]*)")\s*\Z')
_TIME = regex(r'time\s+"?([^"\s]+)"?(?:\^\^\S+)?\s*\Z')
_OTHER = regex(r"[^A-Za-z0-9]")


class PatchRow(NamedTuple):
    """An `A` or `D` row: its line, and its three terms as Turtle."""

    operation: str
    line: Line
    triple: str


class Patches(Struct):
    """Owns what rows of the file `name` set for those after them: prefixes, the time, an open
    transaction.
    """

    name: str
    base: str | None = STREAM_BASE
    time: str | None = None
    prefixes: dict[str, str] = field(default_factory=dict)
    open: list[Line] = field(default_factory=list)
    _size: int = 0
    """Characters of the prefixes and of what they stand for."""

    @property
    def bookmark(self) -> str:
        """The time and the prefixes as one text, from which `resumed` goes on."""
        lines = [f"{prefix}\t{iri}" for prefix, iri in sorted(self.prefixes.items())]
        return "\n".join([self.time or "", *lines])

    def resumed(self, bookmark: str) -> Patches:
        """This, continued after the item of a `bookmark`."""
        time, *prefixes = bookmark.split("\n")
        self.time = time or None
        self.prefixes = dict(line.split("\t") for line in prefixes)
        self._size = sum(map(len, prefixes)) - len(prefixes)
        return self

    def take(self, line: Line) -> list[Line] | None:
        """Take a line; the lines of the transaction that it ends, if it does. Raises DataError."""
        operation, rest = self._row(line)
        if self.open:
            self.open.append(line)
            if operation in ("TC", "TA"):
                done, self.open = self.open, []
                return done
        elif operation == "TX":
            self.open = [line]
        elif operation in ("PA", "PD", "H"):
            self._say(operation, rest, line)
        elif operation:
            raise self._no_row(line, "this row is outside of a transaction", "begin it with `TX .`")
        return None

    def part(self, lines: Sequence[Line]) -> GraphOrMessage:
        """The message of a transaction. Raises DataError; what it said of prefixes stays said."""
        last: dict[Triple, str] = {}
        rows = list(self._changes(lines))
        for row, triple in zip(rows, self._triples(rows), strict=True):
            last[triple] = row.operation
        parts = [[t for t, operation in last.items() if operation == wanted] for wanted in ("A", "D")]
        place = f"{self.name}:{lines[0].number}"
        return message_of(None, parts[0] if parts[0] or not parts[1] else None, parts[1] or None, place)

    def _changes(self, lines: Sequence[Line]) -> Iterator[PatchRow]:
        for line in lines:
            operation, rest = self._row(line)
            if operation in ("A", "D"):
                yield PatchRow(operation, line, self._terms(rest, line))
            elif operation == "TA":
                raise self._refused(line, "a transaction that was aborted changes nothing", "leave it out")
            elif operation in ("PA", "PD", "H"):
                self._say(operation, rest, line)
            elif operation == "TX" and line is not lines[0]:
                raise self._no_row(
                    line, "a transaction begins inside of another", "end the first with `TC .`"
                )
            elif operation not in ("TX", "TC", ""):
                raise self._no_row(
                    line, f"`{operation}` does not begin a row", "rows are H TX TC TA PA PD A D"
                )

    def _row(self, line: Line) -> tuple[str, str]:
        """What a row begins with, and the rest of it; nothing of a comment."""
        text = decode(line.content, f"{self.name}:{line.number}")
        if text.lstrip().startswith("#"):
            return "", ""
        found = _ROW.match(text)
        if found is None:
            raise self._no_row(
                line, "this line is not a row", "a row is `A <s> <p> <o> .`, with a dot at its end"
            )
        return found[1], found[2]

    def _say(self, operation: str, rest: str, line: Line) -> None:
        if operation == "H":
            if said := _TIME.match(rest):
                self.time = said[1]
            return
        if operation == "PD":
            prefix = rest.strip('"').removesuffix(":")
            self._size -= self._taken(prefix)
            self.prefixes.pop(prefix, None)
            return
        found = _PREFIX.match(rest)
        if found is None:
            raise self._no_row(line, "this row adds no prefix", 'write `PA "ex" "http://example.org/" .`')
        prefix, iri = found[1], found[2][1:-1] if found[2] else found[3]
        size = self._size + len(prefix) + len(iri) - self._taken(prefix)
        refuse_prefixes(size, self.name, f"{self.name}:{line.number}")
        self._size, self.prefixes[prefix] = size, iri

    def _taken(self, prefix: str) -> int:
        """The characters of a prefix, and of what it stands for."""
        return len(prefix) + len(self.prefixes[prefix]) if prefix in self.prefixes else 0

    def _terms(self, rest: str, line: Line) -> str:
        """The terms of a row as Turtle without prefixes."""
        terms: list[str] = []
        at = 0
        while at < len(rest):
            found = _TERM.match(rest, at)
            if found is None:
                shown = rest[at:].strip()[:40]
                raise self._no_row(line, f"`{shown}` is not a term", "terms are those of N-Triples")
            terms.append(self._term(found, line))
            at = found.end()
        if len(terms) == 4:
            raise self._refused(
                line, "this row changes a named graph, which no query sees", "leave the graph out"
            )
        if len(terms) != 3:
            raise self._no_row(
                line, f"{len(terms)} terms are not a triple", "write subject, predicate, object"
            )
        return " ".join(terms)

    def _term(self, found: re.Match[str], line: Line) -> str:
        if blank := found["blank"]:
            return f"_:b{_OTHER.sub(_coded, blank.strip('<>')[2:])}"
        if name := found["name"]:
            return self._iri(name, line)
        if kind := found["kind"]:
            return f"{found['text']}^^{self._iri(kind, line)}"
        return found[0].strip()

    def _iri(self, name: str, line: Line) -> str:
        """`ex:a` as an IRI, by the prefixes that hold at its row."""
        prefix, _, local = name.partition(":")
        if prefix not in self.prefixes:
            raise self._no_row(line, f"the prefix `{prefix}:` is not added", f'add it: `PA "{prefix}" "…" .`')
        return f"<{self.prefixes[prefix]}{local}>"

    def _triples(self, rows: Sequence[PatchRow]) -> list[Triple]:
        """The triple of each row, parsed together; one by one where that says which is wrong."""
        found = self._parsed(rows)
        if found is None:
            for row in rows:
                if self._parsed([row], raising=True) is None:
                    raise self._no_row(
                        row.line, "this row is not a triple", "write subject, predicate, object"
                    )
        assert found is not None, "rows that are triples are so together"
        return found

    def _parsed(self, rows: Sequence[PatchRow], *, raising: bool = False) -> list[Triple] | None:
        text = "".join(f"{row.triple} .\n" for row in rows)
        place = f"{self.name}:{rows[0].line.number}" if rows else self.name
        try:
            runs = parse_runs(text, Format.TRIG, place, self.base)
        except DataError as error:
            if not raising:
                return None
            raise DataError([d._replace(place=place) for d in error.diagnostics]) from None
        triples = [triple for _, run in runs for triple in run]
        return triples if len(triples) == len(rows) else None

    def _no_row(self, line: Line, message: str, hint: str) -> DataError:
        return DataError.of("D2204", message, place=f"{self.name}:{line.number}", hint=hint)

    def _refused(self, line: Line, message: str, hint: str) -> DataError:
        return DataError.of("D2205", message, place=f"{self.name}:{line.number}", hint=hint)

    def unfinished(self) -> DataError:
        """The file ends inside of a transaction."""
        return self._no_row(self.open[0], "this transaction does not end", "end it with `TC .`")


def content_of(lines: Sequence[Line]) -> bytes:
    """The lines of a transaction as they stood."""
    return b"".join(line.content + b"\n" for line in lines)


def _coded(character: re.Match[str]) -> str:
    """A character of a system identifier as letters of a label: other characters, other letters."""
    return f"X{ord(character[0]):x}X"
