"""`dotr demo`: a building on fire, from files that travel with dotr.

Place:   what a new user runs first; a plain `dotr run` underneath.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from dotr.cli.options import file_name
from dotr.cli.run import command as run
from dotr.errors import EngineError, RefusedError
from dotr.io.files.rule_texts import shipped

_EXAMPLE = "examples/building"
_RULES, _STREAM = "building.dotr", "morning.ttl"


@click.command(short_help="A building on fire: runs offline in seconds.")
@click.option(
    "--copy",
    "folder",
    type=file_name,
    metavar="FOLDER",
    help="Copy the demo's files into a new folder.",
)
def command(folder: str | None) -> None:
    """An hour in a small office: rules, sensors, a fire, and the output of dotr."""
    try:
        place = shipped(_EXAMPLE)
    except FileNotFoundError:
        raise EngineError.of(
            "D4202", "the demo's files are missing from this installation", hint="install dotr again"
        ) from None
    if folder is not None:
        place = _copied(place, Path(folder))
    rules, stream = place / _RULES, place / _STREAM
    click.echo(f"One morning in a small office: {_shown(stream)} through {_shown(rules)}.\n", err=True)
    run.main([str(rules), str(stream), "--format", "text"], "dotr demo", standalone_mode=False)
    where = _shown(place) if folder is not None else "building"
    click.echo(_next(where, copied=folder is not None), err=True)


def _copied(place: Path, folder: Path) -> Path:
    if folder.exists():
        raise RefusedError.of("D5001", f"`{folder}` exists", hint="name a folder that does not exist yet")
    try:
        shutil.copytree(place, folder, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise EngineError.of(
            "D4201", f"cannot write {folder}: {error.strerror}", hint="name another folder"
        ) from None
    return folder


def _shown(path: Path) -> str:
    """A path as a user would type it: relative when it lies below the working directory."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _next(where: str, copied: bool) -> str:
    tips = [
        (f"dotr check {where}/{_RULES}", "what is wrong with rules, before they run"),
        (f"dotr run {where}/{_RULES} {where}/{_STREAM} --format jsonl", "the same events, with what matched"),
        (f"dotr plan {where}/{_RULES}", "what will run, and how far back it remembers"),
    ]
    if not copied:
        tips.insert(0, (f"dotr demo --copy {where}", "puts these files here, to be changed; then"))
    width = max(len(tip) for tip, _ in tips)
    return "\nTry next:\n" + "\n".join(f"  {tip.ljust(width)}   {why}" for tip, why in tips)
