"""Explanations as a Python user holds them: text, values, RDF, a page for notebooks.

Place:   made by `Engine.why_not` and `Event.explain`, through an Explaining that goes along with a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dotr.errors import UsageError
from dotr.events import Clock, Time
from dotr.explain.formats import PlainProofs, html, mermaid
from dotr.explain.instants import KeptInstants
from dotr.explain.matches import Explainer
from dotr.explain.proofs import Missing, TripleProof, WhyNot
from dotr.explain.record import Record
from dotr.explain.solutions import Text
from dotr.explain.text import Places, Renderer
from dotr.explain.tree import Node, drawn
from dotr.explain.verify import checker_of, refuse_wrong
from dotr.rdf.terms import Term
from dotr.sparql.printing import Writer

if TYPE_CHECKING:
    import rdflib


class Explanation:
    """Why something happened, or how far it came. `str()` is a tree of text; notebooks show a page."""

    def __init__(
        self,
        found: Sequence[WhyNot | TripleProof | Missing],
        prefixes: Mapping[str, str],
        clock: Clock,
        places: Places,
    ) -> None:
        self.found = tuple(found)
        """The proofs themselves, as dotr.explain.proofs has them."""
        self._prefixes, self._clock, self._places = dict(prefixes), clock, places

    def _renderer(self) -> Renderer:
        return Renderer(self._prefixes, self._clock, self._places)

    def _trees(self) -> list[Node]:
        renderer = self._renderer()
        return [renderer.node(one) for one in self.found]

    def __str__(self) -> str:
        return "\n".join(map(drawn, self._trees()))

    def __repr__(self) -> str:
        lines = [str(node.text) for node in self._trees()]
        return f"<Explanation {'; '.join(lines)}>"

    def _repr_html_(self) -> str:
        return html(self._trees())

    def to_mermaid(self) -> str:
        """A Mermaid flow chart."""
        return mermaid(self._trees())

    def to_dict(self) -> dict[str, Any]:
        """As `dotr explain --format json` has it; several (one for each trigger fact) under "all"."""
        values = PlainProofs(self._clock, self._places, self._renderer().rule_text)
        found = [values.of(one) for one in self.found]
        return found[0] if len(found) == 1 else {"all": found}

    def to_rdf(self) -> rdflib.Graph:
        """PROV-O, as an rdflib.Graph."""
        from dotr.explain.provenance import to_rdf  # noqa: PLC0415  # rdflib takes half a second to load

        return to_rdf(self.found, self._clock)


class Explaining:
    """Owns the explanations of a run that goes on. `places`: where triples stand. `verify`: every proof of
    an event goes through the checker, for which the record must have kept everything.
    """

    def __init__(self, record: Record, places: Places, verify: bool = False) -> None:
        self._record, self._places, self._verify = record, places, verify
        self._instants = KeptInstants(record)

    @property
    def record(self) -> Record:
        """What is kept."""
        return self._record

    def _explainer(self) -> Explainer:
        writer = Writer(self._record.program.prefixes)
        low = min(self._record.times(), default=0)
        self._instants.forget(low)
        return Explainer(self._record, Text(writer.term, writer.expression, writer.path), self._instants)

    def _explanation(self, found: Sequence[WhyNot]) -> Explanation:
        return Explanation(found, self._record.program.prefixes, self._record.clock, self._places)

    def event(self, name: str) -> Explanation:
        """Why an event happened. Raises UsageError D4173 where it is not kept any more, and EngineError D4090
        where a proof that is checked does not follow.
        """
        event = self._record.event(name)
        if event is None:
            raise UsageError.of(
                "D4173",
                f"the event `{name}` is not kept any more",
                hint="explain events as they come, or keep more: keep='7 d'",
            )
        found = self._explainer().event(event)
        if self._verify:
            refuse_wrong(checker_of(self._record, self._instants), [found], None)
        return self._explanation([found])

    def why_not(self, rule: str, time: Time, where: Mapping[str, Term]) -> Explanation:
        """How far a rule came at an instant. Raises UsageError D4172."""
        rules = [one.name for one in self._record.program.rules]
        if rule not in rules:
            raise UsageError.of(
                "D4172", f"there is no rule `{rule}`", hint=f"its rules are {', '.join(rules)}"
            )
        return self._explanation(self._explainer().why_not(rule, time, where))

    def because(self, name: str) -> dict[str, Any]:
        """The proof of an event as plain values: its trigger, and a step for each conjunct."""
        found = self.event(name).to_dict()
        return {"trigger": found["trigger"], "steps": found["steps"]}
