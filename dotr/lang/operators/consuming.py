"""CONSUMING: events that no further match of the rule may choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dotr.errors import Diagnostics
from dotr.lang.grammar.base import nearest
from dotr.lang.grammar.syntax import Name
from dotr.lang.operators.choosing import ROLE as CHOSEN


def check_consuming(
    written: Sequence[Name],
    roles: Mapping[str, str],
    wild: set[str],
    called: Mapping[str, str],
    found: Diagnostics,
) -> bool:
    """Whether all names are of chosen events; what is wrong is recorded. `roles`: name → what it is. `wild`:
    names of which nothing is known. `called`: what to call a role.
    """
    good = True
    reported: set[str] = set()
    for name in written:
        role = roles.get(name.text)
        if name.text in reported:
            found.warning("D1306", f"`{name.text}` is consumed twice", name.span, hint="delete one of them")
        reported.add(name.text)
        if role == CHOSEN or (role is None and name.text in wild):
            continue
        good = False
        chosen = [n for n, r in roles.items() if r == CHOSEN]
        if role is None:
            message = f"no event of this rule is called `{name.text}`"
        else:
            message = f"`{name.text}` is {called[role]} and cannot be consumed"
        hint = nearest(name.text, chosen) if role is None else ""
        if not hint and chosen:
            hint = f"only EACH, LAST and FIRST choose an event: {' '.join(chosen)}"
        found.error("D1306", message, name.span, hint=hint or "this rule chooses no event to consume")
    return good
