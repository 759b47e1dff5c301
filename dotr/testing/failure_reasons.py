"""Why something came that should not have, and why something did not: for the failures of a test.

Place:   asked by reports.py, for the first failures of a case only: each costs another run of the case.
Method:  dotr/explain over the stream of the case. Facts that were given have no graphs to explain them; how
         far the rule came is said in any case.
"""

from __future__ import annotations

from collections.abc import Callable

from dotr.errors import DotrError
from dotr.events import Time
from dotr.explain.history import History
from dotr.explain.matches import Explainer
from dotr.explain.proofs import Missing, TripleProof, WhyNot
from dotr.explain.record import Graph, KeptEvent
from dotr.explain.solutions import Text
from dotr.explain.text import Renderer
from dotr.explain.tree import drawn, pruned
from dotr.rdf.terms import Triple
from dotr.sparql.printing import Writer
from dotr.testing.case_runs import Bench, CaseOutcome, Failure, Given, Wanted
from dotr.testing.tracing import stages_text

_DEPTH = 2


def because(bench: Bench, outcome: CaseOutcome, failure: Failure) -> str:
    """The reason as text, "" where there is nothing to say."""
    given = outcome.given
    if given is None:
        return ""
    lines = [_explained(bench, given, outcome, failure)] if _is_explained(outcome) else []
    rule = failure.missing.rule if failure.missing is not None else ""
    for trace in [] if outcome.tracer is None else [t.trace for t in outcome.tracer.traced]:
        if trace.rule.name == rule:
            lines.append(f"over the whole test: {stages_text(trace)}")
    return "\n".join(line.rstrip("\n") for line in lines if line)


def _is_explained(outcome: CaseOutcome) -> bool:
    """Whether what came was messages, which alone are explained."""
    return outcome.given is not None and not outcome.case.gives_facts


def _came(missing: Wanted, outcome: CaseOutcome) -> bool:
    """Whether its rule had an event at that time, which has other values."""
    return any(event.rule == missing.rule and event.time == missing.time for event in outcome.events)


def _explained(bench: Bench, given: Given, outcome: CaseOutcome, failure: Failure) -> str:
    try:
        if failure.event is not None:
            wanted = failure.event.id
            history = _history(bench, given, lambda event: event.id == wanted)
            explainer, renderer = _explainer(history, bench)
            return (
                ""
                if history.wanted_event is None
                else _drawn(renderer, explainer.event(history.wanted_event))
            )
        missing = failure.missing
        if missing is not None and missing.time is not None and not _came(missing, outcome):
            ended = _ended(bench, given, missing.time)
            if ended:
                return ended
            history = _history(bench, given, lambda event: False)
            explainer, renderer = _explainer(history, bench)
            found = explainer.why_not(missing.rule, missing.time, missing.values)
            return "\n".join(_drawn(renderer, one) for one in found[:3])
        if failure.state is not None:
            history = _history(bench, given, lambda event: False, everything=True)
            explainer, renderer = _explainer(history, bench)
            with explainer.instants.open(failure.state.time) as derivations:
                triple = failure.state.triple
                holds = derivations.holds(triple)
                return _drawn(
                    renderer, derivations.proof(triple) if holds else derivations.why_absent(triple)
                )
    except DotrError:
        return ""
    return ""


def _ended(bench: Bench, given: Given, time: Time) -> str:
    """That nothing is looked at so late; "" if it is: the end of input closes the point of the last fact."""
    last, step = max((timed.time for timed in given.stream), default=time), given.clock.unit
    if bench.program.lars.rules:
        step = bench.program.lars.step or step
        last = -(-last // step) * step
    if time <= last:
        return ""
    end, at = given.clock.text(last), given.clock.text(time)
    return f"the stream ends at {end}: end it with a message at {at}, such as one without triples"


def _history(
    bench: Bench, given: Given, wanted: Callable[[KeptEvent], bool], everything: bool = False
) -> History:
    history = History(
        bench.program,
        bench.background,
        wanted=wanted,
        lateness=bench.suite.lateness,
        everything=everything,
    )
    graphs = (Graph(timed.time, timed.part, timed.place) for timed in given.stream)
    history.run(graphs, lambda: given.clock)
    return history


def _explainer(history: History, bench: Bench) -> tuple[Explainer, Renderer]:
    writer = Writer(bench.prefixes)

    def place(triple: Triple, time: Time | None) -> str:
        if time is None:
            return ""
        return next((g.place for g in history.graphs(time) if triple in g.triples), "")

    text = Text(writer.term, writer.expression, writer.path)
    return Explainer(history, text), Renderer(bench.prefixes, history.clock, place)


def _drawn(renderer: Renderer, found: WhyNot | TripleProof | Missing) -> str:
    return drawn(pruned(renderer.node(found), _DEPTH))
