"""A query of any form as text, over a model: SELECT, ASK, CONSTRUCT or DESCRIBE, all of it counted.

Place:   beside prepared_queries.py, which answers SELECT and ASK; a server and `dotr query --dir` ask here.
Method:  the solutions of CONSTRUCT and DESCRIBE are those of a SELECT with the same pattern, so that they are
         found by the same engine and within the same budget; pyoxigraph fills the template, over these
         solutions alone. DESCRIBE gives concise bounded descriptions: the triples of a resource and of its
         blank nodes.
Why not: the whole query to pyoxigraph: it cannot be interrupted, and copies the state.
Bad input: D1201, D1202, D1203 a query that cannot be read, changes something, or asks elsewhere · D4112 NOW()
           without a time · D4132, D4133 past the budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from dotr.budget import BUDGET
from dotr.errors import ProgramError
from dotr.events import Clock, Time
from dotr.extract.operators import Row
from dotr.joins.plan import ALL, View
from dotr.joins.store import TripleIndex
from dotr.knowledge_base.model import Model
from dotr.knowledge_base.prepared_queries import PlannedQuery
from dotr.lang import parse_query
from dotr.rdf.terms import Term, Triple, canonical


class Rows(NamedTuple):
    """The answers of a SELECT, in canonical order unless it has one."""

    variables: tuple[str, ...]
    rows: Sequence[Row]


Result: TypeAlias = "Rows | bool | list[Triple]"
"""Of SELECT; of ASK; of CONSTRUCT and DESCRIBE, sorted."""

Now: TypeAlias = "tuple[Time, Clock] | None"

_APART: Final = re.compile(
    r'"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>"{}|^`\\\s]*>|#[^\n]*'
)
_WORD: Final = r"(?<![:\w?$.-])({})(?![:\w])"
_FORM: Final = re.compile(
    _WORD.format("SELECT|ASK|CONSTRUCT|DESCRIBE|INSERT|DELETE|LOAD|CLEAR|DROP|CREATE|ADD|MOVE|COPY|WITH"),
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    _WORD.format("WHERE|FROM|ORDER|GROUP|HAVING|LIMIT|OFFSET|VALUES") + r"|\{", re.IGNORECASE
)
_TARGET: Final = re.compile(r"<[^<>\s]*>|[?$]\w+|\*|[^\s<>?$*]+")


def result_of(
    model: Model, text: str, name: str, prefixes: Mapping[str, str], now: Now, budget: int = BUDGET
) -> Result:
    """The answer to a query. Raises ProgramError, UsageError."""
    masked = _APART.sub(_blanked, text)
    form = _FORM.search(masked)
    word = "" if form is None else form[1].upper()
    asked = _Asked(model, name, prefixes, now, budget)
    if form is not None and word == "CONSTRUCT":
        return asked.constructed(text, masked, form)
    if form is not None and word == "DESCRIBE":
        return asked.described(text, masked, form)
    return asked.selected(text)


def _blanked(match: re.Match[str]) -> str:
    """As long, with the same lines, and without words."""
    return re.sub(r"[^\n]", " ", match[0])


class _Asked(NamedTuple):
    model: Model
    name: str
    prefixes: Mapping[str, str]
    now: Now
    budget: int

    def selected(self, text: str) -> Rows | bool:
        query = PlannedQuery(parse_query(text, self.name, self.prefixes, canonical=True), self.budget)
        rows = query.rows(self.model, self.now)
        return bool(rows) if query.select.ask else Rows(query.variables, rows)

    def _rows(self, text: str) -> Rows:
        found = self.selected(text)
        assert isinstance(found, Rows), "a SELECT has rows"
        return found

    # -- CONSTRUCT

    def constructed(self, text: str, masked: str, form: re.Match[str]) -> list[Triple]:
        prologue, start = text[: form.start()], masked.find("{", form.end())
        end = _closing(masked, start)
        if end is None:
            self._select(text, form, form.end(), form.end())  # says what is wrong
            raise self._unreadable("a CONSTRUCT has a template")
        template = text[start:end]
        short = bool(masked[form.end() : start].strip())  # CONSTRUCT WHERE { template }
        found = self._select(text, form, form.end(), form.end() if short else end)
        made: dict[Triple, None] = {}
        blanks = _BlankNodes(found.rows)
        for part in blanks.written(found):
            asked = f"{prologue} CONSTRUCT {template} WHERE {{ {part} }}"
            try:
                answer = ox.Store().query(asked, prefixes=dict(self.prefixes))
            except SyntaxError as error:
                raise self._unreadable(str(error).splitlines()[0][:200]) from None
            assert isinstance(answer, ox.QueryTriples)
            made.update(dict.fromkeys(map(blanks.triple, answer)))
        return sorted(made)

    def _select(self, text: str, form: re.Match[str], start: int, end: int) -> Rows:
        """The solutions behind a form, without what stands between two places."""
        left = re.sub(r"[^\n]", " ", text[start:end])
        return self._rows(f"{text[: form.start()]}SELECT *{left}{text[end:]}")

    def _unreadable(self, message: str) -> ProgramError:
        return ProgramError.of("D1201", f"this query cannot be read: {message}", place=self.name)

    # -- DESCRIBE

    def described(self, text: str, masked: str, form: re.Match[str]) -> list[Triple]:
        prologue = text[: form.start()]
        behind = _BEHIND.search(masked, form.end())
        end = len(text) if behind is None else behind.start()
        targets = _TARGET.findall(re.sub(r"#[^\n]*", "", _without_comments(text[form.end() : end])))
        if not targets:
            raise self._unreadable("a DESCRIBE names resources or variables")
        variables = [target for target in targets if target[0] in "?$*"]
        named = [target for target in targets if target[0] not in "?$*"]
        found: dict[Term, None] = {}
        if named:
            columns = " ".join(f"({iri} AS ?described{n})" for n, iri in enumerate(named))
            found |= dict.fromkeys(t for t in self._rows(f"{prologue}SELECT {columns} {{}}").rows[0] if t)
        if variables:
            if behind is None:
                raise self._unreadable("a DESCRIBE of variables has a pattern")
            asked = self._rows(f"{prologue}SELECT {' '.join(dict.fromkeys(variables))} {text[end:]}")
            found |= dict.fromkeys(term for row in asked.rows for term in row if term)
        elif behind is not None:
            self._rows(f"{prologue}SELECT * {text[end:]}")  # refused where it cannot be read
        return description(self.model.reader(), found)


def _without_comments(text: str) -> str:
    return _APART.sub(lambda match: " " if match[0][0] == "#" else match[0], text)


def _closing(masked: str, start: int) -> int | None:
    """The place behind the brace that closes the one at `start`; None where none does."""
    level = 0
    for match in re.compile(r"[{}]").finditer(masked, max(start, 0)):
        level += 1 if match[0] == "{" else -1
        if not level:
            return match.end() if start >= 0 else None
    return None


def description(store: TripleIndex, resources: Iterable[Term]) -> list[Triple]:
    """The triples of resources, and of the blank nodes that are their objects, sorted."""
    found: dict[Triple, None] = {}
    todo = [term for term in resources if term[0] != '"']
    known = set(todo)
    while todo:
        for row in store.find(ALL, [todo.pop(), None, None], View.OLD):
            triple: Triple = row  # type: ignore[assignment]  # three columns
            found[triple] = None
            if triple[2][0] == "_" and triple[2] not in known:
                known.add(triple[2])
                todo.append(triple[2])
    return sorted(found)


_TOGETHER: Final = 1_000
"""Solutions that are put into one text."""

_STANDS_FOR: Final = "urn:dotr:blank:"


class _BlankNodes:
    """Owns the names of blank nodes: those of solutions, which travel as IRIs, and those of a template."""

    def __init__(self, rows: Iterable[Row]) -> None:
        known = {term for row in rows for term in row if term is not None and term[0] == "_"}
        self._prefix = "_:made"
        while any(term.startswith(self._prefix) for term in known):
            self._prefix += "_"
        self._made: dict[str, Term] = {}

    def written(self, found: Rows) -> Iterator[str]:
        """The solutions as patterns; one without solutions where there are none, for the template is read."""
        if not found.rows:
            yield "FILTER(false)"
            return
        if not found.variables:
            yield ""
            return
        names = " ".join(f"?{name}" for name in found.variables)
        for start in range(0, len(found.rows), _TOGETHER):
            rows = found.rows[start : start + _TOGETHER]
            lines = " ".join(f"({' '.join(map(self._term, row))})" for row in rows)
            yield f"VALUES ({names}) {{ {lines} }}"

    @staticmethod
    def _term(term: Term | None) -> str:
        if term is None:
            return "UNDEF"
        return f"<{_STANDS_FOR}{term[2:]}>" if term[0] == "_" else term

    def triple(self, triple: ox.Triple) -> Triple:
        """A triple that was made."""
        return self._read(triple.subject), str(triple.predicate), self._read(triple.object)

    def _read(self, term: object) -> Term:
        if isinstance(term, ox.NamedNode) and term.value.startswith(_STANDS_FOR):
            return f"_:{term.value[len(_STANDS_FOR) :]}"
        if isinstance(term, ox.BlankNode):
            return self._made.setdefault(term.value, f"{self._prefix}{len(self._made)}")
        return canonical(str(term))
