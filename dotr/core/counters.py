"""What a run counts, for its summary line and `status`.

Place:   core/pipeline.py counts; snapshots hold the counters.
"""

from __future__ import annotations

from msgspec import Struct, field

from dotr.core.funnel import Funnel
from dotr.events import Time


class Counters(Struct):
    """What was processed. `graphs`: all messages, with a graph or without; `instants`: those with a message;
    `ticks`: those without one that a rule was evaluated at. `useless_deletes`: deletions of triples that were
    not stated. `overlooked`: instants in error without a message. `left_out`: rule → trigger facts that took
    too much work.
    """

    graphs: int = 0
    instants: int = 0
    ticks: int = 0
    facts: int = 0
    late: int = 0
    dropped: int = 0
    useless_deletes: int = 0
    overlooked: int = 0
    events: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    first: Time | None = None
    last: Time | None = None
    streams: dict[str, int] = field(default_factory=dict)
    funnel: dict[str, Funnel] = field(default_factory=dict)
