"""What every parser of lang/ stands on: a cursor over tokens, names resolved to terms, findings, recovery.

Place:   one cursor a text; expressions.py, sparql.py, windows.py and the others hold it together.
Method:  recursive descent. A syntax error is recorded and raised as `Skip`, which the nearest construct that
         knows where it ends catches: a clause, an embedded query, a rule. What parses but means nothing (an
         undeclared prefix, a forbidden function) is recorded only: everything wrong is reported in one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

import pyoxigraph as ox

from dotr.errors import DataError, Diagnostics
from dotr.lang.grammar.iris import is_absolute, resolve
from dotr.lang.grammar.tokens import MOST_FINDINGS, Token, string_value, tokenize, unescape
from dotr.rdf.canonical import canonical
from dotr.rdf.terms import FALSE, RDF_TYPE, TRUE, XSD_DECIMAL, XSD_DOUBLE, XSD_INTEGER, Term, iri, literal
from dotr.source import Source, Span

DEEPEST: Final = 64
"""Brackets in brackets, and the height of an expression's tree."""


class Skip(Exception):  # noqa: N818  # not an error but a jump: the finding is recorded already
    """Parsing cannot go on here."""


def nearest(name: str, known: Iterable[str], sign: str = "") -> str:
    """A did-you-mean hint, or nothing when no known name is near."""
    candidates = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    found = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean `{sign}{folded[found[0]]}`?" if found else ""


@lru_cache(maxsize=65536)
def valid_iri(value: str) -> bool:
    """Whether the RDF store accepts this absolute IRI."""
    try:
        ox.NamedNode(value)
    except ValueError:
        return False
    return True


class Cursor:
    """Owns the place in one text's tokens, the findings made there, and the prefixes that hold."""

    def __init__(self, source: Source, found: Diagnostics | None = None) -> None:
        self.source = source
        self.found = Diagnostics() if found is None else found
        self.tokens = tokenize(source, self.found)
        self.at = 0
        self.token = self.tokens[0]
        self.prefixes: dict[str, str] = {}
        self.used: set[str] = set()
        self.declared: dict[str, Span] = {}
        self.base: str | None = None
        self.code = "D1004"  # of syntax errors: D1201 inside a query, D3001 in Datalog
        self.depth = 0  # of brackets
        self.undeclared: set[str] = set()  # prefixes that have been reported

    # -- tokens ------------------------------------------------------------

    @property
    def key(self) -> str:
        return self.token.key

    def peek(self, ahead: int = 1) -> Token:
        """A token further on; the end token stands for everything behind it."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Take the current token. The end token is never passed."""
        token = self.token
        if token.kind != "end":
            self.at += 1
            self.token = self.tokens[self.at]
        return token

    def jump(self, at: int) -> None:
        self.at = min(at, len(self.tokens) - 1)
        self.token = self.tokens[self.at]

    def accept(self, key: str) -> Token | None:
        return self.advance() if self.token.key == key else None

    def expect(self, key: str, what: str = "", hint: str = "") -> Token:
        if self.token.key == key:
            return self.advance()
        raise self.fail(what or f"`{key}`", hint)

    def split_attribute(self) -> None:
        """Inside a query `true.?x` is `true`, `.`, `?x`: put the three tokens in place of the one."""
        token = self.token
        dot = token.text.index(".")
        name, rest = token.text[:dot], token.text[dot + 1 :]
        middle = token.start + dot
        variable = rest[0] in "?$"
        self.tokens[self.at : self.at + 1] = [
            Token("name", name.upper(), name, token.start, middle),
            Token("op", ".", ".", middle, middle + 1),
            Token(
                "var" if variable else "name",
                "var" if variable else rest.upper(),
                rest,
                middle + 1,
                token.end,
            ),
        ]
        self.token = self.tokens[self.at]

    # -- places and findings ------------------------------------------------------------

    def span(self, token: Token | None = None) -> Span:
        token = token or self.token
        return Span(self.source, token.start, token.end)

    def since(self, start: Token | int) -> Span:
        """From a token to the last one taken."""
        begin = start if isinstance(start, int) else start.start
        end = self.tokens[self.at - 1].end if self.at else begin
        return Span(self.source, begin, max(begin, end))

    def shown(self, token: Token | None = None) -> str:
        """How a message calls a token."""
        token = token or self.token
        if token.kind == "end":
            return "the end of the text"
        return f"`{token.text if len(token.text) <= 40 else token.text[:37] + '…'}`"

    def shown_since(self, token: Token) -> str:
        """The text from a token to the last one taken."""
        return self.source.text[token.start : self.tokens[self.at - 1].end]

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        label: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self.found.error(code, message, span, label, hint, notes)
        if len(self.found.found) == MOST_FINDINGS:
            self.found.error("D1006", "too many findings; the rest is not read", self.span())
        if len(self.found.found) >= MOST_FINDINGS:
            self.jump(len(self.tokens))
            raise Skip

    def fail(self, expected: str, hint: str = "", token: Token | None = None) -> Skip:
        """Record a syntax error at the current token; the caller raises what it returns."""
        token = token or self.token
        if self.at and self.tokens[self.at - 1].torn:
            return Skip()  # an unterminated string has taken with it what is missed here
        self.error(self.code, f"expected {expected}, found {self.shown(token)}", self.span(token), hint=hint)
        return Skip()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One more bracket. Raises Skip when there are too many for anybody to read."""
        if self.depth >= DEEPEST:
            self.error(
                "D1005",
                f"brackets nest deeper than {DEEPEST} levels",
                self.span(),
                hint="split the text into several queries, rules or WITH variables",
            )
            raise Skip
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    @contextmanager
    def scope(self, code: str) -> Iterator[None]:
        """Prefixes and BASE declared inside end with it; its syntax errors have a code of their own."""
        prefixes, base, outer, used = self.prefixes, self.base, self.code, self.used
        self.prefixes, self.code, self.used = dict(prefixes), code, set()
        try:
            yield
        finally:
            self.used |= used
            self.prefixes, self.base, self.code = prefixes, base, outer

    # -- terms ------------------------------------------------------------

    def iri_text(self, token: Token) -> str:
        """What stands between `<` and `>`, escapes resolved; not resolved against BASE."""
        text = token.text[1:-1]
        return unescape(text, token, self.source, self.found) if "\\" in text else text

    def absolute(self, text: str, token: Token) -> str:
        """An IRI reference resolved against BASE; findings leave a stand-in that is a valid IRI."""
        value = text
        if not is_absolute(text):
            if self.base is None:
                self.error(
                    "D1007",
                    f"`<{text}>` is a relative IRI and there is no BASE",
                    self.span(token),
                    hint="write the whole IRI, or `BASE <http://…>` above",
                )
                return "urn:dotr:unresolved"
            value = resolve(self.base, text)
        if not valid_iri(value):
            self.error("D1008", f"`<{value}>` is not a valid IRI", self.span(token))
            return "urn:dotr:unresolved"
        return value

    def iri_term(self) -> Term:
        """Take `<iri>` or `prefix:name` as a term."""
        token = self.token
        if token.kind == "iri":
            self.advance()
            return iri(self.absolute(self.iri_text(token), token))
        if token.kind == "pname":
            self.advance()
            return iri(self.expand(token))
        raise self.fail("an IRI")

    def expand(self, token: Token) -> str:
        """`prefix:local` as an IRI. An undeclared prefix is reported once per text."""
        prefix, local = token.text.split(":", 1)
        if "\\" in prefix:
            prefix = unescape(prefix, token, self.source, self.found)
        if "\\" in local:
            local = unescape(local, token, self.source, self.found)
            local = "".join(_unslash(local))
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            if prefix not in self.undeclared:
                self.undeclared.add(prefix)
                span = Span(self.source, token.start, token.start + len(prefix) + 1)
                hint = nearest(prefix, self.prefixes, "") if prefix else ""
                well_known = WELL_KNOWN.get(prefix)
                if well_known and not hint:
                    hint = f"add `PREFIX {prefix}: <{well_known}>`"
                hint = hint or f"add `PREFIX {prefix}: <http://…>`"
                self.error("D1101", f"the prefix `{prefix}:` is not declared", span, hint=hint)
            return "urn:dotr:unresolved"
        self.used.add(prefix)
        value = namespace + local
        if not valid_iri(value):
            self.error("D1008", f"`<{value}>` is not a valid IRI", self.span(token))
            return "urn:dotr:unresolved"
        return value

    def at_iri(self) -> bool:
        return self.token.kind in ("iri", "pname")

    def at_literal(self) -> bool:
        return self.token.kind in ("string", "integer", "decimal", "double") or self.key in ("TRUE", "FALSE")

    def literal_term(self) -> Term:
        """Take an unsigned literal, canonical. The current token begins one."""
        token = self.advance()
        if token.kind != "string":
            return self.number_term(token, token.text) if token.kind != "name" else _BOOLEANS[token.key]
        lexical = string_value(token, self.source, self.found)
        if self.token.kind == "language":
            return canonical(literal(lexical, language=self.advance().text[1:]))
        if self.accept("^^"):
            return self._canonical(token, literal(lexical, self.iri_term()[1:-1]))
        return literal(lexical)

    def number_term(self, token: Token, text: str) -> Term:
        return self._canonical(token, literal(text, NUMBERS[token.kind]))

    def _canonical(self, token: Token, term: Term) -> Term:
        """A literal that a token begins, canonical; one that cannot be is reported."""
        try:
            return canonical(term)
        except DataError as error:
            (one,) = error.diagnostics
            self.error(one.code, one.message, self.since(token), one.label, one.hint)
            return term

    def signed_number(self) -> Term | None:
        """Take `-5` or `+5` when a sign stands directly before a number."""
        follower = self.peek()
        if self.key in ("-", "+") and follower.kind in NUMBERS and follower.start == self.token.end:
            sign = self.advance().text
            return self.number_term(self.token, sign + self.advance().text)
        return None

    def constant(self) -> Term | None:
        """Take an IRI or a literal, which may have a sign; None where something else stands."""
        if self.at_iri():
            return self.iri_term()
        number = self.signed_number()
        if number is not None or not self.at_literal():
            return number
        return self.literal_term()

    def variable(self) -> Token:
        """Take a variable."""
        token = self.token
        if token.kind != "var":
            raise self.fail("a variable", f"write `?{token.text}`" if token.kind == "name" else "")
        return self.advance()

    def variable_name(self, token: Token) -> str:
        name = token.text[1:]
        return unescape(name, token, self.source, self.found) if "\\" in name else name

    # -- prologues ------------------------------------------------------------

    def declare_prefix(self, own: dict[str, Span] | None = None) -> None:
        """Take `PREFIX p: <iri>`. `own` holds the prefixes that this scope declared so far."""
        self.expect("PREFIX")
        token = self.token
        if token.kind != "pname" or not token.text.endswith(":") or token.text.count(":") != 1:
            hint = f"write `PREFIX {token.text}: <…>`" if token.kind == "name" else ""
            raise self.fail("a prefix such as `ex:`", hint)
        self.advance()
        if self.token.kind != "iri":
            raise self.fail("an IRI in angle brackets")
        value = self.absolute(self.iri_text(self.token), self.token)
        self.advance()
        prefix = token.text[:-1]
        if "\\" in prefix:
            prefix = unescape(prefix, token, self.source, self.found)
        if own is not None:
            if prefix in own and self.prefixes.get(prefix) != value:
                self.error(
                    "D1103",
                    f"the prefix `{prefix}:` is declared twice, differently",
                    self.span(token),
                    f"it stood for <{self.prefixes[prefix]}>",
                    "rename one of them",
                    (f"first declared at {own[prefix]}",),
                )
                return
            if prefix in own:
                self.found.warning(
                    "D1103",
                    f"the prefix `{prefix}:` is declared twice",
                    self.span(token),
                    hint="delete one line",
                )
            own.setdefault(prefix, self.span(token))
        self.prefixes[prefix] = value

    def report_unused(self, own: Mapping[str, Span] | None = None) -> None:
        """Warn about declared prefixes that nothing used."""
        for prefix, span in (self.declared if own is None else own).items():
            if prefix not in self.used:
                self.found.warning(
                    "D1102", f"the prefix `{prefix}:` is never used", span, hint="delete the line"
                )

    def declare_base(self) -> None:
        self.expect("BASE")
        if self.token.kind != "iri":
            raise self.fail("an IRI in angle brackets")
        self.base = self.absolute(self.iri_text(self.token), self.token)
        self.advance()


def _unslash(local: str) -> Iterator[str]:
    """The local name without the backslashes of `\\-` and its like."""
    escaped = False
    for character in local:
        if character == "\\" and not escaped:
            escaped = True
            continue
        escaped = False
        yield character


NUMBERS: Final[Mapping[str, str]] = {"integer": XSD_INTEGER, "decimal": XSD_DECIMAL, "double": XSD_DOUBLE}
_BOOLEANS: Final[Mapping[str, Term]] = {"TRUE": TRUE, "FALSE": FALSE}
TYPE: Final = RDF_TYPE
WELL_KNOWN: Final[Mapping[str, str]] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "prov": "http://www.w3.org/ns/prov#",
    "saref": "https://saref.etsi.org/core/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "ngsi-ld": "https://uri.etsi.org/ngsi-ld/",
}
