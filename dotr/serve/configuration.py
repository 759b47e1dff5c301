"""`dotr.yaml`: what a server runs, reads, writes, and whom it lets in.

Place:   read by `dotr serve` before anything starts, and again at SIGHUP; every part of the server gets the
         one value. Nothing is opened here but the file itself.
Method:  structs are the one description: the reader below walks their fields, schema.json is made of them
         (`python -m dotr.serve.configuration`), and their descriptions are what editors show. What an option
         sets is laid over the file as nodes of its own, before the structs are read: one reader, one kind of
         message. Everything that is wrong is reported at once, with its place.
         Every relative path of the file is relative to its folder, `dir` if it is not given, too; one of an
         option is relative to the current folder. A path stands as written: nothing in it is expanded.
         Secrets are never in the file: `env:NAME` or `file:PATH` says where they are. One that is written in
         clear is reported without the line that has it, and so is everything else that is wrong then.
Why not: `msgspec.convert` of plain values: it stops at the first mistake and knows no places.
Bad input: D4190 not YAML, an unknown key, a wrong value · D4191 not exactly one kind · D4192 a secret in
         clear, or one that cannot be read.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
import yaml
from msgspec import Meta, Struct, field
from msgspec.structs import fields

from dotr.budget import CORRECTIONS, LEAST_CORRECTIONS, MOST_CORRECTIONS
from dotr.errors import DataError, Diagnostic
from dotr.io.decode.documents import STREAM_BASE, SUFFIXES, decode, size_of, unreadable
from dotr.io.events import EVENT_FORMATS
from dotr.io.merged_source import IDLE
from dotr.io.rules_and_background import SCHEME
from dotr.io.time import TimeError, zone_of
from dotr.io.yaml_nodes import YamlReader
from dotr.lang.grammar.cursor import nearest, valid_iri
from dotr.program.names import duration, duration_text
from dotr.program.own_functions import import_functions
from dotr.source import Source as Document
from dotr.source import Span

FILE: Final = "dotr.yaml"
"""The file that is read from the current folder where no other is named."""

SCHEMA: Final = Path(__file__).with_name("schema.json")
"""The JSON Schema of the file, for editors."""

SOURCES: Final[Mapping[str, str]] = {
    "http": "what is posted to /v1/streams/NAME",
    "files": "files and folders, followed as they grow",
    "mqtt": "topics of an MQTT broker",
    "kafka": "topics of a Kafka cluster, exactly once",
    "ldes": "a Linked Data Event Stream, exactly once",
    "dotr": "events of another deployment that serves, exactly once",
    "uri": "what an installed package reads, by the scheme of a URI",
}
"""Kind of a source → what it reads."""

OUTPUTS: Final[Mapping[str, str]] = {
    "file": "a file, exactly once",
    "webhook": "signed posts to a URL, at least once",
    "mqtt": "a topic of an MQTT broker, at least once",
    "kafka": "a topic of a Kafka cluster, exactly once",
    "uri": "what an installed package writes to, by the scheme of a URI",
}
"""Kind of an output → what it writes."""

_LARGEST = 1 << 20
_SHOWN = 100
"""Characters of a value that a message repeats at most."""
_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_ORIGIN = re.compile(r"https?://([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_URI = re.compile(r"[a-z][a-z0-9+.-]+://[^\s]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_SECRET_KEYS = ("password", "secret", "token")
_PASSWORD_IN_URL = re.compile(r"""(?:[A-Za-z][A-Za-z0-9+.-]*://|(?!env:|file:))[^/@\s{"]*:[^/@\s]+@""")
_CONFIDENTIAL = re.compile(r"password|secret", re.IGNORECASE)

# -- what a scalar may be


class ScalarKind(NamedTuple):
    """How a kind of value is read: `read` gets the string and raises ValueError for what is none; `what` and
    `hint` are what a message says; `write` is the way back, for defaults; `json` are types of the schema.
    """

    read: Callable[[str], Any]
    what: str
    hint: str
    write: Callable[[Any], Any] = str
    json: str | list[str] = "string"


def _age_or_size(text: str) -> str:
    try:
        duration(text)
    except ValueError:
        size_of(text)
    return text


def _rows_or_size(text: str) -> str:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        size_of(text)
    return text


def _positive(text: str) -> int:
    if (value := duration(text)) <= 0:
        raise ValueError(text)
    return value


def _share(text: str) -> float:
    if not LEAST_CORRECTIONS <= (value := float(text)) <= MOST_CORRECTIONS:
        raise ValueError(text)
    return value


def _address(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > 65_535:
        raise ValueError(text)
    if found[1]:
        ipaddress.IPv6Address(found[1])
    return text


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text.lower()):
            raise ValueError(text)
        return text.lower()

    return read


def _iri(text: str) -> str:
    if ":" not in text or not valid_iri(text):
        raise ValueError(text)
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(text)
    if parts.port == 0 or not text.isascii() or any(character <= " " for character in text):
        raise ValueError(text)
    return text


def _broker(text: str) -> str:
    parts = urlsplit(text)
    if (
        parts.scheme not in ("mqtt", "mqtts")
        or not parts.hostname
        or parts.path
        or parts.username is not None
    ):
        raise ValueError(text)
    if parts.port == 0:  # others raise
        raise ValueError(text)
    return text


def _servers(text: str) -> str:
    for one in text.split(","):
        found = _ADDRESS.fullmatch(one.strip())
        if found is None or int(found[3]) == 0:
            raise ValueError(text)
        _address(one.strip())
    return text


def _of_package(text: str) -> str:
    if not _URI.fullmatch(text):
        raise ValueError(text)
    return text


def _qos(text: str) -> str:
    if text != "1":
        raise ValueError(text)
    return text


def _body(text: str) -> str:
    """Every place may stand in a string, or for a number: there is one value that fits both."""
    try:
        json.loads(_PLACE.sub("1", text))
    except RecursionError:
        raise ValueError(text) from None
    return text


def _module(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")) or text.endswith(".py"):
        raise ValueError(text)
    return text


def _zone(text: str) -> str:
    try:
        zone_of(text)
    except TimeError:
        raise ValueError(text) from None
    return text


def _input_format(text: str) -> str:
    if text not in INPUT_FORMATS:
        raise ValueError(text)
    return text


INPUT_FORMATS: Final = (*(suffix[1:] for suffix in SUFFIXES), "csv", "tsv", "json")
"""How documents of a source may be written, by the endings of files; tables need a mapping."""

_NUMBERS = ["string", "integer"]

SCALARS: Final[Mapping[str, ScalarKind]] = {
    "duration": ScalarKind(duration, "a duration", "write 20ms, 5min or PT5M", duration_text),
    "positive": ScalarKind(_positive, "a duration above 0", "write 20ms, 5min or PT5M", duration_text),
    "age-or-size": ScalarKind(_age_or_size, "a duration or a size", "write 7d or 1GB", str, _NUMBERS),
    "rows-or-size": ScalarKind(
        _rows_or_size, "a number of rows or a size", "write 100000 or 1GB", str, _NUMBERS
    ),
    "address": ScalarKind(_address, "an address to listen on", "write 127.0.0.1:8080 or [::1]:8080"),
    "host": ScalarKind(_matching(_HOST), "the name of a host", "write dotr.example.org, without a port"),
    "origin": ScalarKind(_matching(_ORIGIN), "an origin", "write https://dashboard.example.org, no path"),
    "iri": ScalarKind(_iri, "an absolute IRI", "give the whole IRI"),
    "share": ScalarKind(_share, "a share from 0.05 to 0.95", "write 0.5", str, ["string", "number"]),
    "zone": ScalarKind(_zone, "a time zone", "write Europe/Rome, UTC or +02:00"),
    "format": ScalarKind(_input_format, "a format of documents", f"one of {' '.join(INPUT_FORMATS)}"),
    "url": ScalarKind(_url, "a URL of HTTP", "write https://hooks.example.org/dotr"),
    "broker": ScalarKind(_broker, "a broker", "write mqtt://broker:1883 or mqtts://broker:8883"),
    "servers": ScalarKind(_servers, "a list of Kafka's servers", "write k1:9092,k2:9092"),
    "qos": ScalarKind(
        _qos,
        "a quality of service that loses nothing",
        "write 1: with 0 and 2 a message is acknowledged before it is on disk",
        str,
        _NUMBERS,
    ),
    "uri": ScalarKind(_of_package, "a URI", "write redis://HOST:6379/STREAM, as its package says"),
    "body": ScalarKind(_body, "JSON when its places are filled", """write '{"text": "{rule} in {room}"}'"""),
    "path": ScalarKind(str, "a path", ""),
    "module": ScalarKind(_module, "a module of Python", "write geo or company.geo, without .py"),
    "secret": ScalarKind(str, "where a secret is", "write env:NAME or file:PATH"),
}


def _of(name: str) -> Meta:
    return Meta(extra={"scalar": name})


Duration: TypeAlias = Annotated[int, _of("duration")]
"""In microseconds, once it is read."""
PositiveDuration: TypeAlias = Annotated[int, _of("positive")]
FilePath: TypeAlias = Annotated[str, _of("path")]
Secret: TypeAlias = Annotated[str, _of("secret")]
"""`env:NAME` or `file:PATH`; `read_secret` reads it."""
Module: TypeAlias = Annotated[str, _of("module")]
Host: TypeAlias = Annotated[str, _of("host")]
Origin: TypeAlias = Annotated[str, _of("origin")]
Name: TypeAlias = Annotated[str, Meta(pattern=_NAME)]


def _about(text: str) -> Meta:
    return Meta(description=text)


_KEPT: Final = 7 * 86_400_000_000
"""How long messages are kept where nothing else is configured, in µs."""

# -- the keys


class Keys(Struct, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A mapping of the file: names with hyphens there, with underscores here."""


class Http(Keys):
    """`http: {}`."""


class Source(Keys):
    """Where documents come from, and what their times are."""

    http: Annotated[Http | None, _about("What is posted to /v1/streams/NAME.")] = None
    files: Annotated[list[FilePath] | None, _about("Files and folders, followed as they grow.")] = None
    mqtt: Annotated[Annotated[str, _of("broker")] | None, _about("An MQTT broker: mqtt://HOST:1883.")] = None
    kafka: Annotated[
        Annotated[str, _of("servers")] | None, _about("Servers of a Kafka cluster: HOST:9092, with commas.")
    ] = None
    topics: Annotated[list[str], _about("What is read: of MQTT with + and #, of Kafka names of topics.")] = []
    from_: Annotated[
        Literal["earliest", "latest"],
        _about("Where reading of Kafka's topics begins the first time."),
    ] = field(default="earliest", name="from")
    sasl: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
        _about("How Kafka is shown the password; PLAIN needs `tls`."),
    ] = "SCRAM-SHA-512"
    tls: Annotated[bool, _about("Whether the connection to Kafka is encrypted.")] = False
    ca: Annotated[FilePath | None, _about("Who certifies the broker, PEM; without it the system's.")] = None
    ldes: Annotated[
        Annotated[str, _of("url")] | None, _about("A Linked Data Event Stream: the URL of its root.")
    ] = None
    poll: Annotated[PositiveDuration, _about("How often pages of LDES that change are asked for.")] = (
        60_000_000
    )
    dotr: Annotated[
        Annotated[str, _of("url")] | None, _about("Another deployment that serves: http://HOST:8080.")
    ] = None
    rules: Annotated[list[str], _about("Events of these rules of it alone; without it of all.")] = []
    token: Annotated[Secret | None, _about("A token of it, with `read`: env:NAME or file:PATH.")] = None
    uri: Annotated[
        Annotated[str, _of("uri")] | None,
        _about("A URI that an installed package reads (entry points `dotr.sources`)."),
    ] = None
    qos: Annotated[
        Annotated[str, _of("qos")], _about("Of a subscription: 1; nothing else loses nothing.")
    ] = "1"
    client: Annotated[
        str | None, _about("The name of the session at the broker (default: dotr- and the source's name).")
    ] = None
    user: Annotated[str | None, _about("Who dotr is for the broker.")] = None
    password: Annotated[Secret | None, _about("Of that user: env:NAME or file:PATH.")] = None
    protocol: Annotated[Literal["5", "3.1.1"], _about("The version of MQTT.")] = "5"
    time: Annotated[
        Literal["event", "arrival", "header", "event-or-arrival"],
        _about("What the time of a document is: its own, when it came, or what its sender says beside it."),
    ] = "event"
    idle: Annotated[PositiveDuration, _about("Silence after which others do not wait for this source.")] = (
        int(IDLE * 1_000_000)
    )
    lateness: Annotated[Duration, _about("How far out of order its documents may be.")] = 0
    format: Annotated[
        Annotated[str, _of("format")] | None, _about("How documents are written that do not say so.")
    ] = None
    map: Annotated[FilePath | None, _about("The mapping by which tables are read.")] = None
    time_path: Annotated[
        Annotated[str, _of("iri")] | None, _about("The property that holds the time of a graph.")
    ] = None
    time_zone: Annotated[Annotated[str, _of("zone")] | None, _about("The zone of dateTimes without one.")] = (
        None
    )

    @property
    def is_received(self) -> bool:
        """Whether its documents come through the inbox: their senders cannot be asked again."""
        return self.http is not None or self.mqtt is not None

    @property
    def kind(self) -> str:
        """Which of SOURCES it is."""
        return next(kind for kind in SOURCES if getattr(self, kind) is not None)


class Output(Keys):
    """Where events go."""

    file: Annotated[FilePath | None, _about("A file, to which events are appended exactly once.")] = None
    webhook: Annotated[
        Annotated[str, _of("url")] | None, _about("A URL, to which events are posted (Standard Webhooks).")
    ] = None
    mqtt: Annotated[Annotated[str, _of("broker")] | None, _about("An MQTT broker: mqtt://HOST:1883.")] = None
    kafka: Annotated[
        Annotated[str, _of("servers")] | None, _about("Servers of a Kafka cluster: HOST:9092, with commas.")
    ] = None
    uri: Annotated[
        Annotated[str, _of("uri")] | None,
        _about("A URI that an installed package writes to (entry points `dotr.outputs`)."),
    ] = None
    topic: Annotated[
        str | None,
        _about(
            "Where events are published (dotr/{rule}, for Kafka dotr); {rule} and variables of the rule are "
            "put in."
        ),
    ] = None
    key: Annotated[
        str | None, _about("The key of Kafka's messages: {rule} and variables of the rule are put in.")
    ] = None
    sasl: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
        _about("How Kafka is shown the password; PLAIN needs `tls`."),
    ] = "SCRAM-SHA-512"
    tls: Annotated[bool, _about("Whether the connection to Kafka is encrypted.")] = False
    ca: Annotated[FilePath | None, _about("Who certifies the broker, PEM; without it the system's.")] = None
    retain: Annotated[list[str], _about("Rules whose last event the broker keeps.")] = []
    client: Annotated[
        str | None,
        _about("The name of the session at the broker, Kafka's transactional id (default: dotr-… by name)."),
    ] = None
    user: Annotated[str | None, _about("Who dotr is for the broker.")] = None
    password: Annotated[Secret | None, _about("Of that user: env:NAME or file:PATH.")] = None
    protocol: Annotated[Literal["5", "3.1.1"], _about("The version of MQTT.")] = "5"
    secret: Annotated[Secret | None, _about("What posts are signed with: env:NAME or file:PATH.")] = None
    order: Annotated[
        Literal["strict", "any"],
        _about("Whether a post waits for the one before, or eight go at once."),
    ] = "strict"
    body: Annotated[
        Annotated[str, _of("body")] | None,
        _about("What is posted: JSON in which {room} is a variable of the rule (default: the event)."),
    ] = None
    rules: Annotated[list[str], _about("Events of these rules alone; without it of all.")] = []
    format: Annotated[
        Literal[tuple(EVENT_FORMATS)] | None,  # type: ignore[valid-type]  # the table has them
        _about("How events are written; without it by the name of the file."),
    ] = None

    @property
    def kind(self) -> str:
        """Which of OUTPUTS it is."""
        return next(kind for kind in OUTPUTS if getattr(self, kind) is not None)


class Keep(Keys):
    """What is kept of what is done."""

    messages: Annotated[
        Duration | None,
        _about("How long messages are kept, for explanations (default: 7d; with `corrections` not at all)."),
    ] = None
    events: Annotated[
        Annotated[str, _of("age-or-size")],
        _about("How long events are kept for readers that come later, or how many bytes of them."),
    ] = "7d"


class Inbox(Keys):
    """What was received and not yet processed."""

    max: Annotated[
        Annotated[str, _of("rows-or-size")],
        _about("Rows, or bytes, from which on more is refused."),
    ] = "100000"


class Outbox(Keys):
    """What an output has not yet taken."""

    max: Annotated[
        Annotated[str, _of("rows-or-size")],
        _about("Rows, or bytes, from which on the engine waits for its outputs."),
    ] = "1000000"


class Tls(Keys):
    """The certificate of the server."""

    cert: Annotated[FilePath, _about("The chain of certificates, PEM.")]
    key: Annotated[FilePath, _about("The private key, PEM.")]
    password: Annotated[Secret | None, _about("Of the key: env:NAME or file:PATH.")] = None


class Settings(Keys):
    """What a server runs, reads, writes, and whom it lets in."""

    rules: Annotated[list[FilePath], _about("Rule files; without any, what is deployed in `dir`.")] = []
    background: Annotated[list[FilePath], _about("More RDF that holds at every instant.")] = []
    functions: Annotated[
        list[Module],
        _about("Modules of Python whose FUNCTIONS rules and queries call; beside the file, too."),
    ] = []
    dir: Annotated[FilePath, _about("The deployment.")] = ".dotr"
    listen: Annotated[
        Annotated[str, _of("address")], _about("Address and port; a port 0 is chosen by the system.")
    ] = "127.0.0.1:8080"
    hosts: Annotated[list[Host], _about("Names by which the server may be called, beside `listen`.")] = []
    commit: Annotated[PositiveDuration, _about("How often state, position and events are committed.")] = (
        20_000
    )
    keep: Keep = field(default_factory=Keep)
    inbox: Inbox = field(default_factory=Inbox)
    outbox: Outbox = field(default_factory=Outbox)
    sources: Annotated[
        dict[Name, Source], _about("By name; without any there is one HTTP stream, `input`.")
    ] = {}
    outputs: Annotated[dict[Name, Output], _about("By name.")] = {}
    tokens: Annotated[FilePath | None, _about("The file of tokens; see `dotr serve token new`.")] = None
    tls: Annotated[Tls | None, _about("Without it HTTP is not encrypted.")] = None
    behind_proxy: Annotated[bool, _about("A proxy in front of the server encrypts.")] = False
    cors: Annotated[list[Origin], _about("Other origins whose pages may call the server.")] = []
    otlp: Annotated[
        Annotated[str, _of("url")] | None, _about("A collector of OpenTelemetry that metrics are pushed to.")
    ] = None
    max_ahead: Annotated[
        PositiveDuration | None, _about("Refuse a document stamped further ahead of the others than this.")
    ] = None
    corrections: Annotated[
        PositiveDuration | None,
        _about("Take late graphs up to this much older than the watermark: events are added and taken back."),
    ] = None
    corrections_budget: Annotated[
        Annotated[float, _of("share")],
        _about("Largest share of the work that corrections may take before late graphs wait."),
    ] = CORRECTIONS
    tick: Annotated[
        PositiveDuration | None, _about("Let time go on by the wall clock when every source is silent.")
    ] = None
    time_unit: Annotated[Literal["s", "ms", "us"], _about("What integer times count.")] = "s"
    base: Annotated[Annotated[str, _of("iri")], _about("Resolve relative IRIs against this IRI.")] = (
        STREAM_BASE
    )

    @property
    def host(self) -> str:
        """The host of `listen`, without brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def kept_messages(self) -> int:
        """How long messages are kept, in µs."""
        return _KEPT if self.keep.messages is None else self.keep.messages

    @property
    def lateness(self) -> int:
        """How far out of order documents may be, in µs: that of the source that allows for most."""
        return max((source.lateness for source in self.sources.values()), default=0)

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches the address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


class Override(NamedTuple):
    """What an option sets: a key by its path, as a string, a list of strings, or YAML."""

    option: str
    path: tuple[str, ...]
    value: str | Sequence[str]
    yaml: bool = False


class Configuration(Settings):
    """Settings, and from where they were read. `path`: None where there is no file."""

    path: str | None = None
    overrides: tuple[Override, ...] = ()

    def again(self) -> Configuration:
        """The same file and options, read again. Raises DataError."""
        return read_configuration(self.path, self.overrides)

    def import_functions(self) -> None:
        """Register the functions of its modules, for this process. Raises UsageError D4154, D4155."""
        for module in self.functions:
            import_functions(
                module, os.path.dirname(self.path or ""), f"`functions` of {self.path or 'options'}"
            )


def read_secret(where: str) -> str:
    """What `env:NAME` or `file:PATH` holds, without the end of its line. Raises DataError D4192."""
    kind, _, name = where.partition(":")
    if kind == "env":
        if name not in os.environ:
            raise DataError.of("D4192", f"the secret `{where}` is not in the environment", hint=f"set {name}")
        return os.environ[name]
    try:
        return Path(name).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "") if isinstance(error, OSError) else "it is not UTF-8"
        raise DataError.of("D4192", f"the secret `{where}` cannot be read", label=reason.lower()) from None


def rows_and_bytes(most: str, rows: int, size: int) -> tuple[int, int]:
    """What `max` of an inbox or outbox allows; what it does not say has its default."""
    return (int(most), size) if most.isdigit() else (rows, size_of(most))


def age_and_bytes(kept: str) -> tuple[int | None, int | None]:
    """How long events are kept, in µs, or how many bytes of them."""
    try:
        return duration(kept), None
    except ValueError:
        return None, size_of(kept)


# -- reading


def read_configuration(path: str | None = None, overrides: Sequence[Override] = ()) -> Configuration:
    """The file, with what options set over it. Raises DataError with everything that is wrong."""
    text = "" if path is None else _text(path)
    reader = _Reader(Document(path or FILE, text), "D4190")
    folder = os.path.dirname(path) if path is not None else ""
    root = reader.tree(folder)
    settings = Settings()
    if root is not None:
        for override in overrides:
            reader.lay_over(root, override)
        settings = reader.value(root, Settings, "the configuration") or settings
        reader.report_secrets(root)
    if reader.found.errors:
        raise DataError(reader.findings())
    settings.sources = settings.sources or {"input": Source(http=Http())}
    if not reader.has_folder:
        settings.dir = os.path.join(folder, settings.dir)
    values = {one.name: getattr(settings, one.name) for one in fields(Settings)}
    return Configuration(**values, path=path, overrides=tuple(overrides))


K = TypeVar("K", Source, Output)


def read_keys(type_: type[K], what: str, overrides: Sequence[Override]) -> K:
    """A source or an output of options alone; `what` it is called. Raises DataError with everything that is
    wrong.
    """
    reader = _Reader(Document(what, ""), "D4190")
    root = _empty()
    for override in overrides:
        reader.lay_over(root, override)
    value: K | None = reader.value(root, type_, what)
    reader.report_secrets(root)
    if value is None or reader.found.errors:
        raise DataError(reader.findings())
    return value


def lists_of(type_: type[Keys]) -> frozenset[str]:
    """The keys that have several values."""
    return frozenset(one.encode_name for one in fields(type_) if get_origin(_plain(one.type)[0]) is list)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise unreadable(path, error) from None
    if len(content) > _LARGEST:
        raise DataError.of("D4190", f"`{path}` has more than {_LARGEST:,} bytes", place=path)
    return decode(content, path)


class _Reader(YamlReader):
    """Owns the findings, and where each node of an option was given."""

    def __init__(self, source: Document, code: str) -> None:
        super().__init__(source, code)
        self._options: dict[int, Document] = {}
        self._folder = ""
        self.has_folder = False

    def tree(self, folder: str) -> yaml.Node | None:
        """The nodes of the file; an empty mapping where it has none."""
        self._folder = folder
        if not self.source.text.strip():
            return _empty()
        root = self.root("the configuration", "rules: [FILE.dotr]", aliases=False)
        if root is not None and not isinstance(root, yaml.MappingNode):
            self.mapping(root, "the configuration", None)
            return None
        return root

    def lay_over(self, root: yaml.Node, override: Override) -> None:
        """Put the value of an option where its key is, instead of what the file has there."""
        assert isinstance(root, yaml.MappingNode)
        value = self._given(override)
        if value is None:
            return
        at = root
        *above, last = override.path
        for name in above:
            below = next((node for key, node in at.value if key.value == name), None)
            if not isinstance(below, yaml.MappingNode):
                at.value = [(key, node) for key, node in at.value if key.value != name]
                at.value.append((self._key(name, override), below := _empty()))
            at = below
        at.value = [(key, node) for key, node in at.value if key.value != last]
        at.value.append((self._key(last, override), value))

    def _given(self, override: Override) -> yaml.Node | None:
        if override.yaml:
            assert isinstance(override.value, str)
            own = YamlReader(Document(override.option, override.value), self.code)
            node = own.root("an option", f"{override.option} KEY=VALUE", aliases=False)
            self.found.found += own.found.found
            self._mark(node, own.source)
            return node
        texts = [override.value] if isinstance(override.value, str) else override.value
        nodes: list[yaml.Node] = []
        for text in texts:
            nodes.append(_scalar(text))
            self._mark(nodes[-1], Document(override.option, text))
        return nodes[0] if isinstance(override.value, str) else yaml.SequenceNode("", nodes, *_ends(""))

    def _key(self, name: str, override: Override) -> yaml.Node:
        node = _scalar(name)
        self._mark(node, Document(override.option, name))
        return node

    def _mark(self, node: yaml.Node | None, source: Document) -> None:
        """Say of nodes that an option gave them."""
        for one in _all(node):
            self._options[id(one)] = source

    def span(self, node: yaml.Node | yaml.Event) -> Span:
        span = super().span(node)
        source = self._options.get(id(node), self.source)
        return Span(source, span.start, max(span.start, min(span.end, len(source.text))))

    def value(self, node: yaml.Node, type_: Any, what: str) -> Any:
        """A node as a value of a type; None where it is none, which is reported."""
        type_, kinds = _plain(type_)
        if isinstance(type_, type) and issubclass(type_, Keys):
            return self._keys_of(node, type_, what)
        match get_origin(type_):
            case origin if origin is list:
                items = self.items(node, what, lambda one: self.value(one, get_args(type_)[0], what))
                return list(items)
            case origin if origin is dict:
                return self._by_name(node, get_args(type_)[1], what)
        text = self.text(node, what)
        if text is None:
            return None
        if type_ is bool:
            return self._choice(node, text.text, {"true": True, "false": False}, what)
        if get_origin(type_) is Literal:
            return self._choice(node, text.text, {word: word for word in get_args(type_)}, what)
        if not text.text.strip():
            self.error(text.span, f"`{what}` is empty", "give a value, or take the key out")
            return None
        return self._scalar(node, text.text, kinds)

    def _choice(self, node: yaml.Node, text: str, words: Mapping[str, Any], what: str) -> Any:
        if text not in words:
            near = nearest(text, words)
            self.error(
                self.span(node), f"`{text}` is no value of `{what}`", near or f"one of {' '.join(words)}"
            )
        return words.get(text)

    def _scalar(self, node: yaml.Node, text: str, kind: str) -> Any:
        if kind == "":
            return text
        if kind == "secret":
            return self._where(node, text)
        if kind == "path":
            return self._path(node, text)
        known = SCALARS[kind]
        try:
            return known.read(text)
        except ValueError:
            hidden = _PASSWORD_IN_URL.match(text) or len(text) > _SHOWN
            shown = "this" if hidden else f"`{text}`"
            self.error(self.span(node), f"{shown} is not {known.what}", known.hint)
            return None

    def _path(self, node: yaml.Node, text: str) -> str:
        folder = "" if id(node) in self._options else self._folder
        return text if text.startswith(SCHEME) else os.path.join(folder, text)

    def _where(self, node: yaml.Node, text: str) -> str | None:
        """Where a secret is; what is none is reported by `report_secrets`."""
        kind, _, name = text.partition(":")
        if kind == "env" and _VARIABLE.fullmatch(name):
            return text
        return f"file:{self._path(node, name)}" if kind == "file" and name else None

    def _by_name(self, node: yaml.Node, type_: Any, what: str) -> dict[str, Any]:
        found = {}
        for name, below in (self.mapping(node, f"`{what}`", None) or {}).items():
            if not re.fullmatch(_NAME, name):
                place = self.keys(node)[name]
                self.error(place, f"`{name}` is not a name", "letters, digits, - and _, at most 64")
                continue
            value = self.value(below, type_, name)
            if value is not None:
                found[name] = value
        return found

    def _keys_of(self, node: yaml.Node, type_: type[Keys], what: str) -> Keys | None:
        table = KINDS.get(type_)
        if table is not None and not self._has_one_kind(node, table):
            return None
        own = {one.encode_name: one for one in fields(type_)}
        shown = what if type_ is Settings else f"`{what}`"
        keys = self.mapping(node, shown, tuple(own), tuple(own))
        if keys is None:
            return None
        self.has_folder |= type_ is Settings and "dir" in keys
        before = len(self.found.found)
        needed = tuple(name for name, one in own.items() if one.required)
        self.needs(node, keys, needed, shown)
        values = {own[name].name: self.value(below, own[name].type, name) for name, below in keys.items()}
        if len(self.found.found) > before:
            return None
        return type_(**{name: value for name, value in values.items() if value is not None})

    def _has_one_kind(self, node: yaml.Node, table: Kinds) -> bool:
        if not isinstance(node, yaml.MappingNode):
            return True  # which is reported by who wants one
        keys = self.keys(node)
        kinds = [name for name in table.here if name in keys]
        if len(kinds) == 1:
            return True
        hint = f"one of {', '.join(table.here)}"
        if kinds:
            listed = " and ".join(f"`{kind}`" for kind in kinds)
            self._report("D4191", keys[kinds[1]], f"{table.what} is one thing, not {listed}", hint)
        else:
            hint = next((near for key in keys if (near := nearest(key, table.here))), hint)
            self._report("D4191", self.span(node), f"{table.what} needs to say what it is", hint)
        return False

    def _report(self, code: str, span: Span, message: str, hint: str) -> None:
        self.found.error(code, message, span, hint=hint)

    def report_secrets(self, root: yaml.Node) -> None:
        """Report secrets that stand in the file, whatever key they stand under."""
        for node in _all(root):
            for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
                if not isinstance(value, yaml.ScalarNode):
                    continue
                named = key.value in _SECRET_KEYS and self._where(value, value.value) is None
                if named or _PASSWORD_IN_URL.match(value.value):
                    self._report(
                        "D4192", self.span(value), f"`{key.value}` holds a secret in clear", _ELSEWHERE
                    )

    def findings(self) -> list[Diagnostic]:
        """What is wrong, in the order of places; lines with secrets are not shown."""
        confidential = any(one.code == "D4192" for one in self.found.found)
        found = sorted(self.found.found, key=lambda one: one.span.start if one.span is not None else -1)
        return [_hidden(one) if confidential or _tells(one) else one for one in found]


_ELSEWHERE = "write env:NAME or file:PATH, and change the secret: others may have read it"


def _tells(one: Diagnostic) -> bool:
    """Whether the line that is shown may have a secret."""
    if one.span is None:
        return False
    number, _ = one.span.source.position(one.span.start)
    return _CONFIDENTIAL.search(one.span.source.line(number)) is not None


def _hidden(one: Diagnostic) -> Diagnostic:
    return one if one.span is None else one._replace(span=None, place=str(one.span))


class Kinds(NamedTuple):
    """The kinds of a source or an output, of which each is exactly one."""

    what: str
    here: Sequence[str]


KINDS: Final[Mapping[type[Keys], Kinds]] = {
    Source: Kinds("a source", tuple(SOURCES)),
    Output: Kinds("an output", tuple(OUTPUTS)),
}


def _plain(type_: Any) -> tuple[Any, str]:
    """A type without None and annotations, and which of SCALARS it is."""
    scalar = ""
    while True:
        if get_origin(type_) is Annotated:
            type_, *notes = get_args(type_)
            scalar = next((note.extra["scalar"] for note in notes if note.extra), scalar)
        elif get_origin(type_) in (Union, UnionType):
            (type_,) = (one for one in get_args(type_) if one is not type(None))
        else:
            return type_, scalar


def _all(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if node is None:
        return
    yield node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _all(key)
            yield from _all(value)
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _all(one)


def _ends(text: str) -> tuple[yaml.Mark, yaml.Mark]:
    return yaml.Mark("", 0, 0, 0, None, 0), yaml.Mark("", len(text), 0, len(text), None, 0)


def _scalar(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("", text, *_ends(text))


def _empty() -> yaml.MappingNode:
    return yaml.MappingNode("", [], *_ends(""))


# -- the schema


def schema() -> dict[str, Any]:
    """The JSON Schema of the file (draft 2020-12), of the structs above."""
    _, parts = msgspec.json.schema_components([Settings], ref_template="#/$defs/{name}")
    for type_, table in KINDS.items():
        parts[type_.__name__]["oneOf"] = [{"required": [name]} for name in table.here]
    for type_ in _structs(Settings):
        for one in fields(type_):
            _, scalar = _plain(one.type)
            found = parts[type_.__name__]["properties"][one.encode_name]
            if not scalar or get_origin(_plain(one.type)[0]) is list:
                continue
            for choice in found.get("anyOf", [found]):
                if choice["type"] != "null":
                    choice["type"] = SCALARS[scalar].json
            if isinstance(one.default, int | str):
                found["default"] = SCALARS[scalar].write(one.default)
    top = parts.pop("Settings")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **top, "title": FILE, "$defs": parts}


def description(path: Sequence[str]) -> str:
    """What a key is, by its path."""
    type_: Any = Settings
    text = ""
    for name in path:
        one = next(one for one in fields(type_) if one.encode_name == name)
        notes = get_args(one.type)[1:] if get_origin(one.type) is Annotated else ()
        text = next((note.description for note in notes if note.description), "")
        type_, _ = _plain(one.type)
    return text


def _structs(type_: type[Keys]) -> Iterator[type[Keys]]:
    yield type_
    for one in fields(type_):
        below, _ = _plain(one.type)
        for inner in (below, *get_args(below)):
            if isinstance(inner, type) and issubclass(inner, Keys):
                yield from _structs(inner)


def schema_text() -> str:
    """The same as text, as SCHEMA has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), "utf-8")
