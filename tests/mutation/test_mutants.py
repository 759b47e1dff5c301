"""The mutants that once lived on are among those that are made, and each is a program that differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.__main__ import ROOMS, ROOT, sample
from tests.mutation.mutants import mutants_of


@pytest.mark.parametrize(
    ("file", "before", "after", "line"),
    [
        (
            "dotr/detect/operators.py",
            "continue",
            "pass",
            'source.line(f"if {found} is not None: continue")',
        ),
        ("dotr/rdf/values.py", "5", "6", "return (5, value, term)"),
        ("dotr/io/feeds.py", "==", "!=", 'if item.how == "whole" or'),
        ("dotr/io/feeds.py", "and", "or", "if isinstance(item, ReadEvent) and finished and"),
    ],
)
def test_what_no_test_noticed_once_is_made_again(file: str, before: str, after: str, line: str) -> None:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    found = [m for m in mutants_of(ROOT, file) if (m.before, m.after) == (before, after)]
    assert any(line in lines[mutant.line - 1] for mutant in found)


def test_a_mutant_is_one_small_difference(tmp_path: Path) -> None:
    text = '''"""Doc < string."""
def smaller(a: int | None, b: int = 1) -> bool:
    if a is None:
        raise ValueError("a < b")
    return a < b and not b == 0
'''
    (tmp_path / "x.py").write_text(text, encoding="utf-8")
    found = [(mutant.line, mutant.before, mutant.after) for mutant in mutants_of(tmp_path, "x.py")]
    assert sorted(found) == [
        (2, "1", "2"),
        (3, "a is None", "not (a is None)"),
        (3, "is", "is not"),
        (5, "0", "1"),
        (5, "<", "<="),
        (5, "<", ">"),
        (5, "==", "!="),
        (5, "a < b and not b == 0", "None"),
        (5, "and", "or"),
        (5, "not ", ""),
    ]
    for mutant in mutants_of(tmp_path, "x.py"):
        assert mutant.applied(text.encode()) != text.encode()


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    room = ROOMS["ledger"]
    assert sample(room, 5, 1) == sample(room, 5, 1) != sample(room, 5, 2)
