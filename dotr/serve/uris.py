"""A URI of a command line as the source or output that a configuration would have.

Place:   between `dotr feed` (feeding.py) and the structs of configuration.py, which are the one description
         of keys.
Method:  before the `?` is what is connected to, behind it are keys as in `dotr.yaml`, percent-encoded where
         they have to be. `mqtt://broker:1883/home/+/temp?format=json` is `{mqtt: mqtt://broker:1883, topics:
         [home/+/temp], format: json}`; where the address is a URL of its own, its kind stands before it:
         `webhook:https://host/hook?secret=env:S`. A URL with a query is given as a key: `webhook:?webhook=…`.
         Keys are read by the reader of the configuration, as those of `--set` are: the same values, hints,
         and care for secrets. A key that has a list may be repeated.
         Names: positions and cursors are stored by them, so the same address is the same source or output;
         `name=board` gives another one, `mqtt:board`. The URL of a hook is often a secret and not
         shown: its name is its host, and a digest.
Why not: urllib's urlsplit and parse_qs: `#` and `+` are wildcards of topics.
Bad input: D4190 to D4192, as in the configuration · D4217 a URI that says no kind, or a key without a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from dotr.errors import UsageError
from dotr.serve.configuration import OUTPUTS, SOURCES, Output, Override, Source, lists_of, read_keys
from dotr.service.schemes import FILE, scheme_of

T = TypeVar("T", Source, Output)


class Scheme(NamedTuple):
    """How a URI of a scheme is read: the kind; the keys that its path is, of a source and of an output; and
    whether the address of the kind has the scheme.
    """

    kind: str
    source_path: str = ""
    output_path: str = ""
    whole: bool = False


BROKERS: Final[Mapping[str, Scheme]] = {
    "mqtt": Scheme("mqtt", "topics", "topic", whole=True),
    "mqtts": Scheme("mqtt", "topics", "topic", whole=True),
    "kafka": Scheme("kafka", "topics", "topic"),
}
"""Schemes whose path is what is read or written there. All others stand before a URL."""

_NOT_BY_URI: Final = ("http", "files", "file", "uri")
"""Kinds that have no URI of ours."""


def _schemes(kinds: Sequence[str]) -> dict[str, Scheme]:
    brokers = {scheme: one for scheme, one in BROKERS.items() if one.kind in kinds}
    others = {kind: Scheme(kind) for kind in kinds if kind not in (*_NOT_BY_URI, *brokers)}
    return brokers | others


SOURCE_SCHEMES: Final[Mapping[str, Scheme]] = _schemes(tuple(SOURCES))
OUTPUT_SCHEMES: Final[Mapping[str, Scheme]] = _schemes(tuple(OUTPUTS))


def refuse_path(uri: str, schemes: Mapping[str, Scheme]) -> None:
    """Raise UsageError D4217 for what begins as a URI of ours and has no address: it would be a path. A file
    of that name may be there.
    """
    scheme = uri.partition(":")[0]
    if scheme == uri or scheme not in schemes or scheme_of(uri) != FILE or os.path.lexists(uri):
        return
    right = f"{scheme}://HOST/TOPIC" if scheme in BROKERS else f"{scheme}:https://HOST/PATH"
    raise UsageError.of(
        "D4217",
        f"there is no address after `{scheme}:`",
        hint=f"write {right}; a file of such a name is `./{scheme}:…`",
    )


def source_of_uri(uri: str) -> tuple[str, Source]:
    """The source of a URI, and its name. Raises DataError, UsageError D4217."""
    scheme = SOURCE_SCHEMES[scheme_of(uri)]
    address, pairs = _parts(uri, scheme, scheme.source_path)
    name, source = _read(Source, address, pairs)
    if name:
        return f"{scheme.kind}:{name}", source
    if scheme.source_path or not address.endswith(":"):
        return address, source
    return _named_by_host(scheme.kind, str(getattr(source, scheme.kind))), source  # the URL is a key


def output_of_uri(uri: str) -> tuple[str, Output]:
    """The output of a URI, and its name. Raises DataError, UsageError D4217."""
    scheme = OUTPUT_SCHEMES[scheme_of(uri)]
    address, pairs = _parts(uri, scheme, scheme.output_path)
    name, output = _read(Output, _shown(address), pairs)
    if name:
        return f"{scheme.kind}:{name}", output
    if scheme.output_path:
        return address, output
    return _named_by_host(scheme.kind, str(getattr(output, scheme.kind))), output


def _named_by_host(kind: str, url: str) -> str:
    """A name that shows of a URL the host alone, since the rest may be a secret."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return f"{kind}:{host}#{digest_of_name(url)}"


def digest_of_name(text: str) -> str:
    """Eight characters that stand for a longer name."""
    return blake2b(text.encode(), digest_size=4).hexdigest()


def _parts(uri: str, scheme: Scheme, path_key: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the keys, and everything as pairs of a key and its value."""
    address, _, query = uri.partition("?")
    first, _, rest = address.partition(":")
    pairs: list[tuple[str, str]] = []
    if path_key:
        host, _, path = rest.removeprefix("//").partition("/")
        pairs.append((scheme.kind, f"{first}://{host}" if scheme.whole else host))
        if path:
            pairs.append((path_key, unquote(path)))
    elif rest:
        pairs.append((scheme.kind, rest))
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError.of(
                "D4217",
                f"`{_shown(address)}` has a key without a value",
                hint="write ?KEY=VALUE&KEY=VALUE, with %26 for & and %3F for ?",
            )
        pairs.append((unquote(key), unquote(value)))
    return address, pairs


def _shown(address: str) -> str:
    """An address without what may be a secret: who logs in, or where a hook is."""
    before, mark, after = address.partition("://")
    host = after.partition("/")[0]
    if "@" in host:
        return f"{before}{mark}…"
    return address if before in BROKERS else f"{before}{mark}{host}"


def _read(type_: type[T], what: str, pairs: Sequence[tuple[str, str]]) -> tuple[str, T]:
    """The name that is given, "" for none, and the struct."""
    what = _shown(what) if "@" in what.partition("?")[0].partition("://")[2].partition("/")[0] else what
    lists = lists_of(type_)
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    names = found.pop("name", [""])
    for key, values in (("name", names), *found.items()):
        if len(values) > 1 and key not in lists:
            raise UsageError.of("D4217", f"`{what}` has `{key}` twice", hint="take one of them out")
    overrides = [
        Override(what, (key,), values if key in lists else values[0]) for key, values in found.items()
    ]
    return names[0], read_keys(type_, what, overrides)
