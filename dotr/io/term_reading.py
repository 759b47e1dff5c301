"""Terms and triples that a user writes, with a program's prefixes.

Place:   the command line's `--triple` and `--where`, and the values of `Engine.why_not`.
Bad input: D4174.
"""

from __future__ import annotations

from collections.abc import Mapping

from dotr.errors import DataError, UsageError
from dotr.io.decode.parsing import parse_triples
from dotr.rdf.terms import Term, Triple


def read_triple(text: str, prefixes: Mapping[str, str], what: str) -> Triple:
    """A triple in Turtle. `what` names the option it comes from. Raises UsageError D4174."""
    head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items())
    try:
        (found,) = parse_triples(f"{head}{text} .", name=what, skipped=len(prefixes))
    except (DataError, ValueError):
        raise UsageError.of(
            "D4174",
            f"{what} cannot be read: `{text}`",
            hint="write terms as in Turtle, with the program's prefixes",
        ) from None
    return found


def read_term(text: str, prefixes: Mapping[str, str], what: str) -> Term:
    """A term in Turtle. Raises UsageError D4174."""
    try:
        return read_triple(f"<urn:s> <urn:p> {text}", prefixes, what)[2]
    except UsageError:
        message = f"{what}: `{text}` is not a term in Turtle"
        raise UsageError.of("D4174", message, hint=term_hint(text)) from None


def term_hint(text: str) -> str:
    """How to write what was not read as a term."""
    if ":" in text or '"' in text or "<" in text:
        return "write it in Turtle, with the prefixes of the rules"
    return f'a text has quotes of its own, `"{text}"`; a name has a prefix of the rules, `:{text}`'
