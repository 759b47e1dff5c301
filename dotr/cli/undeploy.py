"""`dotr undeploy NAME`: take one rule out of a deployment."""

from __future__ import annotations

import click

from dotr.cli import show
from dotr.cli.options import deployment_option
from dotr.errors import UsageError
from dotr.service.deployment_directory import undeploy
from dotr.service.journal import Journal


@click.command(short_help="Take a rule out of a deployment.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--planned", is_flag=True, help="Withdraw the planned change, instead of a rule.")
@deployment_option
def command(name: str | None, planned: bool, folder: str) -> None:
    """Take the rule NAME out, with what it remembers. Refused while another rule reads its events.

    Its file stays deployed with its other rules; deploying the file again brings the rule back. With
    --planned what `dotr deploy --from` planned is taken back.
    """
    if planned is (name is not None):
        raise UsageError.of("D4163", "a rule or a plan is taken out", hint="dotr undeploy NAME, or --planned")
    with Journal(folder) as journal:
        if name is None:
            before = journal.plan()
            journal.keep_plan(None)
            show.note("nothing was planned" if before is None else "what was planned is taken back")
            return
        left = undeploy(journal, name)
    show.note(f"{name} is taken out; {show.counted(len(left.rules), 'rule')} left in {folder}")
