"""What is put into names of topics, keys and bodies for the variables of an event."""

from __future__ import annotations

import json

from dotr.connectors import kafka, mqtt
from dotr.connectors.bound_values import Bound, bound_text, last_part, values_of
from dotr.connectors.webhook import body_of
from dotr.service.logs import OutboxRow

IRI = {"type": "uri", "value": "urn:shop#items/i1"}
TEXT = {"type": "literal", "value": "a/b"}


def test_a_list_has_commas_between_its_members() -> None:
    assert bound_text([IRI, TEXT]) == "urn:shop#items/i1,a/b"
    assert bound_text([]) == bound_text(None) == ""
    assert [last_part(one) for one in values_of([IRI, TEXT])] == ["i1", "a/b"]


def test_topics_and_keys_of_events_with_lists() -> None:
    bindings: dict[str, Bound] = {"items": [IRI, TEXT], "none": [], "one": IRI}
    assert kafka.topic_of("e.{items}.{one}", "Order", bindings) == "e.i1_a_b.i1"
    assert kafka.topic_of("e.{none}", "Order", bindings) == "e._"
    assert kafka.key_of("{items}", "Order", bindings) == "urn:shop#items/i1,a/b"
    assert mqtt.topic_of("e/{items}/{none}/{one}", "Order", bindings) == "e/i1,ab/_/i1"


def test_bodies_of_events_with_lists() -> None:
    line = json.dumps({"time": 1, "bindings": {"items": [IRI, TEXT], "none": []}})
    row = OutboxRow(1, 1_000_000, "Order", "urn:1", line)
    assert body_of(row, '{"items": "{items}", "none": "{none}"}') == (
        b'{"items": "urn:shop#items/i1,a/b", "none": ""}'
    )
