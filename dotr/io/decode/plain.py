"""Many small documents at once: plain ones by their tokens, without a parser, others by one parser for all.

Place:   the readers of JSON lines, Parquet and message logs give what they have in hand; quads.py reads the
         tokens of quads by it.
Method:  Tokens: streams repeat the same terms. Text is split at blanks, or by a pattern where strings have
         blanks or punctuation stands close. Unknown tokens are checked all at once: absolute IRIs, prefixed
         names, numbers, labels, and strings in plain ASCII, so narrowly that any parser accepts what is
         accepted here, unchanged; for other IRIs and strings the parser is asked what they stand for. One
         table has the term of each token (literals canonical), one its kind: a character, so that the form of
         a block of documents is a string for patterns.
         Graphs: the kinds of a document's tokens are its form: `nan;nn,l.` gives the places of subjects,
         predicates and objects. The places are found once for each form; documents of one form are taken
         apart together, one column after the other.
         Other documents are joined with a statement between them that parts the result again: starting a
         parser costs 1.2 µs, and prefixes at their heads as much once more. A document that breaks off cannot
         pass for whole by this: inside a statement at most two terms can follow one another, and the
         statement between has three. Strings of several lines could swallow it, declarations would reach the
         next document: such documents are left to be parsed one by one, as is all that has an error, which is
         then reported with its place.
Why not: a pattern for whole statements: 1.2 µs a triple, of which this takes half; it reads every character
         of every term again. pyoxigraph for all: 10 µs for a document of five statements, of which this takes
         a third.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeAlias

import pyoxigraph as ox

from dotr.errors import DataError
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.decode.limits import BoundedOutput, Overgrown, may_grow_to
from dotr.io.decode.rdf import distinct_triples, literals
from dotr.rdf.terms import RDF_TYPE, USUAL_DATETIME, XSD, Memo, Term, Triple
from dotr.regex import regex

BETWEEN = "\x01"
"""A token that stands between two documents; it is in no document that is plain."""

NODE, BLANK, LITERAL, TYPE, APART = "n", "b", "l", "a", "|"
"""Kinds of tokens: an IRI or name, a label, a literal, the word `a`, BETWEEN. Punctuation is its own kind."""

IRI = (
    r"<(?:[a-z][a-z0-9]*://[A-Za-z0-9.-]++(?::[0-9]{1,5})?+(?:/[A-Za-z0-9_~/:@,;=+.-]*+)?+"
    r"|urn:[a-z0-9]+:[A-Za-z0-9_~/:.-]++)(?:#[A-Za-z0-9_~/:.-]*+)?+>"
)
_NAME = r"(?:[A-Za-z][A-Za-z0-9]*+)?+:[A-Za-z0-9_][A-Za-z0-9_-]*+"
_STRING = r'"[ !#-\[\]-~]*+"'
_KINDS_OF_TEXT = rf"(?:@[a-z]{{2}}(?:-[A-Z]{{2}})?+|\^\^(?:{IRI}|{_NAME}))?+"
_IRIS = regex(rf"(?:{IRI}\n)*+")
_TEXTS = regex(rf"(?:{_STRING}{_KINDS_OF_TEXT}\n)*+")
_NAMES = regex(rf"(?:{_NAME}\n)*+")
_ANY_LOCAL = "Aa0_-"
"""Of every kind of character in a local name. The part of an IRI that takes `_` takes all of them, in any
order: a namespace with which this is plain is plain with every local name."""
_LABELS = regex(r"(?:_:[A-Za-z][A-Za-z0-9]*+\n)*+")
_CLOSED = regex(
    r"""(?:(?:<[^<>"\ \t]*+>|"(?:[^"\\\r\n]++|\\[^\r\n])*+"(?:@[A-Za-z0-9-]++|\^\^<[^<>"\ \t]*+>)?+)\n)*+""",
)  # whatever is in them, they end where they end
_AS_THEY_ARE = regex(
    rf'(?:"(?:[ !#-\[\]-~]*+"|(?:0|-?[1-9][0-9]{{0,17}})"\^\^<{re.escape(XSD)}integer>'
    rf'|-?(?:0|[1-9][0-9]{{0,17}}+)\.[0-9]{{0,16}}[1-9]"\^\^<{re.escape(XSD)}decimal>'
    rf'|{USUAL_DATETIME}Z?+"\^\^<{re.escape(XSD)}dateTime>)\n)*+'
)  # literals that are canonical, the usual ones
_INTEGERS = regex(r"(?:(?:0|-?[1-9][0-9]{0,17})\n)*+")
_NUMBERS = regex(r"(?:[+-]?[0-9]++(?:\.[0-9]++)?+\n)*+")
_OTHER_BLANKS = "\x0b\x0c\x1c\x1d\x1e\x1f"  # which `split` takes for blanks, and no parser does
_TOKEN = regex(
    r"""<[^<>\ \t\r\n]*+>
    |"(?:[^"\\\r\n]++|\\[^\r\n])*+"
      (?:@[A-Za-z-]++|\^\^(?:<[^<>\ \t\r\n]*+>|[A-Za-z0-9]*+:[A-Za-z0-9_-]++(?=[ \t\r\n;,]|\Z)))?+
    |[^\ \t\r\n<>"';,.(){}\[\]\#]++(?:\.[^\ \t\r\n<>"';,.(){}\[\]\#]++)*+
    |[^\ \t\r\n]""",
    re.VERBOSE,
)
_TRUTH = {word: f'"{word}"^^<{XSD}boolean>' for word in ("true", "false")}
_REWRITTEN = (f'"^^<{XSD}string>', f'"^^{RDF_TYPE[: -len("type>")]}')
"""Datatypes whose literals parsers write in another form, or refuse."""

_MOST, _EACH = 1 << 23, 200
"""Bytes of what is remembered, about, and of what each token takes besides its characters."""

_WAITING = 256
"""The greatest number of collections of tokens that are not in all tables yet: small ones take more room."""

_FIRST = itemgetter(0)
_LONGEST_WAIT = 64
_LONG_PREFIX = 1 << 10
_BEFORE = len("<dotr:> <dotr:> ")
_N_TRIPLES = ox.RdfFormat.N_TRIPLES


_Hint: TypeAlias = tuple[str, Term] | int | None
"""Of a place in a form: the one token there, and its term; the place that has the same; nothing is known."""


class PlainTokens:
    """Owns the tokens that were seen. `marks`: punctuation of the format; `turtle`: whether it has names and
    numbers without quotes.
    """

    def __init__(self, marks: str, *, turtle: bool) -> None:
        self.terms: dict[str, Term] = {}
        """Token → the term that it stands for; marks stand for themselves. Without what `read` gave columns
        of."""
        self.kinds: dict[str, str] = {}
        """Token → its kind; of the same tokens."""
        self._tables: dict[str, dict[str, Term]] = {}
        """Kind → tokens of it → their terms."""
        self._learned: list[tuple[Collection[str], Collection[Term], str]] = []
        """What is in `_tables` and not yet in `terms` and `kinds`: tokens, their terms, their kind."""
        self._marks = {BETWEEN: APART, **{mark: mark for mark in marks}}
        self._turtle = turtle
        self._prefixes: Mapping[str, str] = {}
        self._extended: set[str] = set()  # prefixes whose names are plain, whatever is after the colon
        self._form = ""
        """Kinds of the tokens that are expected again and again."""
        self._hints: list[_Hint] = []
        self._size = self._wait = self._failed = self._patient = 0
        self.begin({})

    def begin(self, prefixes: Mapping[str, str]) -> None:
        """From here on names have these prefixes."""
        if prefixes is not self._prefixes:
            self._form = ""  # what was expected stands for something else
            self._extended = set()
        self._prefixes = prefixes
        self._size = 0
        self.terms.clear()
        self.kinds.clear()
        self._learned.clear()
        self.kinds.update(self._marks)
        self.terms.update(zip(self._marks, self._marks, strict=True))
        if self._turtle:
            self.terms |= {"a": RDF_TYPE, **_TRUTH}
            self.kinds |= {"a": TYPE, "true": LITERAL, "false": LITERAL}
        self._tables = {kind: {} for kind in (NODE, BLANK, LITERAL, TYPE)}
        for token, kind in self.kinds.items():
            self._tables.setdefault(kind, {})[token] = self.terms[token]

    def read(self, text: str) -> tuple[list[str] | None, list[list[Term]] | None]:
        """The tokens of a text, and the terms at each place of the form that is expected, if it has it again
        and again; if not, all tokens are in `terms` and `kinds`. No tokens where one is not plain, and for a
        while after that.
        """
        if self._wait:
            self._wait -= 1
            return None, None
        if self._patient:
            self._patient -= 1
        elif _splits(text):
            tokens = text.split()
            columns = self._expected(tokens)
            if columns is not None or self._known(tokens):
                self._failed = 0
                return tokens, columns
        tokens = _TOKEN.findall(text)
        if self._known(tokens):
            self._failed = 0
            self._patient = self._patient or _LONGEST_WAIT
            return tokens, None
        self.missed()
        return None, None

    def expect(self, tokens: list[str], form: str) -> list[list[Term]] | None:
        """The terms at each place of a form that known tokens have again and again; None: they have not.
        From here on `read` looks for that form.
        """
        step = len(form)
        if len(tokens) % step:
            return None
        written = [tokens[place::step] for place in range(step)]
        try:
            found = [
                list(map(self._tables[k].__getitem__, column))
                for k, column in zip(form, written, strict=True)
            ]
        except KeyError:
            return None
        hints: list[_Hint] = []
        for place, column in enumerate(written):
            hint: _Hint = None
            if column.count(column[0]) == len(column):
                hint = column[0], found[place][0]
            elif column in written[:place]:
                hint = written.index(column)
            hints.append(hint)
        if form == self._form:  # what was not so once is not expected again
            hints = [hint if hint == old else None for hint, old in zip(hints, self._hints, strict=True)]
        self._form, self._hints = form, hints
        return found

    def _expected(self, tokens: list[str]) -> list[list[Term]] | None:
        """The terms of tokens of the form that is expected; None where they are not that. A place that had
        one token, or what another place has, is compared with that, which costs less than a table.
        """
        step = len(self._form)
        if not step or len(tokens) % step:
            return None
        written: list[list[str]] = []
        found: list[list[Term]] = []
        for place, hint in enumerate(self._hints):
            column = tokens[place::step]
            written.append(column)
            if hint is None:
                terms = self._terms_of(column, self._form[place])
                if terms is None:
                    return None
                found.append(terms)
            elif isinstance(hint, int):
                if column != written[hint]:
                    return None
                found.append(found[hint])
            else:
                if column.count(hint[0]) != len(column):
                    return None
                found.append([hint[1]] * len(column))
        return found

    def _terms_of(self, column: list[str], kind: str) -> list[Term] | None:
        """What tokens stand for; None where one is not of this kind."""
        try:
            return list(map(self._tables[kind].__getitem__, column))
        except KeyError:  # one is new, most often
            self._forget()
            new = set(column).difference(self._tables[kind])
            if any(map(self.kinds.__contains__, new)) or not self._learn(new):  # one is of another kind
                return None
        terms = list(map(self._tables[kind].get, column))
        return None if None in terms else terms  # type: ignore[return-value]  # none is None

    def missed(self) -> None:
        """What was read is not plain: the next documents may not be, either."""
        self._failed = min(self._failed * 2 + 1, _LONGEST_WAIT)
        self._wait = self._failed - 1

    def _known(self, tokens: Collection[str]) -> bool:
        """Whether all tokens are plain; then they are in `terms` and `kinds`."""
        self._spread()
        if all(map(self.kinds.__contains__, tokens)):
            return True
        self._forget()
        known = self._learn(set(tokens).difference(self.kinds))
        self._spread()
        return known

    def _spread(self) -> None:
        """Enter what was learned into `terms` and `kinds`, which documents of an expected form do without."""
        for tokens, terms, kind in self._learned:
            self.terms.update(zip(tokens, terms, strict=True))
            self.kinds.update(dict.fromkeys(tokens, kind))
        self._learned.clear()

    def _forget(self) -> None:
        """Begin anew if too much is remembered."""
        if self._size > _MOST:
            self.begin(self._prefixes)

    def _learn(self, tokens: Collection[str]) -> bool:
        """Enter tokens into the tables of their kinds. Those of a column are alike, most often."""
        first = set(map(_FIRST, tokens))
        if first.isdisjoint('<"'):
            return self._learn_words(tokens)
        if len(first) == 1:
            return self._learn_iris(list(tokens)) if "<" in first else self._learn_texts(list(tokens))
        words = [token for token in tokens if token[0] not in '<"']
        iris = [token for token in tokens if token[0] == "<"]
        texts = [token for token in tokens if token[0] == '"']
        return self._learn_iris(iris) and self._learn_texts(texts) and self._learn_words(words)

    def _enter(self, tokens: Collection[str], terms: Collection[Term], kind: str) -> bool:
        if not tokens:
            return True
        self._size += sum(map(len, tokens)) + sum(map(len, terms)) + _EACH * len(tokens)
        self._tables[kind].update(zip(tokens, terms, strict=True))
        self._learned.append((tokens, terms, kind))
        if len(self._learned) > _WAITING:
            self._spread()
        return True

    def _learn_iris(self, tokens: list[str]) -> bool:
        terms: list[Term] | None = tokens if _all(_IRIS, tokens) else _asked(tokens)
        return terms is not None and self._enter(tokens, terms, NODE)

    def _learn_texts(self, tokens: list[str]) -> bool:
        joined = "\n".join(tokens)
        if _AS_THEY_ARE.fullmatch(f"{joined}\n") is not None:
            return self._enter(tokens, tokens, LITERAL)
        if not _all(_TEXTS, tokens) or any(datatype in joined for datatype in _REWRITTEN):
            odd = [token for token in tokens if token[-1] in '">' or "@" in token]
            asked = _asked(odd)
            if asked is None:
                return False
            self._enter(odd, asked, LITERAL)
            tokens = list(set(tokens).difference(odd))
            if not _all(_TEXTS, tokens):
                return False
        if not tokens:
            return True
        lines = self._in_full("\n".join([*tokens, ""]), {token.rpartition('"')[2] for token in tokens})
        if lines is None:
            return False
        terms = lines.split("\n")
        terms.pop()
        if _AS_THEY_ARE.fullmatch(lines) is None:
            terms = [term if term[-1] == '"' else literals[term] for term in terms]
            if not all(terms):
                return False
        return self._enter(tokens, terms, LITERAL)

    def _in_full(self, lines: str, suffixes: Collection[str]) -> str | None:
        """Literals, each with its line end, whose datatypes are names, with their IRIs; None if one means
        nothing here. `suffixes`: what follows their strings.
        """
        named = self._tables[NODE]
        for suffix in suffixes:
            name = suffix[2:]
            if suffix[:2] != "^^" or name[0] == "<":
                continue
            if not self._turtle or (name not in named and not self._learn_words([name])):
                return None
            lines = lines.replace(f"{suffix}\n", f"^^{named[name]}\n")
        return None if any(datatype in lines for datatype in _REWRITTEN) else lines

    def _learn_words(self, tokens: Collection[str]) -> bool:
        """Labels, names and numbers."""
        lines = "\n".join([*tokens, ""])
        if self._turtle and _NAMES.fullmatch(lines) is not None:
            return self._learn_names(tokens, lines)
        labels = [token for token in tokens if token[0] == "_"]
        if not _all(_LABELS, labels):
            return False
        self._enter(labels, labels, BLANK)
        if len(labels) == len(tokens):
            return True
        if not self._turtle:
            return False
        names = [token for token in tokens if ":" in token and token[0] != "_"]
        numbers = [token for token in tokens if ":" not in token]
        if not _all(_NUMBERS, numbers) or not _all(_NAMES, names):
            return False
        if _all(_INTEGERS, numbers):
            terms = [f'"{number}"^^<{XSD}integer>' for number in numbers]
        else:
            terms = [
                literals[f'"{number}"^^<{XSD}{"decimal" if "." in number else "integer"}>']
                for number in numbers
            ]
            if not all(terms):
                return False
        self._enter(numbers, terms, LITERAL)
        return self._learn_names(names, "\n".join([*names, ""]))

    def _learn_names(self, names: Collection[str], lines: str) -> bool:
        """Names, of the form of those that need no parser; `lines` has each in a line."""
        if not names:
            return True
        text, first = f"\n{lines}", lines.partition(":")[0]
        alike = text.count(f"\n{first}:") == len(names)
        prefixes = {first} if alike else {name.partition(":")[0] for name in names}
        spaces = self._prefixes
        if not spaces.keys() >= prefixes:
            return False
        for prefix in prefixes:
            text = text.replace(f"\n{prefix}:", f"\n<{spaces[prefix]}")
        iris = text.replace("\n", ">\n").split("\n")[1:-1]
        if not self._extended >= prefixes:
            if not _all(_IRIS, iris):
                return False
            self._extended |= {p for p in prefixes if _all(_IRIS, [f"<{spaces[p]}{_ANY_LOCAL}>"])}
        return self._enter(names, iris, NODE)


def _splits(text: str) -> bool:
    """Whether `split` parts a string where a parser does."""
    return text.isascii() and not any(blank in text for blank in _OTHER_BLANKS)


def prefixes_of(head: str, base: str | None) -> dict[str, str] | None:
    """The prefixes that a head declares; none where they might make documents grow without measure. None if
    it is wrong: the parser says why.
    """
    if not head:
        return {}
    try:
        parser = ox.parse(head, ox.RdfFormat.TURTLE, base_iri=base)
        if list(parser) or max(map(len, parser.prefixes.values()), default=0) > _LONG_PREFIX:
            return {}
    except SyntaxError:
        return None
    return parser.prefixes


def _asked(tokens: list[str]) -> list[Term] | None:
    """What absolute IRIs and literals stand for, as the parser has it; None where one is neither."""
    if not _all(_CLOSED, tokens):
        return None
    lines = "".join([f"<dotr:> <dotr:> {token} .\n" for token in tokens])
    try:
        parser = ox.parse(lines, ox.RdfFormat.N_TRIPLES)
        found = [
            row[_BEFORE:] for row in (ox.serialize(parser, None, _N_TRIPLES) or b"").decode().split(" .\n")
        ]
    except (SyntaxError, AttributeError):
        return None
    found.pop()
    if len(found) != len(tokens):
        return None
    terms = [term if term[0] != '"' or term[-1] == '"' else literals[term] for term in found]
    return terms if all(terms) else None


def _all(pattern: re.Pattern[str], tokens: Collection[str]) -> bool:
    """Whether each of the tokens is what a pattern repeats; none of them has a line end."""
    return not tokens or pattern.fullmatch("\n".join(tokens) + "\n") is not None


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
    """Owns what names and literals mean after the declarations that documents begin with. `lines`: they are
    N-Triples, each statement in a line of its own.
    """

    def __init__(self, base: str | None = None, *, lines: bool = False) -> None:
        self._base = base
        self._lines = lines
        self._head = ""
        self._wrong = False  # the head is
        self._words = PlainTokens("." if lines else ".;,", turtle=not lines)
        self._form = ""  # of the documents before, with what is after each
        self._places: Memo[str, Places | None] = Memo(lambda form: places_of(form[:-1]), limit=1 << 8)
        self._takers: Memo[str, Callable[[Sequence[Term]], list[Triple]] | None] = Memo(taker, limit=1 << 10)

    def parse(self, texts: Sequence[str], head: str = "") -> list[list[Triple]] | None:
        """The triples of each document after `head`, canonical, without repeats; None: ask the parser."""
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
        """Documents, each followed by BETWEEN."""
        if self._lines:
            texts = [text if not text or text[-1] == "\n" else f"{text}\n" for text in texts]
            return f"{BETWEEN}\n".join([*texts, ""])
        return f"\n{BETWEEN}\n".join([*texts, ""])

    def _of_form(self, form: str, tokens: list[str]) -> list[list[Triple]] | None:
        """Documents that are not all of the form of those before."""
        first = form[: form.index(APART) + 1]
        count = len(form) // len(first)
        if count > 1 and form == first * count and self._places[first] is not None:
            self._form = first  # as those after them are likely to be
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
    twice after the subject at one place, and in each document the subjects differ.
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
    """Whether every statement of a string of this form is in its own line. Between documents is one, too."""
    statements = form.count(".")
    return (
        text.count(" .\n") == statements
        and text.count("\n") == statements + form.count(APART)
        and "\r" not in text
        and "\t" not in text
    )


MANY = 64
"""Documents that are worth to be parsed at once; more save nothing."""

LONG = 1 << 16
"""Characters from which a document is parsed alone: there is nothing to save, and several copies to make."""

_WAIT = 8
_NEXT = "<dotr:> <dotr:> <dotr:> .\n"  # short: it is parsed and written, too
_IRI = r'<[^<>"{}|^`\\\s]*>'
DECLARED = regex(
    rf"(?:\s*(?:(?:prefix\s+(?:[a-z][\w-]*)?:|base)\s*{_IRI}"
    rf"|@(?:prefix\s+(?:[a-z][\w-]*)?:|base)\s*{_IRI}\s*\.))*",
    re.IGNORECASE | re.ASCII,
)
_WORDS = ("prefix", "base", "version")
_DECLARING = regex(r"(?<![\w:/#-])(?:prefix|base|version)(?![\w-])", re.IGNORECASE)
_TURTLE, _N_TRIPLES = ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES


def common_head(texts: Sequence[str]) -> str:
    """The declarations that the first document begins with, if all others begin with them, too."""
    found = DECLARED.match(texts[0])
    head = found[0] if found is not None else ""
    return head if head and all(text.startswith(head) for text in texts) else ""


@dataclass(slots=True)
class BatchParser:
    """Owns the parsing of many documents, and whether to try: where errors are, others are likely."""

    base: str | None = STREAM_BASE
    _wait: int = field(default=0, init=False)
    _plain: PlainGraphs = field(init=False)

    def __post_init__(self) -> None:
        self._plain = PlainGraphs(self.base)

    def parse(self, texts: Sequence[str], head: str) -> list[list[Triple]] | None:
        """The triples of each document after `head`, as `parse_triples` gives them; None: one by one.

        `head` has all declarations that hold for them.
        """
        if max(map(len, texts)) > LONG:
            return None
        plain = self._plain.parse(texts, head)
        if plain is not None:
            return plain
        joined = f"\n{_NEXT}".join(texts)
        lower = joined.lower()
        if '"""' in joined or "'''" in joined:
            return None
        if any(word in lower for word in _WORDS) and _DECLARING.search(joined):
            return None
        if self._wait:
            self._wait -= 1
            return None
        try:
            parser = ox.parse(f"{head}\n{joined}", _TURTLE, base_iri=self.base)
            lines = BoundedOutput(may_grow_to(len(joined)))
            ox.serialize(parser, lines, _N_TRIPLES)
            parts = lines.getvalue().decode().split(_NEXT)
            if len(parts) == len(texts):
                return [distinct_triples(part, "") for part in parts]
        except (SyntaxError, AttributeError, MemoryError, Overgrown, DataError):
            pass  # reported when they are parsed one by one
        self._wait = _WAIT
        return None
