"""Formats of output, and how the name of a file says which.

Place:   asked by the verbs that write, before anything is read.
Method:  `--format` decides, else the ending of the name. An ending that says something the verb cannot write
         is refused; one that says nothing gets JSON lines.
Bad input: D4151 a format that is not written there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from dotr.errors import UsageError

ENDINGS: Final[Mapping[str, str]] = {
    "text": "txt",
    "jsonl": "jsonl",
    "trig": "trig",
    "nquads": "nq",
    "csv": "csv",
    "parquet": "parquet",
    "jelly": "jelly",
    "turtle": "ttl",
    "ntriples": "nt",
}
"""Format → what the names of its files end in."""

EVENT_FORMATS: Final = ("text", "jsonl", "trig", "nquads", "csv", "parquet", "jelly")
"""Those of events."""

_PACKED: Final = ("gz", "zst")
"""Endings of the names of compressed outputs."""

NEVER_PACKED: Final = ("parquet", "jelly")
"""Formats that are compressed in themselves, or not by whole files."""

GRAPH_FORMATS: Final = ("turtle", "ntriples")
"""Those of one graph."""

_OTHERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("n3", "turtle"), "Turtle"),
    **dict.fromkeys(("rdf", "owl", "xml"), "XML"),
    **dict.fromkeys(("gz", "bz2", "xz", "zst", "zip"), "compressed"),
    **dict.fromkeys(("md", "html"), "a page"),
    "jsonld": "JSON-LD",
    "json": "one JSON document",
    "tsv": "tab-separated",
    "xlsx": "a spreadsheet",
    "avro": "Avro",
    "orc": "ORC",
}
"""Ending of a name → what a reader will take the file for."""


def packing_of(path: str) -> str:
    """How an output of this name is compressed: "gz", "zst" or "" for not at all."""
    ending = _ending(path)
    return ending if ending in _PACKED else ""


def format_of_name(path: str, can: Sequence[str], verb: str, *, packed: bool = False) -> str | None:
    """The format of `can` that the ending of a name says; None where it says nothing. `packed`: `verb` writes
    compressed text.

    Raises UsageError D4151 for one that `verb` does not write.
    """
    ending = _ending(path)
    inner = _ending(path[: -1 - len(ending)]) if packed and packing_of(path) else ending
    format_ = next((name for name, known in ENDINGS.items() if known == inner), None)
    fits = inner == ending or format_ not in NEVER_PACKED
    if fits and (format_ in can or (format_ is None and inner not in _OTHERS)):
        return format_
    raise refused(f"`{path}`, by its name {_OTHERS.get(ending) or format_}", can, verb)


def _ending(path: str) -> str:
    return PurePath(path).suffix.lower().removeprefix(".")


def refused(what: str, can: Sequence[str], verb: str) -> UsageError:
    """A format that a verb does not write."""
    listed = ", ".join(f"{name} (.{ENDINGS[name]})" for name in can)
    return UsageError.of(
        "D4151",
        f"{verb} does not write {what}",
        notes=(f"it writes {listed}",),
        hint="give the file another name, or say --format, which goes before the name",
    )
