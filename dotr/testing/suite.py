"""Test files: YAML to values, with every mistake reported at its place; collected by pytest, too.

Place:   read by `dotr test` and the pytest plugin, the entry point `pytest11`, which collects `*.test.yaml`
         files that have dotr's `rules:` key; pytest finds it in every project that has dotr installed, so it
         imports nothing of dotr until there is such a file. Run by cases.py.
Method:  nodes with places (io/yaml_nodes.py): what a term or a time is depends on the program.
Bad input: D4401 not YAML, a key that is not known, or a value of another kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import yaml
from msgspec import Struct, field

from dotr.errors import DataError
from dotr.events import Time
from dotr.io.time import UNITS
from dotr.io.yaml_nodes import Scalar, YamlReader
from dotr.lang.grammar.cursor import valid_iri
from dotr.program.names import duration
from dotr.source import Source, Span


class MessageStep(Struct, frozen=True):
    """`{ at, graph, insert, delete }`: one message."""

    at: Scalar
    graph: Scalar | None
    insert: Scalar | None
    delete: Scalar | None


class FilesStep(Struct, frozen=True):
    """`{ from: PATH, map: MAPPING }`: everything of a source, a table through a mapping."""

    path: Scalar
    mapping: Scalar | None = None


class GivenFact(Struct, frozen=True):
    """A fact of a query, as the temporal part sees it, instead of a graph it would be extracted from."""

    stream: Scalar
    at: Scalar
    values: Mapping[str, Scalar]


class FactsStep(Struct, frozen=True):
    """`{ facts: { Query: [ { at, attribute: term, … } ] } }`."""

    facts: tuple[GivenFact, ...]


Step: TypeAlias = MessageStep | FilesStep | FactsStep


class ExpectedEvent(Struct, frozen=True):
    """`{ rule, at, attribute: term, … }`: attributes that are not named may have any value; `at` None: at any
    time. `lists`: attributes with the members of a list, in order. `kind`: the key of the name, `rule` or
    `sequence`; None if only the name is given.
    """

    rule: Scalar
    at: Scalar | None
    values: Mapping[str, Scalar]
    span: Span
    lists: Mapping[str, tuple[Scalar, ...]] = {}
    kind: str | None = None


class ExpectedState(Struct, frozen=True):
    """`{ at, triples, not }`: what K(at) has and what it has not, as Turtle."""

    at: Scalar
    triples: Scalar | None
    absent: Scalar | None


class Case(Struct, frozen=True):
    """One test. `only`: no event comes but what is expected; those of PRIVATE rules never come out.
    `only_of`: none of these rules and sequences, PRIVATE or not. `until`: up to when time goes on behind the
    last message.
    """

    name: str
    span: Span
    stream: tuple[Step, ...] = ()
    expect: tuple[ExpectedEvent, ...] = ()
    never: tuple[ExpectedEvent, ...] = ()
    only: bool = False
    holds: tuple[ExpectedState, ...] = ()
    until: Scalar | None = None
    only_of: tuple[Scalar, ...] = ()

    @property
    def gives_facts(self) -> bool:
        return any(isinstance(step, FactsStep) for step in self.stream)


class Suite(Struct, frozen=True):
    """A test file. `rules`: paths as written; or `text`, the program. `unit` and `lateness` in µs."""

    source: Source
    rules: tuple[Scalar, ...]
    text: Scalar | None = None
    background: tuple[Scalar, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)
    unit: Time = 1_000_000
    lateness: Time = 0
    cases: tuple[Case, ...] = ()

    @property
    def path(self) -> str:
        return self.source.name


_SUITE: Final = ("rules", "prefixes", "background", "time_unit", "lateness", "tests")
_CASE: Final = ("name", "stream", "until", "expect", "never", "only", "holds")
_MESSAGE: Final = ("at", "graph", "insert", "delete")
_STATE: Final = ("at", "triples", "not")


def read_suite(source: Source) -> Suite:
    """A test file. Raises DataError with everything that is wrong with it."""
    reader = _SuiteReader(source, "D4401")
    suite = reader.suite()
    if reader.found.errors:
        raise DataError(reader.found.errors)
    return suite


class _SuiteReader(YamlReader):
    """Owns the findings about one file."""

    # -- the file

    def suite(self) -> Suite:
        root = self.root("a test file", "rules: FILE.dotr")
        empty = Suite(self.source, ())
        if root is None:
            return empty
        keys = self.mapping(root, "a test file", _SUITE, _SUITE)
        if keys is None:
            return empty
        self.needs(root, keys, ("rules", "tests"), "a test file")
        if isinstance(tests := keys.get("tests"), yaml.SequenceNode) and not tests.value:
            self.error(self.span(tests), "this file has no test", "add `- name: …` below `tests:`")
        text, rules = None, self.texts(keys.get("rules"), "rules")
        if len(rules) == 1 and "\n" in rules[0].text:
            text, rules = rules[0], ()
        return Suite(
            self.source,
            rules,
            text,
            self.texts(keys.get("background"), "background"),
            self._prefixes(keys.get("prefixes")),
            self._unit(keys.get("time_unit")),
            self._lateness(keys.get("lateness")),
            self.items(keys.get("tests"), "tests", self._case),
        )

    # -- its parts

    def _case(self, node: yaml.Node) -> Case | None:
        keys = self.mapping(node, "a test", _CASE, _CASE)
        if keys is None:
            return None
        self.needs(node, keys, ("name",), "a test")
        name = self.text(keys["name"], "name") if "name" in keys else None
        if not {"expect", "never", "only", "holds"} & keys.keys():
            self.error(
                self.span(node),
                "this test expects nothing",
                "add `expect:`, `never:`, `only: true` or `holds:`",
            )
        return Case(
            "" if name is None else name.text,
            self.span(node),
            self.items(keys.get("stream"), "stream", self._step),
            self.items(keys.get("expect"), "expect", self._event),
            self.items(keys.get("never"), "never", self._event),
            self._flag(only) if isinstance(only := keys.get("only"), yaml.ScalarNode) else False,
            self.items(keys.get("holds"), "holds", self._state),
            self.text(keys["until"], "until") if "until" in keys else None,
            () if isinstance(only, yaml.ScalarNode) else self.texts(only, "only"),
        )

    def _step(self, node: yaml.Node) -> Step | None:
        keys = self.mapping(node, "a step of a stream", (*_MESSAGE, "from", "map", "facts"))
        if keys is None:
            return None
        kinds = [kind for kind in ("from", "facts") if kind in keys]
        if "map" in keys and kinds != ["from"]:
            self.error(self.span(node), "`map` without a table", "write `{ from: TABLE, map: MAPPING }`")
            return None
        if kinds and len(keys) > 1 + ("map" in keys):
            self.error(self.span(node), f"`{kinds[0]}` stands alone in a step", "make it a step of its own")
            return None
        if "from" in keys:
            path = self.text(keys["from"], "from")
            mapping = self.text(keys["map"], "map") if "map" in keys else None
            return None if path is None else FilesStep(path, mapping)
        if "facts" in keys:
            return FactsStep(self._facts(keys["facts"]))
        self.needs(node, keys, ("at",), "a step of a stream")
        parts = {name: self.text(keys[name], name) for name in keys}
        if not {"graph", "insert", "delete"} & keys.keys():
            self.error(
                self.span(node),
                "this step brings nothing",
                'add `graph: "…"`; an empty graph is `graph: ""`',
            )
        at = parts.get("at")
        if at is None:
            return None
        return MessageStep(at, parts.get("graph"), parts.get("insert"), parts.get("delete"))

    def _facts(self, node: yaml.Node) -> tuple[GivenFact, ...]:
        queries = self.mapping(node, "`facts`", None) or {}
        places = self.keys(node)
        found: list[GivenFact] = []
        for name, facts in queries.items():
            for fact in self.items(facts, name, self._any_mapping):
                values = self.scalars(fact)
                at = values.pop("at", None)
                if at is None:
                    self.error(
                        self.span(fact), "this fact has no time", f"write `{{ at: 12, … }}` for {name}"
                    )
                    continue
                found.append(GivenFact(Scalar(name, places[name]), at, values))
        return tuple(found)

    def _event(self, node: yaml.Node) -> ExpectedEvent | None:
        if isinstance(node, yaml.ScalarNode):
            name = Scalar(node.value, self.span(node))
            return ExpectedEvent(name, None, {}, name.span)
        keys = self.mapping(node, "an expected event", None)
        if keys is None:
            return None
        kind = "sequence" if "sequence" in keys and "rule" not in keys else "rule"
        if kind not in keys:
            hint = "add `rule: …`, or `sequence: …` for a match of a sequence"
            self.error(self.span(node), "an expected event needs `rule` or `sequence`", hint)
        listed = {name: one for name, one in keys.items() if isinstance(one, yaml.SequenceNode)}
        lists = {name: self.texts(one, name) for name, one in listed.items() if name not in (kind, "at")}
        values = self.scalars(node, lists)
        subject, at = values.pop(kind, None), values.pop("at", None)
        return None if subject is None else ExpectedEvent(subject, at, values, self.span(node), lists, kind)

    def _state(self, node: yaml.Node) -> ExpectedState | None:
        keys = self.mapping(node, "an expected state", _STATE, _STATE)
        if keys is None:
            return None
        self.needs(node, keys, ("at",), "an expected state")
        parts = {name: self.text(keys[name], name) for name in keys}
        at = parts.get("at")
        if not {"triples", "not"} & keys.keys():
            self.error(self.span(node), "this state has no triples", 'add `triples: "…"` or `not: "…"`')
        return None if at is None else ExpectedState(at, parts.get("triples"), parts.get("not"))

    def _prefixes(self, node: yaml.Node | None) -> dict[str, str]:
        if node is None:
            return {}
        found = {}
        for name, scalar in self.scalars(node).items():
            if not valid_iri(scalar.text):
                self.error(scalar.span, f"`{scalar.text}` is not an absolute IRI", "give the whole IRI")
                continue
            found[name.removesuffix(":")] = scalar.text
        return found

    def _unit(self, node: yaml.Node | None) -> int:
        text = None if node is None else self.text(node, "time_unit")
        if text is not None and text.text not in UNITS:
            self.error(text.span, f"`{text.text}` is not a unit of time", "write s, ms or us")
        return UNITS.get("s" if text is None else text.text, 1_000_000)

    def _lateness(self, node: yaml.Node | None) -> int:
        text = None if node is None else self.text(node, "lateness")
        try:
            return 0 if text is None else duration(text.text)
        except ValueError:
            assert text is not None
            self.error(text.span, f"`{text.text}` is not a duration", "write 5 min or PT5M")
            return 0

    def _flag(self, node: yaml.Node) -> bool:
        text = self.text(node, "only")
        if text is not None and text.text not in ("true", "false"):
            self.error(
                text.span,
                f"`{text.text}` is neither true nor false",
                "write `only: true`, or `only: [ Fire ]`",
            )
        return text is not None and text.text == "true"

    def _any_mapping(self, node: yaml.Node) -> yaml.Node | None:
        return None if self.mapping(node, "a fact", None) is None else node
