"""Tokens of plain documents, and what they stand for, without a parser: streams say the same again and again.

Place:   under plain_graphs.py and plain_quads.py, which know how statements are made of tokens.
Method:  a text is split at blanks, or by a pattern where strings have blanks or punctuation stands close.
         Tokens that were never seen are checked all at once: absolute IRIs, prefixed names, numbers, labels,
         and strings in plain ASCII, so narrowly that what is accepted any parser accepts, as it stands; of
         other IRIs and strings the parser is asked what they stand for. One table has the term of each token
         (literals canonical), one its kind: a character, so that the form of a block of documents is a text
         that patterns can look at.
Why not: a pattern for whole statements: 1.2 µs a triple, of which this takes half; it looks at every
         character of every term again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from operator import itemgetter
from typing import TypeAlias

import pyoxigraph as ox

from dotr.io.decode.ntriples import literals
from dotr.rdf.canonical import USUAL_DATETIME
from dotr.rdf.terms import RDF_TYPE, XSD, Term
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
"""Bytes of what is remembered, about, and of what each token takes beside its characters."""

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
        self._extended: set[str] = set()  # prefixes whose names are plain, whatever is behind the colon
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
        """A text's tokens, and the terms at each place of the form that is expected, if the text has it again
        and again; if not, all tokens are in `terms` and `kinds`. No tokens where one is not plain, and for a
        while behind that.
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
    """Whether `split` parts a text where a parser does."""
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
