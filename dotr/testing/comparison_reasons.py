"""Why events differ: the proof of what came, and how far the other version got.

Place:   `dotr compare`; dotr/explain does the rest. Each difference reads the log up to its time twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.errors import DotrError
from dotr.explain.history import History
from dotr.explain.matches import Explainer
from dotr.explain.proofs import WhyNot
from dotr.explain.record import KeptEvent
from dotr.explain.solutions import Text
from dotr.explain.text import Renderer
from dotr.explain.tree import drawn, pruned
from dotr.io.files.sources import SourceOptions, Sources
from dotr.sparql.printing import Writer
from dotr.testing.comparing import Difference, RunComparison, Version

_DEPTH = 1


def reasons(
    found: RunComparison,
    differences: Sequence[Difference],
    sources: Sequence[str],
    options: SourceOptions,
    lateness: int,
) -> list[tuple[Difference, str]]:
    """Each difference with its reasons as text; what cannot be explained is left out."""
    explained = []
    for one in differences:
        old, new = found.versions[0], found.versions[one.version]
        having, lacking = (new, old) if one.change > 0 else (old, new)
        parts = [
            _of_version(having, one, sources, options, lateness, True),
            _of_version(lacking, one, sources, options, lateness, False),
        ]
        reason = "\n".join(part for part in parts if part)
        if reason:
            explained.append((one, reason))
    return explained


def _of_version(
    version: Version,
    one: Difference,
    sources: Sequence[str],
    options: SourceOptions,
    lateness: int,
    came: bool,
) -> str:
    program = version.program
    if one.rule not in [rule.name for rule in program.rules]:
        return f"{version.name} has no rule {one.rule}"

    def wanted(event: KeptEvent) -> bool:
        rule = program.rules[event.rule]
        bound = tuple(sorted(zip(rule.variables, event.bindings, strict=True)))
        return rule.name == one.rule and event.time == one.time and bound == one.bindings

    history = History(program, version.background, wanted=wanted, until=one.time, lateness=lateness)
    reader = Sources(sources, options)
    try:
        history.run(reader, lambda: reader.clock)
        writer = Writer(program.prefixes)
        explainer = Explainer(history, Text(writer.term, writer.expression, writer.path))
        shown: list[WhyNot] = []
        if came:
            shown = [] if history.wanted_event is None else [explainer.event(history.wanted_event)]
        else:
            shown = explainer.why_not(one.rule, one.time, dict(one.bindings))[:2]
    except DotrError:
        return ""
    renderer = Renderer(program.prefixes, history.clock)
    trees = [drawn(pruned(renderer.node(proof), _DEPTH)).rstrip() for proof in shown]
    return "\n".join([f"{version.name}:", *trees]) if trees else ""
