"""What `dotr test` prints: failures with their reasons, coverage, JUnit.

Place:   over case_runs.py, failure_reasons.py and coverage.py; nothing here depends on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from xml.etree import ElementTree

from msgspec import Struct, field

from dotr.errors import DotrError
from dotr.events import Composite
from dotr.io.term_formatting import TermFormatter
from dotr.testing.case_runs import Bench, CaseOutcome, Failure, Wanted, paired
from dotr.testing.coverage import Item, coverage, covered
from dotr.testing.failure_reasons import because

_EXPLAINED = 3
"""Failures of a case that are explained; the others are said."""

_SHOWN = 20


class SuiteReport(Struct):
    """A suite that has run."""

    bench: Bench
    outcomes: list[CaseOutcome] = field(default_factory=list)
    _items: list[Item] | None = None

    @property
    def items(self) -> list[Item]:
        """What its tests cover; found out when it is first asked for."""
        if self._items is None:
            self._items = coverage(self.bench, self.outcomes)
        return self._items

    @property
    def failed(self) -> int:
        return sum(not outcome.passed for outcome in self.outcomes)


def run_suite(bench: Bench, done: Callable[[CaseOutcome], None] = lambda outcome: None) -> SuiteReport:
    """Run all tests of a suite. Raises ProgramError, DataError for its rules and background."""
    _ = bench.deployment
    report = SuiteReport(bench)
    for case in bench.suite.cases:
        outcome = bench.run(case)
        report.outcomes.append(outcome)
        done(outcome)
    return report


def failure_text(bench: Bench, outcome: CaseOutcome) -> str:
    """Everything that is wrong with a test, with reasons; no newline at the end."""
    lines = [f"FAILED {bench.suite.path} · {outcome.case.name}"]
    if outcome.error is not None:
        lines += [f"  {line}" for one in outcome.error.diagnostics for line in one.render().splitlines()]
    terms = TermFormatter(bench.prefixes)
    for number, failure in enumerate(outcome.failures[:_SHOWN]):
        lines.append(f"  {failure.span}: {_headline(failure, outcome, terms)}")
        if failure.missing is not None:
            lines += [
                f"    instead: {event_text(e, terms, outcome)}" for e in _near(failure.missing, outcome)
            ]
        if number < _EXPLAINED:
            lines += [f"    {line}" for line in because(bench, outcome, failure).splitlines()]
    if len(outcome.failures) > _SHOWN:
        lines.append(f"  and {len(outcome.failures) - _SHOWN} more")
    return "\n".join(lines)


def _headline(failure: Failure, outcome: CaseOutcome, terms: TermFormatter) -> str:
    if failure.event is not None:
        return f"+ {event_text(failure.event, terms, outcome)}   {failure.message}"
    if failure.missing is not None:
        return f"- {wanted_text(failure.missing, terms, outcome)}   {failure.message}"
    return failure.message


def event_text(event: Composite, terms: TermFormatter, outcome: CaseOutcome) -> str:
    """An event on a line: `Fire @ 12  ?room :room23`."""
    assert outcome.given is not None
    values = " ; ".join(f"?{name} {terms.term(term)}" for name, term in event.bindings)
    return f"{event.rule} @ {outcome.given.clock.text(event.time)}  {values}".rstrip()


def wanted_text(wanted: Wanted, terms: TermFormatter, outcome: CaseOutcome) -> str:
    """An expectation on a line."""
    assert outcome.given is not None
    values = " ; ".join(f"?{name} {terms.term(term)}" for name, term in wanted.values.items())
    when = "" if wanted.time is None else f" @ {outcome.given.clock.text(wanted.time)}"
    return f"{wanted.rule}{when}  {values}".rstrip()


def _near(wanted: Wanted, outcome: CaseOutcome) -> list[Composite]:
    """Events of the same rule that no expectation took, those of the same time first."""
    assert outcome.given is not None
    taken = set(paired(outcome.given.expect, outcome.events).values())
    free = [event for number, event in enumerate(outcome.events) if number not in taken]
    same = [event for event in free if event.rule == wanted.rule]
    return sorted(same, key=lambda event: event.time != wanted.time)[:3]


def coverage_text(report: SuiteReport) -> str:
    """What the tests cover, and a line for each thing that they do not."""
    done, all_ = covered(report.items)
    share = 100 * done // all_ if all_ else 100
    lines = [f"{report.bench.suite.path}: {done} of {all_} covered ({share} %)"]
    lines += [f"  {item.span or ''}  {item.what}".rstrip() for item in report.items if not item.covered]
    return "\n".join(lines)


def junit(reports: Sequence[SuiteReport], refused: Mapping[str, DotrError] | None = None) -> str:
    """JUnit XML, as build servers read it; a test file that was refused is an error of its own."""
    root = ElementTree.Element("testsuites")
    for path, error in (refused or {}).items():
        suite = ElementTree.SubElement(root, "testsuite", name=path, tests="1", failures="0", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname=path, name=path)
        found = ElementTree.SubElement(case, "error", message=_printable(error.diagnostics[0].message))
        found.text = _printable("\n".join(one.render() for one in error.diagnostics))
    for report in reports:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.bench.suite.path,
            tests=str(len(report.outcomes)),
            failures=str(sum(bool(outcome.failures) for outcome in report.outcomes)),
            errors=str(sum(outcome.error is not None for outcome in report.outcomes)),
        )
        for outcome in report.outcomes:
            case = ElementTree.SubElement(
                suite, "testcase", classname=report.bench.suite.path, name=outcome.case.name
            )
            if not outcome.passed:
                kind = "error" if outcome.error is not None else "failure"
                text = failure_text(report.bench, outcome)
                found = ElementTree.SubElement(case, kind, message=_printable(text.splitlines()[-1].strip()))
                found.text = _printable(text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(
        c
        for c in text
        if (c >= " " or c in "\n\t") and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff"
    )
