"""`dotr state RULES SOURCE… --at TIME`: K(t) as RDF, what is stated and what is derived apart.

Place:   what `dotr query` asks, to look at; everything is materialised.
"""

from __future__ import annotations

from collections.abc import Iterable

import click

from dotr.cli.explain import instant_of, run_up_to
from dotr.cli.options import rules_options, source_options, written_file
from dotr.errors import UsageError
from dotr.events import Time
from dotr.explain.history import History
from dotr.explain.instants import KeptInstants
from dotr.io.files.background_documents import read_background
from dotr.io.files.outputs import open_output
from dotr.io.files.rule_texts import RuleTexts
from dotr.io.graphs import SourceOptions
from dotr.io.term_formatting import TermFormatter
from dotr.lang import load_program
from dotr.rdf.terms import Triple

FORMATS = ("trig", "turtle", "nquads")
STATED, DERIVED = "<urn:dotr:stated>", "<urn:dotr:derived>"
ENDED, BEGUN = "<urn:dotr:ended>", "<urn:dotr:begun>"


@click.command(short_help="What holds at one time, as RDF.")
@click.argument("rules", metavar="RULES")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--at", metavar="TIME", required=True, help="Which instant of the SOURCEs.")
@click.option("--derived", is_flag=True, help="Only what the rules derive.")
@click.option("--changes-since", "since", metavar="TIME", help="What began and ended since that instant.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="trig", help="Default: trig.")
@click.option(
    "-o", "--output", type=written_file, metavar="FILE", help="Write here instead of standard output (`-`)."
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@rules_options
@source_options
def command(
    rules: str,
    sources: tuple[str, ...],
    at: str,
    derived: bool,
    since: str | None,
    format_: str,
    output: str | None,
    overwrite: bool,
    background: tuple[str, ...],
    more_rules: tuple[str, ...],
    verify: bool,
    options: SourceOptions,
    on_error: str,
) -> None:
    """Print K(t): the background, the graphs of that instant, and what the rules derive from them.

    TriG and N-Quads have what is stated in the graph urn:dotr:stated and what is derived in urn:dotr:derived;
    Turtle has both as one graph. With --changes-since the graphs are urn:dotr:ended and urn:dotr:begun: what
    held then and holds no more, and the other way round.
    """
    if verify:
        raise UsageError.of("D4171", "--verify has nothing to compare here", hint="dotr query --verify")
    program = load_program([rules, *more_rules], RuleTexts())
    documents = [*program.background, *background]
    triples = read_background(
        documents, options.base, options.max_document, named=program.named, choices=options.choices
    )
    time = instant_of(at, options.unit)
    then = None if since is None else _earlier(instant_of(since, options.unit), time, format_)
    history = History(program, triples, until=time, also=then, everything=True)
    run_up_to(history, sources, options, on_error)
    instants = KeptInstants(history)
    stated, follows = instants.state(time)
    out = open_output(output, overwrite)
    graphs = [(DERIVED, follows)] if derived else [(STATED, stated), (DERIVED, follows)]
    if then is not None:
        before = instants.state(then)
        was, now = (
            set(parts[1] if derived else [*parts[0], *parts[1]]) for parts in (before, (stated, follows))
        )
        graphs = [(ENDED, sorted(was - now)), (BEGUN, sorted(now - was))]
    terms = TermFormatter(program.prefixes)
    if format_ != "nquads":
        out.write(terms.header())
    for name, found in graphs:
        if format_ == "nquads":
            out.write("".join(f"{s} {p} {o} {name} .\n" for s, p, o in found))
        elif format_ == "turtle":
            out.write(_lines(found, terms, ""))
        else:
            out.write(f"{name} {{\n{_lines(found, terms, '    ')}}}\n")
    out.finish()


def _earlier(since: Time, at: Time, format_: str) -> Time:
    """The time of --changes-since. Raises UsageError D4171 where it asks for nothing."""
    if since > at:
        raise UsageError.of("D4171", "--changes-since is later than --at", hint="give the earlier time to it")
    if format_ == "turtle":
        raise UsageError.of("D4171", "Turtle cannot say what ended", hint="add --format trig, or nquads")
    return since


def _lines(triples: Iterable[Triple], terms: TermFormatter, indent: str) -> str:
    return "".join(f"{indent}{terms.term(s)} {terms.predicate(p)} {terms.term(o)} .\n" for s, p, o in triples)
