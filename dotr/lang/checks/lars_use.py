"""What of .lars files is not wrong and hardly meant: heads that nothing reads, ALWAYS that holds at once.

Place:   called by resolve.py and by `check_program` with the checked program.
Method:  language.md, "What holds": windows are cut at the beginning of the timeline.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dotr.errors import Diagnostics
from dotr.ir import LarsProgram, Modality, Program, TimeWindow, WindowAtom
from dotr.lang.checks.layers import head_of, lars_reads
from dotr.lang.grammar.lars import LarsFile
from dotr.lang.loading import LoadedFile


def unread_heads(
    lars: LarsProgram,
    files: Sequence[tuple[LoadedFile, LarsFile]],
    read: Collection[str],
    found: Diagnostics,
) -> None:
    """Warn about heads of the user's own files that no rule of either kind reads."""
    used = {head_of(stream, lars) for stream in read}
    for rule in lars.rules:
        own = rule.head.atom.name
        used.update(name for name, _, _ in lars_reads(rule) if name != own)
    reported: set[str] = set()
    for unit, file in files:
        for written in file.rules:
            name = unit.prefix + written.head.atom.name
            if unit.parent is None and name in lars.attributes and name not in used and name not in reported:
                reported.add(name)
                found.warning(
                    "D1617",
                    f"no rule reads `{name}`",
                    written.head.atom.span,
                    hint=f"name it in a rule, as `FROM ISTREAM {name}`, or delete it",
                )


def check_boxes(program: Program, found: Diagnostics) -> None:
    """Say once where ALWAYS may hold from the first time point on."""
    places = [
        literal.span
        for rule in program.lars.rules
        for literal in rule.body
        if isinstance(literal, WindowAtom)
        and literal.modality is Modality.ALWAYS
        and isinstance(literal.window, TimeWindow)
        and literal.window.duration
        and literal.span is not None
    ]
    if places:
        found.info(
            "D1618",
            "ALWAYS can hold at once: a window is cut at the beginning of the timeline",
            places[0],
            notes=[f"also at {place}" for place in places[1:4]],
            hint="the first points of a run may begin with it",
        )
