"""`dotr query RULES [SOURCE… --at T] QUERY.rq`: SPARQL over K(t), or over the closed background alone; and
`dotr watch QUERY.rq SOURCE…`: the answers of one query over what lasts, as they begin and end.

Place:   `query` is one enrichment and one query, the first two steps of a run; with --dir the question goes
         to a deployment, as of its last commit (service/knowledge.py). `watch` is a run of the program that
         lasting/instants.py makes; what its two rules report is written as answers.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack

import click
from msgspec import Struct

from dotr.cli import options
from dotr.cli.options import OutputOptions, RuleOptions, SourceOptions, instant_of
from dotr.cli.show import counted, note
from dotr.cli.show import width as terminal_width
from dotr.core.funnel import answer as answer_of
from dotr.core.funnel import graph_of, makes_a_graph, named_query
from dotr.enrich.owl import rules_over
from dotr.errors import DataError, DotrError, EngineError, ProgramError, UsageError
from dotr.events import Clock, Composite, GraphOrMessage, Message, Time, Values, labelled
from dotr.extract.interpreter import asks_time
from dotr.io.decode.documents import format_of, unreadable
from dotr.io.errors import ErrorPolicy
from dotr.io.events import GRAPH_FORMATS, TermFormatter, TextSink, csv_solutions, json_terms, refused
from dotr.io.outputs import FileOutput, Output, unwritable
from dotr.io.rules_and_background import BackgroundFiles, RuleTexts, read_rules_text, read_standard_input
from dotr.io.show import aligned
from dotr.io.sources import Sources
from dotr.lang import load_program, parse_query, parse_query_and_prefixes
from dotr.lang.checks.lasting import asks_now
from dotr.lasting.instants import (
    AnswerPeriod,
    AnswerPeriods,
    LastingRun,
    SignedAnswer,
    signed,
    watched,
    watching,
)
from dotr.lasting.model import lasting_model
from dotr.program import Program, Select
from dotr.program.program import needed, only
from dotr.rdf.terms import Triple
from dotr.rdf.values import values_key
from dotr.reference.enrich import LiteralEnricher

FORMATS = ("text", "jsonl", "csv", "parquet")


@click.command()
@click.argument("path", metavar="[RULES]", required=False)
@click.argument("rest", metavar="[SOURCE...] QUERY", nargs=-1)
@click.option("--dir", "folder", metavar="FOLDER", help="Instead of RULES and SOURCEs: a deployment.")
@click.option("--query", "named", metavar="NAME", help="Instead of QUERY: a QUERY of the rules, by its name.")
@click.option("--at", metavar="TIME", help="Which instant: 12, or 2026-01-01T08:00:12Z.")
@options.rules
@options.source()
@options.budget
@options.output((*FORMATS, *GRAPH_FORMATS))
def command(
    path: str | None,
    rest: tuple[str, ...],
    folder: str | None,
    named: str | None,
    at: str | None,
    rules: RuleOptions,
    source: SourceOptions,
    output: OutputOptions,
) -> int:
    """Answer a query over what holds at one time: a file, - for standard input, or the text of the query.

    SELECT and ASK give rows or an answer, CONSTRUCT and DESCRIBE a graph. RULES is a .dotr, .dlog or RDF
    file.
    With SOURCEs and --at the query sees background, what came until then and lasts, the graphs of that
    instant, and what the rules derive; without them the background and what follows from it.
    With --dir it sees what holds in a deployment at its last commit, or with --at at an instant that is kept.
    """
    if folder is not None:
        given = [path, *rest] if path is not None else []
        return _ask_deployment(folder, given, named, at, rules, source, output)
    if path is None or (named is None and not rest):
        raise click.UsageError("name a query: a file, its text, or --query NAME")
    sources, query = (rest, "") if named is not None else (rest[:-1], rest[-1])
    if bool(sources) != (at is not None):
        raise UsageError.of(
            "D4110", "SOURCE and --at go together", hint="dotr query RULES SOURCE… --at 12 QUERY"
        )
    inline = bool(_INLINE.search(query)) and not os.path.exists(query)
    asked = query if inline else query_text(query) if query else ""
    graph = makes_a_graph(asked)
    format_ = _answer_format(output, graph)
    texts = [file for file in (path, *rules.more_rules) if not _is_rdf(file)]
    rule_texts = RuleTexts()
    program = load_program(texts, rule_texts) if texts else Program()
    documents = [file for file in (path, *rules.more_rules) if _is_rdf(file)]
    documents = [*program.background, *documents, *rules.background]
    inputs = [*rule_texts.read_files, *documents, *sources, *([] if inline or not query else [query])]
    output.apart([source.on_error], inputs)
    triples = source.background(program, documents)
    name = "<query>" if inline else query
    select = None
    if named is not None:
        select = named_query(program, named)
    elif not graph:
        select = parse_query(asked, name, program.prefixes)
    instant = None
    if at is not None:
        with source.letters(output.overwrite) as dead:
            refusals = dead.refusals()
            instant, triples = _instant(sources, at, source, refusals, program, triples, rules.budget)
        if refusals.count and not output.quiet:
            note(f"{counted(refusals.count, 'document')} refused")
        if instant.graphs == 0 and not output.quiet:
            note(f"no graph came at {instant.clock.text(instant.time)}: the answer is that of an empty one")
    state = _state(program, triples, () if instant is None else instant.triples, rules)
    answer: bool | list[Values] | list[Triple]
    if select is None:
        answer = graph_of(asked, name, program.prefixes, state)
    else:
        answer = _answer(select, state, instant, rules)
    _write_answer(answer, None if select is None else select.variables, program.prefixes, format_, output)
    return 1 if answer is False else 0


def _answer_format(output: OutputOptions, graph: bool) -> str:
    """How an answer is written. Raises UsageError D4151."""
    can = GRAPH_FORMATS if graph else FORMATS
    if output.format_ is not None and output.format_ not in can:
        raise refused(f"{output.format_} of this query", can, "dotr query")
    if output.format_ is None and graph and output.output is None:
        return "turtle"
    return output.format(can, "dotr query")


def _write_answer(
    answer: bool | Sequence[Values] | Sequence[Triple],
    variables: Sequence[str] | None,
    prefixes: Mapping[str, str],
    format_: str,
    output: OutputOptions,
) -> None:
    """Write an answer; `variables` None: a graph."""
    if isinstance(answer, bool) and format_ in ("csv", "parquet"):
        raise refused(f"{format_} of ASK, which has no table", ("text", "jsonl"), "dotr query")
    if variables is not None and not isinstance(answer, bool) and format_ == "parquet":
        assert output.output is not None, "chosen_format asks for a file"
        _to_parquet(output.output, output.overwrite, variables, answer)
        return
    out = output.open(packed=True)
    text = format_ == "text"
    if isinstance(answer, bool):
        out.write(f"{str(answer).lower()}\n" if text else f'{{"boolean":{str(answer).lower()}}}\n')
    elif variables is None:
        write = TermFormatter(prefixes) if format_ == "turtle" else None
        out.write(_graph_text(answer, write))  # type: ignore[arg-type]  # triples, without a SELECT
    elif text:
        width = None if output.output else terminal_width(sys.stdout)
        out.write(table(variables, answer, TermFormatter(prefixes), width))
    elif format_ == "csv":
        out.write(csv_solutions(variables, answer))
    else:
        for row in answer:
            out.write(json_row(variables, row) + "\n")
    out.finish()


def _ask_deployment(
    folder: str,
    given: Sequence[str],
    named: str | None,
    at: str | None,
    rules: RuleOptions,
    source: SourceOptions,
    output: OutputOptions,
) -> int:
    """Answer a query over a deployment, as of its last commit."""
    from dotr.cli.explain import DeploymentSubject  # noqa: PLC0415  # start-up: few commands ask a deployment
    from dotr.knowledge_base.text_queries import Rows  # noqa: PLC0415
    from dotr.service.history import time_of  # noqa: PLC0415
    from dotr.service.knowledge import Knowledge, past  # noqa: PLC0415

    if len(given) != (named is None):
        raise click.UsageError("name one query: a file, its text, or --query NAME")
    if rules.more_rules or rules.background or rules.verify:
        hint = "dotr query RULES SOURCE… --at 12 QUERY, or dotr query --dir FOLDER QUERY"
        raise UsageError.of("D4171", "a deployment has its own rules and background", hint=hint)
    (query,) = given or [""]
    inline = bool(_INLINE.search(query)) and not os.path.exists(query)
    asked = query if inline else query_text(query) if query else ""
    format_ = _answer_format(output, makes_a_graph(asked))
    knowledge = Knowledge(folder, rules.budget)
    with ExitStack() as stack:
        if at is None:
            holding = stack.enter_context(knowledge.holding())
        else:
            fed = DeploymentSubject(folder, source)
            holding = past(fed, time_of(at, fed.clock, "--at"), rules.budget)
        variables: Sequence[str] | None = None
        answer: bool | Sequence[Values] | Sequence[Triple]
        if named is not None:
            select = named_query(holding.program, named)
            rows = holding.answer(select)
            variables, answer = select.variables, bool(rows) if select.ask else rows
        else:
            found = holding.result(asked, "<query>" if inline else query)
            variables, answer = found if isinstance(found, Rows) else (None, found)
        _write_answer(answer, variables, holding.program.prefixes, format_, output)
    return 1 if answer is False else 0


def _to_parquet(output: str, overwrite: bool, variables: Sequence[str], rows: Sequence[Values]) -> None:
    from dotr.io.decode.parquet import write_solutions  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

    out = FileOutput(output, overwrite)
    try:
        write_solutions(str(out.part), variables, rows)
    except OSError as error:
        out.discard()
        raise unwritable(output, error) from None
    out.finish()


_INLINE = re.compile(r"[\s{]")
"""What a string of SPARQL has, and names of files rarely."""


def _graph_text(triples: Sequence[Triple], notation: TermFormatter | None) -> str:
    """A graph as Turtle with the program's prefixes, or as N-Triples."""
    if notation is None:
        return "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    lines = [f"{notation.term(s)} {notation.term(p)} {notation.term(o)} .\n" for s, p, o in triples]
    return notation.header() + "".join(lines)


class Instant(Struct, frozen=True):
    """The graphs of one time, as one: blank nodes labelled."""

    time: Time
    clock: Clock
    graphs: int
    triples: tuple[Triple, ...]


def _is_rdf(path: str) -> bool:
    return format_of(path) is not None


def query_text(path: str) -> str:
    if path == "-":
        return read_standard_input()
    try:
        return read_rules_text(path)
    except OSError as error:
        raise unreadable(path, error) from None


def _instant(
    sources: Sequence[str],
    at: str,
    source: SourceOptions,
    refusals: ErrorPolicy,
    program: Program,
    background: list[Triple],
    budget: int,
) -> tuple[Instant, list[Triple]]:
    """Everything of the sources at one time, and what is stated then besides it. Reads all of them: a stream
    need not be sorted.
    """
    time, integer = instant_of(at, source.options.unit)
    reader = Sources(sources, source.options, refusals)
    came: dict[Time, list[GraphOrMessage]] = {}
    lasting = program.lasting
    for graph in reader:
        lasting = lasting or isinstance(graph.triples, Message)
        if graph.time <= time and (lasting or graph.time == time):
            came.setdefault(graph.time, []).append(graph.triples)
    clock = reader.clock or Clock(integer, source.options.unit)
    if clock.integer is not integer:
        kind = "integers" if clock.integer else "dateTimes"
        raise DataError.of(
            "D2102", f"the times of these sources are {kind}", label=f"--at {at}", hint="ask for such a time"
        )
    if lasting:
        background = _stated(program, background, clock, came, time, refusals, budget)
    graphs = [message.graph for message in labelled(came.get(time, ()), time) if message.graph is not None]
    return Instant(
        time, clock, len(graphs), tuple(triple for graph in graphs for triple in graph)
    ), background


def _stated(
    program: Program,
    background: Sequence[Triple],
    clock: Clock,
    came: Mapping[Time, list[GraphOrMessage]],
    time: Time,
    refusals: ErrorPolicy,
    budget: int,
) -> list[Triple]:
    """L(t): what messages and effects up to `time` leave stated; those of an instant in error never came."""
    if program.has_effects:
        return _stated_by_rules(program, background, clock, came, time, refusals, budget)

    def on_refused(when: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> DotrError | None:
        refusals.count += len(parts)
        return error if refusals.fail else None

    run = LastingRun(program, background, clock, budget=budget, on_refused=on_refused)
    for _, _, failed in run.instants(sorted(came.items()), time + 1, lambda _: None, lambda _: False):
        if failed is not None:
            raise failed
    return run.stated()


def _stated_by_rules(
    program: Program,
    background: Sequence[Triple],
    clock: Clock,
    came: Mapping[Time, list[GraphOrMessage]],
    time: Time,
    refusals: ErrorPolicy,
    budget: int,
) -> list[Triple]:
    """L(t) where rules have effects, which run."""
    from dotr.core.deployment import Deployment, Settings  # noqa: PLC0415  # start-up: few programs have any
    from dotr.core.pipeline import Pipeline, PipelineObserver  # noqa: PLC0415  # likewise

    def refused(_when: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> None:
        refusals.count += len(parts)
        if refusals.fail:
            raise error

    def overworked(_rule: str, error: ProgramError) -> None:
        if refusals.fail:
            raise error

    acting = needed(only(program, ()))
    pipeline = Pipeline(
        Deployment(acting, background, Settings(budget=budget)),
        PipelineObserver(refused=refused, overworked=overworked),
    )
    pipeline.begin(clock)
    for when, parts in sorted(came.items()):
        for part in parts:
            pipeline.take(when, part)
    pipeline.close_up_to(time)
    for _ in pipeline.drain():
        pass
    return sorted(pipeline.lasting())


def _answer(
    select: Select, state: Collection[Triple], instant: Instant | None, rules: RuleOptions
) -> bool | list[Values]:
    if instant is None and asks_time(select):
        raise UsageError.of(
            "D4112", "this query asks for NOW(), and no instant is given", hint="add SOURCE and --at"
        )
    moment = None if instant is None else (instant.clock, instant.time)
    return answer_of(select, state, moment, rules.budget, rules.verify)


def _state(
    program: Program, background: Sequence[Triple], triples: Sequence[Triple], rules: RuleOptions
) -> Collection[Triple]:
    """K(t), everything derived. Raises ProgramError, DataError, EngineError D4090 if the oracle differs."""
    materialiser = rules.deployment(program, background, everything=True).enrich
    materialiser.instant(triples)
    state = list(materialiser.state())
    if rules.verify:
        literally = LiteralEnricher(rules_over(program, background), background).state(triples)
        different = sorted(literally.symmetric_difference(state))
        if different:
            raise EngineError.of(
                "D4090",
                "engine and literal reading derive different states",
                label=" ".join(different[0]),
                hint="this is a bug of dotr: please report rules and input",
            )
    return state


def table(
    variables: Sequence[str], rows: Sequence[Values], notation: TermFormatter, width: int | None = None
) -> str:
    """Solutions as aligned columns, terms with the program's prefixes."""
    cells = [[f"?{name}" for name in variables]]
    cells += [["" if term is None else notation.term(term) for term in row] for row in rows]
    return aligned(cells, width)


def json_row(variables: Sequence[str], row: Values) -> str:
    """A solution as SPARQL 1.1 JSON results have it; what is unbound is left out."""
    pairs = zip(variables, row, strict=True)
    return (
        "{"
        + ",".join(f"{json.dumps(name)}:{json_terms[term]}" for name, term in pairs if term is not None)
        + "}"
    )


WATCHED_FORMATS = ("text", "jsonl")
_HOLDS = "--hold.dotr"


@click.command()
@click.argument("query", metavar="QUERY.rq")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.rules_value
@click.option(
    "--rules",
    "more_rules",
    multiple=True,
    metavar="FILE",
    help="Datalog, or a .dotr file for its prologue and its rules with INSERT or DELETE.",
)
@click.option("--background", multiple=True, metavar="FILE", help="RDF that holds from the beginning.")
@click.option(
    "--hold",
    "holds",
    multiple=True,
    metavar="'P FOR 10 min'",
    help="A HOLD line (default: held until deleted).",
)
@options.functions
@click.option("--initial", is_flag=True, help="Begin with the answers that the background has.")
@click.option(
    "--periods", is_flag=True, help="Print each answer with the period in which it held, when it ends."
)
@click.option("--verify", is_flag=True, help="Run the literal reading as well; stop at a difference.")
@options.source(late="fail", jumps=True)
@options.budget
@options.output(WATCHED_FORMATS)
def watch(
    query: str,
    sources: tuple[str, ...],
    rules: RuleOptions,
    holds: tuple[str, ...],
    initial: bool,
    periods: bool,
    source: SourceOptions,
    output: OutputOptions,
) -> None:
    """Print how the answers of a SELECT or ASK change as SOURCEs are read: `-` what ends, `+` what begins.

    The query is evaluated over the triples that are held and what follows from them, not over the graph of
    an instant. A triple that neither --hold nor a rules file declares is held until it is deleted. If a rules
    file has rules with INSERT or DELETE, these run, with the rules that they read, and only declared triples
    are held.

    --periods prints `?x :A [3, 8)` when an answer ends. At the end of the input it prints the answers that
    have no end yet, as `[3, …)`. `[…, 8)` is an answer that the background had from the beginning.
    """
    from dotr.cli.run import Replay  # noqa: PLC0415  # start-up: `dotr query` detects nothing

    format_ = output.format(WATCHED_FORMATS, "dotr watch")
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
        first = _initial(program, triples, select.ask, rules.budget) if initial or periods else []
        if periods:
            write_period = _period_writer(format_, select, prefixes)
            replay.run(PeriodSink(out, write_period, AnswerPeriods(first), select.ask, source.options.unit))
            return
        out.write(write(first, None))
        replay.run(TextSink(_formatted(write, select.ask), out))


_Write = Callable[[Iterable[SignedAnswer], Clock | None], str]
"""(answers, how their times are written, None where they have none) → text."""


_WritePeriod = Callable[[Iterable[AnswerPeriod], Clock], str]


class PeriodSink(Struct):
    """Answers with their periods, as text; those that have no end with `finish`."""

    output: Output
    format: _WritePeriod
    periods: AnswerPeriods
    ask: bool
    unit: Time
    clock: Clock | None = None

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.clock = clock
        self.output.write(self.format(self.periods.take(signed(events, self.ask)), clock))

    def flush(self) -> None:
        self.output.flush()

    def finish(self) -> None:
        clock = self.clock or Clock(unit=self.unit)
        self.output.write(self.format(self.periods.open(), clock))
        self.output.finish()

    def abandon(self) -> None:
        self.output.abandon()


def _period_writer(format_: str, select: Select, prefixes: Mapping[str, str]) -> _WritePeriod:
    names = select.variables
    if format_ == "jsonl":
        return lambda found, clock: "".join(_period_json(one, names, clock) for one in found)
    notation = TermFormatter(prefixes)
    return lambda found, clock: "".join(_period_text(one, names, clock, notation) for one in found)


def _period_json(period: AnswerPeriod, names: Sequence[str], clock: Clock) -> str:
    start, until = (_json_time(time, clock) for time in (period.start, period.until))
    return f'{{"from":{start},"until":{until},"bindings":{json_row(names, period.values)}}}\n'


def _json_time(time: Time | None, clock: Clock | None) -> str:
    if time is None or clock is None:
        return "null"
    text = clock.text(time)
    return text if clock.integer else f'"{text}"'


def _period_text(period: AnswerPeriod, names: Sequence[str], clock: Clock, notation: TermFormatter) -> str:
    start, until = ("…" if time is None else clock.text(time) for time in (period.start, period.until))
    return f"{_bound(names, period.values, notation)} [{start}, {until})\n".lstrip()


def _bound(names: Sequence[str], values: Values, notation: TermFormatter) -> str:
    pairs = zip(names, values, strict=True)
    return "".join(f" ?{name} {notation.term(term)}" for name, term in pairs if term is not None)


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
    time = _json_time(answer.time, clock)
    bindings = json_row(names, answer.values)
    return f'{{"time":{time},"change":{answer.change},"bindings":{bindings}}}\n'


def _text(answer: SignedAnswer, names: Sequence[str], clock: Clock | None, notation: TermFormatter) -> str:
    """One line for each of equal rows: `+ ?x :A ?y :B @ 3`; what the background answers has no time."""
    when = "" if clock is None else f" @ {clock.text(answer.time)}"
    sign = "+" if answer.change > 0 else "-"
    return f"{sign}{_bound(names, answer.values, notation)}{when}\n" * abs(answer.change)
