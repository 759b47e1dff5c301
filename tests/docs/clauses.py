"""Which golden cases pin which clause. `python -m tests.docs.clauses` writes dotr/docs/clauses.md.

A clause is named as language.md (or the manual's page of what lasts) writes it; a case is `topic/name`, a
whole topic `topic/*`. What a case says of itself is the first line of its rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
PAGE = ROOT / "dotr" / "docs" / "clauses.md"

Clauses = dict[str, str]

CLAUSES: dict[str, Clauses] = {
    "Time, graphs, facts": {
        "instants": "time/graphs-of-one-time-are-one-instant time/the-same-triple-twice-is-one "
        "time/an-empty-graph-counts datalog/nothing-of-another-time",
        "lateness": "time/late-graphs-are-dropped-and-counted time/lateness-leaves-room-for-disorder",
        "blank nodes": "time/background-blank-nodes-last time/blank-nodes-are-scoped-to-their-graph "
        "time/equal-graphs-have-different-blank-nodes",
        "timestamps": "conditions/dateTimes-are-printed-in-utc conditions/times-in-the-runs-unit",
        "times and durations": "conditions/differences-of-times-are-seconds "
        "conditions/seconds-are-added-to-integer-times sparql/durations-are-those-of-xpath "
        "holds/times-differ-by-durations-in-datalog-and-lars",
        "mathematics": "conditions/mathematics",
        "functions of one's own": "conditions/functions-of-ones-own",
        "spread and ranks": "aggregates/spread-and-ranks aggregates/equal-values-of-other-types-leave",
        "lists": "aggregates/lists-of-candidates aggregates/lists-with-members-that-are-no-rdf",
        "calendars": "conditions/local-calendars conditions/days-that-are-none",
        "geometries": "places/*",
        "terms": "terms/*",
        "facts": "selection/equal-facts-are-told-apart reference/queries-written-twice-share-no-fact "
        "reference/two-positions-may-pick-the-same-fact",
        "canonical order": "output/canonical-order-of-terms selection/ties-in-time-are-broken-by-value "
        "aggregates/min-and-max-use-canonical-order",
        "exact sums": "aggregates/sums-are-exact sparql/aggregates-of-queries-are-the-contracts "
        "datalog/aggregates-are-the-contracts",
    },
    "A file": {
        "`PREFIX`": "syntax/prologue-lines-may-stand-between-rules",
        "`BACKGROUND`": "output/the-papers-example sparql/background-alone",
        "`RULES`": "output/the-papers-example datalog/recursion",
        "`ENTAILMENT`": "entailment/*",
        "`QUERY`": "reference/queries-written-twice-share-no-fact chaining/*",
        "`IMPORT`": "patterns/*",
        "`PARAMETER`": "patterns/*",
        "keywords and comments": "syntax/keywords-in-any-case syntax/private-is-a-name-too "
        "syntax/aggregates-are-names-too",
        "`PRIVATE RULE`": "chaining/events-of-private-rules-stay-inside syntax/private-is-a-name-too",
    },
    "A rule": {
        "`DEFINE { … }`": "output/fresh-names output/a-graph-is-a-set output/templates-drop-what-is-no-rdf",
        "`FROM X`": "selection/equal-facts-are-told-apart output/the-papers-example",
        "`FROM EVERY d AS Tick`": "every/*",
        '`FROM EVERY n d AT 08:00 IN "zone" AS Tick`': "calendars/* lasting/a-tick-at-a-local-time "
        "holds/a-tick-at-a-local-time",
        "`FROM X AFTER d AS Due`": "after/* lasting/an-end-follows-a-beginning-without-a-graph "
        "holds/after-a-head-begins-and-ends",
        "`AND EACH X w`": "selection/each-is-one-match-per-candidate selection/chains-are-found-whole "
        "reference/each-never-picks-the-reference-itself",
        "`AND EACH G := X PER (?k, …) w`": "per/*",
        "`AND LAST [k] X w`, `AND FIRST [k] X w`": "selection/last-k-and-first-k "
        "selection/ties-in-time-are-broken-by-value selection/no-backtracking "
        "reference/last-and-first-never-pick-the-reference-itself",
        "`AND OPTIONAL LAST X w`, `AND OPTIONAL FIRST X w`": "optional/*",
        "`AND NOT X w`": "not/* reference/not-does-not-see-the-reference-itself",
        "`AND AVG(e) AS ?v OVER X w`": "aggregates/* reference/aggregates-see-the-reference-itself",
        "`AND AVG(e) AS ?v OVER LAST n X w`, `… OVER FIRST n X w`": "aggregates/over-the-last-n "
        "aggregates/the-last-n-break-ties-by-value",
        "`WITHIN d FROM R`": "windows/within-from-is-closed-at-both-ends not/within-is-closed-at-both-ends "
        "windows/reference-is-an-earlier-conjunct windows/units windows/milliseconds windows/zero-seconds "
        "reference/the-trigger-is-a-candidate-of-another-reference",
        "`WITHIN d BEFORE R`": "windows/within-before-leaves-equal-time-out not/before-ignores-equal-time "
        "aggregates/before-leaves-now-out",
        "`BETWEEN A AND B`": "windows/between-is-open windows/between-is-empty-unless-start-is-before-end "
        "not/between-with-on",
        "`ON condition`": "selection/on-* not/on-restricts-the-candidates",
        "`WHERE condition`": "conditions/where-error-is-false conditions/operators-and-functions",
        "`WITH ?v := e, …`": "conditions/with-*",
        "`CONSUMING X, …`": "consuming/*",
        "`INSERT { … }`": "effects/fresh-names-* effects/what-no-line-* effects/for-counts-* "
        "effects/everything-covers-* effects/an-effect-* effects/triples-of-insert-* effects/a-list-* "
        "effects/private-* effects/a-match-without-* effects/stated-by-*",
        "`DELETE { … }`": "effects/delete* effects/equal-unknowns-* effects/any-* effects/an-event-deletes-* "
        "effects/what-only-* effects/what-a-graph-* effects/what-follows-*",
    },
    "Between rules": {
        "chaining": "chaining/*",
        "output order": "output/order output/equal-matches-are-separate-events "
        "chaining/runs-in-dependency-order-prints-in-program-order",
    },
    "Sequences": {
        "`SEQUENCE Name := pattern`": "sequences/sequence-is-a-name-too sequences/greedy-*",
        "quantifiers, greedy and reluctant": "sequences/greedy-* sequences/reluctant-* "
        "sequences/what-may-be-absent sequences/an-optional-tail-*",
        "alternation": "sequences/the-earlier-branch-*",
        "`SKIPPING`": "sequences/skipping-*",
        "`OF`": "sequences/a-stream-that-stands-twice-* sequences/rows-of-* sequences/an-attribute-that-a-* "
        "sequences/a-sequence-of-* sequences/background-gives-no-rows-*",
        "`PER`": "sequences/each-partition-* sequences/a-fact-without-its-partition-*",
        "`AND X OF … ON …`": "sequences/elements-of-some-sources sequences/conditions-over-*",
        "`PREV`": "sequences/the-row-before-*",
        "`FIRST`, `LAST`": "sequences/rows-by-their-number",
        "rows that are not there": "sequences/a-row-that-is-not-there-*",
        "aggregates": "sequences/aggregates-over-* sequences/conditions-over-* sequences/a-list-of-a-match",
        "`WITHIN`, `GAP`": "sequences/a-gap-* sequences/within-* sequences/starts-die-* "
        "sequences/rows-of-the-deadlines-* sequences/integer-times-* sequences/lengths-of-times-*",
        "`OVERLAPPING`": "sequences/overlapping-*",
        "`SKIP TO LAST X`": "sequences/skip-to-*",
        "`WITH`": "sequences/without-with-* sequences/an-error-leaves-*",
        "facts of one instant": "sequences/facts-of-an-instant-* sequences/equal-facts-* "
        "sequences/a-match-is-not-earlier-*",
        "deadlines without a graph": "sequences/time-that-comes-* sequences/the-end-of-the-input-* "
        "sequences/several-rules-*",
        "where a sequence is used": "sequences/positions-of-* sequences/heads-read-* sequences/a-library-*",
    },
    "Embedded queries": {
        "SELECT over K(t)": "sparql/*",
        "`NOW()`": "sparql/now-is-the-instant",
    },
    "Datalog": {
        "facts, heads, atoms": "datalog/facts-and-several-heads datalog/literals-are-no-subjects "
        "datalog/variable-predicate",
        "recursion": "datalog/recursion",
        "`NOT`": "datalog/negation-*",
        "`AGGREGATE`": "datalog/aggregates datalog/aggregates-are-the-contracts "
        "datalog/a-count-above-recursion-counts-a-row-once",
        "`BIND`, `FILTER`": "datalog/bind-and-filter",
        "`owl:sameAs` of a stream": "entailment/a-stream-* entailment/equality-* lasting/an-equality-*",
        "anonymous properties": "entailment/an-anonymous-* lasting/what-follows-by-an-anonymous-*",
    },
    "What lasts": {
        "`HOLD … FOR d`": "lasting/for-is-half-open lasting/stated-again-* lasting/imars-figure-4 "
        "lasting/a-statement-keeps-the-terms-of-its-time",
        "`HOLD … LATEST`": "lasting/latest-*",
        "`HOLD *`": "lasting/everything-with-an-exception",
        "`HOLD … FROM … UNTIL …`": "lasting/until-* lasting/from-a-time-ahead lasting/several-ends-* "
        "lasting/what-has-no-period-* lasting/a-deletion-ends-what-is-ahead lasting/one-triple-for-* "
        "lasting/what-is-ahead-* lasting/permits-until-* lasting/latest-from-*",
        "insertions and deletions": "lasting/inserted-and-held lasting/delete* lasting/a-delet* "
        "lasting/a-message-* lasting/a-late-message-* lasting/what-only-follows-* lasting/parts-are-*",
        "`ISTREAM`, `DSTREAM`": "lasting/an-answer-* lasting/one-of-two-* lasting/the-* "
        "lasting/without-hold-* lasting/a-plain-query-*",
        "ends": "lasting/an-end-* lasting/ticks-and-ends",
        "other rules from a time on": "lasting/rules-replaced-where-no-message-came "
        "lasting/a-tick-of-new-rules-at-their-first-instant",
    },
    "Rules that write what lasts": {
        "`INSERT`, `DELETE` of a rule": "effects/*",
        "the next moment": "effects/the-next-moment-* effects/a-state-begins-* "
        "effects/events-of-one-instant-* effects/effects-of-the-last-* effects/a-hierarchy-* "
        "effects/a-hundred-*",
        "other rules from a time on, while effects wait": "effects/other-rules-*",
    },
    "LARS": {
        "`STEP`": "holds/steps-coarser-than-the-data holds/ticks-and-points holds/silence",
        "`WITHIN d`, `SOMETIME`, `ALWAYS`, `AT ?t`": "holds/laser-* holds/istream-at-the-beginning "
        "holds/sometime-and-at-least",
        "`AT LEAST k`": "holds/sometime-and-at-least",
        "one timeline": "holds/parts-by-key holds/istream-at-the-beginning",
        "`WITHIN n FACTS [OF (A, B)]`": "holds/laser-example-1 holds/laser-example-9 holds/the-last-facts",
        "`WITHIN n FACTS PER (?k, …)`": "holds/the-last-facts-of-each-key",
        "heads, ahead and back": "holds/heads-ahead-and-back holds/attributes-of-a-head "
        "holds/heads-of-a-library",
        "`NOT`": "holds/negation-of-a-head",
        "aggregates": "holds/aggregates-over-windows",
        "events and changes as atoms": "holds/events-feed-what-holds holds/what-lasts-feeds-what-holds",
        "heads themselves in rules": "holds/heads-as-intervals",
    },
}


def cases() -> dict[str, str]:
    """Every golden case of a program that runs, with what it says of itself."""
    found = {}
    for path in sorted(GOLDEN.glob("*/*/rules.dotr")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        found[f"{path.parent.parent.name}/{path.parent.name}"] = first.removeprefix("#").strip()
    return found


def rejected() -> dict[str, list[str]]:
    """Every code that a golden case of a wrong program has, with those cases."""
    found: dict[str, list[str]] = {}
    for path in sorted((GOLDEN / "rejected").glob("*/expected.txt")):
        for code in dict.fromkeys(re.findall(r"\[(D\d{4})\]", path.read_text(encoding="utf-8"))):
            found.setdefault(code, []).append(path.parent.name)
    return dict(sorted(found.items()))


def named(patterns: str) -> list[str]:
    """The cases that the patterns of a clause name, in their order, each once."""
    every = cases()
    return list(dict.fromkeys(c for pattern in patterns.split() for c in every if fnmatch(c, pattern)))


def text() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    every = cases()
    yield "# Clauses and their cases"
    yield ""
    yield "What a clause means is in [the languages](../lang/language.md) and in [state](lasting.md)."
    yield "Here is which golden cases pin it: programs with a stream and the events that come out, derived by"
    yield "hand and run by every engine, in `tests/golden/` of the sources."
    for section, clauses in CLAUSES.items():
        yield from ("", f"## {section}")
        for clause, patterns in clauses.items():
            yield from ("", f"### {clause}", "")
            yield from (f"* `{case}`: {_plain(every[case])}" for case in named(patterns))
    yield from ("", "## What is refused", "")
    yield "Each code with the programs that get it, in `tests/golden/rejected/`."
    yield "`dotr check --explain CODE` explains one."
    yield ""
    yield from (f"* `{code}`: {', '.join(names)}" for code, names in rejected().items())


def _plain(sentence: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([*_<>`\[\]|])", r"\\\1", sentence)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
