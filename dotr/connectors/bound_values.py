"""The values of an event's variables where they are put into names of topics, keys and bodies.

Place:   kafka.py, mqtt.py and webhook.py put them in; they read them from JSON lines of the outbox.
Method:  a variable's value is an object of SPARQL's JSON results, or null; that of COLLECT an array of them,
         whose strings have commas between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

JsonTerm: TypeAlias = Mapping[str, Any]

Bound: TypeAlias = dict[str, Any] | list[dict[str, Any]] | None
"""A value in the `bindings` of a JSON line."""


def values_of(bound: Bound) -> Sequence[JsonTerm]:
    """The terms of a value: the members of a list, one, or none."""
    return bound if isinstance(bound, list) else [bound] if bound else []


def bound_text(bound: Bound) -> str:
    """A value as a string, whole."""
    if type(bound) is dict:  # as a rule
        return str(bound["value"])
    return ",".join(str(term["value"]) for term in values_of(bound))


def last_part(term: JsonTerm) -> str:
    """The string of a term; of an IRI what follows its last `/`, `#` or `:`."""
    value = str(term["value"])
    if term["type"] != "uri":
        return value
    return value.replace("#", "/").rstrip("/").rpartition("/")[2].rpartition(":")[2]
