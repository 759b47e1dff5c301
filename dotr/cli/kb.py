"""`dotr kb shell FILES…`: a prompt over a knowledge base.

Place:   what kb_shell.py does, line by line, from a terminal or from standard input.
"""

from __future__ import annotations

import sys

import click

from dotr.cli.kb_shell import Shell, lines_of_terminal
from dotr.cli.knowledge_files import knowledge_options, made_of
from dotr.io.files.rule_texts import read_standard_input
from dotr.knowledge_base import KnowledgeBase


@click.group(short_help="A knowledge base at a prompt: insert, delete, query, why, rules, watch.")
def command() -> None:
    """Knowledge that lasts, without streams: dotr.KnowledgeBase, at a prompt."""


@command.command(short_help="Insert, delete, query, why, rules, watch.")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@knowledge_options
def shell(
    files: tuple[str, ...],
    entailment: str | None,
    datatypes: bool,
    keep_contradictions: bool,
    base: str,
) -> int:
    """Ask and change what FILEs say: RDF, rules (.dlog, .dotr for its prologue), or one saved file (.kb).

    From a terminal it has history and completion, and goes on after a mistake; from standard input it stops
    at the first, with its exit code. `help` lists the commands.
    """
    if len(files) == 1 and files[0].endswith(".kb"):
        kb = KnowledgeBase.open(files[0], terms="canonical")
    else:
        kb = made_of(files, entailment, datatypes, keep_contradictions, base)
    opened = Shell(kb, sys.stdout.write)
    if sys.stdin.isatty():
        opened.say_size()
        opened.run(lines_of_terminal(opened), forgiving=True)
    else:
        opened.run(iter(read_standard_input().splitlines()), forgiving=False)
    return 0
