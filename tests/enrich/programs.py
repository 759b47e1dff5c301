"""Building Datalog programs in tests: `rule("?a in ?b", "?a at ?c", "?c in ?b")`."""

from dotr.program import (
    AggregateAtom,
    AggregateTerm,
    Atom,
    BodyAtom,
    Call,
    Const,
    DatalogRule,
    Expression,
    NotAtom,
    Var,
)
from dotr.rdf.terms import OWL, RDF_TYPE, RDFS, Term, Triple, integer

_VOCABULARY = {
    "a": RDF_TYPE,
    "sco": f"<{RDFS}subClassOf>",
    "spo": f"<{RDFS}subPropertyOf>",
    "domain": f"<{RDFS}domain>",
    "range": f"<{RDFS}range>",
    "equivalent": f"<{OWL}equivalentClass>",
    "sameAs": f"<{OWL}sameAs>",
    "Transitive": f"<{OWL}TransitiveProperty>",
    "Functional": f"<{OWL}FunctionalProperty>",
}


def term(word: str) -> Term:
    """`a` and vocabulary, a number, or a name in the example namespace."""
    if word in _VOCABULARY:
        return _VOCABULARY[word]
    if word.lstrip("-").isdigit():
        return integer(int(word))
    return f"<http://example.org/{word}>"


def node(word: str) -> Term | Var:
    return Var(word[1:]) if word.startswith("?") else term(word)


def atom(text: str) -> Atom:
    subject, predicate, object_ = map(node, text.split())
    return Atom(subject, predicate, object_)


def no(text: str) -> NotAtom:
    return NotAtom(atom(text))


def rule(heads: str, *body: str | BodyAtom) -> DatalogRule:
    """Heads separated by commas; body atoms as text or built."""
    return DatalogRule(
        tuple(atom(head) for head in heads.split(",")),
        tuple(atom(item) if isinstance(item, str) else item for item in body),
    )


def call(function: str, *arguments: str | int | Expression) -> Call:
    """A function of variables ("?x"), integers and expressions."""
    return Call(function, tuple(_argument(argument) for argument in arguments))


def _argument(argument: str | int | Expression) -> Expression:
    if isinstance(argument, int):
        return Const(integer(argument))
    if isinstance(argument, str):
        found = node(argument)
        return found if isinstance(found, Var) else Const(found)
    return argument


def aggregate(
    group: str, function: str, argument: str | None, into: str, *body: str | BodyAtom, distinct: bool = False
) -> AggregateAtom:
    inner = tuple(atom(item) if isinstance(item, str) else item for item in body)
    total = AggregateTerm(function, None if argument is None else Var(argument), distinct, Var(into))
    return AggregateAtom(inner, tuple(map(Var, group.split())), (total,))  # type: ignore[arg-type]  # tests nest no aggregates


def triples(text: str) -> set[Triple]:
    """`s p o` separated by dots."""
    found = set()
    for statement in text.split("."):
        if statement.strip():
            subject, predicate, object_ = map(term, statement.split())
            found.add((subject, predicate, object_))
    return found
