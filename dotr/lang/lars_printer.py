"""Canonical text of LARS rules and .lars files.

Place:   `dotr fmt` by way of printer.py; `dotr plan`, proofs and digests print rules with it.
Method:  as printer.py: parsed, printed, parsed again. The modality stands behind its atom, and SOMETIME,
         which a window has anyway, is left out. PREFIX lines come first, then STEP, then the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from dotr import ir
from dotr.errors import Diagnostics
from dotr.lang.grammar.lars import LarsFile, LarsParser
from dotr.lang.grammar.layout import LayoutUnit, attach, render
from dotr.source import Source
from dotr.sparql.printing import Writer
from dotr.temporal.durations import duration_text

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


def lars_rule_text(rule: ir.LarsRule, prefixes: Mapping[str, str]) -> str:
    """A LARS rule in one line."""
    return " ".join(line.strip() for line in LarsPrinter(prefixes).rule(rule))


def lars_literal_text(literal: ir.LarsLiteral, prefixes: Mapping[str, str]) -> str:
    """A literal of a LARS rule."""
    return LarsPrinter(prefixes).literal(literal)


class LarsPrinter:
    """Prints with the prefixes of one file."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._writer = Writer(prefixes)

    def rule(self, rule: ir.LarsRule) -> list[str]:
        head = self._head(rule.head)
        if not rule.body:
            return [f"{head} ."]
        body: Sequence[str] = [self.literal(literal) for literal in rule.body]
        line = f"{head} :- {', '.join(body)} ."
        if len(line) <= WIDTH:
            return [line]
        return [f"{head} :-", *(f"{_STEP}{literal}," for literal in body[:-1]), f"{_STEP}{body[-1]} ."]

    def _head(self, head: ir.LarsHead) -> str:
        text = self._atom(head.atom)
        if head.at is None:
            return text
        text += f" AT ?{head.at}"
        if head.offset:
            text += f" {'-' if head.offset < 0 else '+'} {duration_text(abs(head.offset))}"
        return text

    def literal(self, literal: ir.LarsLiteral) -> str:
        expression = self._writer.expression
        match literal:
            case ir.WindowAtom():
                return f"{'NOT ' if literal.negated else ''}{self._window_atom(literal)}"
            case ir.FilterAtom(condition):
                return f"FILTER({expression(condition)})"
            case ir.BindAtom(value, variable):
                return f"BIND({expression(value)} AS ?{variable.name})"
            case ir.WindowAggregate():
                argument = "*" if literal.argument is None else expression(literal.argument)
                distinct = "DISTINCT " if literal.distinct else ""
                over = f"{self._atom(literal.atom)} {self._window(literal.window, literal.atom)}"
                text = f"{literal.function}({distinct}{argument}) AS ?{literal.variable.name} OVER {over}"
                group = ", ".join(f"?{variable.name}" for variable in literal.group)
                if not group:
                    return text
                return f"{text} PER {group if len(literal.group) == 1 else f'({group})'}"
            case _:
                assert_never(literal)

    def _window_atom(self, literal: ir.WindowAtom) -> str:
        text = self._atom(literal.atom)
        if literal.window is None:
            return text
        match literal.modality:
            case ir.Modality.ALWAYS:
                text += " ALWAYS"
            case ir.Modality.AT:
                text += f" AT ?{literal.at}"
            case ir.Modality.AT_LEAST:
                text += f" AT LEAST {literal.count}"
            case ir.Modality.SOMETIME | None:
                pass
            case _:
                assert_never(literal.modality)
        return f"{text} {self._window(literal.window, literal.atom)}"

    def _window(self, window: ir.LarsWindow, atom: ir.NamedAtom) -> str:
        match window:
            case ir.TimeWindow(duration):
                return f"WITHIN {duration_text(duration)}"
            case ir.FactWindow(count, streams):
                of = "" if streams in ((), (atom.name,)) else f" OF ({', '.join(streams)})"
                return f"WITHIN {count} FACTS{of}"
            case _:
                assert_never(window)

    def _atom(self, atom: ir.NamedAtom) -> str:
        return f"{atom.name}({', '.join(map(self._writer.node, atom.arguments))})"
