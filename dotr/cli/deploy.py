"""`dotr deploy RULES…`, `dotr undeploy NAME`, `dotr status`: a deployment directory.

Place:   no server and no data: `dotr feed` brings those, and may be running while the status is read,
         which is that of the last commit.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from dotr.cli import options, show
from dotr.cli.options import given_time, micros, size
from dotr.cli.show import (
    Progress,
    corrected,
    effects_as_json,
    funnel_as_json,
    funnel_lines,
    left_out,
    losses,
    time_as_json,
)
from dotr.core.instants import check_units
from dotr.core.pipeline import refuse_closed
from dotr.detect.analysis import ENDLESS, rule_reaches
from dotr.errors import DataError, UsageError
from dotr.events import Clock
from dotr.explain.record import reach_of
from dotr.io.decode.documents import MAX_DOCUMENT
from dotr.io.events import BINARY
from dotr.io.merged_source import PartitionState
from dotr.io.show import aligned
from dotr.io.time import UNITS
from dotr.program import Program
from dotr.program.names import duration_text
from dotr.service.deployment import (
    DeploymentChange,
    Proposal,
    RuleChange,
    commit_proposal,
    deployed_program,
    plan_of,
    propose,
    refuse_planned,
)
from dotr.service.deployment import undeploy as take_out
from dotr.service.journal import FORMAT, Deployed, Journal
from dotr.service.logs import ENDED, GONE

_SIGNS = {RuleChange.ADDED: "+", RuleChange.SAME: "=", RuleChange.CHANGED: "~", RuleChange.REMOVED: "-"}


@click.command()
@click.argument("rules", metavar="RULES...", nargs=-1)
@options.deployment
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option(
    "--check-upgrade",
    is_flag=True,
    help="Without RULES: try on a copy whether this version of dotr goes on with the deployment.",
)
@options.background
@options.functions
@options.base
@click.option(
    "--max-document",
    type=size,
    metavar="SIZE",
    default=MAX_DOCUMENT,
    help="Largest document that is read whole or decompressed (default: 256m).",
)
@click.option(
    "--keep",
    type=micros,
    metavar="DUR",
    help="Keep messages for this long, for dotr explain --dir (0s: stop keeping them).",
)
@options.budget
@click.option(
    "-q", "--quiet", is_flag=True, help="No progress line, no summary (of --dry-run: only findings)."
)
@click.option(
    "--from", "since", metavar="TIME", help="Put the change into effect from this time of the stream on."
)
def command(
    rules: tuple[str, ...],
    folder: str,
    dry_run: bool,
    check_upgrade: bool,
    background: tuple[str, ...],
    base: str,
    max_document: int,
    keep: int | None,
    budget: int,
    quiet: bool,
    since: str | None,
) -> int:
    """Register RULES (.dotr and .dlog files) in a deployment; a file that is already in it is replaced.

    The rules' texts and the background are kept in the deployment, so that `dotr feed` runs what was
    deployed. A rule that did not change keeps what it remembers. With --from the deployment stays as it is up
    to that time: the feed that reaches it continues with the new rules and the new background.

    --check-upgrade changes nothing: it reports what the next feed would convert, and which rules would keep
    what they remember; the exit code is 1 if one would not.
    """
    if check_upgrade is bool(rules):
        raise UsageError.of(
            "D4147",
            "--check-upgrade takes no RULES" if rules else "there are no RULES to deploy",
            hint="dotr deploy RULES…, or dotr deploy --check-upgrade",
        )
    if check_upgrade:
        return _report_upgrade(folder)
    with Journal.to_compare(folder) if dry_run else Journal(folder, create=True) as journal:
        if since is None:
            refuse_planned(journal)
        progress = Progress(not quiet and sys.stderr.isatty(), ticking=True)
        try:
            proposal = propose(
                journal,
                rules,
                background,
                base,
                max_document,
                budget,
                lambda what: progress.stage(what, 0, 0),
            )
        finally:
            progress.clear()
        show.say_all(proposal.warnings)
        for line in [] if quiet else summary_lines(proposal, dry_run):
            click.echo(line)
        if not dry_run and since is not None:
            planned = plan_proposal(journal, proposal, since)
            if not quiet:
                show.note(f"planned from {planned} on in {folder}")
        elif not dry_run:
            commit_proposal(journal, proposal)
        if not dry_run and keep is not None:
            keep_for_explanations(journal, keep, proposal.compiled.program)
        if not dry_run and since is None and not quiet:
            show.note(f"deployed in {folder}; next: dotr feed SOURCE…")
            show.note("where sources are live, --max-jump 1d keeps one wrong clock from closing all instants")
    return 0


def _report_upgrade(folder: str) -> int:
    from dotr.service.upgrade import check_upgrade  # noqa: PLC0415  # start-up: a deploy feeds nothing

    found = check_upgrade(folder, lambda finding: show.say_all([finding]))
    if found.converts:
        click.echo(
            f"format {found.format}: the next feed converts it to {FORMAT}, and older versions then refuse it"
        )
    else:
        click.echo(f"format {found.format}: stays as it is")
    for rule in found.rules:
        if rule in found.forgotten:
            click.echo(f"~ {rule}  would start with nothing remembered")
        else:
            click.echo(f"= {rule}  keeps what it remembers")
    return 1 if found.forgotten else 0


def keep_for_explanations(journal: Journal, length: int, program: Program) -> None:
    """Keep messages for so long, at least for what the rules look back."""
    reach = reach_of(program)
    if length and length < reach < ENDLESS:
        show.note(f"messages are kept for {duration_text(reach)}: the rules look back that far")
        length = reach
    journal.keep(length)


def plan_proposal(journal: Journal, proposal: Proposal, since: str) -> str:
    """Deploy something from a time on, instead of what was planned before; that time. Raises UsageError."""
    status = journal.status()
    clock = Clock(*status["clock"]) if status.get("clock") is not None else None
    unit = clock.unit if clock is not None else UNITS["s"]
    time, written = given_time(since, unit, clock, "--from")
    if clock is not None and clock.integer is not written.integer:
        kind = "integers" if clock.integer else "dateTimes"
        raise DataError.of("D2102", f"the times of this deployment are {kind}", label=f"--from {since}")
    refuse_closed(time, status.get("watermark"), written)
    check_units(proposal.compiled.program, written)
    journal.keep_plan(plan_of(proposal, time, written))
    return written.text(time)


def summary_lines(proposal: Proposal, dry_run: bool) -> list[str]:
    """The report of a deploy: one line a rule, and one for the background if it changed."""
    width = max((len(difference.rule) for difference in proposal.differences), default=0)
    lines = [_line(difference, width, dry_run) for difference in proposal.differences]
    new, gone = proposal.background_changed
    if new or gone:
        lines.append(f"background: {new:,} triples more, {gone:,} less")
    return lines


def _line(difference: DeploymentChange, width: int, dry_run: bool) -> str:
    will = "would " if dry_run else ""
    match difference.change:
        case RuleChange.ADDED:
            what = "new"
        case RuleChange.SAME:
            what = f"the same: {'would keep' if dry_run else 'keeps'} what it remembers"
        case RuleChange.CHANGED:
            what = f"{difference.why}: {will}start{'' if dry_run else 's'} with nothing remembered"
        case RuleChange.REMOVED:
            what = f"{will or 'is '}{'be ' if dry_run else ''}removed, with what it remembers"
    return f"{_SIGNS[difference.change]} {difference.rule.ljust(width)}  {what}"


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--planned", is_flag=True, help="Withdraw the planned change, instead of a rule.")
@options.deployment
@options.functions
def undeploy(name: str | None, planned: bool, folder: str) -> None:
    """Remove the rule NAME, with what it remembers. Refused while another rule reads its events.

    Its file stays deployed with its other rules; deploying the file again brings the rule back. With
    --planned, withdraw what `dotr deploy --from` planned.
    """
    if planned is (name is not None):
        raise UsageError.of(
            "D4163", "give either the name of a rule or --planned", hint="dotr undeploy NAME, or --planned"
        )
    with Journal(folder) as journal:
        if name is None:
            before = journal.plan()
            journal.keep_plan(None)
            show.note("nothing was planned" if before is None else "the planned change is withdrawn")
            return
        left = take_out(journal, name)
    show.note(f"{name} is removed; {show.counted(len(left.rules), 'rule')} left in {folder}")


@click.command()
@options.deployment
@options.functions
@options.report
@click.option("-v", "--verbose", is_flag=True, help="Show how far every rule came, not only silent ones.")
def status(folder: str, format_: str, verbose: bool) -> None:
    """What is deployed, as of the last commit."""
    with Journal(folder, exclusive=False) as journal:
        deployed = journal.deployed()
        found = journal.status()
        outputs = {path: row._asdict() for path, row in journal.outputs().items()}
        cursors, last = journal.cursors(), journal.last_event()
        length, kept = journal.keeps(), journal.kept_summary()
    with journal.reading():
        report = reported(deployed, deployed_program(deployed), found)
    report["outputs"] = outputs
    report["deliveries"] = [
        {
            "output": cursor.name,
            "delivered": cursor.number,
            "waiting": max(0, last - cursor.number),
            "state": cursor.word,
            "error": cursor.error,
        }
        for cursor in cursors
    ]
    if length:
        report["kept"] = {"for": length, "graphs": 0, "bytes": 0, **({} if kept is None else kept._asdict())}
        clock = None if found.get("clock") is None else Clock(*found["clock"])
        report["kept"]["since"] = time_as_json(None if kept is None else kept.since, clock)
    if format_ == "json":
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        click.echo(shown(report), nl=False)
        program, counts = deployed_program(deployed), found.get("events", {})
        funnels, streams = found.get("funnel", {}), found.get("queries", {})
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
            **({"sequence": True} if rule.kind == "sequence" else {}),
            "events": status.get("events", {}).get(rule.name, 0),
            "last": time_as_json(status.get("last", {}).get(rule.name), clock),
            "funnel": funnel_as_json(status.get("funnel", {}).get(rule.name, [])),
            "remembered": status.get("sizes", {}).get(rule.name, 0),
            "horizon": reach.kept,
            "influence": reach.influence,
        }
        for rule, reach in zip(program.rules, rule_reaches(program), strict=True)
    ]
    return {
        "files": list(deployed.files),
        "watermark": time_as_json(watermark, clock),
        "latest": time_as_json(latest, clock),
        "lag": None if latest is None or watermark is None else max(0, latest - watermark) / 1_000_000,
        "graphs": status.get("graphs", 0),
        "instants": status.get("instants", 0),
        "late": status.get("late", 0),
        "refused": status.get("refused", 0),
        "left_out": status.get("left_out", {}),
        **effects_as_json(status.get("not_stated", 0), status.get("ineffective", 0)),
        **({"corrections": status["corrections"]} if "corrections" in status else {}),
        "partitions": [
            {**state._asdict(), "latest": time_as_json(state.latest, clock)}
            for state in (PartitionState(*found) for found in status.get("partitions", ()))
        ],
        "rules": rules,
    }


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
        if lost := losses(not_stated=report.get("not_stated", 0), ineffective=report.get("ineffective", 0)):
            lines.append(f"effects     {', '.join(lost)}")
    if done := report.get("corrections"):
        lines.append(f"corrected   {corrected(done)}")
    for state in report["partitions"] if len(report["partitions"]) > 1 else ():
        source, partition = state["source"], state["partition"]
        own = partition and source.rpartition("/")[2] != partition  # `dotr serve`: a stream is its partition
        name = f"{source}/{partition}" if own else source
        reached = "no graph yet" if state["latest"] is None else f"up to {state['latest']}"
        silent = "; idle: others do not wait for it" if state["idle"] else ""
        lines.append(f"partition   {name}   {reached}, {state['graphs']:,} graphs in the last feed{silent}")
    lines += [
        f"output      {path}   {row['format']}, {row['length']:,} "
        + ("files" if row["format"] in BINARY else "bytes")
        for path, row in report["outputs"].items()
    ]
    lines += [f"output      {one['output']}   {_delivered(one)}" for one in report["deliveries"]]
    if kept := report.get("kept"):
        since = "from the first on" if kept["since"] is None else f"after {kept['since']}"
        amount = f"{kept['graphs']:,} messages {since}, {kept['bytes']:,} bytes"
        lines.append(f"kept        {amount}   (for {duration(kept['for'])})")
    head = ("rule", "events", "last event", "remembers", "at most from the last")
    rows = [
        (
            rule["rule"],
            "sequence" if "sequence" in rule else "private" if rule["private"] else f"{rule['events']:,}",
            str(rule["last"] if rule["last"] is not None else "-"),
            f"{rule['remembered']:,} facts",
            duration(rule["horizon"]),
        )
        for rule in report["rules"]
    ]
    table = aligned((head, *rows), show.width(sys.stdout))
    return "".join(f"{line}\n" for line in (*lines, "")) + table


def _delivered(one: dict[str, Any]) -> str:
    """How far a kept output is."""
    error = show.visible(" ".join(one["error"].split()))  # the other side's words may be in it
    if one["state"] == GONE:
        return f"wants no more: {error or 'it answered 410'}"
    count = one["waiting"]
    waits = f"{count:,} event{'s' * (count != 1)} to deliver" if count else "has every event"
    if not error:
        return waits
    return f"{waits}; {'has ended' if one['state'] == ENDED else 'fails'}: {error}"


def duration(micros: int) -> str:
    """A duration as a human writes it: `5 min`, `1.5 s`."""
    text = duration_text(micros)
    return f"{micros / 1_000_000:g} s" if text.endswith(" us") and micros >= 1_000_000 else text
