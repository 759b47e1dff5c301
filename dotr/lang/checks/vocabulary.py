"""Queries that nothing can match: words that no source of triples knows.

Place:   called by `dotr check` when it has read the background, and a sample of the stream if one is given.
Method:  a required triple pattern with a constant predicate (or class) needs a triple with it: from the
         background, a Datalog head, or the stream. Without a sample the stream may bring anything; then only
         a word that is nearly one of the background's is remarked on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import assert_never

from msgspec import Struct, field

from dotr import ir
from dotr.errors import Diagnostics
from dotr.lang.checks.scopes import has_aggregate
from dotr.rdf.terms import OWL, RDF_TYPE, RDFS, Term, Triple, is_iri
from dotr.source import Span


class Vocabulary(Struct):
    """Predicates and classes that occur, IRIs that schema triples speak of (either may follow), and all terms
    that are called something.
    """

    predicates: set[Term] = field(default_factory=set)
    classes: set[Term] = field(default_factory=set)
    schema: set[Term] = field(default_factory=set)
    terms: set[Term] = field(default_factory=set)
    anything: bool = False

    def add(self, triples: Iterable[Triple]) -> None:
        terms = self.terms
        for subject, predicate, object_ in triples:
            self.predicates.add(predicate)
            terms.update((subject, predicate, object_))
            if predicate == RDF_TYPE:
                self.classes.add(object_)
            if predicate.startswith((f"<{RDFS}", f"<{OWL}")):
                self.schema.update((subject, object_))

    def knows(self, predicate: Term, class_: Term | None) -> bool:
        """Whether a triple with this predicate (and, for rdf:type, class) can be there."""
        word, words = (class_, self.classes) if class_ is not None else (predicate, self.predicates)
        return self.anything or word in words or word in self.schema


def add_heads(program: ir.Program, vocabulary: Vocabulary) -> None:
    """Add what Datalog heads derive. A variable predicate or class derives what the schema names."""
    for rule in program.datalog:
        for head in rule.heads:
            vocabulary.terms.update(
                t for t in (head.subject, head.predicate, head.object) if isinstance(t, str)
            )
            if isinstance(head.predicate, ir.Var):
                continue  # instantiated over the schema: `Vocabulary.schema`
            vocabulary.predicates.add(head.predicate)
            if head.predicate == RDF_TYPE and isinstance(head.object, str):
                vocabulary.classes.add(head.object)


def check_vocabulary(
    program: ir.Program, vocabulary: Vocabulary, *, sampled: bool, found: Diagnostics
) -> None:
    """Warn about queries that need what is not there; without a sample, remark on near misses."""
    for name, select in program.written.items():
        for predicate, class_, span in _unknown(select, vocabulary):
            word = class_ or predicate
            words = vocabulary.classes if class_ is not None else vocabulary.predicates
            likely = near(word, words)
            kind = "class" if class_ is not None else "predicate"
            hint = f"did you mean {likely}?" if likely else ""
            if sampled:
                found.warning(
                    "D1220",
                    f"nothing can match the query `{name}`: no triple has the {kind} {word}",
                    span,
                    hint=hint,
                    notes=("it is neither in the background, nor a Datalog head, nor in the sample",),
                )
            elif likely:
                found.info(
                    "D1223",
                    f"the {kind} {word} is not known from the background",
                    span,
                    hint=hint,
                    notes=("fine if the stream brings it; `--sample SOURCE` looks there too",),
                )


def near(word: Term, words: Iterable[Term]) -> str:
    """The known IRI that a word was probably meant to be: spelled almost so in the same namespace, or so in
    another one.
    """
    space, local = _split(word)
    best, best_ratio = "", 0.8
    for known in sorted(words):
        if known == word or not is_iri(known):
            continue
        other_space, other = _split(known)
        ratio = 0.0
        if other_space == space and abs(len(other) - len(local)) <= 3 and not _numbered(local, other):
            matcher = SequenceMatcher(None, local.lower(), other.lower())
            ratio = matcher.ratio() if matcher.real_quick_ratio() > best_ratio else 0.0
        elif other == local and len(local) > 2:
            ratio = 0.95
        if ratio > best_ratio:
            best, best_ratio = known, ratio
    return best


def _numbered(one: str, other: str) -> bool:
    """`room1` and `room2` are two things, not a slip of the pen."""
    return one != other and one.rstrip("0123456789") == other.rstrip("0123456789")


def _split(word: Term) -> tuple[str, str]:
    cut = max(word.rfind("#"), word.rfind("/"), word.rfind(":")) + 1
    return word[:cut], word[cut:-1]


def required_patterns(select: ir.Select) -> Iterator[ir.TriplePattern]:
    """The triple patterns without which a query has no answer."""
    aggregates = any(p.expression is not None and has_aggregate(p.expression) for p in select.projection)
    if select.group_by or not aggregates:
        yield from _required(select.where)


def _required(group: ir.GroupPattern) -> Iterator[ir.TriplePattern]:
    for element in group.elements:
        match element:
            case ir.Triples(patterns):
                yield from patterns
            case ir.GroupPattern():
                yield from _required(element)
            case ir.SubSelect(select):
                yield from required_patterns(select)
            case _:
                continue


_Need = tuple[Term, Term | None, Span | None]


def _unknown(select: ir.Select, vocabulary: Vocabulary) -> Iterator[_Need]:
    aggregates = any(p.expression is not None and has_aggregate(p.expression) for p in select.projection)
    if select.group_by or not aggregates:  # an aggregate without groups has a row even of nothing
        yield from _group(select.where, vocabulary)


def _group(group: ir.GroupPattern, vocabulary: Vocabulary) -> Iterator[_Need]:
    """What a group needs and nothing has. OPTIONAL, MINUS and EXISTS need nothing here."""
    for element in group.elements:
        match element:
            case ir.Triples(patterns):
                for pattern in patterns:
                    yield from _pattern(pattern, vocabulary)
            case ir.GroupPattern():
                yield from _group(element, vocabulary)
            case ir.SubSelect(select):
                yield from _unknown(select, vocabulary)
            case ir.Union(branches):
                missing = [list(_group(branch, vocabulary)) for branch in branches]
                if all(missing):
                    yield missing[0][0]
            case _:
                continue


def _pattern(pattern: ir.TriplePattern, vocabulary: Vocabulary) -> Iterator[_Need]:
    predicate = pattern.predicate
    if isinstance(predicate, ir.Var):
        return
    if predicate == RDF_TYPE:
        class_ = pattern.object
        if isinstance(class_, str) and is_iri(class_) and not vocabulary.knows(RDF_TYPE, class_):
            yield RDF_TYPE, class_, pattern.span
        return
    for step in _needed(predicate):
        if not vocabulary.knows(step, None):
            yield step, None, pattern.span


def _needed(path: ir.Path) -> Iterator[Term]:
    """Predicates without which a path leads nowhere."""
    match path:
        case str():
            yield path
        case ir.Inverse(inner):
            yield from _needed(inner)
        case ir.Sequence(paths):
            for step in paths:
                yield from _needed(step)
        case ir.Repeat(inner, minimum):
            if minimum:
                yield from _needed(inner)
        case ir.Alternative() | ir.NegatedSet():
            return
        case _:
            assert_never(path)
