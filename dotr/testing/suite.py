"""Test files: YAML to values, with every mistake reported at its place; collected by pytest, too.

Place:   read by `dotr test` and the pytest plugin, the entry point `pytest11`, which collects `*.test.yaml`
         files that have dotr's `rules:` key; pytest finds it in every project that has dotr installed, so it
         imports nothing of dotr until there is such a file. Run by cases.py.
Method:  the composed nodes of a safe YAML loader, never objects: every scalar is the string that was written
         (`10:30` and `no` are strings) and has a place; what a term or a time is depends on the program.
         Nothing of a document is ever executed.
Bad input: D4401 not YAML, a key that is not known, or a value of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from dotr.errors import DataError, Diagnostic, Diagnostics
from dotr.events import Time
from dotr.io.time import UNITS
from dotr.lang.grammar.cursor import nearest, valid_iri
from dotr.program.names import duration
from dotr.source import Source, Span


class Scalar(Struct, frozen=True):
    """A scalar of the file as written, without its quotes. `key`: where the key stands that has it."""

    text: str
    span: Span
    key: Span | None = None

    @property
    def named(self) -> Span:
        """Where its name is written."""
        return self.key or self.span


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
    time.
    """

    rule: Scalar
    at: Scalar | None
    values: Mapping[str, Scalar]
    span: Span


class ExpectedState(Struct, frozen=True):
    """`{ at, triples, not }`: what K(at) has and what it has not, as Turtle."""

    at: Scalar
    triples: Scalar | None
    absent: Scalar | None


class Case(Struct, frozen=True):
    """One test. `only`: no event comes but what is expected; those of PRIVATE rules never come out."""

    name: str
    span: Span
    stream: tuple[Step, ...] = ()
    expect: tuple[ExpectedEvent, ...] = ()
    never: tuple[ExpectedEvent, ...] = ()
    only: bool = False
    holds: tuple[ExpectedState, ...] = ()

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


T = TypeVar("T")

_SUITE: Final = ("rules", "prefixes", "background", "time_unit", "lateness", "tests")
_CASE: Final = ("name", "stream", "expect", "never", "only", "holds")
_MESSAGE: Final = ("at", "graph", "insert", "delete")
_STATE: Final = ("at", "triples", "not")
_DEEPEST = 50


def read_suite(source: Source) -> Suite:
    """A test file. Raises DataError with everything that is wrong with it."""
    reader = _SuiteReader(source)
    suite = reader.suite()
    if reader.found.errors:
        raise DataError(reader.found.errors)
    return suite


class _SuiteReader:
    """Owns the findings about one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found = Diagnostics()

    # -- the file

    def suite(self) -> Suite:
        root = self._root()
        empty = Suite(self.source, ())
        if root is None:
            return empty
        keys = self._mapping(root, "a test file", _SUITE, _SUITE)
        if keys is None:
            return empty
        self._needs(root, keys, ("rules", "tests"), "a test file")
        if isinstance(tests := keys.get("tests"), yaml.SequenceNode) and not tests.value:
            self._error(self._span(tests), "this file has no test", "add `- name: …` below `tests:`")
        text, rules = None, self._texts(keys.get("rules"), "rules")
        if len(rules) == 1 and "\n" in rules[0].text:
            text, rules = rules[0], ()
        return Suite(
            self.source,
            rules,
            text,
            self._texts(keys.get("background"), "background"),
            self._prefixes(keys.get("prefixes")),
            self._unit(keys.get("time_unit")),
            self._lateness(keys.get("lateness")),
            self._list(keys.get("tests"), "tests", self._case),
        )

    def _root(self) -> yaml.Node | None:
        text = self.source.text
        try:
            depth = deepest = 0
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                deepest = max(deepest, depth)
                if deepest > _DEEPEST:
                    self._error(self._all(), f"nested more than {_DEEPEST} deep", "a test file is flat")
                    return None
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            span = self._all() if mark is None else Span(self.source, mark.index, mark.index + 1)
            self._error(
                span, f"this is not YAML: {error.problem or error.context}", "quote strings with `:` or `#`"
            )
            return None
        except yaml.YAMLError as error:  # characters that YAML does not allow have a position, not a mark
            at = getattr(error, "position", 0)
            self._error(Span(self.source, at, at + 1), "this character is not allowed in YAML", "take it out")
            return None
        if root is None:
            self._error(self._all(), "this file is empty", "begin with `rules: FILE.dotr`")
        return root

    # -- its parts

    def _case(self, node: yaml.Node) -> Case | None:
        keys = self._mapping(node, "a test", _CASE, _CASE)
        if keys is None:
            return None
        self._needs(node, keys, ("name",), "a test")
        name = self._text(keys["name"], "name") if "name" in keys else None
        if not {"expect", "never", "only", "holds"} & keys.keys():
            self._error(
                self._span(node),
                "this test expects nothing",
                "add `expect:`, `never:`, `only: true` or `holds:`",
            )
        return Case(
            "" if name is None else name.text,
            self._span(node),
            self._list(keys.get("stream"), "stream", self._step),
            self._list(keys.get("expect"), "expect", self._event),
            self._list(keys.get("never"), "never", self._event),
            self._flag(keys.get("only")),
            self._list(keys.get("holds"), "holds", self._state),
        )

    def _step(self, node: yaml.Node) -> Step | None:
        keys = self._mapping(node, "a step of a stream", (*_MESSAGE, "from", "map", "facts"))
        if keys is None:
            return None
        kinds = [kind for kind in ("from", "facts") if kind in keys]
        if "map" in keys and kinds != ["from"]:
            self._error(self._span(node), "`map` without a table", "write `{ from: TABLE, map: MAPPING }`")
            return None
        if kinds and len(keys) > 1 + ("map" in keys):
            self._error(self._span(node), f"`{kinds[0]}` stands alone in a step", "make it a step of its own")
            return None
        if "from" in keys:
            path = self._text(keys["from"], "from")
            mapping = self._text(keys["map"], "map") if "map" in keys else None
            return None if path is None else FilesStep(path, mapping)
        if "facts" in keys:
            return FactsStep(self._facts(keys["facts"]))
        self._needs(node, keys, ("at",), "a step of a stream")
        parts = {name: self._text(keys[name], name) for name in keys}
        if not {"graph", "insert", "delete"} & keys.keys():
            self._error(
                self._span(node),
                "this step brings nothing",
                'add `graph: "…"`; an empty graph is `graph: ""`',
            )
        at = parts.get("at")
        if at is None:
            return None
        return MessageStep(at, parts.get("graph"), parts.get("insert"), parts.get("delete"))

    def _facts(self, node: yaml.Node) -> tuple[GivenFact, ...]:
        queries = self._mapping(node, "`facts`", None) or {}
        places = self._keys(node)
        found: list[GivenFact] = []
        for name, facts in queries.items():
            for fact in self._list(facts, name, self._any_mapping):
                values = self._scalars(fact)
                at = values.pop("at", None)
                if at is None:
                    self._error(
                        self._span(fact), "this fact has no time", f"write `{{ at: 12, … }}` for {name}"
                    )
                    continue
                found.append(GivenFact(Scalar(name, places[name]), at, values))
        return tuple(found)

    def _event(self, node: yaml.Node) -> ExpectedEvent | None:
        if isinstance(node, yaml.ScalarNode):
            name = Scalar(node.value, self._span(node))
            return ExpectedEvent(name, None, {}, name.span)
        keys = self._mapping(node, "an expected event", None)
        if keys is None:
            return None
        self._needs(node, keys, ("rule",), "an expected event")
        values = self._scalars(node)
        rule, at = values.pop("rule", None), values.pop("at", None)
        return None if rule is None else ExpectedEvent(rule, at, values, self._span(node))

    def _state(self, node: yaml.Node) -> ExpectedState | None:
        keys = self._mapping(node, "an expected state", _STATE, _STATE)
        if keys is None:
            return None
        self._needs(node, keys, ("at",), "an expected state")
        parts = {name: self._text(keys[name], name) for name in keys}
        at = parts.get("at")
        if not {"triples", "not"} & keys.keys():
            self._error(self._span(node), "this state has no triples", 'add `triples: "…"` or `not: "…"`')
        return None if at is None else ExpectedState(at, parts.get("triples"), parts.get("not"))

    def _prefixes(self, node: yaml.Node | None) -> dict[str, str]:
        if node is None:
            return {}
        found = {}
        for name, scalar in self._scalars(node).items():
            if not valid_iri(scalar.text):
                self._error(scalar.span, f"`{scalar.text}` is not an absolute IRI", "give the whole IRI")
                continue
            found[name.removesuffix(":")] = scalar.text
        return found

    def _unit(self, node: yaml.Node | None) -> int:
        text = None if node is None else self._text(node, "time_unit")
        if text is not None and text.text not in UNITS:
            self._error(text.span, f"`{text.text}` is not a unit of time", "write s, ms or us")
        return UNITS.get("s" if text is None else text.text, 1_000_000)

    def _lateness(self, node: yaml.Node | None) -> int:
        text = None if node is None else self._text(node, "lateness")
        try:
            return 0 if text is None else duration(text.text)
        except ValueError:
            assert text is not None
            self._error(text.span, f"`{text.text}` is not a duration", "write 5 min or PT5M")
            return 0

    def _flag(self, node: yaml.Node | None) -> bool:
        text = None if node is None else self._text(node, "only")
        if text is not None and text.text not in ("true", "false"):
            self._error(text.span, f"`{text.text}` is neither true nor false", "write `only: true`")
        return text is not None and text.text == "true"

    # -- nodes

    def _any_mapping(self, node: yaml.Node) -> yaml.Node | None:
        return None if self._mapping(node, "a fact", None) is None else node

    def _list(
        self, node: yaml.Node | None, name: str, read: Callable[[yaml.Node], T | None]
    ) -> tuple[T, ...]:
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._error(
                self._span(node),
                f"`{name}` is a list",
                f"write `{name}: [ … ]`, or a line with `- ` for each",
            )
            return ()
        return tuple(value for item in node.value if (value := read(item)) is not None)

    def _texts(self, node: yaml.Node | None, name: str) -> tuple[Scalar, ...]:
        if node is None or isinstance(node, yaml.SequenceNode):
            return self._list(node, name, lambda item: self._text(item, name))
        text = self._text(node, name)
        return () if text is None else (text,)

    def _text(self, node: yaml.Node, name: str) -> Scalar | None:
        if isinstance(node, yaml.ScalarNode):
            return Scalar(node.value, self._span(node))
        self._error(self._span(node), f"`{name}` is one value", "quote a string that begins with `{` or `[`")
        return None

    def _scalars(self, node: yaml.Node) -> dict[str, Scalar]:
        keys = self._mapping(node, "this", None) or {}
        places = self._keys(node)
        texts = {name: self._text(value, name) for name, value in keys.items()}
        return {name: replace(text, key=places[name]) for name, text in texts.items() if text is not None}

    def _keys(self, node: yaml.Node) -> dict[str, Span]:
        """Where the keys of a mapping stand, the first of each name."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return {key.value: self._span(key) for key, _ in reversed(pairs) if isinstance(key, yaml.ScalarNode)}

    def _mapping(
        self, node: yaml.Node, what: str, known: tuple[str, ...] | None, shown: tuple[str, ...] = ()
    ) -> Mapping[str, yaml.Node] | None:
        """The values of a mapping by key; `known` None allows any key."""
        if not isinstance(node, yaml.MappingNode):
            self._error(
                self._span(node), f"{what} is a mapping", "write `key: value` lines, or `{ key: value }`"
            )
            return None
        keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or (known is not None and name not in known):
                hint = nearest(name, known or ()) or "known keys: " + ", ".join(shown or known or ())
                self._error(self._span(key), f"`{name}` is not a key of {what}", hint)
            elif name in keys:
                self._error(self._span(key), f"`{name}` stands here twice", "take one of them out")
            else:
                keys[name] = value
        return keys

    def _needs(self, node: yaml.Node, keys: Mapping[str, object], needed: tuple[str, ...], what: str) -> None:
        for name in needed:
            if name not in keys:
                self._error(self._span(node), f"{what} needs `{name}`", f"add `{name}: …`")

    # -- places

    def _span(self, node: yaml.Node) -> Span:
        start, end = node.start_mark.index, node.end_mark.index
        stop = self.source.text.find("\n", start)
        return Span(self.source, start, end if stop < 0 else min(end, stop))

    def _all(self) -> Span:
        return Span(self.source, 0, 1)

    def _error(self, span: Span, message: str, hint: str) -> None:
        self.found.found.append(Diagnostic("D4401", message, span, hint=hint))
