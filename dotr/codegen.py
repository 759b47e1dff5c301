"""Functions generated as Python source: names, lines, and the one place where they are compiled.

Place:   every code generator uses it: joins/, enrich/, windows/, detect/, emit/templates.py, and io/tables/
         for mappings.
Method:  the source text holds only names that this package chose and small numbers; what a user wrote (terms,
         durations, conditions) enters through the namespace. Equal texts are compiled once, so that rules and
         plans of one shape share their code.
Why not: closures over closures: each hop costs a call, and a rule has a dozen.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dotr.budget import CHUNK
from dotr.rdf.index import has

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType

_CODE: dict[str, CodeType] = {}


def execute(source: str, name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """The namespace after the source, which defines functions in it; `name` is its file in tracebacks."""
    code = _CODE.get(source)
    if code is None:
        if len(_CODE) > 10_000:
            _CODE.clear()
        code = _CODE[source] = compile(source, name, "exec")
    exec(code, namespace)  # noqa: S102  # text of this package alone, see Method
    return namespace


def make(name: str, source: str, names: Names) -> Callable[..., Any]:
    """The function that the source defines, over the objects that `names` bound."""
    execute(source, f"<generated {name}>", names.namespace)
    function: Callable[..., Any] = names.namespace[name]  # type: ignore[assignment]  # the source defines it
    function.__dotr_source__ = source  # type: ignore[attr-defined]  # read by `dotr plan --code`
    return function


def source_of(function: Callable[..., Any]) -> str:
    """The source that `make` made a function from."""
    return str(function.__dotr_source__)  # type: ignore[attr-defined]  # set by make


def row_of(columns: Sequence[str]) -> str:
    """Source of a tuple."""
    return f"({', '.join(columns)}{',' if len(columns) == 1 else ''})"


class Names:
    """Owns the namespace of one generated function: every object that is not a local comes in through it."""

    def __init__(self) -> None:
        self.namespace: dict[str, object] = {
            "__builtins__": {},
            "STR": str,
            "HAS": has,
            "CHAIN": chain,
            "TUPLE": tuple,
            "LEN": len,
            "CHUNK": CHUNK,
        }
        self._bound: dict[int, str] = {}
        self._count = 0

    def bind(self, value: object, prefix: str) -> str:
        """The name of an object; the same object keeps its name."""
        name = self._bound.get(id(value))
        if name is None or self.namespace[name] is not value:
            name = f"{prefix}{self._count}"
            self._count += 1
            self._bound[id(value)] = name
            self.namespace[name] = value  # which also keeps its id alive
        return name

    def constant(self, term: str) -> str:
        return self.bind(term, "K")


class Reserved(Struct):
    """A reserved line, to be filled later."""

    indent: str
    text: str = "pass"

    def __str__(self) -> str:
        return self.indent + self.text


class CodeSource:
    """Owns the lines of a function, of the functions it calls, and their namespace."""

    def __init__(self) -> None:
        self._main: list[str | Reserved] = []
        self._lines = self._main
        self._others: list[str | Reserved] = []
        self._depth = 1
        self._names: dict[str, Any] = {}
        self._known: dict[tuple[str, int], str] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def reserve(self) -> Reserved:
        """A line to be filled later."""
        kept = Reserved("    " * self._depth)
        self._lines.append(kept)
        return kept

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head:` and what is written meanwhile, one level deeper."""
        self.line(head + ":")
        self._depth += 1
        yield
        self._depth -= 1

    def open(self, head: str) -> None:
        """A block that stays open until `close`."""
        self.line(head + ":")
        self._depth += 1

    @property
    def depth(self) -> int:
        return self._depth

    def call(self, name: str, parameters: str) -> None:
        """Call a new function here; what is written from now on, up to `resume`, is its body."""
        self.line(f"{name}({parameters})")
        if self._lines is not self._main:
            self._others += self._lines
        self._lines = [f" def {name}({parameters}):"]
        self._depth = 1

    @contextmanager
    def aside(self, name: str, parameters: str) -> Iterator[list[str | Reserved]]:
        """Another function beside this one: what is written meanwhile is its body, whose lines it yields."""
        before = self._lines, self._depth
        self._lines, self._depth = [f" def {name}({parameters}):"], 1
        body = self._lines
        yield body
        self._others += body
        self._lines, self._depth = before

    def resume(self, depth: int) -> None:
        """Return to the main function, at a depth that `depth` returned."""
        if self._lines is not self._main:
            self._others += self._lines
        self._lines, self._depth = self._main, depth

    def name(self, prefix: str, value: object) -> str:
        """A name for a value in the namespace; the same object gets one name."""
        known = self._known.get((prefix, id(value)))
        if known is None:
            known = f"{prefix}_{len(self._names)}"
            self._names[known] = value
            self._known[(prefix, id(value))] = known
        return known

    def function(self, parameters: str) -> Callable[..., Any]:
        """The finished function, its named values bound. Equal text is compiled once per process."""
        text = "\n".join(
            [
                f"def make({', '.join(self._names)}):",
                *map(str, self._others),
                f" def run({parameters}):",
                *map(str, self._main),
                " return run",
            ]
        )
        scope = execute(text, "<rule>", {})
        made: Callable[..., Any] = scope["make"](**self._names)
        return made
