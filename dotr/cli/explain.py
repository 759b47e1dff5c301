"""`dotr explain RULES SOURCE…`: why an event happened, why a rule did not fire, why a triple holds.

Place:   reads sources as `dotr run` does; dotr/explain does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import click
from msgspec.structs import replace

from dotr.cli.dead_letters import DeadLetters
from dotr.cli.explaining import Asked, DeploymentSubject, NamedSources, Replacing, Subject
from dotr.cli.given import given_time
from dotr.cli.options import lateness_options, rules_options, source_options, written_file
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Time
from dotr.explain.formats import PlainProofs, html, mermaid
from dotr.explain.history import History
from dotr.explain.matches import Explainer
from dotr.explain.proofs import Blocked, Missing, NoTrigger, TripleProof, Unopened, WhyNot
from dotr.explain.provenance import provenance
from dotr.explain.record import KeptEvent
from dotr.explain.solutions import Text
from dotr.explain.text import LEVELS, Places, Renderer
from dotr.explain.tree import drawn, pruned
from dotr.explain.verify import checker_of, refuse_wrong
from dotr.io.files.background_documents import read_background
from dotr.io.files.outputs import open_output
from dotr.io.files.rule_texts import RuleTexts
from dotr.io.files.sources import SourceOptions, Sources, resolve
from dotr.io.places import places_of
from dotr.io.term_reading import read_term, read_triple
from dotr.io.timestamps import TimeError, parse_text
from dotr.ir import Program
from dotr.lang import load_program
from dotr.rdf.terms import Term, Triple
from dotr.sparql.printing import Writer

FORMATS = ("text", "json", "ttl", "mermaid", "html")


@click.command(short_help="Why an event happened, or a rule did not fire.")
@click.argument("rules", metavar="[RULES]", required=False)
@click.argument("sources", metavar="[SOURCE...]", nargs=-1)
@click.option("--dir", "folder", metavar="FOLDER", help="A deployment (without RULES: .dotr).")
@click.option("--event", "event_id", metavar="IRI", help="The event with this id.")
@click.option("--rule", "rule", metavar="NAME", help="An event of this rule, with --at; else its last.")
@click.option("--why-not", "why_not", metavar="NAME", help="How far this rule came at --at.")
@click.option("--at", metavar="TIME", help="The time of the event, or of what did not happen.")
@click.option("--where", multiple=True, metavar="NAME=TERM", help="Only with this value: 'room=:room23'.")
@click.option("--triple", metavar="'S P O'", help="Why this triple holds, or does not, at --at.")
@click.option("--all", "every", is_flag=True, help="Every solution and derivation, not only the smallest.")
@click.option("--depth", type=click.IntRange(0, 100), metavar="N", help="Number of levels of a tree to show.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="Default: text.")
@click.option(
    "-o", "--output", type=written_file, metavar="FILE", help="Write here instead of standard output (`-`)."
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--then",
    type=(str, str),
    multiple=True,
    metavar="TIME RULES",
    help="From TIME on these RULES hold, and their background; may be repeated.",
)
@rules_options
@source_options
@lateness_options(late="drop")
def command(
    rules: str | None,
    sources: tuple[str, ...],
    folder: str | None,
    event_id: str | None,
    rule: str | None,
    why_not: str | None,
    at: str | None,
    where: tuple[str, ...],
    triple: str | None,
    every: bool,
    depth: int | None,
    format_: str,
    output: str | None,
    overwrite: bool,
    then: tuple[tuple[str, str], ...],
    background: tuple[str, ...],
    more_rules: tuple[str, ...],
    verify: bool,
    options: SourceOptions,
    on_error: str,
    lateness: int,
    late: str,
) -> int:
    """Explain an event of RULES over SOURCEs, or of a deployment: by default the last one.

    The proof goes down to triples of the stream and of the background, with their places. --why-not says how
    far a rule came that did not fire; --triple why a triple holds, or which premise it lacks, without
    SOURCEs by the background alone.
    """
    del late  # what came late is counted by `dotr run`
    asked = [
        name for name, value in (("--event", event_id), ("--why-not", why_not), ("--triple", triple)) if value
    ]
    if len(asked) > 1:
        raise UsageError.of("D4171", f"{asked[0]} and {asked[1]} do not go together", hint="ask one thing")
    subject: Subject
    if rules is None:
        _refuse_with_deployment(sources, then, more_rules, background)
        if verify:
            hint = "dotr explain RULES SOURCE… --verify"
            message = "a proof is checked against everything that came, of which a deployment keeps a part"
            raise UsageError.of("D4171", message, hint=hint)
        subject = deployment = DeploymentSubject(folder or ".dotr", options, on_error)
        if deployment.clock.integer and _defaulted("time_unit"):
            deployment.options = options = replace(options, unit=deployment.clock.unit)
    else:
        if folder is not None or not (sources or triple):
            hint = "dotr explain RULES SOURCE…, or dotr explain --dir FOLDER"
            message = "RULES are explained over SOURCEs, a deployment over what it was fed"
            raise UsageError.of("D4171", message, hint=hint)
        texts = RuleTexts()
        program = load_program([rules, *more_rules], texts)
        documents = [*program.background, *background]
        triples = read_background(
            documents, options.base, options.max_document, named=program.named, choices=options.choices
        )
        later = [_replacing(at_, again, more_rules, background, options, texts) for at_, again in then]
        files = [file for path in documents for file in resolve([path])]
        files = list(dict.fromkeys([*files, *(file for one in later for file in one.files)]))
        subject = NamedSources(program, triples, files, sources, options, on_error, later)
    time = None if at is None else instant_of(at, options.unit)
    if triple and rules is not None and not sources:
        time = 0  # at no instant: by the background alone
    if (why_not or triple) and time is None:
        raise UsageError.of("D4171", f"{asked[0]} needs the time of an instant", hint="add --at TIME")
    known = dict.fromkeys(one.name for program in subject.programs for one in program.rules)
    for name in (rule, why_not):
        if name is not None and name not in known:
            hint = f"its rules are {', '.join(known)}"
            raise UsageError.of("D4172", f"there is no rule `{name}`", hint=hint)
    values = dict(_pair(text, subject.program) for text in where)
    question = Asked(
        lambda event, program: _is_wanted(event, program, event_id, rule, time, values),
        first=event_id is not None,
        until=time,
        lateness=lateness,
        everything=triple is not None,
        reads_on=why_not is not None,
        verify=verify,
    )
    history = subject.run(question)
    if history.wanted_event is not None and history.wanted_program is not history.program:
        history = subject.run(replace(question, until=history.wanted_event.time))  # by the rules of its time
    program = history.program
    writer = Writer(program.prefixes)
    explainer = Explainer(history, Text(writer.term, writer.expression, writer.path), every=every)
    places = places_of(history, subject.files)
    found: Sequence[WhyNot | TripleProof | Missing]
    if triple is not None and time is not None:
        found = _triple_proofs(explainer, read_triple(triple, program.prefixes, "--triple"), time, every)
    elif why_not is not None and time is not None:
        found = explainer.why_not(why_not, time, values)
    else:
        if history.wanted_event is None:
            raise DataError.of("D4173", _nothing(event_id, rule, at), hint="ask --why-not NAME --at TIME")
        found = [explainer.event(history.wanted_event)]
    if verify:
        refuse_wrong(checker_of(history, explainer.instants), found, time)
    out = open_output(output, overwrite)
    renderer = Renderer(program.prefixes, history.clock, places, levels=max(LEVELS, depth or 0))
    out.write(_written(format_, found, renderer, history.clock, places, depth))
    out.finish()
    return 1 if any(isinstance(one, Blocked | NoTrigger | Missing | Unopened) for one in found) else 0


def run_up_to(history: History, sources: Sequence[str], options: SourceOptions, on_error: str) -> None:
    """Run a history over sources, with the policy for documents that cannot be read."""
    with DeadLetters(on_error) as dead:
        reader = Sources(sources, options, dead.refusals())
        history.run(reader, lambda: reader.clock)


def _defaulted(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.DEFAULT


def _refuse_with_deployment(*given: Sequence[object]) -> None:
    """Raise UsageError D4171 for what only goes with rules that the command names."""
    if any(given):
        hint = "dotr explain RULES SOURCE…, or dotr explain --dir FOLDER"
        raise UsageError.of("D4171", "a deployment has its own rules and background", hint=hint)


def _replacing(
    at: str,
    rules: str,
    more_rules: Sequence[str],
    background: Sequence[str],
    options: SourceOptions,
    texts: RuleTexts,
) -> Replacing:
    """What --then names."""
    when, clock = given_time(at, options.unit, None, "--then")
    program = load_program([rules, *more_rules], texts)
    paths = [*program.background, *background]
    found = read_background(
        paths, options.base, options.max_document, named=program.named, choices=options.choices
    )
    return Replacing(when, clock, program, found, [file for path in paths for file in resolve([path])])


def _written(
    format_: str,
    found: Sequence[WhyNot | TripleProof | Missing],
    renderer: Renderer,
    clock: Clock,
    places: Places,
    depth: int | None,
) -> str:
    if format_ == "json":
        values = PlainProofs(clock, places, renderer.rule_text)
        return "".join(f"{json.dumps(values.of(one), ensure_ascii=False)}\n" for one in found)
    if format_ == "ttl":
        return provenance(found, clock)
    nodes = [renderer.node(one) for one in found]
    if depth is not None:
        nodes = [pruned(node, depth) for node in nodes]
    if format_ == "mermaid":
        return mermaid(nodes)
    if format_ == "html":
        return html(nodes)
    return "\n".join(map(drawn, nodes))


def instant_of(text: str, unit: int) -> Time:
    """The time that `--at` names. Raises UsageError D4111."""
    try:
        return parse_text(text, unit)[0]
    except TimeError as error:
        raise UsageError.of("D4111", f"--at: {error.message}", hint=error.hint) from None


def _pair(text: str, program: Program) -> tuple[str, Term]:
    name, _, term = text.partition("=")
    return name.strip().lstrip("?"), read_term(term, program.prefixes, "--where")


def _is_wanted(
    event: KeptEvent,
    program: Program,
    event_id: str | None,
    rule: str | None,
    time: Time | None,
    values: Mapping[str, Term],
) -> bool:
    own = program.rules[event.rule]
    if event_id is not None:
        return event.id == event_id.strip("<>")
    bindings = dict(zip(own.variables, event.bindings, strict=True))
    return (
        (rule is None or own.name == rule)
        and (rule is not None or not own.private)
        and (time is None or event.time == time)
        and all(bindings.get(name) == term for name, term in values.items())
    )


def _nothing(event_id: str | None, rule: str | None, at: str | None) -> str:
    if event_id is not None:
        return f"there is no event `{event_id}`"
    of = f" of rule `{rule}`" if rule is not None else ""
    return f"there is no event{of}" + (f" at {at}" if at is not None else "")


def _triple_proofs(
    explainer: Explainer, triple: Triple, time: Time, every: bool
) -> Sequence[TripleProof | Missing]:
    with explainer.instants.open(time) as derivations:
        if not derivations.holds(triple):
            return [derivations.why_absent(triple)]
        return derivations.proofs(triple) if every else [derivations.proof(triple)]
