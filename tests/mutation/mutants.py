"""Every small mistake that a file can be given: what to replace, where, by what.

Place:   __main__.py takes a sample of them.
Method:  the syntax tree says where comparisons, operators, constants, branches and statements stand, and
         each is replaced in the text by its neighbour. Templates of generated code are strings to Python: in
         the strings of files that write code the same is done by pattern. Types, docstrings, errors' messages
         and `__repr__` are left alone: tests need not hold them.
Why not: a published tool (mutmut, Cosmic Ray): they leave strings alone, and half of the meaning of `detect/`
         and `joins/` stands in templates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARED: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
_COMPUTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
_IN_TEMPLATES = (
    (r"\bcontinue\b", "pass"),
    (r"\bbreak\b", "pass"),
    (r" >= ", " > "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" < ", " <= "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" is not None", " is None"),
    (r" is None", " is not None"),
    (r" not in ", " in "),
    (r"(?<! not)(?<!for) in (?=\w+:?$)", " not in "),
    (r" and ", " or "),
    (r" or ", " and "),
    (r" \+ 1\b", ""),
    (r" - 1\b", ""),
    (r"\bif not ", "if "),
    (r"\bmax\(", "min("),
    (r"\bmin\(", "max("),
    (r"bisect_left", "bisect_right"),
    (r"bisect_right", "bisect_left"),
)
WRITERS = frozenset(
    {
        *("detect/code.py", "detect/columns.py", "detect/operators.py", "detect/scope.py"),
        *("detect/thresholds.py", "joins/code.py", "joins/filters.py", "windows/body_code.py"),
    }
)
"""Files whose strings are templates of generated code."""

_SKIPPED_CALLS = {"Diagnostic", "cast", "TypeVar", "field", "NewType", "Warned"}
_SKIPPED_FUNCTIONS = {"__repr__", "__str__", "__hash__"}


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One replacement in one file. `start` and `end` count bytes of its UTF-8 text."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: `{self.before}` → `{self.after}`"

    def applied(self, content: bytes) -> bytes:
        return content[: self.start] + self.after.encode() + content[self.end :]


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """The mutants of a file, in the order of the text. Each is a program that Python can compile."""
    content = (root / file).read_bytes()
    found = sorted(set(_Finder(file, content).found()))
    return [mutant for mutant in found if _compiles(mutant.applied(content))]


def _compiles(content: bytes) -> bool:
    try:
        compile(content, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    """Owns the text of one file and where its lines begin."""

    def __init__(self, file: str, content: bytes) -> None:
        self._file, self._content = file, content
        self._begins = [0]
        for line in content.split(b"\n"):
            self._begins.append(self._begins[-1] + len(line) + 1)

    def found(self) -> Iterator[Mutant]:
        yield from self._walk(ast.parse(self._content))

    def _at(self, line: int, column: int) -> int:
        return self._begins[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _mutant(self, start: int, end: int, after: str) -> Mutant:
        before = self._content[start:end].decode()
        return Mutant(self._file, self._content.count(b"\n", 0, start) + 1, start, end, before, after)

    def _walk(self, node: ast.AST) -> Iterator[Mutant]:
        yield from self._here(node)
        for child in self._children(node):
            yield from self._walk(child)

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        """What of a node is code that runs and means something."""
        match node:
            case ast.FunctionDef(name=name) if name in _SKIPPED_FUNCTIONS:
                return
            case ast.FunctionDef():
                yield from node.args.defaults
                yield from node.body
            case ast.ClassDef():
                yield from node.body
            case ast.AnnAssign(value=value):
                if value is not None:
                    yield value
            case ast.Assert() | ast.Raise() | ast.Import() | ast.ImportFrom():
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return
            case ast.Call(func=ast.Name(id=name)) if name in _SKIPPED_CALLS:
                return
            case ast.JoinedStr():  # what stands in it has no place before Python 3.12
                return
            case ast.Expr(value=ast.Constant()):  # a docstring
                return
            case _:
                yield from ast.iter_child_nodes(node)

    def _here(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                sign, others = _COMPARED[type(op)]
                for other in others:
                    yield from self._between(left, right, sign, other)
            case ast.BinOp(left=left, op=computed, right=right) if type(computed) in _COMPUTED:
                yield from self._between(left, right, *_COMPUTED[type(computed)])
            case ast.BoolOp(op=op, values=[left, right, *_]):
                yield from self._between(
                    left, right, *(("and", "or") if isinstance(op, ast.And) else ("or", "and"))
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                start, _ = self._span(node)
                inner, _ = self._span(operand)
                yield self._mutant(start, inner, "")
            case ast.Constant(value=bool() as value):
                yield self._mutant(*self._span(node), str(not value))
            case ast.Constant(value=int() as value):
                yield self._mutant(*self._span(node), str(value + 1))
            case ast.Continue() | ast.Break():
                yield self._mutant(*self._span(node), "pass")
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                start, end = self._span(test)
                yield self._mutant(start, end, f"not ({self._content[start:end].decode()})")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._mutant(*self._span(value), "None")
            case ast.Expr(value=ast.Call()):
                yield self._mutant(*self._span(node), "pass")
            case ast.JoinedStr() | ast.Constant(value=str()):
                yield from self._template(node)
            case ast.Call(func=ast.Name(id="min" | "max" as name) as func):
                yield self._mutant(*self._span(func), "max" if name == "min" else "min")
            case _:
                pass

    def _between(self, left: ast.expr, right: ast.expr, sign: str, other: str) -> Iterator[Mutant]:
        """The operator between two operands; nothing where parentheses or comments make that unclear."""
        start, end = self._span(left)[1], self._span(right)[0]
        gap = self._content[start:end].decode()
        if gap.count(sign) == 1:
            place = start + len(gap[: gap.index(sign)].encode())
            yield self._mutant(place, place + len(sign), other)

    def _template(self, node: ast.expr) -> Iterator[Mutant]:
        """Mistakes in generated code."""
        if self._file.removeprefix("dotr/") not in WRITERS:
            return
        start, end = self._span(node)
        text = self._content[start:end].decode()
        for pattern, other in _IN_TEMPLATES:
            for match in re.finditer(pattern, text):
                begin = start + len(text[: match.start()].encode())
                yield self._mutant(begin, begin + len(match[0].encode()), other)
