"""Contexts of JSON-LD that a document refers to, put into it: never fetched.

Place:   parsing.py, before pyoxigraph reads a document.
Method:  the value of each key `@context` is read; an IRI in it becomes what `--context IRI=FILE` names, or a
         context that comes with dotr (contexts/), and so do the IRIs in that, in `@import`, and in contexts
         of terms. The rest of the text stays as it stands, on its lines.
Why not: read and write the whole document as JSON: numbers would be written anew. A loader for the parser:
         pyoxigraph has none.
Bad input: D2001 a file that is no context · D2007 more than a document may grow to. What nobody names is left
         to the parser, which says so (D2005).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from dotr.errors import DataError
from dotr.io.decode.limits import grows, may_grow_to
from dotr.regex import regex

_REFERS = regex(r'"@context"\s*:\s*["\[]|"@import"|\\u0040')
_STRING = regex(r'("(?:[^"\\]++|\\.)*+")(\s*+:\s*+)?')
_FOLDER: Final = Path(__file__).parent / "contexts"
_SHIPPED: Final = (
    (regex(r"https?://uri\.etsi\.org/ngsi-ld/v1/ngsi-ld-core-context(?:-v[0-9.]+)?\.jsonld"), "ngsi-ld"),
    (regex(r"https?://www\.w3\.org/ns/activitystreams(?:\.jsonld|#)?"), "activitystreams"),
    (regex(r"https?://(?:www\.)?schema\.org(?:/(?:docs/jsonldcontext\.json(?:ld)?)?)?"), "schema"),
    (regex(r"https?://www\.w3\.org/ns/(?:sosa|ssn)/?"), "sosa"),
    (regex(r"https://(?:saref\.etsi\.org/core|w3id\.org/saref)[/#]?"), "saref"),
)
_decoded = json.JSONDecoder().raw_decode


def with_contexts(text: str, contexts: Mapping[str, str], name: str) -> tuple[str, str]:
    """A document with the contexts that it refers to in it, and the first IRI that nobody names, or "".

    `contexts`: IRI → text of a document with a context. Raises DataError D2001, D2007.
    """
    if _REFERS.search(text) is None:
        return text, ""
    contexts_of = _Contexts(contexts, may_grow_to(len(text)), name)
    pieces: list[str] = []
    at = place = 0
    while (found := _STRING.search(text, place)) is not None:
        place = found.end()
        if found[2] is None or not _is_context(found[1]):
            continue
        try:
            value, end = _decoded(text, place)
        except (ValueError, RecursionError):
            break  # the parser says what is wrong
        made = contexts_of.within(value, ())
        if made != value:
            written = json.dumps(made, ensure_ascii=False)
            contexts_of.spend(len(written))
            pieces += text[at:place], written
            pieces.append("\n" * text.count("\n", place, end))
            at = end
        place = end
    return "".join([*pieces, text[at:]]), contexts_of.missing


def _is_context(key: str) -> bool:
    return key == '"@context"' or ("\\u" in key and json.loads(key) == "@context")


class _Contexts:
    """Owns what contexts become, and how much of them may be put in."""

    def __init__(self, given: Mapping[str, str], most: int, name: str) -> None:
        self.missing = ""
        self._given, self._left, self._name = given, most, name

    def spend(self, size: int) -> None:
        """So many characters are put into the document."""
        self._left -= size
        if self._left < 0:
            raise grows(self._name)

    def within(self, value: Any, above: tuple[str, ...]) -> Any:
        """A context with those that it refers to in it; `above`: the IRIs of those that it is in."""
        if isinstance(value, str):
            found = self._of(value, above)
            return value if found is None else found
        if isinstance(value, list):
            made: list[Any] = []
            for one in value:
                found = self.within(one, above)
                made += found if isinstance(found, list) else [found]
            return made
        if not isinstance(value, dict):
            return value
        imported = value.get("@import")
        if isinstance(imported, str):
            found = self._of(imported, above)
            if isinstance(found, dict):
                value = {**found, **{key: one for key, one in value.items() if key != "@import"}}
        return {key: self._term(one, above) for key, one in value.items()}

    def _term(self, definition: Any, above: tuple[str, ...]) -> Any:
        """The definition of a term, which may have a context of its own."""
        if not isinstance(definition, dict) or "@context" not in definition:
            return definition
        return {**definition, "@context": self.within(definition["@context"], above)}

    def _of(self, iri: str, above: tuple[str, ...]) -> Any:
        """The context of an IRI; None where nobody names it, or it is in itself."""
        text = self._given.get(iri)
        if text is None:
            text = next((_shipped(file) for pattern, file in _SHIPPED if pattern.fullmatch(iri)), None)
        if text is None or iri in above:
            self.missing = self.missing or iri
            return None
        self.spend(len(text))
        return self.within(_context(text, iri), (*above, iri))


@lru_cache(maxsize=8)
def _shipped(file: str) -> str:
    return (_FOLDER / f"{file}.jsonld").read_text("utf-8")


@lru_cache(maxsize=32)
def _context(text: str, iri: str) -> Any:
    """The context in the text of a document."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        label = str(error)
    else:
        if isinstance(found, dict) and "@context" in found:
            return found["@context"]
        label = "it has no key `@context`"
    raise DataError.of(
        "D2001",
        f"what is named for `{iri}` is not a context of JSON-LD",
        place=iri,
        label=label,
        hint="--context IRI=FILE names a JSON file with an object that has the key `@context`",
    )
