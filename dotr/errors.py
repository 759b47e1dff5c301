"""What can go wrong, classed by who can correct it, and how it is reported.

Place:   below everything but source.py. Raised anywhere, rendered by cli/ only.
Codes:   D10xx .dotr/.dlog syntax · D11xx and D13xx names and scopes · D12xx embedded SPARQL ·
         D14xx windows and time · D2xxx input data · D3xxx Datalog and ontology · D4xxx at run time ·
         D5xxx state. A code never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Self

from dotr.source import Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Diagnostic(NamedTuple):
    """One finding: what is wrong, where, and how to fix it.

    `label` is shown under the caret; `notes` say why, `hint` what to write instead. `place` is used when
    there is no span (a data file, "events/12.ttl:3"). `file`, `line` and `column` are those of the span.
    """

    code: str
    message: str
    span: Span | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    hint: str = ""
    severity: Severity = Severity.ERROR
    place: str = ""

    @property
    def file(self) -> str:
        """The name of the source, as it was given; without a span, `place`."""
        return self.place if self.span is None else self.span.source.name

    @property
    def line(self) -> int | None:
        """From 1; None without a span."""
        return None if self.span is None else self.span.source.position(self.span.start)[0]

    @property
    def column(self) -> int | None:
        """From 1, in characters; None without a span."""
        return None if self.span is None else self.span.source.position(self.span.start)[1]

    def render(self) -> str:
        """The diagnostic as text, several lines, no colour, no newline at the end."""
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        gutter = ""
        if self.span is not None:
            number, column = self.span.source.position(self.span.start)
            text = self.span.source.line(number)
            gutter = " " * len(str(number))
            width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
            lines.append(f"{gutter}--> {self.span.source.name}:{number}:{column}")
            if len(text) <= 400:
                pad = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
                caret = f"{pad}{'^' * width} {self.label}".rstrip()
                lines += [f"{gutter} |", f"{number} | {text}", f"{gutter} | {caret}"]
            elif self.label:
                lines.append(f"{gutter} = found: {self.label}")
        else:
            if self.place:
                lines.append(f"--> {self.place}")
            if self.label:
                lines.append(f" = found: {self.label}")
        lines += [f"{gutter} = note: {note}" for note in self.notes]
        if self.hint:
            lines.append(f"{gutter} = hint: {self.hint}")
        return "\n".join(lines)


class DotrError(Exception):
    """Base of all errors that a user can correct. `diagnostics` is never empty.

    Its text is made on demand: of most refused documents nobody reads it.
    """

    def __init__(self, diagnostics: Diagnostic | Sequence[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        super().__init__()

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        span: Span | None = None,
        label: str = "",
        notes: tuple[str, ...] = (),
        hint: str = "",
        place: str = "",
    ) -> Self:
        """An error with one diagnostic."""
        return cls(Diagnostic(code, message, span, label, notes, hint, place=place))

    def __str__(self) -> str:
        return "\n".join(d.render() for d in self.diagnostics)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[type[DotrError], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


class ProgramError(DotrError):
    """The author of a .dotr, .dlog or .rq text can correct it. Carries *all* findings."""


class DataError(DotrError):
    """The owner of a stream or background document can correct it."""


class UnsupportedError(DotrError):
    """A correct program needs something that this engine does not support; a note names one that does."""


class EngineError(DotrError):
    """The machine lacks something: Java, disk, a readable state directory."""


class RefusedError(DotrError):
    """Refused for safety: an output exists, a state belongs to other rules."""


class UsageError(DotrError):
    """The call itself is wrong: an option, a Python argument."""


class Diagnostics:
    """Owns the findings of one check, in the order found."""

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self.found = list(found)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        label: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.found.append(Diagnostic(code, message, span, label, tuple(notes), hint))

    def warning(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        label: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.found.append(Diagnostic(code, message, span, label, tuple(notes), hint, Severity.WARNING))

    def info(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        label: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.found.append(Diagnostic(code, message, span, label, tuple(notes), hint, Severity.INFO))

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.found if d.severity is Severity.ERROR]

    def raise_errors(self) -> None:
        """Raise ProgramError with every finding of severity error, if there is one."""
        if self.errors:
            raise ProgramError(self.errors)


NOT_WRITTEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
)
"""What reading saved bytes raises that have their hash, but were never written by dotr."""


def as_json(diagnostic: Diagnostic) -> dict[str, object]:
    """A diagnostic as `--format json` prints it; lines and columns from 1, `range` null without a place."""
    span = diagnostic.span
    notes = [f"found: {diagnostic.label}"] if diagnostic.label else []
    place: dict[str, object] | None = None
    if span is not None:
        start, end = (span.source.position(offset) for offset in (span.start, span.end))
        place = {"start": {"line": start[0], "column": start[1]}, "end": {"line": end[0], "column": end[1]}}
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "file": diagnostic.file,
        "range": place,
        "message": diagnostic.message,
        "notes": [*notes, *diagnostic.notes],
        "hint": diagnostic.hint,
    }
