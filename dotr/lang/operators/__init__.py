"""How each operator of a rule is written, checked and printed: found by `WRITTEN`.

Place:   grammar/clauses.py reads conjuncts by it, checks/rule_names.py builds them, printer.py prints them.
         every.py and consuming.py are what else a rule may say of events; they are called by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dotr.ir.rules import Operator
from dotr.lang.operators.absent import ABSENT
from dotr.lang.operators.aggregate import AGGREGATE
from dotr.lang.operators.choosing import EACH, FIRST, LAST
from dotr.lang.operators.written import WrittenOperator

WRITTEN: Final[Mapping[Operator, WrittenOperator]] = {
    Operator.EACH: EACH,
    Operator.LAST: LAST,
    Operator.FIRST: FIRST,
    Operator.NOT: ABSENT,
    Operator.AGGREGATE: AGGREGATE,
}
BY_WORD: Final[Mapping[str, WrittenOperator]] = {
    word: operator for operator in WRITTEN.values() for word in operator.words
}
"""The operator that a conjunct has which begins with this word."""
BEFORE_EVENTS: Final = frozenset(
    word for operator in WRITTEN.values() if operator.before_event for word in operator.words
)
"""Words behind which an event stands."""
CHOOSING: Final = frozenset(operator.role for operator in WRITTEN.values() if not operator.called)
"""What names are called that have one fact, beside the trigger's."""
EXCLUDED: Final[Mapping[str, WrittenOperator]] = {
    operator.role: operator for operator in WRITTEN.values() if operator.called
}
"""By what a name without one fact is called."""
