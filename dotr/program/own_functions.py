"""Functions of one's own: functions of Python that expressions call by an IRI.

Place:   who runs dotr registers them: the API of Python, `--functions MODULE` (cli/options.py), packages by
         an entry point of the group `dotr.functions`. lang/ looks names up, a program has those that it
         calls, expressions/own_functions.py calls them.
Method:  one table a process, as for entry points: a name is registered once and is that function from then
         on. Compiled expressions, and results that are kept, depend on nothing else, and a program that goes
         to another process says what to import there: unpickling it registers the functions (`__reduce__`).
         Entry points are imported when a name is not in the table, so nothing is imported that nobody calls.
         The version is that of the function, its module or its package (`__version__`), or of the
         distribution, else a hash of the source of the modules that have the table and the function; it is
         part of what digests cover.
Why not: a table for each engine: each of some thirty places that compile expressions, and tables of compiled
         ones that engines share, would have to distinguish two functions of one name.
Bad input: D4154 a module that cannot be imported, or has no FUNCTIONS. D4155 a name or a function that cannot
         be registered. D4156 a function that another process cannot import, or has in another version.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from types import FunctionType, MethodType
from typing import Any, Final

from msgspec import Struct

from dotr.errors import DotrError, UsageError
from dotr.rdf.terms import XSD, Term
from dotr.regex import regex

GROUP: Final = "dotr.functions"
TABLE: Final = "FUNCTIONS"
"""What a module calls its functions by IRI."""

OPTION: Final = "--functions"

RESERVED: Final = (
    XSD,
    "http://www.w3.org/2005/xpath-functions/math#",
    "http://www.opengis.net/def/function/geosparql/",
    "urn:dotr:",
)
"""Namespaces whose functions are dotr's."""

ANY_NUMBER: Final = 1_000_000


class OwnFunction(Struct, frozen=True, eq=False):
    """`least`, `most`: of positional arguments. `origin`: what another process imports, `module` (with a
    table of functions), `module:name`, or the value of an entry point; "" for nothing.
    """

    term: Term
    function: Callable[..., Any]
    version: str
    origin: str
    least: int
    most: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnFunction) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    def __repr__(self) -> str:
        return f"OwnFunction(term={self.term!r}, version={self.version!r})"

    @property
    def _said(self) -> tuple[Term, str]:
        return self.term, self.version

    def __reduce__(self) -> Any:
        """Names instead of code. Raises UsageError D4156."""
        if not self.origin:
            raise UsageError.of(
                "D4156",
                f"other processes cannot import the function {self.term}",
                notes=(f"it is {self.function!r}",),
                hint=f"define it at the top of a module, or name the module: {OPTION} MODULE",
            )
        return _brought, (self.term, self.version, self.origin)

    def wrong(self, arguments: int) -> str | None:
        """The error in calling it with this number of arguments, or None."""
        if self.least <= arguments <= self.most:
            return None
        least, most = self.least, self.most
        wanted = (
            f"{least}"
            if least == most
            else f"{least} or more"
            if most == ANY_NUMBER
            else f"{least} to {most}"
        )
        return f"{self.term} takes {wanted} argument{'' if wanted == '1' else 's'}, not {arguments}"


OWN: Final[dict[Term, OwnFunction]] = {}
"""By name; nothing is ever taken out."""

_BROKEN: Final[list[str]] = []
"""Entry points that could not be imported, and why."""


def own_function(term: Term) -> OwnFunction | None:
    """The function of a name; packages are asked for it. Raises UsageError D4155 if a package has one that
    cannot be registered.
    """
    if term not in OWN and not is_reserved(term):
        _load_packages()
    return OWN.get(term)


def is_reserved(term: Term) -> bool:
    """Whether a name is in a namespace of dotr's own functions."""
    return term[1:].startswith(RESERVED)


def missing(term: Term) -> tuple[str, tuple[str, ...]]:
    """A hint about a name that is no function's, and notes."""
    from difflib import get_close_matches  # noqa: PLC0415  # start-up: few names are missing

    space, local = _parts(term)
    names = sorted(_parts(known)[1] for known in OWN if _parts(known)[0] == space)
    near = get_close_matches(local, names, 1, 0.7)
    hint = f"functions of your own come with `{OPTION} MODULE`, or Engine(functions={{…}})"
    return f"did you mean <{space}{near[0]}>?" if near else hint, tuple(_BROKEN)


def _parts(term: Term) -> tuple[str, str]:
    """Namespace and local name of an IRI."""
    end = max(term.rfind("#"), term.rfind("/"), term.rfind(":")) + 1
    return term[1:end], term[end:-1]


def register(
    functions: Mapping[str, Callable[..., Any]], *, version: str = "", origin: str = "", home: Any = None
) -> None:
    """Make functions callable by the IRIs that are their keys, until the process ends.

    `version`: of those that have none; `origin`, `home`: the module whose table they are. A name keeps its
    function: registering it again is no change. Nothing is registered if one is refused. Raises UsageError
    D4155.
    """
    if not isinstance(functions, Mapping):
        raise _refused(f"{functions!r} is no table of functions", 'give a dict: {"https://example.org/f": f}')
    made = [_made(name, function, version, origin, home) for name, function in functions.items()]
    for one in made:
        known = OWN.get(one.term)
        if known is not None and not _same(known.function, one.function):
            raise _refused(
                f"{one.term} is another function in this process",
                "give it another IRI, such as one with a version, or begin a new process",
                f"it is {known.function!r} and {one.function!r}",
            )
    for one in made:
        OWN.setdefault(one.term, one)


def import_functions(module: str, folder: str = "", place: str = "") -> None:
    """Import a module and register its FUNCTIONS. The current folder, or `folder`, is looked into last.
    Raises UsageError D4154, D4155 at `place`, which is the option if nothing else is passed.
    """
    place = place or f"{OPTION} {module}"
    from logging import ERROR, getLogger  # noqa: PLC0415  # start-up

    getLogger("rdflib.term").setLevel(ERROR)  # ill-typed literals are arguments like others
    try:
        imported = _imported(module, folder)
        table = getattr(imported, TABLE, None)
        if table is None:
            raise UsageError.of(
                "D4154",
                f"the module `{module}` has no {TABLE}",
                hint=f'write in it: {TABLE} = {{"https://example.org/f": f}}',
            )
        register(table, version=_version_of(imported), origin=module, home=imported)
    except UsageError as error:
        raise UsageError([one._replace(place=place) for one in error.diagnostics]) from error


def called_by(calls: Iterable[Term]) -> tuple[OwnFunction, ...]:
    """The functions among some names, by name."""
    return tuple(OWN[term] for term in sorted(set(calls)) if term in OWN)


# -- registering


_ABSOLUTE: Final = regex(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*>")


def _refused(message: str, hint: str, *notes: str) -> UsageError:
    return UsageError.of("D4155", message, hint=hint, notes=notes)


def _made(name: Any, function: Any, version: str, origin: str, table: Any) -> OwnFunction:
    """A function to register. Raises UsageError D4155."""
    term = f"<{name}>"
    if not isinstance(name, str) or not _ABSOLUTE.fullmatch(term):
        raise _refused(
            f"`{name}` is not the name of a function", "write an absolute IRI: https://example.org/f"
        )
    if is_reserved(term):
        raise _refused(f"{term} is a name of dotr's own functions", "take a namespace of your own")
    if not callable(function):
        raise _refused(f"{term} is no function", "give a function of Python", f"it is {function!r}")
    import inspect  # noqa: PLC0415  # start-up: few runs have functions

    later = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(asks(function) for asks in later):
        raise _refused(f"{term} gives its value later", "give a plain `def`, without async and yield")
    own = getattr(function, "__version__", None)
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    found = str(own) if own is not None else version or _version_of(home) or _hash_of(table, home)
    return OwnFunction(term, function, found, origin or _importable(function), *_arity(term, function))


def _arity(term: Term, function: Callable[..., Any]) -> tuple[int, int]:
    """Least and greatest number of positional arguments. Raises UsageError D4155."""
    import inspect  # noqa: PLC0415  # start-up

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C
        return 0, ANY_NUMBER
    least = most = 0
    for one in parameters:
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            most += 1
            least += one.default is one.empty
        elif one.kind == one.VAR_POSITIONAL:
            most = ANY_NUMBER
        elif one.kind == one.KEYWORD_ONLY and one.default is one.empty:
            raise _refused(f"{term} needs an argument `{one.name}` by keyword", "give it a default")
    return least, min(most, ANY_NUMBER)


def _version_of(module: Any) -> str:
    """`__version__` of a module, else of its package."""
    for name in (getattr(module, "__name__", ""), getattr(module, "__name__", "").partition(".")[0]):
        found = getattr(sys.modules.get(name), "__version__", None)
        if found is not None:
            return str(found)
    return ""


def _hash_of(*modules: Any) -> str:
    """Of the sources of modules: `source` and 12 hexadecimal digits; "" if none has a file of Python."""
    sources: dict[str, bytes] = {}
    for module in modules:
        path = getattr(module, "__file__", None)
        if module is not sys.modules.get("__main__") and path and path.endswith(".py"):
            with suppress(OSError, AttributeError):
                sources[path] = module.__loader__.get_data(path)
    if not sources:
        return ""
    from hashlib import blake2b  # noqa: PLC0415  # start-up: few runs have functions

    return "source " + blake2b(b"\0".join(sources.values()), digest_size=6).hexdigest()


def _importable(function: Any) -> str:
    """`module:name` under which another process finds it; "" if none does."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__":
        return ""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is function else ""


def _same(one: Any, other: Any) -> bool:
    """Whether two functions are one, also if its definition ran twice, as a cell of a notebook does."""
    if one is other:
        return True
    if type(one) is type(other) is MethodType:
        return bool(one.__func__ is other.__func__ and one.__self__ is other.__self__)
    if not type(one) is type(other) is FunctionType:
        return False
    cells = [[cell.cell_contents for cell in f.__closure__ or ()] for f in (one, other)]
    return (
        one.__code__ == other.__code__
        and one.__globals__ is other.__globals__
        and len(cells[0]) == len(cells[1])
        and all(a is b for a, b in zip(*cells, strict=True))
        and _given(one) == _given(other)
    )


def _given(function: Any) -> str:
    """The defaults of a function, and its version."""
    return repr((function.__defaults__, function.__kwdefaults__, getattr(function, "__version__", None)))


# -- importing


def _imported(name: str, folder: str = "") -> Any:
    """A module. Raises UsageError D4154 whatever importing it raises."""
    if (here := os.path.abspath(folder)) not in sys.path and (folder or "" not in sys.path):
        sys.path.append(here)
    try:
        return import_module(name)
    except DotrError:
        raise
    except (Exception, SystemExit) as error:  # code of others
        absent = isinstance(error, ModuleNotFoundError) and error.name == name
        wrong = "/" in name or name.endswith(".py")
        hint = "name a module as Python imports it: `functions`, not `functions.py`" if wrong else ""
        raise UsageError.of(
            "D4154",
            f"the module `{name}` cannot be imported",
            notes=() if absent else (f"{type(error).__name__}: {error}",),
            hint=hint or ("it is looked for among installed packages and in this folder" if absent else ""),
        ) from error


_ENTRY: Final = "entry point "

_ASKED: Final[list[str]] = []
"""The group, once its entry points were loaded."""


def _load_packages() -> None:
    """Register what the entry points of the group name: modules with a table, or tables. Once a process."""
    if _ASKED:
        return
    from importlib.metadata import entry_points  # noqa: PLC0415  # start-up: few names are asked for

    _ASKED.append(GROUP)
    for one in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        try:
            table = one.load()
        except (Exception, SystemExit) as error:  # code of others
            _BROKEN.append(
                f"the entry point {one.name} = {one.value} failed: {type(error).__name__}: {error}"
            )
            continue
        version = "" if one.dist is None else one.dist.version
        register(getattr(table, TABLE, table), version=version, origin=_ENTRY + one.value)


def _loaded(term: Term, load: Callable[[], Any]) -> Any:
    """What an import gives. Raises UsageError D4154, D4156."""
    try:
        return load()
    except DotrError:
        raise
    except (Exception, SystemExit) as error:  # code of others
        raise UsageError.of(
            "D4156",
            f"the function {term} cannot be imported here",
            notes=(f"{type(error).__name__}: {error}",),
            hint="install the same release on all machines",
        ) from error


def _brought(term: Term, version: str, origin: str) -> OwnFunction:
    """The function of a program that came from another process. Raises UsageError D4154, D4156."""
    if term not in OWN:
        module, colon, name = origin.partition(":")
        if origin.startswith(_ENTRY):
            from importlib.metadata import EntryPoint  # noqa: PLC0415  # start-up

            table = _loaded(term, EntryPoint("", origin.removeprefix(_ENTRY), GROUP).load)
            register(getattr(table, TABLE, table), version=version, origin=origin)
        elif not colon:
            import_functions(module)
        else:
            found = _loaded(term, lambda: attrgetter(name)(_imported(module)))
            register({term[1:-1]: found})
    return refuse_other(term, version)


def refuse_other(term: Term, version: str, then: str = "where the run began") -> OwnFunction:
    """The function of a name and a version. Raises UsageError D4156 if there is none, or another version."""
    known = own_function(term)
    if known is None or known.version != version:
        here = "is not here" if known is None else f"has the version `{known.version}` here"
        raise UsageError.of(
            "D4156",
            f"the function {term} {here}, and {then} it had the version `{version}`",
            hint="use the same release of it in both places",
        )
    return known
