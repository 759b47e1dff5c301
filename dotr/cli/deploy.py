"""`dotr deploy RULES…`: check, compile, register in a deployment directory.

Place:   no server and no data: `dotr feed` brings those.
"""

from __future__ import annotations

import sys

import click

from dotr.cli import show
from dotr.cli.given import given_time
from dotr.cli.options import budget_option, deployment_option, iri, micros, size
from dotr.cli.show import Progress
from dotr.core.replacing import refuse_closed
from dotr.core.time_units import check_units
from dotr.errors import DataError
from dotr.events import Clock
from dotr.explain.record import reach_of
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE
from dotr.io.timestamps import UNITS
from dotr.ir import Program
from dotr.service.deployment_directory import (
    DeploymentChange,
    Proposal,
    RuleChange,
    commit_proposal,
    plan_of,
    propose,
    refuse_planned,
)
from dotr.service.journal import Journal
from dotr.temporal.durations import duration_text
from dotr.temporal.silences import ENDLESS

_SIGNS = {RuleChange.ADDED: "+", RuleChange.SAME: "=", RuleChange.CHANGED: "~", RuleChange.REMOVED: "-"}


@click.command(short_help="Check rules and register them in a deployment directory.")
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@deployment_option
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--background", multiple=True, metavar="FILE", help="More RDF that holds at every instant.")
@click.option(
    "--base", type=iri, metavar="IRI", default=STREAM_BASE, help="Resolve relative IRIs against this."
)
@click.option(
    "--max-document", type=size, metavar="SIZE", default=MAX_DOCUMENT, help="Largest compressed document."
)
@click.option(
    "--keep",
    type=micros,
    metavar="DUR",
    help="Keep messages for this long, for dotr explain --dir (0s: stop keeping them).",
)
@budget_option
@click.option(
    "-q", "--quiet", is_flag=True, help="No progress line, no summary (of --dry-run: only findings)."
)
@click.option("--from", "since", metavar="TIME", help="Put it into effect from this time of the stream on.")
def command(
    rules: tuple[str, ...],
    folder: str,
    dry_run: bool,
    background: tuple[str, ...],
    base: str,
    max_document: int,
    keep: int | None,
    budget: int,
    quiet: bool,
    since: str | None,
) -> None:
    """Register RULES (.dotr and .dlog files) in a deployment; a file that is there already is replaced.

    The rules' texts and the background are kept in the deployment, so that `dotr feed` runs what was
    deployed. A rule that did not change keeps what it remembers. With --from the deployment is what it was
    up to that time: the feed that reaches it goes on with the new rules, and with the new background.
    """
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


def keep_for_explanations(journal: Journal, length: int, program: Program) -> None:
    """Keep messages for so long, at least for what the rules look back."""
    reach = reach_of(program)
    if length and length < reach < ENDLESS:
        show.note(f"messages are kept for {duration_text(reach)}: so far the rules look back")
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
    """What a deploy says: one line a rule, and one for the background if it changed."""
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
            what = f"{will or 'is '}{'be ' if dry_run else ''}taken out, with what it remembers"
    return f"{_SIGNS[difference.change]} {difference.rule.ljust(width)}  {what}"
