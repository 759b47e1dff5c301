"""Canonical text of .dotr, .dlog and .lars files.

Place:   `dotr fmt`; the inverse of the parsers. `dotr plan`, proofs and digests print LARS rules with it.
Method:  the file is parsed with parameters as names, printed clause by clause, and parsed again: only a
         result that gives the same tree, with the same comments, is returned. IRIs are written in full or
         with the file's prefixes, which come first; BASE is gone, its IRIs are absolute. In .lars files STEP
         follows the PREFIX lines, then the rules; the modality follows its atom, and SOMETIME, which every
         window has by default, is left out.
         Comments: a file is a row of units (a prologue line, a query, a clause, a Datalog rule), each with
         its place. A comment after a unit on its line belongs to it, one inside a unit or before it is
         printed above it, the rest at the end. So no comment is ever lost, however the unit is printed.
Why not: edits that keep the author's layout. One program has one text; diffs show what changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, assert_never

from msgspec import Struct, field

from dotr import program
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import written
from dotr.extract.printing import Writer
from dotr.lang.grammar import syntax
from dotr.lang.grammar.cursor import comments
from dotr.lang.grammar.dlog import DatalogParser
from dotr.lang.grammar.dotr import DotrParser
from dotr.lang.grammar.lars import LarsFile, LarsParser
from dotr.lang.operators import WRITTEN
from dotr.program.names import clock_text, duration_text
from dotr.program.sequences import pattern_text
from dotr.rdf.terms import RDF_TYPE, Term, escape, is_iri
from dotr.source import Source
from dotr.windows.windows import kind_of


class LayoutUnit(Struct):
    """A part of a string. `lines`: how it is printed, none if left out. `gap`: an empty line comes before."""

    start: int
    end: int
    lines: list[str]
    gap: bool = False
    above: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def attach(source: Source, units: Sequence[LayoutUnit]) -> list[str]:
    """Give every comment of the text to a unit; return those after the last one. `units` in source order."""
    footer: list[str] = []
    index = 0
    previous_end = 0
    for start, end in comments(source):
        text = source.text[start:end].rstrip()
        while index < len(units) and units[index].end <= start:
            index += 1
        before = units[index - 1] if index else None
        if before is not None and "\n" not in source.text[before.end : start]:
            before.behind.append(text)
        else:
            following = units[index] if index < len(units) else None
            goal = following.above if following is not None else footer
            outside = following is None or start < following.start
            if outside and goal and goal[-1] and source.text[previous_end:start].count("\n") > 1:
                goal.append("")
            goal.append(text)
            if following is not None and outside and _gap_below(source, end, following.start):
                goal.append("")
        previous_end = end
    return footer


def _gap_below(source: Source, end: int, start: int) -> bool:
    """Whether an empty line, and no other comment, stands between a comment and its unit."""
    between = source.text[end:start]
    return "#" not in between and between.count("\n") > 1


def render(units: Sequence[LayoutUnit], footer: Sequence[str]) -> str:
    """The units in the order given, as one text that ends with a newline (unless it is empty)."""
    out: list[str] = []
    held: list[str] = []  # comments of units that are left out
    for unit in units:
        above = [*held, *unit.above]
        if not unit.lines:
            held = [*above, *unit.behind]
            continue
        held = []
        if len(unit.lines) > 1 or unit.lines[0].startswith("#"):
            above += unit.behind
            behind = ""
        else:
            behind = f"  {'  '.join(unit.behind)}" if unit.behind else ""
        if unit.gap and out and out[-1]:
            out.append("")
        out += above
        out += [unit.lines[0] + behind, *unit.lines[1:]]
    rest = [*held, *footer]
    if rest and out:
        out.append("")
    out += rest
    while out and not out[-1]:
        out.pop()
    return "\n".join(out) + "\n" if out else ""


WIDTH: Final = 100
_STEP: Final = "  "
_EMPTY_LINE: Final = re.compile(r"\n[ \t\r]*\n")


def format_lars(source: Source) -> str:
    """The canonical text of a .lars file. Raises ProgramError with all errors."""
    found = Diagnostics()
    file = LarsParser(source, found).file()
    found.raise_errors()
    text = _file_text(source, file)
    again = Diagnostics()
    copy = LarsParser(Source(source.name, text), again).file()
    assert not again.errors, f"the canonical text is not a program: {again.errors[0].render()}"
    assert (copy.rules, copy.steps) == (file.rules, file.steps), "the canonical text is another program"
    return text


def _file_text(source: Source, file: LarsFile) -> str:
    printer = LarsPrinter(file.prefixes)
    prefixes: list[LayoutUnit] = []
    steps: list[LayoutUnit] = []
    durations = iter(file.steps)
    for prefix, span in file.prologue:
        word = source.text[span.start : span.start + 4].upper()
        if prefix is not None:
            prefixes.append(LayoutUnit(span.start, span.end, [f"PREFIX {prefix}: <{file.prefixes[prefix]}>"]))
        elif word == "STEP":
            line = f"STEP {duration_text(next(durations).micros)}"
            steps.append(LayoutUnit(span.start, span.end, [line], gap=not steps))
        else:
            prefixes.append(LayoutUnit(span.start, span.end, []))
    rules: list[LayoutUnit] = []
    end = 0
    for rule in file.rules:
        assert rule.span is not None, "parsed rules have places"
        gap = not rules or _EMPTY_LINE.search(source.text, end, rule.span.start) is not None
        rules.append(LayoutUnit(rule.span.start, rule.span.end, printer.rule(rule), gap))
        end = rule.span.end
    units = [*prefixes, *steps, *rules]
    footer = attach(source, sorted(units, key=lambda unit: unit.start))
    return render(units, footer)


def lars_rule_text(rule: program.LarsRule, prefixes: Mapping[str, str]) -> str:
    """A LARS rule in one line."""
    return " ".join(line.strip() for line in LarsPrinter(prefixes).rule(rule))


def lars_literal_text(literal: program.LarsLiteral, prefixes: Mapping[str, str]) -> str:
    """A literal of a LARS rule."""
    return LarsPrinter(prefixes).literal(literal)


class LarsPrinter:
    """Prints with the prefixes of one file."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._writer = Writer(prefixes)

    def rule(self, rule: program.LarsRule) -> list[str]:
        head = self._head(rule.head)
        if not rule.body:
            return [f"{head} ."]
        body: Sequence[str] = [self.literal(literal) for literal in rule.body]
        line = f"{head} :- {', '.join(body)} ."
        if len(line) <= WIDTH:
            return [line]
        return [f"{head} :-", *(f"{_STEP}{literal}," for literal in body[:-1]), f"{_STEP}{body[-1]} ."]

    def _head(self, head: program.LarsHead) -> str:
        text = self._atom(head.atom)
        if head.at is None:
            return text
        text += f" AT ?{head.at}"
        if head.offset:
            text += f" {'-' if head.offset < 0 else '+'} {duration_text(abs(head.offset))}"
        return text

    def literal(self, literal: program.LarsLiteral) -> str:
        expression = self._writer.expression
        match literal:
            case program.WindowAtom():
                return f"{'NOT ' if literal.negated else ''}{self._window_atom(literal)}"
            case program.FilterAtom(condition):
                return f"FILTER({expression(condition)})"
            case program.BindAtom(value, variable):
                return f"BIND({expression(value)} AS ?{variable.name})"
            case program.WindowAggregate():
                argument = "*" if literal.argument is None else expression(literal.argument)
                distinct = "DISTINCT " if literal.distinct else ""
                over = f"{self._atom(literal.atom)} {self._window(literal.window, literal.atom)}"
                of = written(literal.function, distinct + argument)
                text = f"{of} AS ?{literal.variable.name} OVER {over}"
                group = ", ".join(f"?{variable.name}" for variable in literal.group)
                if not group or self._implied(literal):
                    return text
                plain = len(literal.group) == 1 or isinstance(literal.window, program.FactWindow)
                return f"{text} PER {group if plain else f'({group})'}"
            case _:
                assert_never(literal)

    @staticmethod
    def _implied(literal: program.WindowAggregate) -> bool:
        """Whether the key of a window of facts is what the aggregate is grouped by."""
        window, arguments = literal.window, literal.atom.arguments
        if not isinstance(window, program.FactWindow) or not window.per:
            return False
        return literal.group == tuple(arguments[n] for n in window.per)

    def _window_atom(self, literal: program.WindowAtom) -> str:
        text = self._atom(literal.atom)
        if literal.window is None:
            return text
        text += kind_of(literal).text(literal.at, literal.count)
        return f"{text} {self._window(literal.window, literal.atom)}"

    def _window(self, window: program.LarsWindow, atom: program.NamedAtom) -> str:
        match window:
            case program.TimeWindow(duration):
                return f"WITHIN {duration_text(duration)}"
            case program.FactWindow(count, per=per) if per:
                key = ", ".join(self._writer.node(atom.arguments[n]) for n in per)
                return f"WITHIN {count} FACTS PER ({key})"
            case program.FactWindow(count, streams):
                of = "" if streams in ((), (atom.name,)) else f" OF ({', '.join(streams)})"
                return f"WITHIN {count} FACTS{of}"
            case _:
                assert_never(window)

    def _atom(self, atom: program.NamedAtom) -> str:
        return f"{atom.name}({', '.join(map(self._writer.node, atom.arguments))})"


def format_text(source: Source) -> str:
    """The canonical text of a file, .dlog, .lars or .dotr by its name. Raises ProgramError."""
    if source.name.endswith(".lars"):
        text = format_lars(source)
        _assert_same_comments(source, text)
        return text
    return _format_datalog(source) if source.name.endswith(".dlog") else _format_program(source)


def _format_program(source: Source) -> str:
    found = Diagnostics()
    file = DotrParser(source, found, symbolic=True).file()
    found.raise_errors()
    text = program_text(source, file)
    again = Diagnostics()
    copy = DotrParser(Source(source.name, text), again, symbolic=True).file()
    assert not again.errors, f"the canonical text is not a program: {again.errors[0].render()}"
    assert copy.statements == file.statements, "the canonical text is another program"
    _assert_same_comments(source, text)
    return text


def _format_datalog(source: Source) -> str:
    found = Diagnostics()
    parser = DatalogParser(source, found)
    rules = parser.rules()
    found.raise_errors()
    text = datalog_text(source, rules, parser)
    again = Diagnostics()
    copy = DatalogParser(Source(source.name, text), again).rules()
    assert not again.errors, f"the canonical text is not a program: {again.errors[0].render()}"
    assert copy == rules, "the canonical text is another program"
    _assert_same_comments(source, text)
    return text


def _assert_same_comments(source: Source, text: str) -> None:
    old, new = ([s.text[a:b].rstrip() for a, b in comments(s)] for s in (source, Source("", text)))
    assert sorted(old) == sorted(new), "the canonical text has lost a comment"


def program_text(source: Source, file: syntax.FileSyntax) -> str:
    """A .dotr file printed again: PREFIX lines first, then the statements as they come."""
    printer = _Printer(file.prefixes)
    prefixes: dict[str, LayoutUnit] = {}
    units: list[LayoutUnit] = []
    for prefix, span in file.prologue:
        fresh = prefix is not None and prefix not in prefixes
        lines = [f"PREFIX {prefix}: <{file.prefixes[prefix]}>"] if prefix is not None and fresh else []
        unit = LayoutUnit(span.start, span.end, lines)
        units.append(unit)
        if prefix is not None:
            prefixes.setdefault(prefix, unit)
    heads = list(units)
    body: list[LayoutUnit] = []
    apart = True
    for statement, place in zip(file.statements, file.places, strict=True):
        new = printer.units(statement, place.start, place.end)
        long = isinstance(
            statement, syntax.QuerySyntax | syntax.RuleSyntax | syntax.SequenceSyntax
        )  # other statements stand together
        new[0].gap = long or apart
        apart = long
        body += new
    footer = attach(source, sorted([*heads, *body], key=lambda unit: unit.start))
    return render([*heads, *body], footer)


def datalog_text(source: Source, rules: Sequence[program.DatalogRule], parser: DatalogParser) -> str:
    """A .dlog file printed again: PREFIX lines first, then the rules as they come."""
    printer = _Printer(parser.cursor.prefixes)
    units: list[LayoutUnit] = []
    for prefix, span in parser.prologue:
        lines = [f"PREFIX {prefix}: <{parser.cursor.prefixes[prefix]}>"] if prefix is not None else []
        units.append(LayoutUnit(span.start, span.end, lines))
    body: list[LayoutUnit] = []
    end = 0
    for rule in rules:
        assert rule.span is not None, "parsed rules have places"
        gap = not body or _EMPTY_LINE.search(source.text, end, rule.span.start) is not None
        body.append(LayoutUnit(rule.span.start, rule.span.end, printer.datalog_rule(rule), gap))
        end = rule.span.end
    footer = attach(source, sorted([*units, *body], key=lambda unit: unit.start))
    return render([*units, *body], footer)


def datalog_rule_text(
    rule: program.DatalogRule, prefixes: Mapping[str, str], names: Mapping[Term, str] = MappingProxyType({})
) -> str:
    """A Datalog rule in one line. `names`: of terms that are shown otherwise than as they are written."""
    return " ".join(line.strip() for line in _Printer(prefixes, names).datalog_rule(rule))


class _Printer:
    """Prints with the prefixes of one file."""

    def __init__(self, prefixes: Mapping[str, str], names: Mapping[Term, str] = MappingProxyType({})) -> None:
        self._writer = Writer(prefixes, names)

    # -- statements ---------------------------------------------------------------------------------

    def units(self, statement: syntax.Statement, start: int, end: int) -> list[LayoutUnit]:
        """A statement as units: a rule as one for each clause."""
        if isinstance(statement, syntax.RuleSyntax):
            clauses = self._rule(statement)
            assert len(clauses) == len(statement.clauses), "every clause has its place"
            return [
                LayoutUnit(span.start, span.end, lines)
                for span, lines in zip(statement.clauses, clauses, strict=True)
            ]
        if isinstance(statement, syntax.SequenceSyntax):
            parts = self._sequence(statement)
            return [
                LayoutUnit(span.start, span.end, lines)
                for span, lines in zip(statement.clauses, parts, strict=True)
            ]
        return [LayoutUnit(start, end, self._statement(statement))]

    def _statement(self, statement: syntax.Statement) -> list[str]:
        match statement:
            case syntax.BackgroundSyntax(paths):
                return [f"BACKGROUND {', '.join(map(_path, paths))}"]
            case syntax.RulesSyntax(paths):
                return [f"RULES {', '.join(map(_path, paths))}"]
            case syntax.LarsSyntax(paths):
                return [f"LARS {', '.join(map(_path, paths))}"]
            case syntax.EntailmentSyntax(name):
                return [f"ENTAILMENT {name.text}"]
            case syntax.QueryParameter(name, variables):
                return [f"PARAMETER QUERY {name.text}({', '.join('?' + v.text for v in variables)})"]
            case syntax.ValueParameter(name, default, most):
                value = "" if default is None else f" := {self._value(default)}"
                limit = "" if most is None else f" AT MOST {self._value(most)}"
                return [f"PARAMETER ?{name.text}{value}{limit}"]
            case syntax.ImportSyntax():
                return self._import(statement)
            case syntax.HoldSyntax():
                return self._hold(statement)
            case syntax.QuerySyntax(name, select, _, operator, alias):
                return self._query(f"QUERY {name.text} := ", operator, alias, select)
            case syntax.RuleSyntax() | syntax.SequenceSyntax():
                raise AssertionError("it is several units")
            case _:
                assert_never(statement)

    def _import(self, statement: syntax.ImportSyntax) -> list[str]:
        line = f"IMPORT {_path(statement.path)}"
        if statement.alias is not None:
            line += f" AS {statement.alias.text}"
        given = [f"{name.text} := {query.text}" for name, query in statement.queries]
        given += [f"?{name.text} := {self._value(value)}" for name, value in statement.values]
        return _listed(f"{line} WITH ", given) if given else [line]

    def _hold(self, statement: syntax.HoldSyntax) -> list[str]:
        end = " LATEST" if statement.latest else ""
        for word, predicate in (("FROM", statement.start), ("UNTIL", statement.until)):
            if predicate is not None:
                end += f" {word} {self._held(predicate)}"
        if statement.duration is not None:
            end += f" FOR {self._duration(statement.duration)}"
        lines = _listed("HOLD ", map(self._held, statement.held))
        return [*lines[:-1], lines[-1] + end]

    def _held(self, held: syntax.Held) -> str:
        match held:
            case syntax.HeldPredicate(iri):
                return self._writer.term(iri)
            case syntax.HeldClass(iri):
                return f"a {self._writer.term(iri)}"
            case syntax.HeldRest():
                return "*"
            case _:
                assert_never(held)

    def _query(
        self,
        before: str,
        operator: program.RelationToStream | None,
        alias: syntax.Name | None,
        select: program.Select | None,
    ) -> list[str]:
        """`Name := …`, whatever may stand there."""
        if operator is not None:
            before += f"{operator} "
        if alias is not None:
            return [before + alias.text]
        assert select is not None, "a text with errors is not printed"
        return self._with_query(before, select)

    def _value(self, value: syntax.ParameterValue) -> str:
        match value:
            case syntax.Duration():
                return self._duration(value)
            case syntax.Reference(name):
                return f"?{name}"
            case str():
                return self._writer.term(value)
            case _:
                assert_never(value)

    def _duration(self, duration: syntax.Duration) -> str:
        return f"?{duration.name}" if duration.name else duration_text(duration.micros)

    def _with_query(self, before: str, select: program.Select) -> list[str]:
        """`… { SELECT … }` in one line if it is short."""
        lines = self._writer.select(select)
        line = f"{before}{{ {' '.join(part.strip() for part in lines)} }}"
        if len(line) <= WIDTH:
            return [line]
        return [f"{before}{{", *(f"{_STEP}{part}" for part in lines), "}"]

    # -- rules --------------------------------------------------------------------------------------

    def _rule(self, rule: syntax.RuleSyntax) -> list[list[str]]:
        """The lines of each clause, in the order in which they are written."""
        keyword = "PRIVATE RULE" if rule.private else "RULE"
        clauses = [[f"{keyword} {rule.name.text}", *self._template("DEFINE", rule.template)]]
        match rule.trigger:
            case syntax.EverySyntax(duration, name):
                clauses.append([f"FROM EVERY {self._duration(duration)} AS {name.text}"])
            case syntax.CalendarSyntax(unit, duration, day, at, zone, parameter, name):
                every = unit if duration is None else self._duration(duration)
                on = "" if day is None else f" ON DAY {day}"
                where = f"?{parameter}" if parameter else f'"{zone}"'
                clauses.append([f"FROM EVERY {every}{on} AT {clock_text(at)} IN {where} AS {name.text}"])
            case syntax.EventSyntax():
                clauses.append(self._event("FROM ", rule.trigger))
            case syntax.AfterSyntax(event, duration, name):
                after = f"AFTER {self._duration(duration)} AS {name.text}"
                clauses.append(self._event("FROM ", event, [after]))
            case None:
                raise AssertionError("a text with errors is not printed")
        clauses += [self._conjunct(conjunct) for conjunct in rule.conjuncts]
        expression = self._writer.expression
        if rule.where is not None:
            clauses.append([f"WHERE {expression(rule.where)}"])
        if rule.bindings:
            clauses.append(
                _listed("WITH ", [f"?{b.variable.text} := {expression(b.expression)}" for b in rule.bindings])
            )
        if rule.consuming:
            clauses.append([f"CONSUMING {', '.join(name.text for name in rule.consuming)}"])
        for word, effect in (("DELETE", rule.deletes), ("INSERT", rule.inserts)):
            if effect is not None:
                clauses.append(self._template(word, effect.triples))
        return clauses

    def _sequence(self, sequence: syntax.SequenceSyntax) -> list[list[str]]:
        """The lines of each clause, in the order in which they are written."""
        assert sequence.pattern is not None, "a text with errors is not printed"
        assert sequence.within is not None, "a text with errors is not printed"
        expression = self._writer.expression
        skipping = "" if sequence.skipping is None else " SKIPPING"
        clauses = [[f"SEQUENCE {sequence.name.text} := {pattern_text(sequence.pattern)}{skipping}"]]
        clauses.append(self._sources(sequence))
        for element in sequence.elements:
            parts = [f"AND {element.name.text}"]
            if element.sources:
                parts.append(f"OF {', '.join(name.text for name in element.sources)}")
            if element.on is not None:
                parts.append(f"ON {expression(element.on)}")
            clauses.append([" ".join(parts)])
        bounds = f"WITHIN {self._duration(sequence.within)}"
        if sequence.gap is not None:
            bounds += f" GAP {self._duration(sequence.gap)}"
        if sequence.overlapping:
            bounds += " OVERLAPPING"
        if sequence.skip_to is not None:
            bounds += f" SKIP TO LAST {sequence.skip_to.text}"
        clauses.append([bounds])
        if sequence.bindings:
            given = [f"?{b.variable.text} := {expression(b.expression)}" for b in sequence.bindings]
            clauses.append(_listed("WITH ", given))
        return clauses

    def _sources(self, sequence: syntax.SequenceSyntax) -> list[str]:
        """`OF source, … PER ?v, …`."""
        lines: list[str] = []
        for number, source in enumerate(sequence.sources):
            if lines:
                lines[-1] += ","
            lines += self._event("   " if number else "OF ", source)
        short = f"OF {', '.join(line.strip().removeprefix('OF ').rstrip(',') for line in lines)}"
        if len(lines) == len(sequence.sources) and len(short) <= WIDTH:
            lines = [short]
        if not sequence.per:
            return lines
        per = f"PER {', '.join(f'?{name.text}' for name in sequence.per)}"
        if len(lines) == 1 and len(lines[0]) + 1 + len(per) <= WIDTH:
            return [f"{lines[0]} {per}"]
        return [*lines, f"{_STEP}{per}"]

    def _template(self, word: str, template: Sequence[program.TemplateTriple]) -> list[str]:
        if not template:
            return [f"{word} {{}}"]
        groups: list[tuple[program.TemplateNode, list[str]]] = []
        for triple in template:
            verb = "a" if triple.predicate == RDF_TYPE else self._node(triple.predicate)
            text = f"{verb} {self._node(triple.object)}"
            if groups and groups[-1][0] == triple.subject:
                groups[-1][1].append(text)
            else:
                groups.append((triple.subject, [text]))
        line = " . ".join(f"{self._node(subject)} {' ; '.join(texts)}" for subject, texts in groups)
        if len(line) + 11 <= WIDTH:
            return [f"{word} {{ {line} }}"]
        lines = [f"{word} {{"]
        for subject, texts in groups:
            inner = f" ;\n{_STEP}{_STEP}".join(texts)
            lines += f"{_STEP}{self._node(subject)} {inner} .".split("\n")
        return [*lines, "}"]

    def _node(self, node: program.TemplateNode) -> str:
        match node:
            case program.TemplateVar(name) | program.AnyTerm(name):
                return f"?{name}"
            case program.Fresh(name):
                return name
            case str():
                return self._writer.term(node)
            case _:
                assert_never(node)

    def _event(self, before: str, event: syntax.EventSyntax, after: Sequence[str] = ()) -> list[str]:
        """An event after `FROM` or `AND …`, with what follows it in the same line if that fits."""
        head = f"{before}{event.name.text}"
        if event.short:
            lines = [f"{before}{event.operator} {event.name.text}"]
        elif event.query is None and event.alias is None:
            lines = [head]
        else:
            lines = self._query(f"{head} := ", event.operator, event.alias, event.query)
        if not after:
            return lines
        rest = " ".join(after)
        if len(lines) == 1 and len(lines[0]) + 1 + len(rest) <= WIDTH:
            return [f"{lines[0]} {rest}"]
        if len(_STEP) + len(rest) <= WIDTH:
            return [*lines, f"{_STEP}{rest}"]
        return [*lines, *(f"{_STEP}{part}" for part in after)]

    def _conjunct(self, conjunct: syntax.ConjunctSyntax) -> list[str]:
        expression = self._writer.expression
        before = WRITTEN[conjunct.operator].text(conjunct, expression)
        after = [self._window(conjunct.window)]
        if isinstance(conjunct, syntax.ChooseSyntax) and conjunct.per:
            per = ", ".join(f"?{name.text}" for name in conjunct.per)
            after.insert(0, f"PER ({per})")
        if conjunct.on is not None:
            after.append(f"ON {expression(conjunct.on)}")
        return self._event(f"AND {before} ", conjunct.event, after)

    def _window(self, window: syntax.WindowSyntax) -> str:
        if isinstance(window, syntax.WithinSyntax):
            direction = "BEFORE" if window.before else "FROM"
            return f"WITHIN {self._duration(window.duration)} {direction} {window.reference.text}"
        return f"BETWEEN {window.start.text} AND {window.end.text}"

    # -- Datalog ------------------------------------------------------------------------------------

    def datalog_rule(self, rule: program.DatalogRule) -> list[str]:
        heads = ", ".join(map(self._atom, rule.heads))
        if not rule.body:
            return [f"{heads} ."]
        body = [self._body_atom(atom) for atom in rule.body]
        line = f"{heads} :- {', '.join(body)} ."
        if len(line) <= WIDTH:
            return [line]
        return [f"{heads} :-", *(f"{_STEP}{atom}," for atom in body[:-1]), f"{_STEP}{body[-1]} ."]

    def _body_atom(self, atom: program.BodyAtom) -> str:
        expression = self._writer.expression
        match atom:
            case program.Atom():
                return self._atom(atom)
            case program.NotAtom(inner):
                return f"NOT {self._atom(inner)}"
            case program.FilterAtom(condition):
                return f"FILTER({expression(condition)})"
            case program.BindAtom(value, variable):
                return f"BIND({expression(value)} AS ?{variable.name})"
            case program.AggregateAtom(body, group, totals):
                parts = [", ".join(map(self._body_atom, body))]
                if group:
                    parts.append(f"ON {' '.join('?' + variable.name for variable in group)}")
                for total in totals:
                    argument = "*" if total.argument is None else expression(total.argument)
                    distinct = "DISTINCT " if total.distinct else ""
                    text = written(total.function, distinct + argument)
                    parts.append(f"BIND {text} AS ?{total.variable.name}")
                return f"AGGREGATE({' '.join(parts)})"
            case _:
                assert_never(atom)

    def _atom(self, atom: program.Atom) -> str:
        node = self._writer.node
        if isinstance(atom.predicate, str) and is_iri(atom.predicate):
            if atom.predicate != RDF_TYPE:
                return f"{node(atom.predicate)}({node(atom.subject)}, {node(atom.object)})"
            if isinstance(atom.object, str) and is_iri(atom.object):
                return f"{node(atom.object)}({node(atom.subject)})"
        predicate = "a" if atom.predicate == RDF_TYPE else node(atom.predicate)
        return f"[{node(atom.subject)}, {predicate}, {node(atom.object)}]"


def _path(path: syntax.PathSyntax) -> str:
    plain = not any(character in '<>"{}|^`\\' or character <= " " for character in path.text)
    return f"<{path.text}>" if plain else f'"{escape(path.text)}"'


def _listed(before: str, items: Iterable[str]) -> list[str]:
    """Items after a keyword, in one line if they fit, else one a line."""
    parts = list(items)
    line = f"{before}{', '.join(parts)}"
    if len(line) <= WIDTH or len(parts) == 1:
        return [line]
    indent = " " * len(before) if len(before) <= 12 else _STEP
    lines = [f"{indent}{part}," for part in parts]
    lines[-1] = lines[-1][:-1]
    if len(before) <= 12:
        lines[0] = before + lines[0].lstrip()
        return lines
    return [before.rstrip(), *lines]
