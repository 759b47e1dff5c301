"""`dotr watch QUERY.rq SOURCE…`: the answers of one query over what lasts, as they begin and end.

Place:   a run of the program that lasting/instants.py makes; what its two rules report is written as answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import click

from dotr.cli import options
from dotr.cli.options import OutputOptions, RuleOptions, SourceOptions
from dotr.cli.query import json_row, query_text
from dotr.cli.run import Replay
from dotr.errors import ProgramError
from dotr.events import Clock, Composite
from dotr.io.events import TermFormatter, TextSink
from dotr.io.rules_and_background import BackgroundFiles, RuleTexts
from dotr.io.sources import Sources
from dotr.lang import load_program, parse_query_and_prefixes
from dotr.lang.checks.lasting import asks_now
from dotr.lasting.instants import SignedAnswer, signed, watched, watching
from dotr.lasting.model import lasting_model
from dotr.program import Program, Select
from dotr.rdf.values import values_key

FORMATS = ("text", "jsonl")
_HOLDS = "--hold.dotr"


@click.command()
@click.argument("query", metavar="QUERY.rq")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.rules_value
@click.option(
    "--rules", "more_rules", multiple=True, metavar="FILE", help="Datalog, or a .dotr file for its prologue."
)
@click.option("--background", multiple=True, metavar="FILE", help="RDF that holds from the beginning.")
@click.option(
    "--hold",
    "holds",
    multiple=True,
    metavar="'P FOR 10 min'",
    help="A HOLD line (default: held until deleted).",
)
@click.option("--initial", is_flag=True, help="Begin with the answers that the background has.")
@click.option("--verify", is_flag=True, help="Run the literal reading as well; stop at a difference.")
@options.source(late="fail", jumps=True)
@options.budget
@options.output(FORMATS)
def command(
    query: str,
    sources: tuple[str, ...],
    rules: RuleOptions,
    holds: tuple[str, ...],
    initial: bool,
    source: SourceOptions,
    output: OutputOptions,
) -> None:
    """Print how the answers of a SELECT or ASK change as SOURCEs are read: `-` what ends, `+` what begins.

    The query is evaluated over what lasts and what follows from it, never over an instant's own graph. What
    neither --hold nor a rules file declares is held until it is deleted.
    """
    format_ = output.format(FORMATS, "dotr watch")
    texts = RuleTexts()
    prologue = load_program(rules.more_rules, texts) if rules.more_rules else Program()
    select, prefixes = parse_query_and_prefixes(query_text(query), query, prologue.prefixes)
    if holds:
        prologue = _with_holds(rules.more_rules, holds, prefixes, texts)
    _refuse_now(select)
    program = watching(prologue, select)
    documents = rules.documents(program)
    output.apart(source.policies, [*texts.read_files, query, *documents, *sources])
    triples = source.background_files(program, documents)
    write = _writer(format_, select, prefixes)
    with source.letters(output.overwrite) as dead, source.delayed(output.overwrite) as delayed:
        replay = Replay(Sources(sources, source.options, dead.refusals()), delayed, output, title="")
        replay.prepare(rules.deployment(program, triples), source, rules)
        out = output.open(packed=True)
        if initial:
            out.write(write(_initial(program, triples, select.ask, rules.budget), None))
        replay.run(TextSink(_formatted(write, select.ask), out))


_Write = Callable[[Iterable[SignedAnswer], Clock | None], str]
"""(answers, how their times are written, None where they have none) → text."""


def _with_holds(
    rules: Sequence[str], holds: Sequence[str], prefixes: Mapping[str, str], texts: RuleTexts
) -> Program:
    """The rules with HOLD lines beside them; of the lines' file line n is the n-th option."""
    lines = [f"HOLD {' '.join(hold.split())}" for hold in holds]
    lines += [f"PREFIX {name}: <{iri}>" for name, iri in prefixes.items()]
    text = "\n".join(lines)
    return load_program([*rules, _HOLDS], lambda path: text if path == _HOLDS else texts(path))


def _refuse_now(select: Select) -> None:
    if asks_now(select):
        raise ProgramError.of(
            "D1507",
            "NOW() has no value in a query that is watched",
            select.span,
            hint="leave it out: every answer is printed with the time at which it begins or ends",
            notes=("answers are compared whenever what lasts changes",),
        )


def _initial(program: Program, background: BackgroundFiles, ask: bool, budget: int) -> list[SignedAnswer]:
    """The answers before the first instant, in canonical order. Raises DataError D3101."""
    model = lasting_model(program, background(), Clock(), materialize_all=False, budget=budget)
    model.check()
    answers = model.answers(watched(program))
    return [SignedAnswer(0, answers[row], () if ask else row) for row in sorted(answers, key=values_key)]


def _formatted(write: _Write, ask: bool) -> Callable[[Sequence[Composite], Clock], str]:
    return lambda events, clock: write(signed(events, ask), clock)


def _writer(format_: str, select: Select, prefixes: Mapping[str, str]) -> _Write:
    names = select.variables
    if format_ == "jsonl":
        return lambda answers, clock: "".join(_json(answer, names, clock) for answer in answers)
    notation = TermFormatter(prefixes)
    return lambda answers, clock: "".join(_text(answer, names, clock, notation) for answer in answers)


def _json(answer: SignedAnswer, names: Sequence[str], clock: Clock | None) -> str:
    time = "null"
    if clock is not None:
        text = clock.text(answer.time)
        time = text if clock.integer else f'"{text}"'
    bindings = json_row(names, answer.values)
    return f'{{"time":{time},"change":{answer.change},"bindings":{bindings}}}\n'


def _text(answer: SignedAnswer, names: Sequence[str], clock: Clock | None, notation: TermFormatter) -> str:
    """One line for each of equal rows: `+ ?x :A ?y :B @ 3`; what the background answers has no time."""
    pairs = zip(names, answer.values, strict=True)
    bound = [f" ?{name} {notation.term(term)}" for name, term in pairs if term is not None]
    when = "" if clock is None else f" @ {clock.text(answer.time)}"
    return f"{'+' if answer.change > 0 else '-'}{''.join(bound)}{when}\n" * abs(answer.change)
