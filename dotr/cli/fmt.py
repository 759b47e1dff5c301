"""`dotr fmt RULES…`: canonical text of rule files.

Place:   over lang/printer.py.
Method:  files are rewritten in place, each whole or not at all; `-` reads standard input and writes
         standard output. Comments are kept. A file with errors is left alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dotr.cli.show import note
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError
from dotr.io.files.outputs import unwritable
from dotr.io.files.rule_texts import read_rules_text, read_standard_input
from dotr.io.files.whole_files import write_whole
from dotr.lang.printer import format_text
from dotr.source import Source


@click.command(short_help="Canonical text of rule files.")
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; exit with 1 if a file would change."
)
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the text instead of changing the file.")
def command(rules: tuple[str, ...], only_check: bool, to_stdout: bool) -> int:
    """Rewrite .dotr, .dlog and .lars files in canonical form. `-` is standard input, read as .dotr."""
    errors: list[Diagnostic] = []
    changed = 0
    for path in rules:
        try:
            old = read_standard_input() if path == "-" else _read(path)
            new = format_text(Source("<stdin>" if path == "-" else path, old))
        except DotrError as error:
            errors += error.diagnostics
            continue
        differs = new != old
        changed += differs
        if only_check:
            if differs:
                sys.stdout.write(f"{path}\n")
        elif to_stdout or path == "-":
            sys.stdout.write(new)
        elif differs:
            _replace(path, new)
            note(f"{path} rewritten")
    if errors:
        raise ProgramError(errors)
    if only_check:
        note(f"{changed} of {len(rules)} files would change" if changed else "nothing would change")
    return 1 if only_check and changed else 0


def _read(path: str) -> str:
    try:
        return read_rules_text(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError.of("D2003", f"cannot read `{path}`: {reason}", place=path) from None


def _replace(path: str, text: str) -> None:
    """Put a text in place of a file, at once: nobody ever sees half of it."""
    target = Path(path).resolve()
    try:
        mode = target.stat().st_mode & 0o777
    except OSError as error:
        raise unwritable(path, error) from None
    write_whole(target, [text.encode()], mode)
