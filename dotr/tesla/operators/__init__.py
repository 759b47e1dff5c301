"""How each operator of a rule is detected: what it keeps, and its code. One file each, found by `DETECTED`.

Place:   plan.py and compile.py use the table; the code of all operators is built from candidates.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.ir.rules import Operator
from dotr.tesla.operators.absent import ABSENT
from dotr.tesla.operators.aggregate import AGGREGATE
from dotr.tesla.operators.detected import DetectedOperator
from dotr.tesla.operators.each import EACH
from dotr.tesla.operators.first import FIRST
from dotr.tesla.operators.last import LAST

DETECTED: Final[Mapping[Operator, DetectedOperator]] = {
    Operator.EACH: EACH,
    Operator.LAST: LAST,
    Operator.FIRST: FIRST,
    Operator.NOT: ABSENT,
    Operator.AGGREGATE: AGGREGATE,
}
