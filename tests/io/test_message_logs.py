"""Message logs are cut where their grammar says, however much of them is in hand."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode import messages
from dotr.io.decode.messages import LoggedMessage, split_messages

HEAD = 'VERSION "1.2-messages"\n'
PIECES = [
    ":a :p 1 .",
    ":a :message 'é' .",
    "MESSAGE",
    " MESSAGE ",
    "message",
    "# MESSAGE",
    "# @message",
    "@message",
    ".",
    '# """ don\'t',
    ':a :p """',
    '""" .',
    "'''",
    ":g {",
    "}",
    ":a :p <urn:message>.MESSAGE",
    ":a :p 'MESSAGE",
    '"\\',
    "",
]


def cut_all(file: io.BytesIO, name: str) -> list[LoggedMessage]:
    return [message for messages in split_messages(file, name) for message in messages]


def cut(text: str) -> list[LoggedMessage] | str:
    try:
        return cut_all(io.BytesIO(text.encode()), "x.ttl")
    except DataError as error:
        return str(error)


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_lines_that_are_only_message_are_cut_as_the_whole_grammar_cuts_them(
    lines: list[str], end: str
) -> None:
    text = HEAD + "".join(line + end for line in lines)
    quickly = cut(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "_NESTING", ("",))  # every text may nest: no way around the grammar
        assert quickly == cut(text)


def test_messages_say_their_line_and_the_byte_behind_them() -> None:
    log = f"{HEAD}<urn:é> <urn:p> 1 .\n\nMESSAGE\n<urn:b> <urn:p> 2 .\nMESSAGE\n"
    found = cut_all(io.BytesIO(log.encode()), "x.ttl")
    assert [message.line for message in found] == [1, 4]
    assert [log.encode()[message.end - 7 : message.end] for message in found] == [b"MESSAGE"] * 2


def test_a_line_inside_a_string_that_began_in_an_earlier_part_is_no_delimiter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "_BLOCK", 16)
    log = f'{HEAD}<urn:a> <urn:p> """\n{"x" * 40}\nMESSAGE\n""" .\nMESSAGE\n<urn:b> <urn:p> 2 .\n'
    found = cut_all(io.BytesIO(log.encode()), "x.ttl")
    assert [message.text.count("MESSAGE") for message in found] == [1, 0]


def test_a_log_where_nothing_nests_is_not_looked_at_token_by_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_TOKEN", None)
    log = HEAD + "<urn:a> <urn:p> 'x' , <urn:b#c> .\nMESSAGE\n" * 3
    assert len(cut_all(io.BytesIO(log.encode()), "x.ttl")) == 3


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 40))
def test_where_a_read_ends_makes_no_difference(lines: list[str], block: int) -> None:
    text = HEAD + "".join(line + "\n" for line in lines)
    at_once = cut(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "_BLOCK", block)
        assert at_once == cut(text)
