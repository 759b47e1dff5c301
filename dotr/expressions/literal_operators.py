"""The evaluator's operators with numbers read literally: what `--verify` and the tests evaluate rules with.

Place:   between evaluate.py and the literal readings (reference/), which pass `literally` where engines
         take the operators as they are.
Method:  an operator whose arguments are all numbers is that of literal_numbers.py, over their text; any other
         is the evaluator's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from dotr.expressions.evaluate import Operators
from dotr.expressions.functions import Signature
from dotr.expressions.literal_numbers import OPERATORS, TRUTH, operands, write
from dotr.expressions.value_operators import Truth, effective
from dotr.rdf.values import Value, decode, encode

_Function = Callable[..., Any]


def _literal(name: str, shared: _Function) -> _Function:
    own = OPERATORS[name]

    def apply(*values: Any) -> Any:
        numbers = operands(name, [encode(value) for value in values])
        if numbers is None:
            return shared(*values)
        found = own(*numbers)
        return found if found is None or isinstance(found, bool) else decode(write(found))

    return apply


def _all(table: Mapping[str, _Function]) -> dict[str, _Function]:
    return {name: _literal(name, shared) if name in OPERATORS else shared for name, shared in table.items()}


def _signatures(table: Mapping[str, Signature]) -> dict[str, Signature]:
    return {
        name: replace(one, apply=_literal(name, one.apply)) if name in OPERATORS else one
        for name, one in table.items()
    }


@lru_cache(maxsize=4)
def literally(shared: Operators) -> Operators:
    """The operators with numbers read literally."""
    return Operators(
        arithmetic=_all(shared.arithmetic),
        comparisons=_all(shared.comparisons),
        functions=_signatures(shared.functions),
        casts=_all(shared.casts),
        effective=_effective,
    )


def _effective(value: Value | None) -> Truth:
    return None if value is None else _of_numbers(value)


_of_numbers: Final[Callable[[Any], Truth]] = _literal(TRUTH, effective)
