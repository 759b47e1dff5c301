"""Pages of D44xx: test files of rules, comparisons, templates.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D4401",
        "a test file that is not as one should be",
        "A test file is YAML: `rules`, optionally `prefixes`, `background`, `time_unit` and `lateness`, and "
        "`tests`. A test has a `name`, a `stream`, and at least one of `expect`, `never`, `only`, `holds`. "
        "Keys that are not known are refused, so that a slip does not pass as a test.",
        "rules: fire.dotr\ntests:\n  - name: a fire\n    expects: [ { rule: Fire, at: 12 } ]",
        "rules: fire.dotr\ntests:\n  - name: a fire\n    expect: [ { rule: Fire, at: 12 } ]",
    ),
    _page(
        "D4402",
        "a test names what the program does not have",
        "`rule` is the name of a rule (those of a library begin with the name of its import), its other keys "
        "are variables of the rule's WITH; `facts` names queries, with the variables that they select.",
        'expect: [ { rule: Fire, at: 12, place: ":room23" } ]',
        'expect: [ { rule: Fire, at: 12, room: ":room23" } ]',
    ),
    _page(
        "D4403",
        "a term, a graph or a time of a test that cannot be read",
        "Terms and graphs are Turtle, with the prefixes of the rules and of the test file; in YAML a text "
        "that begins with `:` or has `: ` in it is quoted. Times of one test are all integers or all "
        "dateTimes.",
        "expect: [ { rule: Fire, at: 12, room: room23 } ]",
        'expect: [ { rule: Fire, at: 12, room: ":room23" } ]',
    ),
    _page(
        "D4404",
        "a folder without test files",
        "A folder stands for the test files below it; their names end in `.test.yaml` or `.test.yml`.",
        "dotr test events/",
        "dotr test building.test.yaml",
    ),
    _page(
        "D4405",
        "there is no such library or template",
        "`dotr patterns` lists the libraries that travel with dotr, `dotr init --help` the templates.",
        "dotr patterns show hold",
        "dotr patterns show held",
    ),
    _page(
        "D4406",
        "a comparison of nothing",
        "`dotr compare` takes two rule files and a log, or one rule file, a log, and `--param` with the "
        "values of a parameter that are compared.",
        "dotr compare fire.dotr log.jsonl",
        "dotr compare fire.dotr fire2.dotr log.jsonl",
    ),
)
