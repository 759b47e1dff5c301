"""Rules and background passed from Python: paths or text, all on the driver.

Place:   under `dotr.spark.detect`, `stream` and `materialize`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike, fspath
from typing import TypeAlias

from dotr.budget import BUDGET
from dotr.core.deployment import Deployment, Settings
from dotr.errors import UsageError
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.files.background_documents import read_background
from dotr.io.files.rule_texts import read_rules_text
from dotr.io.python_arguments import checked_budget
from dotr.lang import load_program

Rules: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A path of rules, or several."""

_NAME = "<text>.dotr"


def deployed(
    rules: Rules,
    text: str | None,
    background: Sequence[str | PathLike[str]] = (),
    base: str | None = None,
    budget: int = BUDGET,
) -> Deployment:
    """The program of some paths, or of a text, with its background and more.

    Raises ProgramError, DataError; UsageError D4123 for both or neither.
    """
    paths = [rules] if isinstance(rules, str | os.PathLike) else list(rules)
    if bool(paths) == (text is not None):
        raise UsageError.of("D4123", "rules are either paths or text", hint="rules=PATH, or text=TEXT")
    names = [fspath(path) for path in paths] or [_NAME]
    program = load_program(
        names, lambda name: text if text is not None and name == _NAME else read_rules_text(name)
    )
    documents = [*program.background, *(fspath(path) for path in background)]
    triples = read_background(documents, base or STREAM_BASE, named=program.named)
    return Deployment(program, triples, Settings(budget=checked_budget(budget)))
