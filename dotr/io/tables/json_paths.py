"""Places in values of JSON: `a.b`, `a.0.b`, `a[0]`, `attributes[key=host].value`, and `$.records[*]` of rows.

Place:   json_rows.py finds cells by them; mapping.py reads `# rows:`.
Method:  a column is a key first, as it stands; else keys, places in arrays from 0 on, and of an array of
         objects the first whose field has a value. `$` is the document, or the line: where `# rows:` makes
         several rows of it, `[*]` in a cell is the element of the row, so `{$.id}` is what all rows of a line
         share.
Why not: JSONPath: a cell is one value, and filters, slices and scripts find any number of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from dotr.regex import regex

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
            value = value.get(step, ABSENT) if isinstance(step, str) else ABSENT
        elif isinstance(value, list):
            value = _element(value, step)
        else:
            return ABSENT
    return value


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
