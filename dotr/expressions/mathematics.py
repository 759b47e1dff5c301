"""The functions of XPath and XQuery Functions and Operators 3.1, sec. 4.8, on doubles.

Place:   functions.py has them in its table, by the IRIs of the namespace `math`.
Method:  numbers are taken as doubles, and the results are those of Python's `math`. Outside the domain of a
         function, and past the greatest double, there is no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from dotr.expressions.operators import is_number
from dotr.rdf.values import Value, to_double

MATH: Final = "http://www.w3.org/2005/xpath-functions/math#"


def _of_doubles(compute: Callable[..., float]) -> Callable[..., Value | None]:
    def apply(*values: Any) -> Value | None:
        if not all(map(is_number, values)):
            return None
        try:
            return compute(*map(to_double, values))
        except (ValueError, OverflowError):
            return None

    return apply


_COMPUTED: Final[Mapping[str, tuple[int, Callable[..., float]]]] = {
    "pi": (0, lambda: math.pi),
    "exp": (1, math.exp),
    "exp10": (1, lambda x: math.pow(10.0, x)),
    "log": (1, math.log),
    "log10": (1, math.log10),
    "pow": (2, math.pow),
    "sqrt": (1, math.sqrt),
    "sin": (1, math.sin),
    "cos": (1, math.cos),
    "tan": (1, math.tan),
    "asin": (1, math.asin),
    "acos": (1, math.acos),
    "atan": (1, math.atan),
    "atan2": (2, math.atan2),
}

MATHEMATICS: Final[Mapping[str, tuple[int, Callable[..., Value | None]]]] = {
    f"<{MATH}{name}>": (arguments, _of_doubles(compute)) for name, (arguments, compute) in _COMPUTED.items()
}
"""By IRI: the number of arguments, and the function of values."""
