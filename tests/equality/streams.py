"""What lasts through a random stream of messages: M(t) is the closure of what is stated, as owlrl has it, and
K(t) what a new deployment over it has.

Place:   run by test_histories.py and `python -m tests.equality`; worlds.py has the schemas and facts.
Method:  graphs that are held (for a time, until the next value, until deleted) or not, insertions and
         deletions of facts and axioms, rules added and removed from a time on. M is what ISTREAM and DSTREAM
         of all triples add up to. What is stated is kept as a list of statements, as in the literal reading;
         of some histories the literal reading itself is run, which refuses the same instants.
"""

from __future__ import annotations

from random import Random

from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import rules_over
from dotr.errors import DotrError
from dotr.events import Clock, Message, Time
from dotr.io.rules_and_background import read_rules_text
from dotr.joins.plan import ALL
from dotr.lang import load_program
from dotr.lasting.instants import LastingRun
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.reference.lasting import LiteralLasting, LiteralStatements, ProgramChange
from tests.equality.knowledge_bases import RULES
from tests.equality.worlds import Ontology, as_owlrl_has, between_individuals, comparable, fact
from tests.lasting.recomputation import RecomputedJumps

SECOND = 1_000_000
HOLDS = [
    "HOLD *",
    "HOLD * FOR 2 s",
    "HOLD :p0, :p1",
    "HOLD :p0 LATEST",
    "HOLD :p1 FOR 3 s",
    "HOLD :p0 LATEST FOR 2 s\nHOLD * FOR 3 s",
    "HOLD :p2, a :C0, a :C1 FOR 2 s",
    "HOLD :p0 FOR 1 s\nHOLD :p1, a :C2",
]
PROGRAM = """PREFIX : <http://e/>
ENTAILMENT owl2rl
{holds}
QUERY All := {{ SELECT ?s ?p ?o WHERE {{ ?s ?p ?o }} }}
RULE Now DEFINE {{ dotr_x a :Now }} FROM All
RULE Begun DEFINE {{ dotr_x a :Begun }} FROM B := ISTREAM All
RULE Ended DEFINE {{ dotr_x a :Ended }} FROM O := DSTREAM All
"""


def program(holds: str, rules: str = "") -> Program:
    known = {"a.dotr": PROGRAM.format(holds=holds), "a.dlog": rules}
    files = ["a.dotr", "a.dlog"] if rules else ["a.dotr"]
    return load_program(files, lambda path: known[path] if path in known else read_rules_text(path))


class History:
    """Owns what lasts, the statements beside it, and what was done, as lines."""

    def __init__(self, seed: int) -> None:
        random = self._random = Random(seed)
        self._ontology = Ontology(random)
        self._axioms = [self._ontology.axiom() for _ in range(random.randint(2, 5))]
        self._strange = random.choice([0.02, 0.02, 0.02, 0.3])
        facts = self._facts(0, 4)
        background = list(dict.fromkeys([triple for axiom in self._axioms for triple in axiom] + facts))
        holds = self._holds = random.choice(HOLDS)
        self._rules: list[str] = []
        self._background = background
        self.program = program(holds)
        self.done = [f"seed {seed}", holds, *(f"  {' '.join(triple)} ." for triple in background)]
        engine = random.choice([LastingRun] * 5 + [RecomputedJumps])
        self.jumps = engine(self.program, background, Clock(), materialize_all=True)
        self.statements = LiteralStatements.of(background)
        self.literal = LiteralLasting(self.program, background, Clock()) if random.random() < 0.1 else None
        first = Materialiser(rules_over(self.program, background), background, needed={ALL})
        self.lasting = set(first.state())
        self.checked = 0
        self.noted = 0

    def run(self) -> History:
        """Every instant, with the checks. Raises AssertionError, whose message is the history."""
        random = self._random
        end = random.randint(3, 8)
        for second in range(1, end + 1):
            time = second * SECOND
            if random.random() < 0.08:
                self._other_rules(time)
            messages = self._messages(time) if random.random() < 0.8 else []
            if messages or self.jumps.next() == time:
                self._instant(time, messages)
                if random.random() < 0.1 or second == end:
                    self.check(time)
        return self

    def _other_rules(self, time: Time) -> None:
        """From a time on another rule holds, or one no longer does."""
        rule = self._random.choice(RULES)
        self._rules = [one for one in [*self._rules, rule] if one != rule or rule not in self._rules]
        self.done.append(f"@ {time // SECOND}: rules {self._rules}")
        self.program = program(self._holds, "\n".join(self._rules))
        self.jumps.replace(time, self.program, self._background)
        if self.literal is not None:
            self.literal.replace(ProgramChange(time, self.program, frozenset(self._background)))

    def _facts(self, least: int, most: int) -> list[Triple]:
        random = self._random
        return [fact(random, strange=self._strange) for _ in range(random.randint(least, most))]

    def _messages(self, time: Time) -> list[Message]:
        random = self._random
        graph: list[Triple] | None = None
        insert: list[Triple] = []
        delete: list[Triple] = []
        kind = random.randrange(12)
        if kind < 7:
            graph = self._facts(1, 3)
        if kind in (5, 6, 7, 8):
            stated = sorted(self.statements.at(time - 1))
            axioms = {triple for axiom in self._axioms for triple in axiom}
            facts = [triple for triple in stated if triple not in axioms]
            delete = random.sample(facts, min(len(facts), random.randint(1, 2)))
        if kind in (8, 9, 10):
            insert = self._facts(1, 2)
        if kind == 11 and self._axioms and random.random() < 0.5:
            delete = self._axioms.pop(random.randrange(len(self._axioms)))
        elif kind == 11:
            self._axioms.append(self._ontology.axiom())
            insert = self._axioms[-1]
        return [Message(graph, insert or None, delete or None)]

    def _instant(self, time: Time, messages: list[Message]) -> None:
        self.done.append(f"@ {time // SECOND}: {messages}")
        wrong = self._literally(time, messages)
        try:
            jump = self.jumps.at(time, messages, False)
        except DotrError as error:
            self._refused(time, messages, error.diagnostics[0].code, wrong)
            return
        assert not wrong, self._said(f"literally in error: {wrong}")
        self.noted += any(finding.code == "D2602" for finding in jump.findings)
        self.statements, _ = self.statements.after(time, messages, self.program.holds)
        names = {standing.operator.name: name for name, standing in self.program.standing.items()}
        begun = {fact[1] for fact in jump.facts.get(names["ISTREAM"], ())}
        over = {fact[1] for fact in jump.facts.get(names["DSTREAM"], ())}
        assert not begun & self.lasting, self._said("what held begins")
        assert over <= self.lasting, self._said("what did not hold ends")
        self.lasting = (self.lasting - over) | begun  # type: ignore[assignment,operator]  # three values each
        graph = [triple for message in messages for triple in message.graph or ()]
        if graph and self._random.random() < 0.2:
            self._check_instant(time, graph, {fact[1] for fact in jump.facts.get("All", ())})  # type: ignore[misc]  # as above

    def _refused(self, time: Time, messages: list[Message], code: str, wrong: DotrError | None) -> None:
        self.done.append(f"refused: {code}")
        assert self.literal is None or wrong, self._said("the literal reading has no error")
        assert messages, self._said("nothing contradicts itself here")
        self._instant(time, [])

    def _literally(self, time: Time, messages: list[Message]) -> DotrError | None:
        if self.literal is None:
            return None
        state = self.literal.snapshot()
        try:
            self.literal.at(time, messages)
        except DotrError as error:
            self.literal.restore(state)
            if not messages:
                self.literal.overlook(time)
            return error
        return None

    # -- checks

    def check(self, time: Time) -> None:
        """M(t)."""
        stated = sorted(self.statements.at(time))
        self.checked += 1
        if between_individuals(self.lasting) and not self._rules:
            found = comparable(self.lasting)
            self._same("M", found, as_owlrl_has(stated, found))
        fresh = Materialiser(rules_over(self.program, stated), stated, needed={ALL})
        self._same("M", self.lasting, set(fresh.state()))

    def _check_instant(self, time: Time, graph: list[Triple], found: set[Triple]) -> None:
        """K(t)."""
        stated = sorted(self.statements.at(time))
        fresh = Materialiser(rules_over(self.program, stated), stated, needed={ALL})
        fresh.instant(dict.fromkeys(graph))
        self._same("K", found, set(fresh.state()))

    def _same(self, what: str, found: set[Triple], expected: set[Triple]) -> None:
        missing = [f"missing in {what} {' '.join(triple)}" for triple in sorted(expected - found)]
        extra = [f"extra in {what} {' '.join(triple)}" for triple in sorted(found - expected)]
        assert found == expected, self._said("\n".join([*missing, *extra]))

    def _said(self, what: str) -> str:
        return "\n".join([*self.done, what])
