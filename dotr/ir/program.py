"""A checked program: what `lang` delivers and everything below executes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from enum import StrEnum
from typing import Final

from dotr.errors import Diagnostic
from dotr.ir.datalog import DatalogRule
from dotr.ir.lars import LarsProgram
from dotr.ir.lasting import Hold, StandingQuery
from dotr.ir.queries import Select
from dotr.ir.rules import Rule
from dotr.late import dataclass, replace
from dotr.source import Span

SHOWN: Final = 20
"""Rules that a notebook shows."""


class Entailment(StrEnum):
    NONE = "none"
    RDFS = "rdfs"
    OWL2RL = "owl2rl"


@dataclass(frozen=True, slots=True)
class Program:
    """`queries`: stream name → query ("Smoke", or "Fire.HighTemp" for an inline one), in program order.

    `background`: paths of RDF files or folders, resolved against the file that names them, in order.
    `datalog`: rules of all .dlog files and imports, in order. `prefixes` are for printing and `dotr query`.
    `named`: where the paths of `background` are written.
    `dependencies`: rules in an order in which every non-strict reference comes first (indices into `rules`).
    `holds`: what the stream says that lasts, one line for each predicate and class. `standing`: stream name →
    its ISTREAM or DSTREAM ("ISTREAM Jam" where it is of a QUERY, whatever it is called where it is written).
    `lars`: what holds, over windows.
    `warnings`: what the checks found that need not be an error; who deploys the program shows them.
    """

    queries: Mapping[str, Select] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    datalog: tuple[DatalogRule, ...] = ()
    background: tuple[str, ...] = ()
    entailment: Entailment = Entailment.NONE
    prefixes: Mapping[str, str] = field(default_factory=dict)
    dependencies: tuple[int, ...] = ()
    named: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    holds: tuple[Hold, ...] = ()
    standing: Mapping[str, StandingQuery] = field(default_factory=dict)
    lars: LarsProgram = field(default_factory=LarsProgram)
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        """What it is made of, in a line; all of it is in `fingerprint`."""
        return f"<dotr program: {', '.join(self._contents()) or 'empty'}>"

    def _repr_html_(self) -> str:
        """What it is made of and a table of the rules, for notebooks."""
        from html import escape  # noqa: PLC0415  # start-up: only notebooks ask

        rows = [
            (
                rule.name,
                "private" if rule.private else "",
                rule.trigger.name,
                ", ".join(conjunct.position.name for conjunct in rule.conjuncts),
                " ".join(f"?{name}" for name in rule.variables),
            )
            for rule in self.rules[:SHOWN]
        ]
        names = ("rule", "", "trigger", "looks for", "variables")
        head = "".join(f"<th>{name}</th>" for name in names)
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        more = len(self.rules) - len(rows)
        return (
            f"<p>{escape(repr(self)[1:-1])}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
            + (f"<p>and {more:,} more</p>" if more else "")
        )

    def _contents(self) -> list[str]:
        """What there is of each kind, where there is any."""
        counts = (
            (len(self.rules), "rule"),
            (len(self.queries), "query"),
            (len(self.datalog), "Datalog rule"),
            (len(self.lars.rules), "LARS rule"),
            (len(self.holds), "HOLD"),
            (len(self.background), "background path"),
        )
        found = [f"{count:,} {_plural(kind) if count != 1 else kind}" for count, kind in counts if count]
        return found + ([] if self.entailment is Entailment.NONE else [f"entailment {self.entailment.value}"])

    @property
    def fingerprint(self) -> str:
        """All that it does, as text: equal for programs that do the same."""
        return repr([getattr(self, one.name) for one in fields(self) if one.repr])

    @property
    def selects(self) -> dict[str, Select]:
        """Stream name → the query that its facts are answers of, or changes of answers."""
        return {**self.queries, **{name: standing.select for name, standing in self.standing.items()}}

    @property
    def asked(self) -> dict[str, Select]:
        """Stream name → query, of those asked at every instant a rule sees: without the queries whose changes
        alone matter to rules.
        """
        read = {position.stream for rule in self.rules for position in rule.positions}
        read.update(self.lars.reads)
        named = {standing.query for standing in self.standing.values()} - read
        return {name: select for name, select in self.queries.items() if name not in named}

    @property
    def lasting(self) -> bool:
        """Whether it says that anything lasts, or asks for changes of what does."""
        return bool(self.holds or self.standing)

    @property
    def written(self) -> dict[str, Select]:
        """As `selects`, every query once, under the stream that it was written for."""
        changes = {name: standing.select for name, standing in self.standing.items() if not standing.query}
        return {**self.queries, **changes}

    def without(self, names: Iterable[str]) -> Program:
        """The program without some rules and the queries written inside them."""
        gone = frozenset(names)
        if not gone:
            return self
        kept = [index for index, rule in enumerate(self.rules) if rule.name not in gone]
        return replace(
            self.only(kept),
            lars=self._lars_of(kept),
            queries={
                name: select
                for name, select in self.queries.items()
                if "." not in name or name.partition(".")[0] not in gone
            },
        )

    def only(self, indices: Iterable[int]) -> Program:
        """The program with some of its rules, which refer to no others; without LARS rules if none of them
        has to do with those.
        """
        kept = sorted(indices)
        place = {old: new for new, old in enumerate(kept)}
        return replace(
            self,
            rules=tuple(self.rules[index] for index in kept),
            dependencies=tuple(place[index] for index in self.dependencies if index in place),
            lars=self._lars_of(kept) if any(map(self.has_to_do_with_lars, kept)) else LarsProgram(),
        )

    def _lars_of(self, kept: Sequence[int]) -> LarsProgram:
        """The LARS program where only these rules are left."""
        layers = [
            replace(layer, before=sum(i in kept for i in self.dependencies[: layer.before]))
            for layer in self.lars.layers
        ]
        return replace(self.lars, layers=tuple(layers))

    def has_to_do_with_lars(self, index: int) -> bool:
        """Whether a rule reads what holds, or LARS rules read its events."""
        rule = self.rules[index]
        return rule.name in self.lars.reads or any(position.held for position in rule.positions)

    def rule_index(self, name: str) -> int:
        return next(i for i, rule in enumerate(self.rules) if rule.name == name)


def _plural(kind: str) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("y") else kind if kind == "HOLD" else f"{kind}s"
