"""The times of many graphs that say them by the same property, found at once.

Place:   asked by files/message_reader.py before timestamps.py is, which finds the time of any graph.
Method:  one look through all triples, then all values as a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import contains

from dotr.events import Time
from dotr.io.timestamps import TIMELY, USUAL_PROPERTIES, TimestampExtractor
from dotr.rdf.terms import Triple


def times_in(graphs: Sequence[Sequence[Triple]], extractor: TimestampExtractor) -> list[Time] | None:
    """As `extractor.time` for each of some graphs, if each says one time, all by one property and in the form
    of the graphs before. None for others: then each is asked for by itself.
    """
    timely = [triple for graph in graphs for triple in graph if triple[1] in TIMELY]
    if len(timely) != len(graphs) or not all(map(contains, graphs, timely)):
        return None
    properties = {property_ for _, property_, _ in timely}
    rung = USUAL_PROPERTIES.get(properties.pop())
    if rung is None or properties:
        return None
    return extractor.stamped_times([value for _, _, value in timely], rung)
