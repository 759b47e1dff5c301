"""What the language asks of an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dotr.ir import Conjunct, Expression, Position, Window
from dotr.lang.grammar.syntax import ConjunctSyntax
from dotr.lang.grammar.tokens import Token

if TYPE_CHECKING:
    from dotr.lang.checks.rule_names import RuleResolver
    from dotr.lang.grammar.clauses import ClauseParser


class WrittenOperator(NamedTuple):
    """One operator.

    `words`: a conjunct begins with one of them, behind AND. `parse`: reads on from the word; raises Skip for
    what cannot be read. `build`: (names of the rule, as written, position, window) → the checked conjunct,
    None where it cannot be, which is recorded. `text`: what stands between AND and the event. `effect`: what
    it does where its condition relates nothing (D1321). `role`: what the event's name is in the rest of the
    rule; where it has no one fact there, `called` says what it is and `hint` what to write instead.
    `before_event`: the event stands right behind the word.
    """

    words: tuple[str, ...]
    parse: Callable[[ClauseParser, Token], ConjunctSyntax]
    build: Callable[[RuleResolver, Any, Position | None, Window | None], Conjunct | None]
    text: Callable[[Any, Callable[[Expression], str]], str]
    effect: Callable[[Any], str]
    role: str
    called: str = ""
    hint: str = ""
    before_event: bool = True
