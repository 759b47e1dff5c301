"""Whether what a configuration names can be had: each source and output is connected to, and let go again.

Place:   `dotr doctor --config`. Needs no deployment and no rules, and leaves no trace: nothing is sent,
         subscribed to or acknowledged, and the sessions of a running server are not touched.
Method:  `SOURCES` and `OUTPUTS` have a function for each kind, which says what was found or raises; a secret
         is read first. A broker is connected to under a name of its own.
Bad input: everything that goes wrong is a trial that failed; nothing is raised.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from dotr.connectors.ldes import try_stream
from dotr.connectors.upstream import try_upstream
from dotr.connectors.webhook import Webhook
from dotr.errors import DotrError
from dotr.serve.configuration import Configuration, Output, Source, read_secret
from dotr.serve.replayed import kafka_trial
from dotr.serve.subscriptions import broker_trial
from dotr.service import schemes


class Trial(Struct, frozen=True):
    """What was tried, and what was found; `fix`: what may mend it."""

    what: str
    works: bool
    found: str
    fix: str = ""


OfSource: TypeAlias = Callable[[Source], str]
OfOutput: TypeAlias = Callable[[Output], str]


def _files(source: Source) -> str:
    paths = source.files or ()
    for path in paths:
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path} is not there")
        if not os.access(path, os.R_OK):
            raise PermissionError(f"{path} may not be read")
    return ", ".join(paths)


def _file(output: Output) -> str:
    path = Path(output.file or "")
    folder = path.parent
    if not (os.access(path, os.W_OK) if path.exists() else os.access(folder, os.W_OK)):
        raise PermissionError(f"{path} may not be written")
    return str(path)


def _webhook(output: Output) -> str:
    assert output.webhook is not None, "it is of that kind"
    if output.secret is not None:
        read_secret(output.secret)
    return Webhook(output.webhook).try_connection()


def _dotr(source: Source) -> str:
    return try_upstream(source.dotr or "", "" if source.token is None else read_secret(source.token))


def _package(check: Callable[[str], None], uri: str) -> str:
    """Whether a package is there; only it knows how to connect."""
    check(uri)
    return f"a package for {schemes.scheme_of(uri)}:// is installed"


SOURCES: Final[Mapping[str, OfSource]] = {
    "files": _files,
    "mqtt": lambda source: broker_trial(source.mqtt or "", source),
    "kafka": kafka_trial,
    "ldes": lambda source: try_stream(source.ldes or ""),
    "dotr": _dotr,
    "uri": lambda source: _package(schemes.check_source, source.uri or ""),
}
"""Kind of a source → its trial; what is received over HTTP has none of its own."""

OUTPUTS: Final[Mapping[str, OfOutput]] = {
    "file": _file,
    "webhook": _webhook,
    "mqtt": lambda output: broker_trial(output.mqtt or "", output),
    "kafka": kafka_trial,
    "uri": lambda output: _package(schemes.check_output, output.uri or ""),
}


def trials(configuration: Configuration) -> Iterator[Trial]:
    """Try the address, then each source and each output."""
    yield _listen(configuration)
    for name, source in configuration.sources.items():
        if source.kind in SOURCES:
            yield _tried(f"source {name}", lambda of=source: SOURCES[of.kind](of))  # type: ignore[misc]
    for name, output in configuration.outputs.items():
        yield _tried(f"output {name}", lambda of=output: OUTPUTS[of.kind](of))  # type: ignore[misc]


def _tried(what: str, trial: Callable[[], str]) -> Trial:
    try:
        return Trial(what, True, trial())
    except DotrError as error:
        (first, *_) = error.diagnostics
        return Trial(what, False, first.message + (f": {first.label}" if first.label else ""), first.hint)
    except OSError as error:
        return Trial(what, False, (error.strerror or str(error)).lower(), "see that it runs, and the address")
    except Exception as error:  # of a library: that is what was found
        return Trial(what, False, str(error) or type(error).__name__)


def _listen(configuration: Configuration) -> Trial:
    """Whether the port is free."""
    what = f"listen {configuration.listen}"
    family = socket.AF_INET6 if ":" in configuration.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((configuration.host, configuration.port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return Trial(what, False, reason, "stop what listens there, or choose another port")
    return Trial(what, True, "free")
