"""FILES that a knowledge base is made of, as `dotr kb` and `dotr close` take them.

Place:   between the command line and knowledge_base/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from dotr.cli.options import iri
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, Format, decode, format_of, read_bytes
from dotr.knowledge_base import KnowledgeBase

F = TypeVar("F", bound=Callable[..., object])

_PREFIX = re.compile(r"^[ \t]*@?prefix[ \t]+([\w.-]*):[ \t]*<([^<>\s]*)>", re.IGNORECASE | re.MULTILINE)
_WITH_PREFIXES = (Format.TURTLE, Format.TRIG)


def knowledge_options(function: F) -> F:
    """--entailment, --datatypes, --keep-contradictions, --base."""
    for option in (
        click.option(
            "--base", default=STREAM_BASE, callback=lambda _c, _p, value: iri(value), metavar="IRI",
            help="What relative IRIs are resolved against.",
        ),
        click.option("--keep-contradictions", is_flag=True, help="Continue despite contradictions."),
        click.option("--datatypes", is_flag=True, help="Check literals, too (dt-* of OWL 2 RL)."),
        click.option(
            "--entailment", type=click.Choice(("none", "rdfs", "owl2rl")),
            help="Default: owl2rl, with rule files none.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def is_rules(path: str) -> bool:
    """Whether a file has rules, by its name: everything else is RDF."""
    return path.endswith((".dlog", ".dotr"))


def made_of(
    files: Sequence[str], entailment: str | None, datatypes: bool, keep_contradictions: bool, base: str
) -> KnowledgeBase:
    """The knowledge base of RDF and rule files, with canonical terms and the prefixes of its files.

    Raises ProgramError, DataError.
    """
    rules = [path for path in files if is_rules(path)]
    documents = [path for path in files if not is_rules(path)]
    kb = KnowledgeBase(
        *documents,
        rules=rules,
        entailment=entailment or ("none" if rules else "owl2rl"),
        datatypes=datatypes,
        contradictions="keep" if keep_contradictions else "refuse",
        terms="canonical",
        base=base,
    )
    for path in documents:
        for name, iri_ in prefixes_of(path):
            kb.prefixes.setdefault(name, iri_)
    return kb


def prefixes_of(path: str) -> list[tuple[str, str]]:
    """The prefixes that a Turtle document declares."""
    if format_of(path) not in _WITH_PREFIXES:
        return []
    return _PREFIX.findall(decode(read_bytes(path, MAX_DOCUMENT), path))
