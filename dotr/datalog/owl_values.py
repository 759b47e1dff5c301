"""OWL axioms over values, written out as rules for literals that are one value and two terms (dt-eq).

Place:   beside owl_lists.py, which calls it: keys, owl:hasValue, negative assertions, inverse functional
         properties of data.
Method:  OWL 2 Profiles, sec. 4.3: dt-eq makes literals of one value the same, eq-rep-o replaces one by the
         other. Here `"1.0"^^xsd:decimal` has its value as another term, 1 (rdf/data_values.py), in a
         relation beside that of its property, which has no triple of RDF (joins/graph_relations.py): rules
         that compare values read that one, too. It is empty where all literals are written as their values.
Why not: dt-eq as it stands. Every such literal would be printed, and counted by queries, as often as it can
         be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dotr.expressions.casts import DATA_VALUE
from dotr.ir import Atom, BindAtom, BodyAtom, Call, DatalogRule, FilterAtom, Node, Var
from dotr.rdf.data_values import data_value
from dotr.rdf.terms import OWL, RDF_TYPE, Term

SAME_AS: Term = f"<{OWL}sameAs>"
VALUE_OF = "_:value of "
"""A property's values as terms of their own: the relation's name, before the property's."""

_WRITTEN_OTHERWISE: Term = "_:written otherwise"
_X, _Y, _Z, _V = Var("x"), Var("y"), Var("z"), Var("v")


def value_of(property_: Term) -> Term:
    return VALUE_OF + property_


def other_terms(property_: Term) -> DatalogRule:
    """The values of a property that are written otherwise."""
    body = (Atom(_X, property_, _Z), BindAtom(_value(_Z), _V), FilterAtom(_differs(_Z, _V)))
    return DatalogRule((Atom(_X, value_of(property_), _V),), body)


def with_value(property_: Term, literal: Term, subject: Node, head: Atom) -> Iterator[DatalogRule]:
    """What follows for a subject that has the value of a literal, in another term."""
    value = data_value(literal)
    if value is not None:
        yield other_terms(property_)
        yield DatalogRule((head,), (Atom(subject, value_of(property_), value),))
        if value != literal:
            yield DatalogRule((head,), (Atom(subject, property_, value),))


def of_one_value(property_: Term) -> Iterator[tuple[str, DatalogRule]]:
    """prp-ifp, where a value is written in two ways."""
    yield "dt-eq", other_terms(property_)
    for other in (property_, value_of(property_)):
        body = (Atom(_X, value_of(property_), _V), Atom(_Y, other, _V), FilterAtom(_differs(_X, _Y)))
        yield "prp-ifp", DatalogRule((Atom(_X, SAME_AS, _Y), Atom(_Y, SAME_AS, _X)), body)


def of_one_key(class_: Term, members: Sequence[Term]) -> Iterator[tuple[str, DatalogRule]]:
    """prp-key, where a value of a key is written in two ways: if any is, all are compared as values."""
    mark = Atom(class_, _WRITTEN_OTHERWISE, class_)
    for member in dict.fromkeys(members):
        here = Atom(_X, member, _Z)
        yield "dt-eq", DatalogRule((mark,), (here, FilterAtom(_differs(_Z, _value(_Z)))))
        either = Call("COALESCE", (_value(_Z), _Z))
        yield "dt-eq", DatalogRule((Atom(_X, value_of(member), _V),), (mark, here, BindAtom(either, _V)))
    body: list[BodyAtom] = [mark, Atom(_X, RDF_TYPE, class_), Atom(_Y, RDF_TYPE, class_)]
    for number, member in enumerate(members):
        value = Var(f"z{number}")
        body += [Atom(_X, value_of(member), value), Atom(_Y, value_of(member), value)]
    yield "prp-key", DatalogRule((Atom(_X, SAME_AS, _Y),), (*body, FilterAtom(_differs(_X, _Y))))


def _value(node: Var) -> Call:
    return Call(DATA_VALUE, (node,))


def _differs(one: Var, other: Var | Call) -> Call:
    return Call("!", (Call("SAMETERM", (one, other)),))
