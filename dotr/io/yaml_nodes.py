"""YAML as nodes with places, for files of dotr's own: every scalar is the string that was written.

Place:   for readers of whole files, such as testing/suite.py.
Method:  the composed nodes of a safe YAML loader, never objects: `10:30` and `no` are strings, and each has a
         place. Nothing of a document is ever executed. Aliases can be refused: a few lines of them stand for
         more values than memory holds.
Bad input: the reader's own code, at every place that is not what was wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TypeVar

import yaml
from msgspec import Struct
from msgspec.structs import replace

from dotr.errors import Diagnostic, Diagnostics
from dotr.lang.grammar.cursor import nearest
from dotr.source import Source, Span

T = TypeVar("T")

_DEEPEST = 50


class Scalar(Struct, frozen=True):
    """A scalar of the file as written, without its quotes. `key`: where the key stands that has it."""

    text: str
    span: Span
    key: Span | None = None

    @property
    def named(self) -> Span:
        """Where its name is written."""
        return self.key or self.span


class YamlReader:
    """Owns the findings about one file, all of one code."""

    def __init__(self, source: Source, code: str) -> None:
        self.source = source
        self.code = code
        self.found = Diagnostics()

    def root(self, what: str, first: str, aliases: bool = True) -> yaml.Node | None:
        """The document, None if it cannot be read. `first`: what a file begins with; without `aliases` and
        tags, which are refused, what is read is no longer than the text.
        """
        text = self.source.text
        try:
            depth = deepest = 0
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                deepest = max(deepest, depth)
                if deepest > _DEEPEST:
                    self.error(self.start(), f"nested more than {_DEEPEST} deep", f"{what} is flat")
                    return None
                if not aliases and (odd := _odd(event)):
                    self.error(
                        self.span(event), f"{odd} is not read in {what}", "write out what it stands for"
                    )
                    return None
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            span = self.start() if mark is None else Span(self.source, mark.index, mark.index + 1)
            self.error(
                span, f"this is not YAML: {error.problem or error.context}", "quote strings with `:` or `#`"
            )
            return None
        except yaml.YAMLError as error:  # characters that YAML does not allow have a position, not a mark
            at = getattr(error, "position", 0)
            self.error(Span(self.source, at, at + 1), "this character is not allowed in YAML", "delete it")
            return None
        if root is None:
            self.error(self.start(), "this file is empty", f"begin with `{first}`")
        return root

    # -- nodes

    def items(
        self, node: yaml.Node | None, name: str, read: Callable[[yaml.Node], T | None]
    ) -> tuple[T, ...]:
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self.error(
                self.span(node),
                f"`{name}` is a list",
                f"write `{name}: [ … ]`, or a line with `- ` for each",
            )
            return ()
        return tuple(value for item in node.value if (value := read(item)) is not None)

    def texts(self, node: yaml.Node | None, name: str) -> tuple[Scalar, ...]:
        if node is None or isinstance(node, yaml.SequenceNode):
            return self.items(node, name, lambda item: self.text(item, name))
        text = self.text(node, name)
        return () if text is None else (text,)

    def text(self, node: yaml.Node, name: str) -> Scalar | None:
        if isinstance(node, yaml.ScalarNode):
            return Scalar(node.value, self.span(node))
        self.error(self.span(node), f"`{name}` is one value", "quote a string that begins with `{` or `[`")
        return None

    def scalars(self, node: yaml.Node, but: Container[str] = ()) -> dict[str, Scalar]:
        keys = self.mapping(node, "this", None) or {}
        places = self.keys(node)
        texts = {name: self.text(value, name) for name, value in keys.items() if name not in but}
        return {name: replace(text, key=places[name]) for name, text in texts.items() if text is not None}

    def keys(self, node: yaml.Node) -> dict[str, Span]:
        """Where the keys of a mapping stand, the first of each name."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return {key.value: self.span(key) for key, _ in reversed(pairs) if isinstance(key, yaml.ScalarNode)}

    def mapping(
        self, node: yaml.Node, what: str, known: tuple[str, ...] | None, shown: tuple[str, ...] = ()
    ) -> Mapping[str, yaml.Node] | None:
        """The values of a mapping by key; `known` None allows any key."""
        if not isinstance(node, yaml.MappingNode):
            self.error(
                self.span(node), f"{what} is a mapping", "write `key: value` lines, or `{ key: value }`"
            )
            return None
        keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or (known is not None and name not in known):
                hint = nearest(name, known or ()) or "known keys: " + ", ".join(shown or known or ())
                self.error(self.span(key), f"`{name}` is not a key of {what}", hint)
            elif name in keys:
                self.error(self.span(key), f"`{name}` stands here twice", "take one of them out")
            else:
                keys[name] = value
        return keys

    def needs(self, node: yaml.Node, keys: Mapping[str, object], needed: tuple[str, ...], what: str) -> None:
        for name in needed:
            if name not in keys:
                self.error(self.span(node), f"{what} needs `{name}`", f"add `{name}: …`")

    # -- places

    def span(self, node: yaml.Node | yaml.Event) -> Span:
        """Where a node is, in its first line."""
        assert node.start_mark is not None
        assert node.end_mark is not None
        start, end = node.start_mark.index, node.end_mark.index
        stop = self.source.text.find("\n", start)
        return Span(self.source, start, end if stop < 0 else min(end, stop))

    def start(self) -> Span:
        return Span(self.source, 0, 1)

    def error(self, span: Span, message: str, hint: str) -> None:
        self.found.found.append(Diagnostic(self.code, message, span, hint=hint))


def _odd(event: yaml.Event) -> str:
    """What an event has that a plain document has not."""
    if isinstance(event, yaml.AliasEvent):
        return f"the alias `*{event.anchor}`"
    tag = getattr(event, "tag", None)
    return f"the tag `{tag}`" if tag is not None else ""
