"""The pages of `dotr check --explain CODE`, by groups of codes."""

from __future__ import annotations

from typing import Final

from dotr.lang.pages import (
    budgets,
    clusters,
    datalog,
    deployments,
    documents,
    doubtful,
    explanations,
    lars,
    lasting,
    local_times,
    names,
    outputs,
    queries,
    rule_tests,
    running,
    samples,
    syntax,
    tables,
    windows,
)

GROUPS: Final = (
    syntax,
    names,
    queries,
    doubtful,
    windows,
    lasting,
    lars,
    datalog,
    documents,
    running,
    deployments,
    local_times,
    tables,
    samples,
    outputs,
    budgets,
    clusters,
    explanations,
    rule_tests,
)
