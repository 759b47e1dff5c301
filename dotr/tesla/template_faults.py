"""Which parts of a template can fail at run time: a literal as subject, anything but an IRI as predicate.

Place:   compile.py drops such matches and counts them; core/emit.py never sees them.
"""

from __future__ import annotations

from dotr.ir.rules import Rule, TemplateVar
from dotr.rdf.terms import is_iri, is_literal


def faults(rule: Rule) -> tuple[frozenset[int], frozenset[int], bool]:
    """(bindings that must not be literals, bindings that must be IRIs, the template is never a graph)."""
    numbers = {variable: i for i, variable in enumerate(rule.variables)}
    subjects: set[int] = set()
    predicates: set[int] = set()
    never = False
    for triple in rule.template:
        subject, predicate = triple.subject, triple.predicate
        if isinstance(subject, TemplateVar):
            subjects.add(numbers[subject.name])
        elif isinstance(subject, str):
            never = never or is_literal(subject)
        if isinstance(predicate, TemplateVar):
            predicates.add(numbers[predicate.name])
        elif isinstance(predicate, str):
            never = never or not is_iri(predicate)
    return frozenset(subjects), frozenset(predicates), never
