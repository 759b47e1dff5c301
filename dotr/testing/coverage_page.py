"""What tests of rules cover, as a page: the rules line by line, and what no test did below its line.

Place:   `dotr test --coverage-html`; reports.py found out what is covered, pictures/ draws.
Method:  an item stands on the line where it begins. A line is covered where every item on it is; a line
         without items has no mark: comments, templates, prefixes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.pictures.markup import Html, element, joined, page, section, text
from dotr.source import Source
from dotr.testing.reports import Item, SuiteReport, covered, failure_text


def coverage_page(reports: Sequence[SuiteReport]) -> str:
    """One page of all suites. It needs nothing else, as `dotr show` writes it."""
    done, all_ = covered([item for report in reports for item in report.items])
    tests = sum(len(report.outcomes) for report in reports)
    failed = sum(report.failed for report in reports)
    about = f"{_share(done, all_)}; {tests:,} {'test' if tests == 1 else 'tests'}"
    about += f", {failed:,} failed" if failed else ""
    parts = [_suite(report) for report in reports] or [element("p", text("no tests"), class_="note")]
    return page("Coverage of the rules", *parts, about=[element("span", text(about), class_="note")])


def _share(done: int, all_: int) -> str:
    return f"{done:,} of {all_:,} covered ({100 * done // all_ if all_ else 100} %)"


def _suite(report: SuiteReport) -> Html:
    items = report.items
    by_source: dict[Source, list[Item]] = {}
    for item in items:
        if item.span is not None:
            by_source.setdefault(item.span.source, []).append(item)
    left = [item for item in items if not item.covered and item.span is None]
    return section(
        report.bench.suite.path,
        _tests(report),
        *(element("p", text(item.what), class_="missing") for item in left),
        *(_listing(source, own) for source, own in by_source.items()),
        note=_share(*covered(items)),
    )


def _tests(report: SuiteReport) -> Html:
    """The tests by name; what is wrong with one that failed."""
    rows = []
    for outcome in report.outcomes:
        mark = element(
            "span", text("✓" if outcome.passed else "✗"), class_="good" if outcome.passed else "bad"
        )
        name = element("span", text(outcome.case.name), class_="says")
        if outcome.passed:
            rows.append(element("div", mark, name, class_="leaf"))
        else:
            reasons = element("pre", text(failure_text(report.bench, outcome)))
            rows.append(element("details", element("summary", mark, name), reasons, open=True))
    return element("div", *rows, class_="tree tests")


def _listing(source: Source, items: Sequence[Item]) -> Html:
    """A file of rules with a mark on each line that has items, and below it what no test did."""
    on_line: dict[int, list[Item]] = {}
    for item in items:
        assert item.span is not None, "it has a place"
        on_line.setdefault(source.position(item.span.start)[0], []).append(item)
    lines = [
        _line(number, line, on_line.get(number, ()))
        for number, line in enumerate(source.text.splitlines(), 1)
    ]
    head = element("h3", text(source.name), element("span", text(_share(*covered(items))), class_="note"))
    return Html(
        head
        + element("div", joined(lines), class_="listing", tabindex="0", role="region", aria_label=source.name)
    )


def _line(number: int, line: str, items: Sequence[Item]) -> Html:
    missing = [item for item in items if not item.covered]
    kind = "bad" if missing else "good" if items else ""
    mark = {"bad": "✗", "good": "✓"}.get(kind, "")
    cells = (
        element("span", text(number), class_="n"),
        element("span", text(mark), class_=f"of {kind}".strip()),
        element("code", text(line)),
    )
    below = [element("div", text(item.what), class_="missing") for item in missing]
    return Html(element("div", *cells, class_=f"line {kind}".strip()) + joined(below))
