"""`dotr status`: what is deployed, how far it is fed, what every rule did and remembers.

Place:   reads the last commit; a feed may be running meanwhile.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from dotr.cli import show
from dotr.cli.options import deployment_option
from dotr.cli.show import funnel_as_json, funnel_lines, left_out
from dotr.events import Clock, Time
from dotr.io.text_tables import aligned
from dotr.ir import Program
from dotr.service.deployment_directory import deployed_program
from dotr.service.event_parts import PART_FORMATS
from dotr.service.journal import Journal
from dotr.service.records import Deployed
from dotr.tesla.references import rule_reaches


@click.command(short_help="What is deployed: watermark, state, counts.")
@deployment_option
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to write."
)
@click.option("-v", "--verbose", is_flag=True, help="Show how far every rule came, not only silent ones.")
def command(folder: str, format_: str, verbose: bool) -> None:
    """What is deployed, as of the last commit."""
    with Journal(folder, exclusive=False) as journal:
        deployed = journal.deployed()
        status = journal.status()
        outputs = {path: row._asdict() for path, row in journal.outputs().items()}
        length, kept = journal.keeps(), journal.kept_summary()
    with journal.reading():
        report = reported(deployed, deployed_program(deployed), status)
    report["outputs"] = outputs
    if length:
        report["kept"] = {"for": length, "graphs": 0, "bytes": 0, **({} if kept is None else kept._asdict())}
        clock = None if status.get("clock") is None else Clock(*status["clock"])
        report["kept"]["since"] = _time(None if kept is None else kept.since, clock)
    if format_ == "json":
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        click.echo(shown(report), nl=False)
        program, counts = deployed_program(deployed), status.get("events", {})
        funnels, streams = status.get("funnel", {}), status.get("queries", {})
        lines = funnel_lines(program, counts, funnels, streams, every=verbose) if funnels else []
        if lines:
            click.echo("\nhow far rules came" + ("" if verbose else ", those without an event"))
        for line in lines:
            click.echo(line)


def reported(deployed: Deployed, program: Program, status: dict[str, Any]) -> dict[str, Any]:
    """The status as a value. Times are in the data's form; `horizon`: how long a rule keeps facts, and
    `influence`: how far back what it finds can depend on, both in µs; None: the whole past.
    """
    clock = None if status.get("clock") is None else Clock(*status["clock"])
    latest, watermark = status.get("latest"), status.get("watermark")
    rules = [
        {
            "rule": rule.name,
            "private": rule.private,
            "events": status.get("events", {}).get(rule.name, 0),
            "last": _time(status.get("last", {}).get(rule.name), clock),
            "funnel": funnel_as_json(status.get("funnel", {}).get(rule.name, [])),
            "remembered": status.get("sizes", {}).get(rule.name, 0),
            "horizon": reach.kept,
            "influence": reach.influence,
        }
        for rule, reach in zip(program.rules, rule_reaches(program), strict=True)
    ]
    return {
        "files": list(deployed.files),
        "watermark": _time(watermark, clock),
        "latest": _time(latest, clock),
        "lag": None if latest is None or watermark is None else max(0, latest - watermark) / 1_000_000,
        "graphs": status.get("graphs", 0),
        "instants": status.get("instants", 0),
        "late": status.get("late", 0),
        "refused": status.get("refused", 0),
        "left_out": status.get("left_out", {}),
        "rules": rules,
    }


def _time(time: Time | None, clock: Clock | None) -> int | str | None:
    if time is None or clock is None:
        return None
    return int(clock.text(time)) if clock.integer else clock.text(time)


def shown(report: dict[str, Any]) -> str:
    """The report as text."""
    lines = [f"files       {', '.join(report['files'])}"]
    if report["latest"] is None:
        lines.append("not fed yet")
    else:
        behind = (
            f"{report['lag']:g} s behind"
            if report["lag"] > 1e-5
            else "up to"
            if not report["lag"]
            else "before"
        )
        lag = f"{behind} the latest, {report['latest']}"
        lines.append(f"watermark   {report['watermark']}   ({lag})")
        lines.append(f"fed         {report['graphs']:,} graphs at {report['instants']:,} instants")
        lines.append(f"left out    {report['late']:,} late graphs, {report['refused']:,} refused documents")
        if report["left_out"]:
            lines.append(f"            {left_out(report['left_out'])}")
    lines += [
        f"output      {path}   {row['format']}, {row['length']:,} "
        + ("files" if row["format"] in PART_FORMATS else "bytes")
        for path, row in report["outputs"].items()
    ]
    if kept := report.get("kept"):
        since = "from the first on" if kept["since"] is None else f"behind {kept['since']}"
        amount = f"{kept['graphs']:,} messages {since}, {kept['bytes']:,} bytes"
        lines.append(f"kept        {amount}   (for {duration(kept['for'])})")
    head = ("rule", "events", "last event", "remembers", "at most from the last")
    rows = [
        (
            rule["rule"],
            "private" if rule["private"] else f"{rule['events']:,}",
            str(rule["last"] if rule["last"] is not None else "-"),
            f"{rule['remembered']:,} facts",
            duration(rule["horizon"]),
        )
        for rule in report["rules"]
    ]
    table = aligned((head, *rows), show.width(sys.stdout))
    return "".join(f"{line}\n" for line in (*lines, "")) + table


def duration(micros: int) -> str:
    """A duration as a human says it: `5 min`, `1.5 s`."""
    if not micros:
        return "0 s"
    for size, name in (
        (86_400_000_000, "d"),
        (3_600_000_000, "h"),
        (60_000_000, "min"),
        (1_000_000, "s"),
        (1000, "ms"),
    ):
        if micros >= size and micros % size == 0:
            return f"{micros // size} {name}"
    return f"{micros / 1_000_000:g} s" if micros >= 1_000_000 else f"{micros} us"
