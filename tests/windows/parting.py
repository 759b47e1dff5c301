"""The places by which all atoms of a program can be parted, found by trying every way of every rule."""

from collections.abc import Iterator, Sequence

from dotr.program.program import LarsProgram, LarsRule
from dotr.windows.building import connected, rule_keys


def partition_keys(program: LarsProgram) -> dict[str, int] | None:
    """Name → the place of its argument by which its atoms can be parted, streams and heads alike.

    Every atom of every rule has one and the same variable there, so that a part derives what the whole
    derives for its keys. None where there is no such choice.
    """
    return next(_chosen(connected(program.rules), {}), None)


def _chosen(rules: Sequence[LarsRule], parted: dict[str, int]) -> Iterator[dict[str, int]]:
    if not rules:
        yield parted
        return
    for choice in rule_keys(rules[0], parted):
        yield from _chosen(rules[1:], choice)
