"""A checked program: `lang` delivers it, everything below executes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import field
from msgspec.structs import replace

from dotr.errors import Diagnostic
from dotr.ir.datalog import DatalogRule
from dotr.ir.lars import LarsProgram
from dotr.ir.lasting import Hold, StandingQuery
from dotr.ir.queries import Select
from dotr.ir.rules import Rule
from dotr.source import PLACES, Span, Syntax

SHOWN: Final = 20
"""How many rules a notebook shows."""


class Entailment(StrEnum):
    NONE = "none"
    RDFS = "rdfs"
    OWL2RL = "owl2rl"


class Program(Syntax, frozen=True):
    """`queries`: stream name → query ("Smoke", or "Fire.HighTemp" for an inline one), in program order.

    `background`: paths of RDF files or folders, resolved against the file that names them, in order.
    `datalog`: rules of all .dlog files and imports, in order. `prefixes` are for printing and `dotr query`.
    `named`: where the paths of `background` are written. `dependencies`: rules in an order in which every
    non-strict reference comes first (indices into `rules`). `holds`: HOLD lines, one for each predicate and
    class. `standing`: stream name → its ISTREAM or DSTREAM (for a QUERY always "ISTREAM Jam", whatever its
    position is called). `lars`: what holds, over windows. `warnings`: findings of the checks that are not
    errors; the runner shows them.
    """

    queries: Mapping[str, Select] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    datalog: tuple[DatalogRule, ...] = ()
    background: tuple[str, ...] = ()
    entailment: Entailment = Entailment.NONE
    prefixes: Mapping[str, str] = field(default_factory=dict)
    dependencies: tuple[int, ...] = ()
    named: Mapping[str, Span] = field(default_factory=dict)
    holds: tuple[Hold, ...] = ()
    standing: Mapping[str, StandingQuery] = field(default_factory=dict)
    lars: LarsProgram = field(default_factory=LarsProgram)
    warnings: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        """A summary in one line; `fingerprint` has everything."""
        return f"<dotr program: {', '.join(self._contents()) or 'empty'}>"

    def _repr_html_(self) -> str:
        """The summary and a table of the rules, for notebooks."""
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
        """The number of parts of each kind, without zeros."""
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
        """Its semantics as text: equal for programs that do the same."""
        return repr([getattr(self, name) for name in self.__struct_fields__ if name not in PLACES])

    @property
    def selects(self) -> dict[str, Select]:
        """Stream name → the query whose answers, or changes of answers, are its facts."""
        return {**self.queries, **{name: standing.select for name, standing in self.standing.items()}}

    @property
    def asked(self) -> dict[str, Select]:
        """Stream name → query, for queries evaluated at every instant that a rule sees: without those of
        which rules use only the changes.
        """
        read = {position.stream for rule in self.rules for position in rule.positions}
        read.update(self.lars.reads)
        named = {standing.query for standing in self.standing.values()} - read
        return {name: select for name, select in self.queries.items() if name not in named}

    @property
    def lasting(self) -> bool:
        """Whether it declares that anything lasts, or uses changes of what does."""
        return bool(self.holds or self.standing)

    @property
    def written(self) -> dict[str, Select]:
        """Like `selects`, every query once, under the stream it was written for."""
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
        """The program with some of its rules, which refer to no others; without LARS rules if unrelated to
        them.
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
        """The LARS program if only these rules remain."""
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
