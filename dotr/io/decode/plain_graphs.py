"""Documents of plain statements, many at once, without a parser: sensors say little, and always alike.

Place:   before the parser in batch_parse.py and parquet.py; its parts also in plain_quads.py.
Method:  the kinds of a document's tokens (plain_tokens.py) are its form: `nan;nn,l.` says where subjects,
         predicates and objects stand. The places are found once for each form; documents of one form, side
         by side, are taken apart together, one column after the other.
Why not: pyoxigraph for all: 10 µs for a document of five statements, of which this takes a third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from dotr.io.decode.plain_tokens import APART, BETWEEN, PlainTokens, prefixes_of
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term, Triple
from dotr.regex import regex

Places: TypeAlias = list[tuple[int, int, int]]
"""Where in a document's tokens the subject, the predicate and the object of each triple stand."""

_FORM = regex(r"(?:[nb][na][nlb](?:,[nlb])*+(?:;[na][nlb](?:,[nlb])*+)*+;?\.)*+")


def places_of(form: str) -> Places | None:
    """The triples of a document of this form; None for one that is left to the parser."""
    if _FORM.fullmatch(form) is None:
        return None
    found: Places = []
    subject = predicate = -1  # not there yet
    for place, kind in enumerate(form):
        if kind == ".":
            subject = predicate = -1
        elif kind == ";":
            predicate = -1
        elif kind == ",":
            pass
        elif subject < 0:
            subject = place
        elif predicate < 0:
            predicate = place
        else:
            found.append((subject, predicate, place))
    return found


def taker(form: str) -> Callable[[Sequence[Term]], list[Triple]] | None:
    """What makes the triples of a document of this form out of its terms."""
    found = places_of(form)
    if found is None:
        return None
    if len(found) < 2:
        return lambda terms: [(terms[s], terms[p], terms[o]) for s, p, o in found]
    columns: list[Callable[[Sequence[Term]], Any]] = [
        itemgetter(*column) for column in zip(*found, strict=True)
    ]
    subjects, predicates, objects = columns
    return lambda terms: distinct(list(zip(subjects(terms), predicates(terms), objects(terms), strict=True)))


class PlainGraphs:
    """Owns what names and literals mean behind the declarations that documents begin with. `lines`: they are
    N-Triples, each statement in a line of its own.
    """

    def __init__(self, base: str | None = None, *, lines: bool = False) -> None:
        self._base = base
        self._lines = lines
        self._head = ""
        self._wrong = False  # the head is
        self._words = PlainTokens("." if lines else ".;,", turtle=not lines)
        self._form = ""  # of the documents before, with what is behind each
        self._places: Memo[str, Places | None] = Memo(lambda form: places_of(form[:-1]), limit=1 << 8)
        self._takers: Memo[str, Callable[[Sequence[Term]], list[Triple]] | None] = Memo(taker, limit=1 << 10)

    def parse(self, texts: Sequence[str], head: str = "") -> list[list[Triple]] | None:
        """The triples of each document behind `head`, canonical, without repeats; None: ask the parser."""
        if head != self._head:
            self._head, prefixes = head, prefixes_of(head, self._base)
            self._wrong = prefixes is None
            self._words.begin(prefixes or {})
        if self._wrong:
            return None
        text = self._joined(texts)
        tokens, columns = self._words.read(text)
        if tokens is None:
            return None
        if columns is not None:
            form = self._form * len(columns[0])
        else:
            form = "".join(map(self._words.kinds.__getitem__, tokens))
        graphs: list[list[Triple]] | None = None
        if 0 < form.count(APART) == len(texts) and (not self._lines or one_a_line(text, form)):
            graphs = self._of_form(form, tokens) if columns is None else self._alike(columns)
        if graphs is None:
            self._words.missed()
        return graphs

    def _joined(self, texts: Sequence[str]) -> str:
        """Documents, BETWEEN behind each."""
        if self._lines:
            texts = [text if not text or text[-1] == "\n" else f"{text}\n" for text in texts]
            return f"{BETWEEN}\n".join([*texts, ""])
        return f"\n{BETWEEN}\n".join([*texts, ""])

    def _of_form(self, form: str, tokens: list[str]) -> list[list[Triple]] | None:
        """Documents that are not all of the form of those before."""
        first = form[: form.index(APART) + 1]
        count = len(form) // len(first)
        if count > 1 and form == first * count and self._places[first] is not None:
            self._form = first  # as those behind them are likely to be
            columns = self._words.expect(tokens, first)
            assert columns is not None, "they are of this form"
            return self._alike(columns)
        return self._apart(form.split(APART)[:-1], list(map(self._words.terms.__getitem__, tokens)))

    def _alike(self, columns: list[list[Term]]) -> list[list[Triple]]:
        """Documents of one form: every column of all of them at once."""
        places = self._places[self._form]
        if not places:
            return [[] for _ in columns[0]]
        rows = [zip(columns[s], columns[p], columns[o], strict=True) for s, p, o in places]
        if len(rows) == 1:
            return [[row] for row in rows[0]]
        form = list if _differ(columns, places) else distinct
        return list(map(form, zip(*rows, strict=True)))

    def _apart(self, forms: Sequence[str], terms: Sequence[Term]) -> list[list[Triple]] | None:
        takers = list(map(self._takers.__getitem__, forms))
        if None in takers:
            return None
        return [take(part) for take, part in zip(takers, _parts(forms, terms), strict=True)]  # type: ignore[misc]  # none is None


def _parts(forms: Sequence[str], terms: Sequence[Term]) -> Iterator[Sequence[Term]]:
    start = 0
    for form in forms:
        end = start + len(form)
        yield terms[start:end]
        start = end + 1


def _differ(columns: Sequence[Sequence[Term]], places: Places) -> bool:
    """Whether it is plain that no document says a triple twice: all have the same predicates, none of them
    twice behind the subject at one place, and in each document the subjects differ.
    """
    said: dict[int, set[Term]] = {}
    for subject, predicate, _ in places:
        known, column = said.setdefault(subject, set()), columns[predicate]
        if column[0] in known or column.count(column[0]) < len(column):
            return False
        known.add(column[0])
    subjects = zip(*[columns[place] for place in said], strict=True)
    return all(len(set(row)) == len(said) for row in subjects)


def distinct(rows: Sequence[Triple]) -> list[Triple]:
    """Triples in order without repeats."""
    return list(rows) if len(set(rows)) == len(rows) else list(dict.fromkeys(rows))


def one_a_line(text: str, form: str) -> bool:
    """Whether every statement of a text of this form is in its own line. Between documents is one, too."""
    statements = form.count(".")
    return (
        text.count(" .\n") == statements
        and text.count("\n") == statements + form.count(APART)
        and "\r" not in text
        and "\t" not in text
    )
