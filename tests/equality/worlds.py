"""Random schemas that name individuals, and facts that make these individuals equal to others.

Place:   under knowledge_bases.py and streams.py, which change them step by step.
Method:  few individuals, classes and properties, so that functional and inverse functional properties, keys
         and cardinalities find the same ones again and again. Restrictions and the cells of lists have names,
         so that they can be deleted, and be compared with what owlrl derives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from random import Random

from dotr.rdf.terms import OWL, RDF, RDF_TYPE, RDFS, XSD, Term, Triple, is_literal
from tests.enrich import entailment


def named(name: str) -> Term:
    return f"<http://e/{name}>"


def owl(name: str) -> Term:
    return f"<{OWL}{name}>"


def rdfs(name: str) -> Term:
    return f"<{RDFS}{name}>"


SAME_AS = owl("sameAs")
FIRST, REST, NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))
ONE = f'"1"^^<{XSD}integer>'
INDIVIDUALS = [named(f"i{n}") for n in range(4)]
CLASSES = [named(f"C{n}") for n in range(3)]
PROPERTIES = [named(f"p{n}") for n in range(3)]
KEYS = [named("k0"), named("k1")]


class Ontology:
    """Makes axioms, each a list of triples; names of restrictions and lists are used once."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made = 0
        self._fillers = [owl("Thing")]  # once: owlrl has an axiom by which two of them are comparable

    def axiom(self) -> list[Triple]:
        random = self._random
        pick = random.choice
        one, class_ = pick(PROPERTIES), pick(CLASSES)
        kind = random.randrange(31)
        if kind < 4:
            return [(one, RDF_TYPE, owl("InverseFunctionalProperty"))]
        if kind < 8:
            return [(one, RDF_TYPE, owl("FunctionalProperty"))]
        if kind < 11:
            return [(one, owl("inverseOf"), pick(PROPERTIES))]
        if kind < 16:
            return self._restriction(class_, one, (owl("hasValue"), pick([*INDIVIDUALS, KEYS[0]])))
        if kind < 19:
            return self._listed(class_, owl("oneOf"), random.sample(INDIVIDUALS, random.randint(1, 2)))
        if kind < 22:
            return self._listed(class_, owl("hasKey"), random.sample(PROPERTIES, random.randint(1, 2)))
        if kind == 22:
            return self._restriction(class_, one, (owl("maxCardinality"), ONE))
        if kind == 23:
            filler = pick([*CLASSES, *self._fillers])
            self._fillers = [other for other in self._fillers if other != filler]
            return self._restriction(class_, one, (owl(pick(["someValuesFrom", "allValuesFrom"])), filler))
        if kind == 24:
            return self._listed(class_, owl(pick(["intersectionOf", "unionOf"])), random.sample(CLASSES, 2))
        if kind == 25:
            first, second = random.sample(CLASSES, 2)
            return [(first, pick([rdfs("subClassOf"), owl("equivalentClass")]), second)]
        if kind == 26:
            first, second = random.sample(PROPERTIES, 2)
            return [(first, pick([rdfs("subPropertyOf"), owl("equivalentProperty")]), second)]
        if kind == 27:
            return [(one, pick([rdfs("domain"), rdfs("range")]), class_)]
        if kind == 28:
            return [(one, RDF_TYPE, owl(pick(["SymmetricProperty", "TransitiveProperty", "ObjectProperty"])))]
        if kind == 29:
            return [(class_, rdfs("subClassOf"), owl(pick(["SymmetricProperty", "FunctionalProperty"])))]
        return [(class_, RDF_TYPE, owl("Class"))]

    def _new(self, kind: str) -> Term:
        self._made += 1
        return named(f"{kind}{self._made}")

    def _restriction(self, class_: Term, property_: Term, what: tuple[Term, Term]) -> list[Triple]:
        made = self._new("r")
        how = self._random.choice([owl("equivalentClass"), owl("equivalentClass"), rdfs("subClassOf")])
        return [(class_, how, made), (made, owl("onProperty"), property_), (made, *what)]

    def _listed(self, class_: Term, axiom: Term, members: Iterable[Term]) -> list[Triple]:
        cells = [(self._new("l"), member) for member in members]
        rests = [*(cell for cell, _ in cells[1:]), NIL]
        found = [(class_, axiom, cells[0][0])]
        for (cell, member), rest in zip(cells, rests, strict=True):
            found += [(cell, FIRST, member), (cell, REST, rest)]
        return found


def fact(random: Random, *, strange: float = 0.02) -> Triple:
    """What is said of individuals; seldom of a class or a property (`strange`), as of any other thing."""
    pick = random.choice
    subject, object_ = pick(INDIVIDUALS), pick(INDIVIDUALS)
    if random.random() < strange:
        return pick(
            [
                (pick(PROPERTIES), RDF_TYPE, pick(CLASSES)),
                (subject, pick(PROPERTIES), pick([*PROPERTIES, *CLASSES])),
                (pick(PROPERTIES), pick(PROPERTIES), object_),
            ]
        )
    kind = random.randrange(12)
    if kind < 7:
        return subject, pick(PROPERTIES), object_
    if kind < 10:
        return subject, RDF_TYPE, pick(CLASSES)
    if kind == 10:
        return subject, pick(PROPERTIES), pick(KEYS)
    return subject, SAME_AS, object_


def closed_by_owlrl(triples: Iterable[Triple]) -> set[Triple]:
    """The closure that owlrl has. (It does not compare the last property of a key: here every key has its
    last property twice, in a cell that is taken away again.)
    """
    stated = set(triples)
    rests = {cell: rest for cell, p, rest in stated if p == REST}
    added, taken = set(), set()
    for _, p, cell in sorted(stated):
        if p == owl("hasKey"):
            while rests.get(cell, NIL) != NIL:
                cell = rests[cell]
            more = f"{cell[:-1]}again>"
            taken.add((cell, REST, NIL))
            added |= {(cell, REST, more), (more, REST, NIL)}
            added |= {(more, FIRST, member) for one, p, member in stated if (one, p) == (cell, FIRST)}
    graph = entailment.graph_of(sorted((stated - taken) | added))
    entailment.expand("owl2rl", graph)
    found = {t for t in entailment.triples_of(graph) if not any(term.endswith("again>") for term in t)}
    return comparable(found | taken)


def as_owlrl_has(stated: Collection[Triple], found: set[Triple]) -> set[Triple]:
    """The closure that owlrl has; of what is found beyond it, also what owlrl concludes once classes and
    properties are declared: it takes what nothing declares for no part of itself, also where rules conclude
    that.
    """
    expected = closed_by_owlrl(stated)
    more = found - expected
    if more:
        classes = {*CLASSES, *(s for s, p, _ in stated if p == owl("onProperty"))}
        declared = [(one, RDF_TYPE, owl("Class")) for one in sorted(classes)]
        declared += [(one, RDF_TYPE, owl("ObjectProperty")) for one in PROPERTIES]
        expected |= more & closed_by_owlrl([*stated, *declared])
    return expected


def comparable(triples: Iterable[Triple]) -> set[Triple]:
    """Without what one of both leaves out: what says that something is itself, literals as subjects and
    predicates, statements about the vocabularies.
    """
    return {
        (s, p, o)
        for s, p, o in entailment.comparable(list(triples))
        if not is_literal(p) and not (s == o and p == SAME_AS)
    }


def between_individuals(triples: Iterable[Triple]) -> bool:
    """Whether no class or property is equal to something, which owlrl reads in its own way."""
    others = {*CLASSES, *PROPERTIES}
    return not any(p == SAME_AS and s != o and (s in others or o in others) for s, p, o in triples)
