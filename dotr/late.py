"""Dataclasses and regular expressions that are compiled on first use.

Place:   below everything; knows nothing of dotr. `regex` is `re.compile`, late; `dataclass` stands in
         for `@dataclass(slots=True)`, with or without `frozen` and `eq=False`, on classes without dataclass
         bases; `replace` for that of the standard library, which needs the fields of a class.
Method:  decorating lays out the slots and puts stubs in place of `__init__`, `__eq__` and `__hash__`; a stub
         that is called compiles what it stands for. `fields` and `asdict` of the standard library work: the
         standard decorator then supplies the fields.
Why not: the standard decorator compiles six functions per class on import, 0.7 ms: of the 0.40 s of a short
         `dotr run`, the methods of 245 classes, 101 of them ever used, took 0.19 s, and regular expressions
         0.03 s.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeAlias

_UNSAID: Any = object()
_NONE = dataclasses.MISSING
_Text: TypeAlias = tuple[str, dict[str, Any]]


def _late(*, slots: bool, frozen: bool = False, eq: bool = True) -> Callable[[type[Any]], type[Any]]:
    """What `dataclasses.dataclass` does with these arguments, but late. `slots` must be True."""
    if not slots:
        raise TypeError("a class without slots takes the standard decorator")
    return lambda cls: _laid_out(cls, frozen, eq)


def _laid_out(cls: type[Any], frozen: bool, eq: bool) -> type[Any]:
    """`cls` again: a class cannot be given slots after it was made."""
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__):
        raise TypeError(f"{cls.__name__} has a dataclass among its bases: it takes the standard decorator")
    names = tuple(
        n
        for n, kind in inspect.get_annotations(cls).items()
        if not str(kind).removeprefix("typing.").startswith("ClassVar")
    )
    given = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    contents = {name: value for name, value in cls.__dict__.items() if name not in given}
    for slot in ("__dict__", "__weakref__"):
        contents.pop(slot, None)
    contents |= {
        "__slots__": names,
        "__match_args__": tuple(name for name in names if _taken(given.get(name))),
        "__dataclass_fields__": _Fields(given),
        "__repr__": contents.get("__repr__", _shown),
    }
    compiled = {"__init__": lambda made: _init(made, given, frozen)}
    if eq and "__eq__" not in contents:
        compiled["__eq__"] = lambda made: _eq(_compared(names, given))
    if eq and "__hash__" not in contents:
        contents["__hash__"] = None
        if frozen:
            compiled["__hash__"] = lambda made: _hash(_compared(names, given))
    if frozen:
        contents |= _FROZEN
    for method, text in compiled.items():
        contents[method] = _stub(method, text, lambda: made)
    metaclass: Callable[..., type[Any]] = type(cls)
    made = metaclass(cls.__name__, cls.__bases__, contents)
    made.__qualname__ = cls.__qualname__
    return made


def _stub(
    method: str, text: Callable[[type[Any]], _Text], cls: Callable[[], type[Any]]
) -> Callable[..., Any]:
    """Replaces itself with the method that `text` defines."""

    def first(self: Any, *args: Any, **named: Any) -> Any:
        made = cls()
        lines, space = text(made)
        exec(lines, space)  # noqa: S102  # built from field names alone
        function = space[method]
        function.__qualname__ = f"{made.__qualname__}.{method}"
        function.__module__ = made.__module__
        setattr(made, method, function)
        return function(self, *args, **named)

    return first


def _taken(default: object) -> bool:
    return not isinstance(default, dataclasses.Field) or default.init


def _compared(names: tuple[str, ...], given: dict[str, Any]) -> list[str]:
    fields = {name: field for name, field in given.items() if isinstance(field, dataclasses.Field)}
    return [name for name in names if name not in fields or fields[name].compare]


def _init(cls: type[Any], given: dict[str, Any], frozen: bool) -> _Text:
    space: dict[str, Any] = {"_unsaid": _UNSAID}
    parameters, lines = ["self"], []
    for name in cls.__slots__:
        default: Any = given.get(name, _NONE)
        factory: Any = _NONE
        taken = _taken(default)
        if isinstance(default, dataclasses.Field):
            default, factory = default.default, default.default_factory
        value = name if taken else f"_of_{name}"
        if factory is not _NONE:
            default = _UNSAID
            space[f"_new_{name}"] = factory
            value = f"_new_{name}() if {name} is _unsaid else {name}" if taken else f"_new_{name}()"
        if default is not _NONE:
            space[f"_of_{name}"] = default
        elif not taken:
            continue
        if taken:
            parameters.append(name if default is _NONE else f"{name}=_of_{name}")
        if frozen:
            space[f"_set_{name}"] = getattr(cls, name).__set__
        lines.append(f" _set_{name}(self, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    return "\n".join([f"def __init__({', '.join(parameters)}):", *(lines or [" pass"])]), space


def _eq(compared: list[str]) -> _Text:
    same = f"{_tuple('self', compared)} == {_tuple('other', compared)}"
    body = f" return {same} if other.__class__ is self.__class__ else NotImplemented"
    return f"def __eq__(self, other):\n{body}", {}


def _hash(compared: list[str]) -> _Text:
    return f"def __hash__(self):\n return hash({_tuple('self', compared)})", {}


def _tuple(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


class _Fields:
    """`__dataclass_fields__` of a class, made by the standard decorator on demand."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        self._fields: dict[str, dataclasses.Field[Any]] | None = None

    def __get__(self, instance: object, owner: type[Any]) -> dict[str, dataclasses.Field[Any]]:
        if self._fields is None:
            contents = {
                "__annotations__": owner.__annotations__,
                "__module__": owner.__module__,
                "__doc__": owner.__name__,  # without one the decorator makes one, of the class's signature
            }
            plain = type(owner.__name__, (), {**contents, **self._given})
            plain = dataclasses.dataclass(init=False, repr=False, eq=False)(plain)
            self._fields = {field.name: field for field in dataclasses.fields(plain)}
        return self._fields


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _take_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_FROZEN = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _take_state,
}


@recursive_repr()
def _shown(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _replace(made: Any, /, **changed: Any) -> Any:
    """A copy with changed fields, in a third of the time of the standard function."""
    for name in made.__match_args__:
        if name not in changed:
            changed[name] = getattr(made, name)
    return made.__class__(**changed)


class _Regex:
    """A `re.Pattern`, compiled when one of its methods is first used; that method stays as an attribute."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
    from re import compile as regex

    __all__ = ["dataclass", "regex", "replace"]
else:
    dataclass, regex, replace = _late, _Regex, _replace
