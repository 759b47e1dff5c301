"""The text of rule files: what `lang` reads programs and their imports through; files that travel with dotr.

Place:   handed to lang as its Reader; nothing else opens a rule file. `<dotr:rules/…>` and
         `<dotr:patterns/…>` of programs, and `dotr demo`, are found by `shipped`.
Method:  an installed wheel has such files in `dotr/_shipped`, a checkout at its top level.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dotr.io.decode.documents import decode, is_named_pipe, read_some

_PACKAGE = Path(__file__).resolve().parents[2]
SCHEME = "dotr:"
KINDS = ("rules", "patterns", "examples")


def shipped(path: str) -> Path:
    """The file or folder of `rules/rdfs.dlog`, `patterns/…`, `examples/…`. Raises FileNotFoundError.

    A path that leads out of these folders is not found.
    """
    for top in (_PACKAGE / "_shipped", _PACKAGE.parent):
        found = (top / path).resolve()
        if any(found.is_relative_to(top / kind) for kind in KINDS) and found.exists():
            return found
    raise FileNotFoundError(2, "dotr ships no such file", path)


_LARGEST = 64 * 1024 * 1024


class RuleTexts:
    """Owns the names of the rule files that were read through it, imported ones included."""

    def __init__(self) -> None:
        self.read_files: list[str] = []

    def __call__(self, path: str) -> str:
        text = read_rules_text(path)
        self.read_files.append(path)
        return text


def read_rules_text(path: str) -> str:
    """The text of a rule file; `dotr:patterns/…` and `dotr:rules/…` are those of the package.

    Raises OSError, also for a pipe that has a name (opening one waits until somebody writes), and DataError
    D2002 for what is not UTF-8.
    """
    file = shipped(path.removeprefix(SCHEME)) if path.startswith(SCHEME) else path
    if is_named_pipe(path):
        raise OSError(22, "is a pipe; a file is needed", str(path))
    with open(file, "rb") as reader:
        content = reader.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise OSError(27, "file too large for a program", str(path))
    return decode(content, path).replace("\r\n", "\n")


def read_standard_input() -> str:
    """A program or a query that comes by standard input. Raises DataError D2002, D2003."""
    text = decode(read_some(sys.stdin.buffer, -1, "<stdin>"), "<stdin>")
    return text.replace("\r\n", "\n")
