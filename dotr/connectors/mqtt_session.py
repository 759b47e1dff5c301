"""One connection of a session at an MQTT broker that receives messages, many of them at a time.

Place:   under mqtt.py, whose `Subscription` owns a thread that opens sessions and reads them.
Method:  whatever has come is taken from the socket at once, parsed in one loop and given as a list; all
         acknowledgements of a list are one write. Nothing is acknowledged but what is asked to be. One thread
         uses a session. Properties are parsed once for all messages that have the same.
         OASIS MQTT 5.0 and 3.1.1, sections 2.1 (packets), 3.1 CONNECT to 3.4 PUBACK, 3.8, 3.9, 3.12 to 3.14.
Why not: paho's loop, which `Publisher` uses: three reads and a `select` a packet, a `send` and a wake-up an
         acknowledgement take 60 µs a message, this a tenth of it.
Bad input: `BrokenError` for what no broker may send, for silence, and for a connection that ends.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from struct import pack
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from paho.mqtt.client import connack_string
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

Version: TypeAlias = Literal["5", "3.1.1"]

PORTS: Final = {"mqtt": 1883, "mqtts": 8883}

IN_FLIGHT: Final = 1_000
"""Messages that a broker may send before the first of them is acknowledged; it may not keep to that."""

SESSION: Final = 7 * 24 * 3600
"""Seconds for which a broker keeps what comes while nobody is connected."""

TIMEOUT: Final = 15.0
"""Seconds for an answer of a broker."""

KEEP_ALIVE: Final = 30
"""Seconds of silence after which the other side is asked whether it is there."""

_CHUNK: Final = 256 << 10
"""Bytes that are taken from the socket at once."""

_KNOWN: Final = 1_000
"""Properties that are remembered."""

_CONNACK, _PUBLISH, _SUBACK, _PINGRESP, _DISCONNECT = 0x20, 0x30, 0x90, 0xD0, 0xE0
_PING, _LEAVE = b"\xc0\0", b"\xe0\0"


class Broker(Struct, frozen=True):
    """Where a broker is, and as whom to talk to it. `client`: the name of the session; one at a time may use
    it.
    """

    url: str
    client: str
    version: Version = "5"
    user: str | None = None
    password: str = ""
    ca: str | None = None
    """A file of certificates of those who certify the broker, None: the system's."""


class BrokenError(Exception):
    """A session cannot go on: why."""


class NotLetInError(BrokenError):
    """The broker does not let us in."""


class Said(NamedTuple):
    """What is said of a message beside it: its content type, and the user property `content-type`."""

    content_type: str = ""
    user_type: str = ""


class Message(NamedTuple):
    """A message as it came. `id`: 0 where it is not to be acknowledged; `again`: it may have come before."""

    id: int
    again: bool
    topic: bytes
    content: bytes
    said: Said = Said()


_NOTHING_SAID: Final = Said()
_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function


class Session:
    """Owns a connection; the broker has let us in. `close` ends it."""

    def __init__(self, broker: Broker) -> None:
        """Raises BrokenError, OSError."""
        self._five = broker.version == "5"
        self._parts: list[bytes] = []
        self._have = self._wanted = 0
        """Bytes of the packets that have begun to come, and how many of them the first one has."""
        self._said: dict[bytes, Said] = {}
        self._messages: list[Message] = []
        self._answers: list[tuple[int, bytes]] = []
        """Packets that are no messages: kind and content."""
        self._alive = float(KEEP_ALIVE)
        self._asked: float | None = None
        """When it was asked whether it is there, and has not said anything since."""
        self._broken = False
        self._socket = _connected(broker)
        self._sent = time.monotonic()
        try:
            self._begin(broker)
        except OSError as error:
            self._socket.close()
            raise BrokenError(_why(error)) from None
        except BaseException:
            self._socket.close()
            raise

    def _begin(self, broker: Broker) -> None:
        self._send(_connect(broker))
        content = self._answer(_CONNACK)
        if len(content) < 2:
            raise BrokenError("it is no answer of a broker")
        code = content[1]
        if code:
            raise NotLetInError(_reason(PacketTypes.CONNACK, code) if self._five else _old(code))
        if self._five:
            found = _properties(PacketTypes.CONNACK, content[2:])
            self._alive = float(getattr(found, "ServerKeepAlive", KEEP_ALIVE)) or float("inf")

    def subscribe(self, topics: Sequence[str]) -> list[str]:
        """Ask for messages of QoS 1; the topics that were refused. What a broker retains comes with the first
        subscription of a session alone, where it knows MQTT 5. Raises BrokenError.
        """
        options = 0x11 if self._five else 0x01
        asked = b"".join(_string(topic) + bytes([options]) for topic in topics)
        try:
            self._send(_packet(0x82, b"\0\x01" + (b"\0" if self._five else b"") + asked))
        except OSError as error:
            raise BrokenError(_why(error)) from None
        content = self._answer(_SUBACK)
        codes = content[-len(topics) :]
        return [topic for topic, code in zip(topics, codes, strict=False) if code >= 0x80]

    def receive(self, seconds: float) -> list[Message]:
        """What has come; nothing does for at most so long. Raises BrokenError."""
        if not self._messages:
            if self._broken or self._answers:
                kind, content = self._answers[0] if self._answers else (0, b"")
                raise BrokenError(_farewell(content) if kind == _DISCONNECT else "it does not follow MQTT")
            self._read(seconds)
            self.keep_alive()
        found, self._messages = self._messages, []
        return found

    def acknowledge(self, ids: Sequence[int]) -> None:
        """Messages are kept here from now on. What ends meanwhile is seen by `receive`."""
        with suppress(OSError):
            self._send(b"".join([pack("!HH", 0x4002, id_) for id_ in ids]))

    def keep_alive(self) -> None:
        """Let the broker know that we are there, where that is due; for who does not receive now, too."""
        if time.monotonic() - self._sent >= self._alive:
            with suppress(OSError):
                self._send(_PING)
            self._asked = self._asked or self._sent

    def close(self) -> None:
        """Say that we go, and go; what is not acknowledged stays at the broker."""
        with suppress(OSError):
            if not self._broken:
                self._send(_LEAVE)
        self._socket.close()

    # ------------------------------------------------------------------ packets

    def _send(self, content: bytes) -> None:
        """Raises OSError: then a part of it may have gone out, and nothing can follow."""
        try:
            self._socket.settimeout(TIMEOUT)
            self._socket.sendall(content)
        except OSError:
            self._broken = True
            raise
        finally:
            self._sent = time.monotonic()

    def _answer(self, kind: int) -> bytes:
        """The answer that was asked for; messages may come before it. Raises BrokenError."""
        until = time.monotonic() + TIMEOUT
        while not self._answers:
            left = until - time.monotonic()
            if left <= 0:
                raise BrokenError("it does not answer")
            self._read(left)
        found, content = self._answers.pop(0)
        if found == kind:
            return content
        raise BrokenError(_farewell(content) if found == _DISCONNECT else "it is no answer of a broker")

    def _read(self, seconds: float) -> None:
        """Take what is there. Raises BrokenError where that is the end."""
        try:
            self._socket.settimeout(seconds)
            content = self._socket.recv(_CHUNK)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            if self._asked is not None and time.monotonic() - self._asked >= TIMEOUT:
                raise BrokenError("it does not answer") from None
            return
        except OSError as error:
            raise BrokenError(_why(error)) from None
        if not content:
            raise BrokenError("it hung up")
        self._asked = None
        self._parts.append(content)
        self._have += len(content)
        if self._have >= self._wanted:
            try:
                left = self._parsed(b"".join(self._parts))
            except IndexError:
                raise BrokenError("a message is not as its length says") from None
            self._parts, self._have = [left], len(left)

    def _parsed(self, content: bytes) -> bytes:
        """Note the packets; what is left of the last one. Raises BrokenError, IndexError."""
        at, size, five, self._wanted = 0, len(content), self._five, 2
        note, said = self._messages.append, self._said
        while at + 2 <= size:
            kind, length, begin = content[at], content[at + 1], at + 2
            if length & 0x80:
                length, begin = _length(content, at + 1)
            if kind & 0xF0 not in _KINDS:
                raise BrokenError("it is no packet of a broker")
            end = begin + length
            if end > size or length < 0:
                self._wanted = end - at
                break
            at = end
            if kind & 0xF0 != _PUBLISH:
                if kind != _PINGRESP:
                    self._answers.append((kind & 0xF0, content[begin:end]))
                continue
            start = begin + 2
            begin = start + (content[start - 2] << 8) + content[start - 1]
            topic, id_, of = content[start:begin], 0, _NOTHING_SAID
            if kind & 0x06:
                if kind & 0x04:
                    raise BrokenError("it sends with QoS 2 what was asked for with QoS 1")
                id_ = (content[begin] << 8) + content[begin + 1]
                begin += 2
            if five:
                if content[begin]:
                    length, after = _length(content, begin)
                    raw, begin = content[begin : after + length], after + length
                    of = said.get(raw) or self._understood(raw)
                else:
                    begin += 1
            if begin > end:
                raise BrokenError("a message is not as its length says")
            note(_tuple(Message, (id_, kind & 0x08 > 0, topic, content[begin:end], of)))
        return content[at:]

    def _understood(self, raw: bytes) -> Said:
        """What properties say that have not come before."""
        found = _properties(PacketTypes.PUBLISH, raw)
        user = dict(getattr(found, "UserProperty", ()))
        if len(self._said) >= _KNOWN:
            self._said.clear()
        made = Said(getattr(found, "ContentType", ""), str(user.get("content-type", "")))
        self._said[raw] = made
        return made


_KINDS: Final = frozenset((_CONNACK, _PUBLISH, _SUBACK, _PINGRESP, _DISCONNECT))
"""What a broker sends to who subscribes and publishes nothing."""


def _connected(broker: Broker) -> socket.socket:
    """A socket to a broker, encrypted where that is asked for. Raises OSError."""
    parts = urlsplit(broker.url)
    host = parts.hostname or ""
    made = socket.create_connection((host, parts.port or PORTS[parts.scheme]), TIMEOUT)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme != "mqtts":
            return made
        return ssl.create_default_context(cafile=broker.ca).wrap_socket(made, server_hostname=host)
    except BaseException:
        made.close()
        raise


def _connect(broker: Broker) -> bytes:
    """The first packet: a session that outlives connections, where it has a name."""
    five = broker.version == "5"
    flags = 0 if five or broker.client else 0x02
    more = b""
    if five:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho
        properties.SessionExpiryInterval = SESSION
        properties.ReceiveMaximum = IN_FLIGHT
        more = bytes(properties.pack())  # type: ignore[no-untyped-call]  # paho
    more += _string(broker.client)
    if broker.user is not None:
        flags |= 0xC0
        more += _string(broker.user) + _string(broker.password)
    return _packet(0x10, _string("MQTT") + bytes([5 if five else 4, flags]) + pack("!H", KEEP_ALIVE) + more)


def _packet(kind: int, content: bytes) -> bytes:
    length, left = bytearray(), len(content)
    while True:
        left, part = divmod(left, 128)
        length.append(part | (0x80 if left else 0))
        if not left:
            return bytes([kind]) + bytes(length) + content


def _string(text: str) -> bytes:
    content = text.encode("utf-8", "replace")
    return pack("!H", len(content)) + content


def _length(content: bytes, at: int) -> tuple[int, int]:
    """A length as MQTT writes it, and the place after it; -1: not all of it is there. Raises BrokenError."""
    length = shift = 0
    for place in range(at, min(at + 4, len(content))):
        length |= (content[place] & 0x7F) << shift
        if content[place] < 0x80:
            return length, place + 1
        shift += 7
    if len(content) >= at + 4:
        raise BrokenError("it is no packet of a broker")
    return -1, at


def _properties(packet: int, raw: bytes) -> Any:
    """The properties of a packet, of MQTT 5. Raises BrokenError."""
    found = Properties(packet)  # type: ignore[no-untyped-call]  # paho
    try:
        found.unpack(raw)  # type: ignore[no-untyped-call]  # paho
    except Exception as error:  # of bytes that are no properties it raises whatever comes
        raise BrokenError(f"its properties cannot be read: {error}") from None
    return found


def _reason(packet: int, code: int) -> str:
    try:
        return str(ReasonCode(packet, identifier=code)).lower()
    except KeyError:
        return f"code {code}"


def _farewell(content: bytes) -> str:
    """Why a broker ends the connection."""
    return _reason(PacketTypes.DISCONNECT, content[0] if content else 0)


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _old(code: int) -> str:
    """Why a broker of MQTT 3.1.1 refuses."""
    return connack_string(code).rpartition(": ")[2].rstrip(".").lower()
