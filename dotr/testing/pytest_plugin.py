"""Lets pytest collect `*.test.yaml` files that have dotr's `rules:` key.

Place:   the entry point `pytest11`; found by pytest in every project that has dotr installed, so it imports
         nothing of dotr until there is such a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dotr.testing.cases import Bench, CaseOutcome
    from dotr.testing.suite import Case

_OURS = re.compile(r"^rules[ \t]*:", re.MULTILINE)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A collector for a test file of rules; None for any other file."""
    if not file_path.name.endswith((".test.yaml", ".test.yml")):
        return None
    try:
        text = file_path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return RuleTestFile.from_parent(parent, path=file_path) if _OURS.search(text) else None


class RuleTestFile(pytest.File):
    """Owns a test file while pytest runs it."""

    def collect(self) -> Iterator[pytest.Item]:
        from dotr.io.rules_and_background import read_rules_text  # noqa: PLC0415  # see above
        from dotr.source import Source  # noqa: PLC0415  # see above
        from dotr.testing.cases import Bench  # noqa: PLC0415  # see above
        from dotr.testing.suite import read_suite  # noqa: PLC0415  # see above

        path = str(self.path)
        bench = Bench(read_suite(Source(path, read_rules_text(path))))
        for case in bench.suite.cases:
            yield RuleTest.from_parent(self, name=case.name, bench=bench, case=case)


class RuleTestError(Exception):
    """A test of rules that fails."""


class RuleTest(pytest.Item):
    """One test of a file."""

    def __init__(self, *, bench: Bench, case: Case, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]  # pytest's own
        self.bench, self.case = bench, case

    def runtest(self) -> None:
        outcome: CaseOutcome = self.bench.run(self.case)
        if not outcome.passed:
            from dotr.testing.reports import failure_text  # noqa: PLC0415  # see above

            raise RuleTestError(failure_text(self.bench, outcome))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """What failed, without the lines of dotr that found it."""
        del style
        if isinstance(excinfo.value, RuleTestError):
            return str(excinfo.value)
        render = getattr(excinfo.value, "diagnostics", None)
        return "\n".join(one.render() for one in render) if render else str(excinfo.getrepr())

    def reportinfo(self) -> tuple[Path, int, str]:
        line, _ = self.case.span.source.position(self.case.span.start)
        return self.path, line - 1, f"{self.path.name}: {self.case.name}"
