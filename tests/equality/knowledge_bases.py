"""A knowledge base through a random history: it holds the closure of what is stated, as owlrl has it.

Place:   run by test_histories.py and `python -m tests.equality`; worlds.py has the schemas and facts.
Method:  insertions and deletions of facts and of axioms, ends of periods, rules added and removed, saving and
         opening. Beside it a plain set of what is stated. Proofs are taken apart: every leaf is stated now,
         every step is a rule of the profile over premises and schema that hold now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

from dotr import DataError, KnowledgeBase, ProgramError
from dotr.enrich.owl import TripleSet, list_rules, schema_triples
from dotr.explain.proofs import Derived, InBackground, TripleProof
from dotr.knowledge_base import model
from dotr.knowledge_base.model import shipped_rules
from dotr.lang import parse_datalog
from dotr.program import Atom, DatalogRule, NotAtom, Var
from dotr.rdf.terms import Term, Triple
from dotr.reference.enrich import _extend, _order
from tests.equality.worlds import Ontology, as_owlrl_has, between_individuals, comparable, fact

RULES = [
    "[?y, <http://e/p1>, ?x] :- [?x, <http://e/p0>, ?y] .",
    "[?x, <http://www.w3.org/2002/07/owl#sameAs>, ?y] :- [?x, <http://e/p2>, ?y], [?x, a, <http://e/C0>] .",
    "[?x, a, <http://e/C1>] :- [?x, <http://e/p0>, <http://e/i0>] .",
]
_REFUSED = (DataError, ProgramError)


def new(stated: Sequence[Triple], rules: Sequence[str]) -> KnowledgeBase:
    kb = KnowledgeBase(entailment="owl2rl", terms="canonical", contradictions="keep")
    kb.update(insert=stated, add_rules="\n".join(rules))
    return kb


class History:
    """Owns a knowledge base, what is stated beside it (with its ends), and what was done, as lines."""

    def __init__(self, seed: int) -> None:
        random = self._random = Random(seed)
        self._ontology = Ontology(random)
        self._axioms = [self._ontology.axiom() for _ in range(random.randint(2, 5))]
        self._strange = random.choice([0.02, 0.02, 0.02, 0.3])
        facts = self._facts(2, 6)
        first = [triple for axiom in self._axioms for triple in axiom] + facts
        self.stated: dict[Triple, int | None] = dict.fromkeys(first)
        self.rules: list[str] = []
        self.now = 0
        self.done = [f"seed {seed}", *(f"  {' '.join(triple)} ." for triple in self.stated)]
        self.kb = new(list(self.stated), self.rules)
        self.checked = 0

    def run(self) -> History:
        """Every step, with the checks. Raises AssertionError, whose message is the history."""
        with patch.object(model, "_WORTH", self._random.choice([0, 0, 0, model._WORTH])):
            return self._run()  # most are so small that closing anew would be less work

    def _run(self) -> History:
        random = self._random
        for _ in range(random.randint(2, 6)):
            before = set(self.kb)
            try:
                self._step(random.randrange(20))
            except _REFUSED:
                assert set(self.kb) == before, self._said("a refused change has changed something")
            if random.random() < 0.1:
                self.check()
        self.check()
        return self

    # -- steps

    def _step(self, kind: int) -> None:
        random = self._random
        inserted: set[Triple] = set()
        deleted: set[Triple] = set()
        if kind < 6:
            deleted = self._some_stated()
        elif kind < 9:
            inserted = set(self._facts(1, 3))
        elif kind < 12:
            inserted = set(self._facts(1, 2))
            deleted = self._some_stated()
        elif kind == 12:
            self._axioms.append(self._ontology.axiom())
            inserted = set(self._axioms[-1])
        elif kind == 13 and self._axioms:
            deleted = set(self._axioms.pop(random.randrange(len(self._axioms))))
        elif kind < 16:
            until = self.now + random.randint(1, 3)
            self._update(set(self._facts(1, 3)), set(), until)
            return
        elif kind == 16:
            self._advance()
            return
        elif kind == 17:
            self._change_rules()
            return
        elif kind == 18:
            self._reopen()
            return
        self._update(inserted, deleted, None)

    def _facts(self, least: int, most: int) -> list[Triple]:
        random = self._random
        return [fact(random, strange=self._strange) for _ in range(random.randint(least, most))]

    def _some_stated(self) -> set[Triple]:
        """Some facts, seldom a triple of the schema."""
        random = self._random
        of_axioms = {triple for axiom in self._axioms for triple in axiom}
        facts = sorted(self.stated.keys() - of_axioms)
        if not facts or (of_axioms and random.random() < 0.05):
            facts = sorted(self.stated)
        return set(random.sample(facts, min(len(facts), random.randint(1, 2))))

    def _update(self, inserted: set[Triple], deleted: set[Triple], until: int | None) -> None:
        self.done.append(f"update insert {sorted(inserted)} delete {sorted(deleted)} until {until}")
        self.kb.update(sorted(inserted), sorted(deleted), until=until)
        stated = {triple: end for triple, end in self.stated.items() if triple not in deleted}
        for triple in inserted:
            end = stated.get(triple, until)
            stated[triple] = None if end is None or until is None else max(end, until)
        self.stated = stated

    def _advance(self) -> None:
        self.now += 1
        self.done.append(f"advance {self.now}")
        try:
            self.kb.advance(self.now)
        except _REFUSED:
            self.now -= 1
            raise
        self.stated = {t: end for t, end in self.stated.items() if end is None or end > self.now}

    def _change_rules(self) -> None:
        rule = self._random.choice(RULES)
        self.done.append(f"{'remove' if rule in self.rules else 'add'} {rule}")
        if rule in self.rules:
            self.kb.remove_rules(rule)
            self.rules.remove(rule)
        else:
            self.kb.add_rules(rule)
            self.rules.append(rule)

    def _reopen(self) -> None:
        self.done.append("save, open")
        with TemporaryDirectory() as folder:
            path = Path(folder, "saved.kb")
            self.kb.save(path)
            self.kb = KnowledgeBase.open(path, terms="canonical")

    # -- checks

    def check(self) -> None:
        stated = list(self.stated)
        state = set(self.kb)
        self.checked += 1
        self._same(state, set(new(stated, self.rules)))
        if not self.rules and between_individuals(state):
            found = comparable(state)
            self._same(found, as_owlrl_has(stated, found))
        found = set(self.kb.triples(which="stated"))
        assert found == self.stated.keys(), self._said(f"stated: {sorted(found ^ self.stated.keys())}")
        derived = sorted(state - self.stated.keys())
        if derived:
            self._check_proof(self._random.choice(derived), state)

    def _same(self, found: set[Triple], expected: set[Triple]) -> None:
        missing = [f"missing {' '.join(triple)}" for triple in sorted(expected - found)]
        extra = [f"extra {' '.join(triple)}" for triple in sorted(found - expected)]
        assert found == expected, self._said("\n".join([*missing, *extra]))

    def _check_proof(self, goal: Triple, state: set[Triple]) -> None:
        proof = self.kb.explain(goal).found
        assert isinstance(proof, Derived), self._said(f"no proof of {goal}")
        rules = [
            *shipped_rules("owl2rl"),
            *parse_datalog("\n".join(self.rules)),
            *list_rules(list(self.stated)),
        ]
        schema = set(schema_triples(state))
        for part in parts(proof):
            if isinstance(part, InBackground):
                assert part.triple in self.stated, self._said(f"{part.triple} is not stated")
                continue
            assert isinstance(part, Derived), self._said(f"{part} is no step")
            known = TripleSet([*(premise.triple for premise in part.premises), *schema])
            assert any(derives(rule, part.triple, known) for rule in rules), self._said(
                f"{part.triple} does not follow from {[one.triple for one in part.premises]}"
            )

    def _said(self, what: str) -> str:
        return "\n".join([*self.done, what])


def parts(proof: TripleProof) -> Iterator[TripleProof]:
    todo, seen = [proof], {proof.triple}
    while todo:
        one = todo.pop()
        yield one
        for premise in one.premises if isinstance(one, Derived) else ():
            if premise.triple not in seen:
                seen.add(premise.triple)
                todo.append(premise)


def derives(rule: DatalogRule, triple: Triple, known: TripleSet) -> bool:
    """Whether a rule derives a triple from others in one step."""
    assert not any(isinstance(item, NotAtom) for item in rule.body)
    for head in rule.heads:
        given = _unified(head, triple)
        rows = [] if given is None else [given]
        for item in _order(rule.body):
            rows = [extended for row in rows for extended in _extend(item, row, known)]
        if rows:
            return True
    return False


def _unified(head: Atom, triple: Triple) -> dict[str, Term] | None:
    given: dict[str, Term] = {}
    for node, term in zip((head.subject, head.predicate, head.object), triple, strict=True):
        if (given.setdefault(node.name, term) if isinstance(node, Var) else node) != term:
            return None
    return given
