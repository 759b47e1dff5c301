"""Names looked up: syntax → the checked program.

Place:   called by lang/__init__.py with what loading.py read; streams.py has the names of the deployment,
         rule_names.py those of a rule.
Method:  language.md, sec. 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.errors import Diagnostics
from dotr.ir import (
    LarsProgram,
    Program,
    Rule,
)
from dotr.lang.checks.chaining import order
from dotr.lang.checks.lars import LarsResolver
from dotr.lang.checks.lars_use import unread_heads
from dotr.lang.checks.lasting import check_holds
from dotr.lang.checks.layers import layered
from dotr.lang.checks.rule_names import RuleResolver
from dotr.lang.checks.streams import Streams
from dotr.lang.grammar.syntax import (
    QuerySyntax,
    RuleSyntax,
)
from dotr.lang.loading import Loaded


class Resolver:
    """Owns what becomes the program."""

    def __init__(self, loaded: Loaded, found: Diagnostics) -> None:
        self._loaded = loaded
        self._found = found
        self._lars = LarsResolver(loaded.lars, found)
        self._streams = Streams(loaded, self._lars.heads(), found)

    def program(self) -> Program:
        """The checked program; meaningful only when nothing of severity error was found."""
        rules: list[Rule] = []
        seen: set[str] = set()
        for unit, definition in self._streams.accepted:
            name = unit.prefix + definition.name.text
            if isinstance(definition, QuerySyntax):
                if definition.select is not None and definition.operator is None and name not in seen:
                    self._streams.queries[name] = definition.select
            elif not self._streams.is_broken(unit):
                rule = RuleResolver(self._streams, unit, definition, self._found).rule()
                if rule is not None and name not in seen:
                    rules.append(rule)
                else:
                    self._streams.whole = False
            seen.add(name)
        lars = self._lars.program(
            self._streams.lars_name, self._streams.names, self._streams.use, self._streams.heads
        )
        self._streams.whole = self._streams.whole and self._lars.whole
        dependencies = order(rules, self._found)
        if lars.rules and len(dependencies) == len(rules):
            dependencies, lars = layered(rules, dependencies, lars, self._found)
        self._streams.report_unknown()
        self._unused(bool(rules))
        self._unread(rules, lars)
        return Program(
            queries=self._streams.queries,
            rules=tuple(rules),
            datalog=tuple(self._loaded.datalog),
            background=tuple(self._loaded.background),
            entailment=self._loaded.entailment,
            prefixes=self._loaded.prefixes,
            dependencies=dependencies,
            lars=lars,
            holds=check_holds(self._loaded.holds, self._found),
            standing=self._streams.standing,
            named=self._loaded.background,
        )

    def _unused(self, rules: bool) -> None:
        """Warn about the user's own queries that nothing uses; a file of queries alone is fine."""
        rules = rules and all(d.whole for _, d in self._streams.accepted if isinstance(d, RuleSyntax))
        for unit, definition in self._streams.accepted:
            name = unit.prefix + definition.name.text
            own = rules and unit.parent is None and isinstance(definition, QuerySyntax)
            if own and name not in self._streams.used and self._streams.whole:
                self._found.warning(
                    "D1117",
                    f"no rule uses the query `{name}`",
                    definition.name.span,
                    hint="delete it, or name it in a rule",
                )

    def _unread(self, rules: Sequence[Rule], lars: LarsProgram) -> None:
        """Warn about the user's own private rules and heads that nothing reads; they do nothing."""
        read = {p.stream for rule in rules for p in rule.positions if p.stream != rule.name}
        read.update(lars.reads)
        if self._streams.whole and rules:
            unread_heads(lars, self._loaded.lars, read, self._found)
        for unit, definition in self._streams.accepted:
            name = unit.prefix + definition.name.text
            private = isinstance(definition, RuleSyntax) and definition.private and unit.parent is None
            if private and name not in read and self._streams.whole:
                self._found.warning(
                    "D1312",
                    f"`{name}` is private, and no other rule reads its events",
                    definition.name.span,
                    hint="take PRIVATE away, or name it in a rule",
                )
