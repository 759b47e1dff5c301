"""A plugin of pytest: rdflib's default store is ours, without entailment: its tests expect no triple more."""

from __future__ import annotations

from typing import Any

from rdflib import plugin
from rdflib.store import Store as RdflibStore

import dotr.rdflib


class Store(dotr.rdflib.Store):
    """Ours, but for the option that is its default."""

    def __init__(self, configuration: Any = None, identifier: Any = None) -> None:
        super().__init__({"entailment": "none"} if configuration is None else configuration, identifier)


plugin._plugins.pop(("default", RdflibStore), None)  # there is no public way to take one back
plugin.register("default", RdflibStore, __name__, "Store")
