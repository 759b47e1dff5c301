"""What each operator of a rule means, literally: one file each, found by `LITERAL`.

Place:   reference/tesla.py goes through a rule by them; explain/ looks into matches by them. Nothing here
         knows an engine.
Method:  language.md, sec. 3, the rows of the table of conjuncts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.ir.rules import Operator
from dotr.reference.operators.absent import ABSENT
from dotr.reference.operators.aggregate import AGGREGATE
from dotr.reference.operators.each import EACH
from dotr.reference.operators.first import FIRST
from dotr.reference.operators.last import LAST
from dotr.reference.operators.literal import LiteralOperator

LITERAL: Final[Mapping[Operator, LiteralOperator]] = {
    Operator.EACH: EACH,
    Operator.LAST: LAST,
    Operator.FIRST: FIRST,
    Operator.NOT: ABSENT,
    Operator.AGGREGATE: AGGREGATE,
}
