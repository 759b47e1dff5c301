"""A checked program: what `lang` delivers and everything below executes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dotr.ir.datalog import DatalogRule
from dotr.ir.queries import Select
from dotr.ir.rules import Rule


class Entailment(StrEnum):
    NONE = "none"
    RDFS = "rdfs"
    OWL2RL = "owl2rl"


@dataclass(frozen=True, slots=True)
class Program:
    """`queries`: stream name → query ("Smoke", or "Fire.HighTemp" for an inline one), in program order.

    `background`: paths of RDF files or folders, resolved against the file that names them, in order.
    `datalog`: rules of all .dlog files and imports, in order. `prefixes` are for printing and `dotr query`.
    `dependencies`: rules in an order in which every non-strict reference comes first (indices into `rules`).
    """

    queries: Mapping[str, Select] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    datalog: tuple[DatalogRule, ...] = ()
    background: tuple[str, ...] = ()
    entailment: Entailment = Entailment.NONE
    prefixes: Mapping[str, str] = field(default_factory=dict)
    dependencies: tuple[int, ...] = ()

    def rule_index(self, name: str) -> int:
        return next(i for i, rule in enumerate(self.rules) if rule.name == name)
