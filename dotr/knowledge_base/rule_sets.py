"""The rules of a knowledge base: its own, those of its entailment, and those that OWL lists stand for.

Place:   under model.py; texts and files are read by knowledge_base.py.
Method:  a rule is its parsed form up to the names of variables: two that print alike when variables are
         numbered in order of appearance are one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from dotr.datalog.owl_lists import list_rules
from dotr.io.files.rule_texts import read_rules_text
from dotr.ir import DatalogRule, Entailment
from dotr.lang import parse_datalog
from dotr.lang.printer import datalog_rule_text
from dotr.rdf.terms import Triple

_TOKEN = re.compile(r'<[^<>\s]*>|"(?:[^"\\]|\\.)*"|[?$](\w+)')


class RuleSet(Struct, frozen=True):
    """`own`: the user's rules, each once. `datatypes`: whether literals are checked as well (dt-*)."""

    own: tuple[DatalogRule, ...] = ()
    entailment: Entailment = Entailment.NONE
    datatypes: bool = False

    def over(self, stated: Collection[Triple]) -> tuple[DatalogRule, ...]:
        """All rules that hold over what is stated. Raises DataError D3102 for a list that is malformed."""
        found = (*self.own, *shipped_rules(self.entailment.value))
        if self.entailment is Entailment.OWL2RL:
            found += list_rules(stated)
        return found + shipped_rules("owl2rl-datatypes") if self.datatypes else found

    def changed(self, add: Iterable[DatalogRule], remove: Iterable[DatalogRule]) -> tuple[RuleSet, int]:
        """First `remove`, then `add`; and how many were to be removed that were not there."""
        add, remove = tuple(add), tuple(remove)
        if not (add or remove):
            return self, 0
        known = {form(rule): rule for rule in self.own}
        useless = sum(known.pop(key, None) is None for key in dict.fromkeys(map(form, remove)))
        for rule in add:
            known.setdefault(form(rule), rule)
        return replace(self, own=tuple(known.values())), useless


def form(rule: DatalogRule) -> str:
    """What all rules have in common that differ in the names of variables alone."""
    names: dict[str, str] = {}

    def numbered(token: re.Match[str]) -> str:
        name = token[1]
        return token[0] if name is None else names.setdefault(name, f"?{len(names)}")

    return _TOKEN.sub(numbered, datalog_rule_text(rule, {}))


@cache
def shipped_rules(name: str) -> tuple[DatalogRule, ...]:
    """The rules of a file that dotr ships; `none` has none."""
    if name == Entailment.NONE.value:
        return ()
    path = f"dotr:rules/{name}.dlog"
    return parse_datalog(read_rules_text(path), path)
