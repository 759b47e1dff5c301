"""`dotr init NAME`: a folder to begin with: rules, background, a stream, tests, five commands.

Place:   copies a template that travels with dotr.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from dotr.cli.options import file_name
from dotr.errors import EngineError, RefusedError

TEMPLATES = Path(__file__).parent.parent / "templates"


def templates() -> list[str]:
    """The names of the templates."""
    return sorted(folder.name for folder in TEMPLATES.iterdir() if (folder / "rules.dotr").is_file())


@click.command(short_help="A folder to begin with.")
@click.argument("name", metavar="NAME", type=file_name)
@click.option(
    "--from", "template", type=click.Choice(templates()), default="building", help="Default: building."
)
def command(name: str, template: str) -> None:
    """Make the folder NAME: rules, background, twenty graphs, tests, and a README with five commands."""
    if Path(name).exists():
        raise RefusedError.of("D5001", f"`{name}` exists", hint="name a folder that does not exist yet")
    try:
        shutil.copytree(TEMPLATES / template, name, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise EngineError.of(
            "D4201", f"cannot write {name}: {error.strerror}", hint="name another folder"
        ) from None
    click.echo(f"{name}/ is ready. Try:\n", err=True)
    click.echo(f"  cd {name}\n  dotr run rules.dotr events.jsonl\n\nand then what README.md says.", err=True)
