"""What a human reads on standard error: diagnostics, notes, a summary.

Place:   shared by the verbs; nothing here is data.
Method:  colour where the terminal or FORCE_COLOR says
         so, never under NO_COLOR.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TextIO

from dotr.errors import Diagnostic, DotrError, Severity
from dotr.io.time_reading import told

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_SHOWN = 50


def coloured(stream: TextIO | None = None) -> bool:
    """Whether a stream, standard error by default, takes colour.

    NO_COLOR, if it is not empty, says no; then FORCE_COLOR says yes; else a terminal that is not dumb does.
    (no-color.org, force-color.org)
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return (sys.stderr if stream is None else stream).isatty() and os.environ.get("TERM") != "dumb"


def width(stream: TextIO | None = None) -> int | None:
    """The columns of a stream, by default standard error; None where it is not a terminal: then no line is
    broken.
    """
    return terminal_columns() if (stream or sys.stderr).isatty() else None


def terminal_columns() -> int:
    """How wide a terminal is; 80 where it does not say."""
    from shutil import get_terminal_size  # noqa: PLC0415  # start-up: few commands draw

    return get_terminal_size().columns


def painted(diagnostic: Diagnostic, stream: TextIO | None = None) -> str:
    """A diagnostic as text, in colour where the stream takes it: its severity, what is marked, its hint."""
    text = visible(diagnostic.render())
    if not coloured(stream):
        return text
    colour = _COLOURS[diagnostic.severity]
    first, *rest = text.split("\n")
    head = len(diagnostic.severity)
    lines = [f"\x1b[1;{colour}m{first[:head]}\x1b[0m\x1b[1m{first[head:]}\x1b[0m"]
    for line in rest:
        if re.fullmatch(r" *\| *\^.*", line):
            bar = line.index("^")
            line = f"{line[:bar]}\x1b[1;{colour}m{line[bar:]}\x1b[0m"
        elif found := re.match(r" *= hint:", line):
            line = f"\x1b[1;32m{found[0]}\x1b[0m{line[found.end() :]}"
        elif re.match(r" *-->", line):
            line = f"\x1b[2m{line}\x1b[0m"
        lines.append(line)
    return "\n".join(lines)


def errors(error: DotrError) -> None:
    """Print the diagnostics of an error."""
    say_all(error.diagnostics)


def say_all(diagnostics: Sequence[Diagnostic]) -> None:
    """Print diagnostics, so many that somebody reads them."""
    for diagnostic in diagnostics[:_SHOWN]:
        say(diagnostic)
    if len(diagnostics) > _SHOWN:
        note(f"and {len(diagnostics) - _SHOWN} more")


def say(diagnostic: Diagnostic) -> None:
    """Print one diagnostic."""
    _print(painted(diagnostic))


def note(text: str) -> None:
    """Print one line that is not data."""
    _print(visible(f"dotr: {text}"))


def plain(text: str) -> None:
    """Print one line of a table that is not data."""
    _print(visible(text))


def json_line(text: str) -> None:
    """Print one line of JSON that a program reads, as it is."""
    _print(text)


def _print(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody may be reading what went wrong
        print(text, file=sys.stderr, flush=True)


def visible(text: str) -> str:
    """Text for a terminal: control characters that data may carry are shown, not obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else ascii(c)[1:-1] for c in text)


def counted(number: int, one: str, many: str = "") -> str:
    """`1 graph`, `12,000 graphs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def by_name(counts: Mapping[str, int]) -> str:
    """`Fire 2, Drill 1`, without those that are 0."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)


def beside(found: Mapping[str, int], first: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """What was read and is in no graph, and what reading changed, as parts of a summary; none where there was
    nothing. `first`: where a change was made first.
    """
    parts = []
    if found.get("all"):
        shared = f", {found['shared']:,} of them shared (--with-shared)" if found.get("shared") else ""
        parts.append(f"{counted(found['all'], 'subject')} of dumps in no graph{shared}")
    if found.get("said"):
        named = {key.removeprefix("said "): count for key, count in found.items() if key.startswith("said ")}
        said = counted(found["said"], "triple")
        parts.append(f"{said} about graphs, in a default graph, left out ({by_name(named)})")
    return [*parts, *told(found, first)]


def left_out(counts: Mapping[str, int]) -> str:
    """Trigger facts that were too much for a rule, by rule."""
    return f"{counted(sum(counts.values()), 'fact')} left out as too much ({by_name(counts)})"
