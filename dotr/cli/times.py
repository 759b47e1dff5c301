"""`dotr times SOURCE…`: when things happened, by the sources themselves, and how far they are in order.

Place:   shows what io/time_survey.py finds; runs no rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from dotr.cli import options
from dotr.cli.options import SourceOptions
from dotr.cli.show import counted, time_as_json
from dotr.events import Clock
from dotr.io.files.sources import resolve
from dotr.io.likely_times import LikelyTime
from dotr.io.time_reading import changes, told
from dotr.io.time_survey import Disorder, TimeSurvey, survey_times
from dotr.temporal.durations import duration_text


@click.command(short_help="When things happened: range, order, gaps, and the lateness they need.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.report
@options.source()
def command(sources: tuple[str, ...], format_: str, source: SourceOptions) -> int:
    """What the times of SOURCEs are like, where they were found, and what is out of order.

    Where documents have no time it says which of their values could be one. Exit code 1 when a document is
    refused.
    """
    survey = survey_times(resolve(sources, source.options.mappings), source.options)
    if format_ == "json":
        click.echo(json.dumps(as_json(survey), ensure_ascii=False))
    else:
        click.echo("\n".join(as_text(survey)))
    return 1 if survey.refused else 0


def as_json(survey: TimeSurvey) -> dict[str, Any]:
    """The survey as a value. Durations are in microseconds, times in the data's form."""
    refused = [
        {"code": code, "documents": count, "first": str(survey.first_errors[code])}
        for code, count in sorted(survey.refused.items())
    ]
    likely = [
        {
            "property": one.name,
            "kind": one.kind,
            "unit": one.unit or None,
            "values": one.values,
            "examples": list(one.examples),
            "reads": one.reads or None,
            "classes": list(one.classes),
        }
        for one in survey.likely
    ]
    head: dict[str, Any] = {"files": survey.files, "graphs": survey.graphs, "found": dict(survey.rungs)}
    head["changed"] = changes(survey.beside)
    clock = survey.clock
    if survey.graphs and clock is not None:
        first, last = survey.range()
        distinct, most = survey.instants()
        time = partial(time_as_json, clock=clock)
        median, gaps = survey.steps()
        within, across = survey.within(), survey.across()
        head |= {
            "kind": "integer" if clock.integer else "dateTime",
            "first": time(first),
            "last": time(last),
            "instants": distinct,
            "most_at_once": most,
            "median_step": median,
            "gaps": [
                {"length": gap.length, "after": time(gap.after), "until": time(gap.until)} for gap in gaps
            ],
            "order": {"within_files": _order(within), "across_files": _order(across)},
            "lateness": within.most,
        }
    return head | {"refused": refused, "likely": likely}


def _order(disorder: Disorder) -> dict[str, int]:
    return {"out_of_order": disorder.graphs, "most": disorder.most, "ninety_nine_percent": disorder.usual}


def as_text(survey: TimeSurvey) -> Iterator[str]:
    """The survey as lines."""
    yield f"{counted(survey.graphs, 'graph')} in {counted(survey.files, 'file')}"
    clock = survey.clock
    if survey.graphs and clock is not None:
        yield from _times(survey, clock)
    for code, count in sorted(survey.refused.items()):
        first = survey.first_errors[code].diagnostics[0]
        yield f"refused    {counted(count, 'document')} for {code}: {first.message} ({first.place})"
        if first.hint:
            yield f"           {first.hint}"
    for one in survey.likely:
        yield from _likely(one)


def _times(survey: TimeSurvey, clock: Clock) -> Iterator[str]:
    first, last = survey.range()
    distinct, most = survey.instants()
    median, gaps = survey.steps()
    yield "found in   " + ", ".join(f"{rung} ({count:,})" for rung, count in survey.rungs.items())
    for changed in told(survey.beside, survey.first):
        yield f"changed    {changed}"
    yield f"range      {clock.text(first)} to {clock.text(last)} ({duration_text(last - first)})"
    shared = f", up to {most:,} graphs at one" if most > 1 else ""
    yield f"instants   {distinct:,} different{shared}"
    if distinct > 1:
        yield f"step       {duration_text(median)} (median)"
    for gap in gaps:
        yield f"gap        {duration_text(gap.length)} after {clock.text(gap.after)}"
    within, across = survey.within(), survey.across()
    yield f"order      {_ordered(within, survey.graphs)}"
    if survey.files > 1:
        yield f"files      {_ordered(across, survey.graphs)} when read in the order of their names"
    if within.graphs:
        hint = f"--lateness {_argument(within.most)}"
        if within.usual < within.most // 2:
            hint += f" (or {_argument(within.usual)}, and 1 graph in 100 is late)"
        yield f"suggested  {hint}"


def _ordered(disorder: Disorder, graphs: int) -> str:
    if not disorder.graphs:
        return "in order"
    share = f"{disorder.graphs / graphs:.1%}" if disorder.graphs * 1000 >= graphs else "fewer than 0.1%"
    return f"{disorder.graphs:,} ({share}) out of order, by up to {duration_text(disorder.most)}"


def _argument(micros: int) -> str:
    return duration_text(micros).replace(" ", "")


def _likely(one: LikelyTime) -> Iterator[str]:
    examples = ", ".join(f"`{example}`" for example in one.examples)
    yield f"could be   {one.name}: {examples}"
    if one.kind == "epoch" and one.unit == "ns":
        yield f"           in ns that is {one.reads}: a mapping reads it by epoch(ns)"
    elif one.kind == "epoch":
        yield f"           in {one.unit} that is {one.reads}: --time-path {one.name} --time-unit {one.unit}"
    elif one.kind == "local":
        yield f"           without a zone: --time-path {one.name} --time-zone Europe/Berlin, if it is that"
    elif one.kind == "day":
        day, zone = one.examples[0][:10], one.examples[0][10:] or "Z"
        yield "           a day, not an instant: choose one and write it as an xsd:dateTime: its beginning"
        yield f"           {day}T00:00:00{zone}, its end {day}T24:00:00{zone}, or when the graph was known"
    else:
        yield f"           --time-path {one.name}"
