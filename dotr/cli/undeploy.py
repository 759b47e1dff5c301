"""`dotr undeploy NAME`: take one rule out of a deployment."""

from __future__ import annotations

import click

from dotr.cli import render
from dotr.cli.options import deployment_option
from dotr.service.deployment_directory import undeploy
from dotr.service.journal import Journal


@click.command(short_help="Take a rule out of a deployment.")
@click.argument("name", metavar="NAME")
@deployment_option
def command(name: str, folder: str) -> None:
    """Take the rule NAME out, with what it remembers. Refused while another rule reads its events.

    Its file stays deployed with its other rules; deploying the file again brings the rule back.
    """
    with Journal(folder) as journal:
        left = undeploy(journal, name)
    render.note(f"{name} is taken out; {render.counted(len(left.rules), 'rule')} left in {folder}")
