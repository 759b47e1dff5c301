"""A query that is planned once and asked often.

Place:   made by knowledge_base.py, which answers; plans are in prepared_queries.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dotr.errors import Diagnostic, UsageError
from dotr.knowledge_base.prepared_queries import Answers, Query

if TYPE_CHECKING:
    from dotr.knowledge_base.knowledge_base import KnowledgeBase


class PreparedQuery:
    """A query of one knowledge base, to be asked again and again: `prepared()`, `prepared(room=term)`."""

    def __init__(self, owner: KnowledgeBase, query: Query) -> None:
        self._owner, self._query = owner, query

    @property
    def variables(self) -> tuple[str, ...]:
        return self._query.variables

    @property
    def is_ask(self) -> bool:
        return self._query.select.ask

    def __call__(self, **values: Any) -> Answers:
        """The answers of now. Raises UsageError: D4180 no such variable, D4186 an ASK."""
        if self._query.select.ask:
            raise UsageError(Diagnostic("D4186", "an ASK has no rows", hint="call ask(…)"))
        return self._owner.answers(self._query, values)

    def ask(self, **values: Any) -> bool:
        """Whether there is an answer now."""
        return bool(self._owner.answers(self._query, values).rows)
