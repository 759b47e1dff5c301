"""`dotr patterns`: the libraries that travel with dotr; `dotr patterns show NAME`.

Place:   reads the package's own files.
"""

from __future__ import annotations

import sys

import click

from dotr.errors import UsageError
from dotr.io.files.rule_texts import read_rules_text, shipped
from dotr.lang.grammar.base import nearest

_ENDING = ".dotr"


@click.group(invoke_without_command=True, short_help="The pattern libraries that come with dotr.")
@click.pass_context
def command(context: click.Context) -> None:
    """List the pattern libraries: what each reports, and how it is brought in."""
    if context.invoked_subcommand is not None:
        return
    names = libraries()
    width = max(map(len, names))
    for name in names:
        head = _head(name)
        use = next((line for line in head if line.startswith("IMPORT")), "")
        sys.stdout.write(f"{name.ljust(width)}  {head[0]}\n{' ' * width}  {use}\n")


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a library: what it needs, its values, what it gives, and its rules."""
    if name.removesuffix(_ENDING) not in libraries():
        raise UsageError.of(
            "D4405",
            f"there is no pattern library `{name}`",
            hint=nearest(name, libraries()) or f"there are: {', '.join(libraries())}",
        )
    sys.stdout.write(_text(name.removesuffix(_ENDING)))


def libraries() -> list[str]:
    """The names of the libraries."""
    return sorted(p.name.removesuffix(_ENDING) for p in shipped("patterns").iterdir() if p.suffix == _ENDING)


def _text(name: str) -> str:
    return read_rules_text(f"dotr:patterns/{name}{_ENDING}")


def _head(name: str) -> list[str]:
    """The lines of a library's first comment."""
    lines = []
    for line in _text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return lines
