"""Which schema a rule stands on, and its name in an ontology profile: what was instantiated away of it.

Place:   asked by derivations.py of every rule of a derivation; a proof has these triples as premises, too.
Method:  rules with variable predicates or classes were instantiated over the schema (datalog/schema.py), and
         OWL's axioms over lists written out as rules (datalog/owl_lists.py). Both are done again here,
         remembering over which triples; of several, those that are stated. Schema that follows from schema is
         proved from it alone; schema that needs facts, from all of the background.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from dotr.datalog.closing import Closed, closing_program
from dotr.datalog.materialiser import Materialiser
from dotr.datalog.owl_lists import is_list_triple, list_axioms, list_rules
from dotr.datalog.schema import INVERSE_OF, instances_of, instantiable, schema_triples
from dotr.datalog.triple_set import TripleSet
from dotr.explain.derivations import Derivations, plainest
from dotr.explain.proofs import Origin, TripleProof
from dotr.ir import Atom, DatalogRule
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term, Triple

PROFILES = "dotr:rules/"
"""How the names of shipped rule files begin."""


class SchemaPremises:
    """Owns the origins of the rules that run over one background. `rules`: as written; `lists`: whether
    axioms over lists are rules; `closed`: the background, closed.
    """

    def __init__(
        self,
        rules: Sequence[DatalogRule],
        background: Collection[Triple],
        closed: Closed,
        lists: bool,
    ) -> None:
        self._rules, self._background, self._lists = rules, background, lists
        self._closed = closed
        self._schema, self._firm = closed.instantiated.schema, closed.instantiated.firm
        self._written = set(rules)
        self._origins: dict[tuple[object, Atom], Origin] | None = None
        self._alone: Materialiser | None = None

    def of(self, rule: DatalogRule) -> Origin:
        """The origin of a rule as it runs."""
        if rule in self._written:
            return Origin(profile_name(rule))
        if self._origins is None:
            self._origins = self._found()
        found = (self._origins.get((rule.body, head)) for head in rule.heads)
        return next((one for one in found if one is not None), Origin(profile_name(rule)))

    def inverse_of(self, property_: Term) -> Term | None:
        """What an anonymous property is the inverse of."""
        pairs = [(s, o) for s, p, o in self._schema if p == INVERSE_OF and property_ in (s, o)]
        return plainest([o for s, o in pairs if s == property_], [s for s, o in pairs if o == property_])

    def leaves(self, leaf: Callable[[Triple], TripleProof | None]) -> Callable[[Triple], TripleProof | None]:
        """Why a triple is stated, or is schema that rules were instantiated over, which nothing keeps at an
        instant.
        """
        made: dict[bool, Derivations] = {}

        def of_schema(triple: Triple) -> TripleProof | None:
            stated = leaf(triple)
            if stated is not None or triple not in self._schema:
                return stated
            alone = self._over_schema()
            if triple not in alone.background:
                return None
            if True not in made:
                made[True] = Derivations(alone.store, alone.clauses.all, leaf, self.of)
            return made[True].proof(triple)

        def found(triple: Triple) -> TripleProof | None:
            known = of_schema(triple)
            if known is not None or triple not in self._schema:
                return known
            if False not in made:
                clauses, store = closing_program(self._closed)[1], TripleIndex(self._closed.index)
                made[False] = Derivations(store, clauses.all, of_schema, self.of)
            return made[False].proof(triple)

        return found

    def _over_schema(self) -> Materialiser:
        """The schema closed alone."""
        if self._alone is None:
            lists = list_rules(self._background) if self._lists else ()
            schema = set(schema_triples(self._background))
            schema.update(filter(is_list_triple, self._background))
            self._alone = Materialiser((*self._rules, *lists), sorted(schema))
        return self._alone

    def _found(self) -> dict[tuple[object, Atom], Origin]:
        found: dict[tuple[object, Atom], Origin] = {}
        if self._lists:
            for axiom in list_axioms(self._background):
                for name, rule in axiom.rules:
                    _keep(found, rule, Origin(name, axiom.stated))
        stated = set(schema_triples(self._background))
        first = sorted(stated & set(self._schema))
        known = TripleSet([*first, *sorted(set(self._schema) - stated)])
        for rule in self._rules:
            if not instantiable(rule):
                continue
            name = profile_name(rule)
            made = instances_of(rule, known, self._firm)
            for one, premises in sorted(made, key=lambda pair: sum(p not in stated for p in pair[1])):
                _keep(found, one, Origin(name, premises))
        return found


def profile_name(rule: DatalogRule) -> str:
    """`cax-sco`, of a rule of a shipped profile that has a name there."""
    if rule.span is None or not rule.span.source.name.startswith(PROFILES):
        return ""
    source = rule.span.source
    line = source.line(source.position(rule.span.end)[0])
    found = re.search(r"#\s*([a-z]+-\w+)\s*$", line)
    return found[1] if found else ""


def _keep(found: dict[tuple[object, Atom], Origin], rule: DatalogRule, origin: Origin) -> None:
    for head in rule.heads:
        found.setdefault((rule.body, head), origin)
