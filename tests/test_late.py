"""`dotr.late` beside what it stands in for."""

import copy
import dataclasses
import pickle
import re
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from dotr.late import dataclass as late
from dotr.late import regex, replace


def _classes(decorator: Any) -> tuple[type[Any], type[Any], type[Any]]:
    @decorator(frozen=True, slots=True)
    class Reading:
        """A value."""

        MOST: ClassVar[int] = 9

        room: str
        value: int = 3
        note: str = dataclasses.field(default="", compare=False, repr=False)
        tags: tuple[str, ...] = dataclasses.field(default_factory=tuple)

        @property
        def twice(self) -> int:
            return 2 * self.value

    @decorator(slots=True)
    class Counter:
        name: str
        seen: list[int] = dataclasses.field(default_factory=list)
        total: int = dataclasses.field(default=0, init=False)
        made: dict[str, int] = dataclasses.field(init=False, default_factory=dict)
        later: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.later = len(self.name)

    @decorator(slots=True, eq=False)
    class Identity:
        name: str = "x"

        def __repr__(self) -> str:
            return "me"

    return Reading, Counter, Identity


LATE, PLAIN = _classes(late), _classes(dataclasses.dataclass)

USES: dict[str, Callable[[type[Any], type[Any], type[Any]], object]] = {
    "repr": lambda reading, counter, identity: (repr(reading("a", 4)), repr(counter("b")), repr(identity())),
    "defaults": lambda reading, counter, identity: (reading("a").value, counter("b").seen, identity().name),
    "by name": lambda reading, counter, identity: repr(reading(value=5, room="a")),
    "fresh": lambda reading, counter, identity: counter("a").seen is counter("a").seen,
    "equal": lambda reading, counter, identity: (
        reading("a", note="x") == reading("a", note="y"),
        reading("a") == reading("b"),
        reading("a") == 1,
        counter("a") == counter("a"),
        identity() == identity(),
    ),
    "hash": lambda reading, counter, identity: hash(reading("a", 1, "x")) == hash(reading("a", 1, "y")),
    "unhashable": lambda reading, counter, identity: counter.__hash__,
    "property": lambda reading, counter, identity: (reading("a").twice, reading.MOST),
    "fields": lambda reading, counter, identity: [
        (f.name, f.type, f.init, f.compare, f.repr)
        for f in (*dataclasses.fields(reading), *dataclasses.fields(counter))
    ],
    "is one": lambda reading, counter, identity: dataclasses.is_dataclass(reading("a")),
    "replace": lambda reading, counter, identity: repr(dataclasses.replace(reading("a"), value=9)),
    "asdict": lambda reading, counter, identity: dataclasses.asdict(counter("ab", [1])),
    "copies": lambda reading, counter, identity: copy.deepcopy(reading("a", 1, "n")).note,
    "match": lambda reading, counter, identity: (reading.__match_args__, counter.__match_args__),
    "slots": lambda reading, counter, identity: (reading.__slots__, hasattr(reading("a"), "__dict__")),
    "names": lambda reading, counter, identity: (reading.__doc__, reading.__name__, reading.__module__),
}

ERRORS: dict[str, Callable[[type[Any], type[Any], type[Any]], object]] = {
    "set": lambda reading, counter, identity: setattr(reading("a"), "value", 1),
    "set another": lambda reading, counter, identity: setattr(counter("a"), "unknown", 1),
    "delete": lambda reading, counter, identity: delattr(reading("a"), "value"),
    "too few": lambda reading, counter, identity: reading(),
    "not taken": lambda reading, counter, identity: counter("a", total=3),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_late_dataclass_does_what_the_standard_one_does(use: Callable[..., object]) -> None:
    assert use(*LATE) == use(*PLAIN)


@pytest.mark.parametrize("use", ERRORS.values(), ids=ERRORS)
def test_a_late_dataclass_refuses_what_the_standard_one_refuses(use: Callable[..., object]) -> None:
    with pytest.raises((AttributeError, TypeError)) as plain:
        use(*PLAIN)
    with pytest.raises(plain.type):
        use(*LATE)


@late(frozen=True, slots=True)
class Sent:
    """At the top of a module, as pickle wants it."""

    name: str
    value: int = 0


def test_an_instance_travels_before_any_was_made() -> None:
    text = pickle.dumps(Sent("a", 2)).replace(b"Sent", b"Came")
    globals()["Came"] = late(frozen=True, slots=True)(
        type("Came", (), {"__annotations__": Sent.__annotations__})
    )
    came = pickle.loads(text)  # noqa: S301  # our own
    assert (came.name, came.value) == ("a", 2)
    assert came == pickle.loads(text)  # noqa: S301  # our own


@pytest.mark.parametrize("classes", [LATE, PLAIN], ids=["late", "plain"])
def test_a_copy_is_that_of_the_standard_library(classes: tuple[type[Any], ...]) -> None:
    reading, counter, _ = classes
    changes: dict[str, Any]
    for one, changes in (
        (reading("a", 4, "x", ("t",)), {"value": 9}),
        (reading("a"), {}),
        (counter("ab", [1]), {"name": "abc"}),
    ):
        made, expected = replace(one, **changes), dataclasses.replace(one, **changes)
        assert type(made) is type(one)
        assert dataclasses.asdict(made) == dataclasses.asdict(expected)
    counted = counter("a")
    counted.total = 7
    assert replace(counted).total == dataclasses.replace(counted).total == 0  # not taken: as a new one has it
    for wrong in ("total", "unknown"):
        with pytest.raises((TypeError, ValueError)):
            replace(counted, **{wrong: 1})


def test_what_it_does_not_do_is_refused() -> None:
    with pytest.raises(TypeError, match="without slots"):
        late(slots=False)
    with pytest.raises(TypeError, match="among its bases"):
        late(slots=True)(type("Under", (Sent,), {}))


def test_a_late_regex_is_compiled_when_it_is_used() -> None:
    found = regex(r"(\d+)", re.ASCII)
    assert "fullmatch" not in vars(found)
    assert [found.fullmatch(text) is not None for text in ("12", "x")] == [True, False]
    assert found.findall("1 2") == ["1", "2"]
    assert "fullmatch" in vars(found)
