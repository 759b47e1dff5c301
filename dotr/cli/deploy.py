"""`dotr deploy RULES…`: check, compile, register in a deployment directory.

Place:   no server and no data: `dotr feed` brings those.
"""

from __future__ import annotations

import click

from dotr.cli import render
from dotr.cli.options import deployment_option, iri, size
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE
from dotr.service.deployment_directory import Change, DeploymentChange, Proposal, commit_proposal, propose
from dotr.service.journal import Journal

_SIGNS = {Change.ADDED: "+", Change.SAME: "=", Change.CHANGED: "~", Change.REMOVED: "-"}


@click.command(short_help="Check rules and register them in a deployment directory.")
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@deployment_option
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("--background", multiple=True, metavar="FILE", help="More RDF that holds at every instant.")
@click.option(
    "--base", type=iri, metavar="IRI", default=STREAM_BASE, help="Resolve relative IRIs against this."
)
@click.option(
    "--max-document", type=size, metavar="SIZE", default=MAX_DOCUMENT, help="Largest compressed document."
)
def command(
    rules: tuple[str, ...],
    folder: str,
    dry_run: bool,
    background: tuple[str, ...],
    base: str,
    max_document: int,
) -> None:
    """Register RULES (.dotr and .dlog files) in a deployment; a file that is there already is replaced.

    The rules' texts and the background are kept in the deployment, so that `dotr feed` runs what was
    deployed. A rule that did not change keeps what it remembers.
    """
    with Journal.to_compare(folder) if dry_run else Journal(folder, create=True) as journal:
        proposal = propose(journal, rules, background, base, max_document)
        render.say_all(proposal.warnings)
        for line in told(proposal, dry_run):
            click.echo(line)
        if not dry_run:
            commit_proposal(journal, proposal)
            render.note(f"deployed in {folder}; next: dotr feed SOURCE…")
            render.note(
                "where sources are live, --max-jump 1d keeps one wrong clock from closing all instants"
            )


def told(proposal: Proposal, dry_run: bool) -> list[str]:
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
        case Change.ADDED:
            what = "new"
        case Change.SAME:
            what = f"the same: {'would keep' if dry_run else 'keeps'} what it remembers"
        case Change.CHANGED:
            what = f"{difference.why}: {will}start{'' if dry_run else 's'} with nothing remembered"
        case Change.REMOVED:
            what = f"{will or 'is '}{'be ' if dry_run else ''}taken out, with what it remembers"
    return f"{_SIGNS[difference.change]} {difference.rule.ljust(width)}  {what}"
