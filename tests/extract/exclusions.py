"""Which W3C tests the contract rules out, by class, and single tests with the reason of each."""

from __future__ import annotations

RULED_OUT = {
    "D1202": "CONSTRUCT and DESCRIBE: rules build graphs in DEFINE",
    "D1203": "FROM, GRAPH and SERVICE: a query sees one default graph, K(t)",
    "D1205": "RAND, UUID, STRUUID, BNODE, SAMPLE, GROUP_CONCAT: a replay would give another answer",
    "D1207": "LIMIT or OFFSET in a subquery or without ORDER BY: their order is nobody's",
}
"""Diagnostic codes of what language.md (section 1) does not let a rule ask."""

_ONE_TERM = '"01", "1.0" and the like are one term with their canonical form; the test tells them apart'

EXCLUDED = {
    "sparql10/distinct/distinct-1": _ONE_TERM,
    "sparql10/distinct/distinct-9": _ONE_TERM,
    "sparql10/expr-builtin/dawg-str-1": _ONE_TERM,
    "sparql10/expr-builtin/dawg-str-2": _ONE_TERM,
    "sparql10/expr-builtin/sameTerm-simple": _ONE_TERM,
    "sparql10/expr-builtin/sameTerm-eq": _ONE_TERM,
    "sparql10/expr-builtin/sameTerm-not-eq": _ONE_TERM,
    "sparql10/expr-equals/eq-graph-1": _ONE_TERM,
    "sparql10/expr-equals/eq-graph-2": _ONE_TERM,
    "sparql10/open-world/open-eq-01": _ONE_TERM,
    "sparql10/open-world/date-2": (
        "the full engine takes `!=` of a date with and one without a zone, or of a date and a dateTime, "
        "for an error; the test wants true"
    ),
}
"""Test → why its answer is not ours. Every other SELECT or ASK over one default graph must pass."""
