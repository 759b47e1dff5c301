"""Terms of a program that occur nowhere in a sample, in no position, and the nearest that do.

Place:   report.py; predicates and classes of queries are reported by lang/checks/vocabulary.py (D1220).
Method:  every IRI of the background, the sample and the Datalog heads is known. An unknown one is compared
         with them: the same name in another namespace, in other letters, or spelled almost so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from dotr.errors import Diagnostics
from dotr.ir import Atom, Call, Const, Expression, Program, Select, TriplePattern
from dotr.lang.checks.comparisons import rule_expressions
from dotr.lang.checks.sorts import STAND_IN, filters_of
from dotr.lang.checks.vocabulary import Vocabulary, near, required_patterns
from dotr.rdf.terms import OWL, RDF, RDF_TYPE, RDFS, XSD, Term, is_iri
from dotr.source import Span
from dotr.sparql.printing import Writer

_BUILT_IN = tuple(f"<{space}" for space in (RDF, RDFS, OWL, XSD))

Use = tuple[Term, Span | None]


def check_terms(program: Program, vocabulary: Vocabulary, found: Diagnostics) -> None:
    """Warn about each IRI that nothing has, D2501, once for each place in the program's text."""
    writer = Writer(program.prefixes)
    reported: set[str] = set()
    for term, span in _uses(program):
        if term in vocabulary.terms or term.startswith((*_BUILT_IN, STAND_IN)) or str(span) in reported:
            continue
        reported.add(str(span))
        likely = near(term, vocabulary.terms)
        found.warning(
            "D2501",
            f"nothing is called {writer.term(term)}",
            span,
            hint=f"did you mean {writer.term(likely)}?" if likely else "",
            notes=("it is nowhere in the background or the sample, and no Datalog rule derives it",),
        )


def _uses(program: Program) -> Iterator[Use]:
    """Every IRI that a query needs as a subject or object, or that a condition compares with."""
    for select in program.written.values():
        yield from _of_patterns(select)
        for condition, _ in filters_of(select):
            yield from _of_expression(condition)
    for rule in program.rules:
        for expression in rule_expressions(rule):
            yield from _of_expression(expression)
    for clause in program.datalog:
        for atom in clause.body:
            yield from _of_atoms(atom)


def _of_patterns(select: Select) -> Iterator[Use]:
    for pattern in required_patterns(select):
        for term in _resources(pattern):
            yield term, pattern.span


def _resources(pattern: TriplePattern) -> Iterator[Term]:
    if isinstance(pattern.subject, str) and is_iri(pattern.subject):
        yield pattern.subject
    if isinstance(pattern.object, str) and is_iri(pattern.object) and pattern.predicate != RDF_TYPE:
        yield pattern.object


def _of_expression(expression: Expression) -> Iterator[Use]:
    """IRIs that something is compared with."""
    if isinstance(expression, Call):
        compares = expression.function in ("=", "!=", "IN", "NOT-IN")
        for argument in expression.arguments:
            if compares and isinstance(argument, Const) and is_iri(argument.term):
                yield argument.term, argument.span
            yield from _of_expression(argument)


def _of_atoms(node: Any) -> Iterator[Use]:
    """IRIs of the atoms of a Datalog body."""
    if isinstance(node, Atom):
        for term in (node.subject, node.predicate, node.object):
            if isinstance(term, str) and is_iri(term):
                yield term, node.span
    elif isinstance(node, Struct):
        for name in node.__struct_fields__:
            yield from _of_atoms(getattr(node, name))
    elif isinstance(node, Iterable) and not isinstance(node, str):
        for item in node:
            yield from _of_atoms(item)
