"""From paths to syntax: files read, libraries brought in, parameters given their values.

Place:   between the parsers and names.py. Files come through a function that is passed in.
Method:  language.md, sec. 2, "pattern libraries". A library is parsed again for every IMPORT with the values
         of that import, so that a parameter is put in as a term by the parser itself, never as text.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from dotr.errors import Diagnostic, Diagnostics, DotrError, Severity
from dotr.lang.grammar import syntax
from dotr.lang.grammar.cursor import Cursor, nearest
from dotr.lang.grammar.dlog import DatalogParser
from dotr.lang.grammar.dotr import DotrParser
from dotr.lang.grammar.lars import LarsFile, LarsParser
from dotr.program import DatalogRule, Entailment
from dotr.source import Source, Span

Reader: TypeAlias = Callable[[str], str]
"""path → text; raises OSError (and UnicodeDecodeError) when it cannot."""

SHIPPED = "dotr:"
"""Paths that begin so name files of the package: `dotr:patterns/lost.dotr`."""


_KEYWORDS: Mapping[str, str] = {
    ".dotr": "IMPORT",
    ".ttl": "BACKGROUND",
    ".nt": "BACKGROUND",
    ".dlog": "RULES",
    ".lars": "LARS",
}
"""Ending of a file → the keyword that names it."""


class LoadedFile(Struct, eq=False):
    """One reading of one .dotr file: a file given by the user, or an import of a library.

    `prefix` stands before the names of its rules and queries. `given`: query parameter → the name, valid in
    `parent`, that the import hands in.
    """

    path: str
    prefix: str
    parent: LoadedFile | None = None
    given: Mapping[str, syntax.Name] = field(default_factory=dict)
    expected: dict[str, syntax.QueryParameter] = field(default_factory=dict)
    open: bool = False


class Loaded(Struct):
    """Everything that the files define, in program order."""

    definitions: list[tuple[LoadedFile, syntax.DefinitionSyntax]] = field(default_factory=list)
    imports: list[tuple[LoadedFile, syntax.ImportSyntax]] = field(default_factory=list)
    holds: list[tuple[LoadedFile, syntax.HoldSyntax]] = field(default_factory=list)
    units: list[LoadedFile] = field(default_factory=list)
    lars: list[tuple[LoadedFile, LarsFile]] = field(default_factory=list)
    datalog: list[DatalogRule] = field(default_factory=list)
    background: dict[str, Span] = field(default_factory=dict)
    entailment: Entailment = Entailment.NONE
    prefixes: dict[str, str] = field(default_factory=dict)
    open_parameters: list[syntax.QueryParameter | syntax.ValueParameter] = field(default_factory=list)


def join(file: str, path: str) -> str:
    """A path as written in `file`, relative to it unless absolute or of the package."""
    if path.startswith((SHIPPED, "/")) or path[1:3] in (":\\", ":/"):
        return path
    if file.startswith(SHIPPED):
        return SHIPPED + posixpath.normpath(posixpath.join(posixpath.dirname(file[len(SHIPPED) :]), path))
    return posixpath.normpath(posixpath.join(posixpath.dirname(file.replace("\\", "/")), path))


class Loader:
    """Owns what has been read so far, and the stack of imports that are being read.

    `removed`: (file, name) of rules to pass over, as a deployment has them that were taken out of it; the
    file is the one given by the user, whichever library the rule stands in. `parameters`: value parameters of
    the user's own files, as text, instead of their defaults.
    """

    def __init__(
        self,
        read: Reader | None,
        found: Diagnostics,
        removed: Collection[tuple[str, str]] = (),
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.loaded = Loaded()
        self._values = {} if parameters is None else dict(parameters)
        self._declared: set[str] = set()
        self._removed = removed
        self._read = read
        self._found = found
        self._stack: list[str] = []
        self._datalog_read: set[str] = set()
        self._lars_read: set[tuple[str, str]] = set()  # (path, prefix)
        self._entailment: Span | None = None
        self._cursors: list[Cursor] = []

    def unused_prefixes(self) -> None:
        """Warn about prefixes that their text declares and never uses; silent about texts with errors, and
        about prefixes of a library that comes with dotr: they shorten its events in the output.
        """
        written = {
            cursor.prefixes[prefix]
            for cursor in self._cursors
            if cursor.source.name.startswith(SHIPPED)
            for prefix in cursor.used
            if prefix in cursor.prefixes
        }
        broken = {d.span.source.name for d in self._found.errors if d.span is not None}
        reported: set[str] = set()
        for cursor in self._cursors:
            name = cursor.source.name
            if name not in broken and name not in reported:
                reported.add(name)
                cursor.report_unused(written=written)

    # -- texts ------------------------------------------------------------

    def paths(self, paths: Sequence[str]) -> None:
        """Read every file: .dlog as Datalog, .lars as LARS, anything else as .dotr."""
        for path in dict.fromkeys(paths):
            if path.endswith(".dlog"):
                self._datalog(path, None)
            elif path.endswith(".lars"):
                self._lars(LoadedFile(path, "", open=True), path, None)
            else:
                text = self._text(path, None)
                if text is not None:
                    self.program(Source(path, text))

    def program(self, source: Source) -> None:
        """One .dotr text of the user's own."""
        unit = LoadedFile(source.name, "", open=True)
        self._stack.append(source.name)
        self._unit(unit, source, {name: value for name in self._values if (value := self._given(name))})
        self._stack.pop()

    def check_parameters(self) -> None:
        """Report values that were given to parameters which no file of the user's own declares."""
        for name in self._values:
            if name not in self._declared:
                hint = nearest(name, self._declared, "?") or f"declare it: `PARAMETER ?{name} := …`"
                place = f"--param {name}={self._values[name]}"
                self._found.found.append(
                    Diagnostic("D1118", f"there is no parameter `?{name}`", place=place, hint=hint)
                )

    def _given(self, name: str) -> syntax.ParameterValue | None:
        """The value given to a parameter, read as PARAMETER reads its default."""
        text = f"PARAMETER ?{name} := {self._values[name]}"
        found = Diagnostics()
        statements = DotrParser(Source("--param", text), found, {}).file().statements
        if not found.errors and len(statements) == 1 and isinstance(statements[0], syntax.ValueParameter):
            return statements[0].default
        self._found.found.append(
            Diagnostic(
                "D1118",
                f"`{self._values[name]}` is not a value of a parameter",
                place=f"--param {name}={self._values[name]}",
                hint='write a number, a duration such as "5 min", a "string" or an <IRI>',
            )
        )
        return None

    def _text(self, path: str, span: Span | None) -> str | None:
        """The text of a file, or None and a finding."""
        try:
            if self._read is None:
                raise FileNotFoundError("these rules were given as a string, so they cannot name files")
            return self._read(path)
        except DotrError as error:
            self._found.found += error.diagnostics
            return None
        except UnicodeDecodeError:
            message, label, hint = f"`{path}` is not UTF-8 text", "", "convert it to UTF-8"
        except IsADirectoryError:
            message, label, hint = f"`{path}` is a folder", "", "name the files in it"
        except FileNotFoundError as error:
            message, label = f"there is no file `{path}`", "" if error.errno else str(error)
            hint = "paths are relative to the file that names them" if span is not None else ""
            if path.startswith(SHIPPED):
                hint = "dotr ships <dotr:patterns/…> and <dotr:rules/…>: see their README"
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            whole = reason.startswith("is ")  # a pipe
            message, label, hint = f"`{path}` cannot be read", "" if whole else reason, ""
            message = f"`{path}` {reason}" if whole else message
        self._found.found.append(
            Diagnostic("D1000", message, span, label, (), hint, place="" if span is not None else path)
        )
        return None

    def _datalog(self, path: str, span: Span | None) -> None:
        if path in self._datalog_read:
            return
        self._datalog_read.add(path)
        text = self._text(path, span)
        if text is None:
            return
        parser = DatalogParser(Source(path, text), self._found)
        self.loaded.datalog.extend(parser.rules())
        if path.startswith(SHIPPED):
            return  # what dotr ships keeps its prefixes to itself
        self._cursors.append(parser.cursor)
        for prefix, value in parser.cursor.prefixes.items():
            self.loaded.prefixes.setdefault(prefix, value)

    def _lars(self, unit: LoadedFile, path: str, span: Span | None) -> None:
        """What holds, once under each prefix."""
        if (path, unit.prefix) in self._lars_read:
            return
        self._lars_read.add((path, unit.prefix))
        text = self._text(path, span)
        if text is None:
            return
        parser = LarsParser(Source(path, text), self._found)
        self.loaded.lars.append((unit, parser.file()))
        self._cursors.append(parser.cursor)
        if unit.parent is None:
            for prefix, value in parser.cursor.prefixes.items():
                self.loaded.prefixes.setdefault(prefix, value)

    # -- units ------------------------------------------------------------

    def _unit(self, unit: LoadedFile, source: Source, values: Mapping[str, syntax.ParameterValue]) -> None:
        """Read one text and everything it names, in order."""
        self.loaded.units.append(unit)
        parser = DotrParser(source, self._found, values)
        file = parser.file()
        self._cursors.append(parser.cursor)
        if unit.parent is None:
            for prefix, value in file.prefixes.items():
                self.loaded.prefixes.setdefault(prefix, value)
        self._parameters(unit, file, values)
        for statement in file.statements:
            match statement:
                case syntax.QuerySyntax() | syntax.RuleSyntax() | syntax.SequenceSyntax():
                    if (self._stack[0], unit.prefix + statement.name.text) not in self._removed:
                        self.loaded.definitions.append((unit, statement))
                case syntax.BackgroundSyntax(paths):
                    for path in paths:
                        self.loaded.background.setdefault(join(unit.path, path.text), path.span)
                case syntax.RulesSyntax(paths):
                    for path in paths:
                        self._rules_path(unit, path)
                case syntax.LarsSyntax(paths):
                    for path in paths:
                        self._lars_path(unit, path)
                case syntax.EntailmentSyntax(name):
                    self._set_entailment(name)
                case syntax.HoldSyntax():
                    self.loaded.holds.append((unit, statement))
                case syntax.ImportSyntax():
                    self._import(unit, statement)
                case syntax.QueryParameter() | syntax.ValueParameter():
                    pass

    def _rules_path(self, unit: LoadedFile, path: syntax.PathSyntax) -> None:
        if self._is_of(path, "RULES", "Datalog"):
            self._datalog(join(unit.path, path.text), path.span)

    def _lars_path(self, unit: LoadedFile, path: syntax.PathSyntax) -> None:
        if self._is_of(path, "LARS", "LARS"):
            self._lars(unit, join(unit.path, path.text), path.span)

    def _is_of(self, path: syntax.PathSyntax, keyword: str, what: str) -> bool:
        """Whether a file may stand after a keyword, as its name says."""
        lower = path.text.lower()
        right = next((word for ending, word in _KEYWORDS.items() if lower.endswith(ending)), keyword)
        if right != keyword:
            self._found.error(
                "D1016",
                f"`{path.text}` is not {what}",
                path.span,
                hint=f"write `{right} <{path.text}>`",
            )
        return right == keyword

    def _set_entailment(self, name: syntax.Name) -> None:
        if name.text.lower() not in [e.value for e in Entailment]:
            hint = nearest(name.text, [e.value for e in Entailment])
            self._found.error("D1015", f"`{name.text}` is not an entailment", name.span,
                              hint=hint or "write none, rdfs or owl2rl")  # fmt: skip
            return
        value = Entailment(name.text.lower())
        if self._entailment is not None and value is not self.loaded.entailment:
            self._found.error(
                "D1015",
                f"ENTAILMENT is {self.loaded.entailment} as well as {value}",
                name.span,
                hint="keep one of them",
                notes=(f"the other is at {self._entailment}",),
            )
            return
        self._entailment, self.loaded.entailment = name.span, value
        if value is not Entailment.NONE:
            self._datalog(f"{SHIPPED}rules/{value}.dlog", name.span)

    def _parameters(
        self, unit: LoadedFile, file: syntax.FileSyntax, values: Mapping[str, syntax.ParameterValue]
    ) -> None:
        """Check that every parameter has a value, or the file is a library that is examined by itself."""
        seen: dict[str, Span] = {}
        for statement in file.statements:
            if not isinstance(statement, syntax.QueryParameter | syntax.ValueParameter):
                continue
            if unit.parent is None and isinstance(statement, syntax.ValueParameter):
                self._declared.add(statement.name.text)
            query = isinstance(statement, syntax.QueryParameter)
            key = statement.name.text if query else f"?{statement.name.text}"
            if key in seen:
                self._found.error(
                    "D1116",
                    f"the parameter `{key}` is declared twice",
                    statement.name.span,
                    hint="delete one of them",
                    notes=(f"first declared at {seen[key]}",),
                )
                continue
            seen[key] = statement.name.span
            if isinstance(statement, syntax.QueryParameter):
                unit.expected[statement.name.text] = statement
                if statement.name.text not in unit.given:
                    self.loaded.open_parameters.append(statement)
            elif statement.name.text not in values and statement.default is None:
                self.loaded.open_parameters.append(statement)

    # -- imports ------------------------------------------------------------

    def _import(self, unit: LoadedFile, statement: syntax.ImportSyntax) -> None:
        path = join(unit.path, statement.path.text)
        if path in self._stack:
            cycle = [*self._stack[self._stack.index(path) :], path]
            self._found.error(
                "D1110",
                "files import each other in a circle",
                statement.path.span,
                hint="move what both need into a third file",
                notes=(" imports ".join(f"`{p}`" for p in cycle),),
            )
            return
        if len(self._stack) > 32:
            self._found.error("D1005", "imports nest deeper than 32 levels", statement.path.span)
            return
        text = self._text(path, statement.path.span)
        if text is None:
            return
        prefix = unit.prefix + (f"{statement.alias.text}_" if statement.alias is not None else "")
        inner = LoadedFile(path, prefix, unit, {name.text: given for name, given in statement.queries})
        values = {name.text: value for name, value in statement.values}
        source = Source(path, text)
        if not self._arguments(source, statement):
            return
        self.loaded.imports.append((inner, statement))
        before = len(self._found.found)
        self._stack.append(path)
        self._unit(inner, source, values)
        self._stack.pop()
        self._drop_repeated(before)

    def _arguments(self, source: Source, statement: syntax.ImportSyntax) -> bool:
        """Whether the WITH of an import fits the parameters that the file declares."""
        silent = Diagnostics()
        declared = [
            s
            for s in DotrParser(source, silent).file().statements
            if isinstance(s, syntax.QueryParameter | syntax.ValueParameter)
        ]
        queries = {d.name.text for d in declared if isinstance(d, syntax.QueryParameter)}
        values = {d.name.text: d for d in declared if isinstance(d, syntax.ValueParameter)}
        good = True
        for kind, known, given in (
            ("", queries, [name for name, _ in statement.queries]),
            ("?", set(values), [name for name, _ in statement.values]),
        ):
            seen: set[str] = set()
            for name in given:
                if name.text not in known:
                    good = False
                    self._found.error(
                        "D1112",
                        f"`{statement.path.text}` has no parameter `{kind}{name.text}`",
                        name.span,
                        hint=nearest(name.text, known, kind),
                    )
                elif name.text in seen:
                    good = False
                    self._found.error("D1116", f"`{kind}{name.text}` is given twice", name.span,
                                      hint="delete one of them")  # fmt: skip
                seen.add(name.text)
        given_values = {name.text for name, _ in statement.values}
        missing = sorted(queries - {name.text for name, _ in statement.queries})
        missing += [f"?{n}" for n, d in values.items() if d.default is None and n not in given_values]
        if missing and good:
            good = False
            listed = ", ".join(f"`{name}`" for name in missing)
            self._found.error(
                "D1111",
                f"`{statement.path.text}` needs {listed}",
                statement.span,
                hint="write " + ", ".join(f"`{m} := …`" for m in missing) + " after WITH",
            )
        return good

    def _drop_repeated(self, before: int) -> None:
        """A library imported twice has its mistakes reported once."""
        known = {(d.code, d.message, str(d.span)) for d in self._found.found[:before]}
        self._found.found[before:] = [
            d
            for d in self._found.found[before:]
            if (d.code, d.message, str(d.span)) not in known
            or (d.severity is Severity.ERROR and d.span is None)
        ]
