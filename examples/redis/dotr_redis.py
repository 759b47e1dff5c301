"""A source of dotr: entries of Redis Streams, each with a line of JSON lines in its field `graph`.

dotr feed redis://localhost:6379/readings
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from redis import Redis, RedisError

from dotr.errors import DataError
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, DocumentSource, GraphSource
from dotr.service.schemes import SourceRequest


class Streams:
    """A partition a stream, as HOST:PORT/KEY; the position is the id of the last entry that was read."""

    name = "redis"

    def __init__(self, uris: Sequence[str]) -> None:
        self._urls = {uri.removeprefix("redis://"): urlsplit(uri) for uri in uris}
        self._clients = {name: Redis(url.hostname, url.port or 6379) for name, url in self._urls.items()}

    def partitions(self) -> Sequence[str]:
        return list(self._urls)

    def open(self, partition: str, position: Any) -> Iterator[Sequence[Document]]:
        key, after = self._urls[partition].path[1:], position or "0"
        try:
            while found := self._clients[partition].xread({key: after}, count=500):
                entries = [(id_.decode(), fields[b"graph"]) for id_, fields in found[0][1]]
                yield [Document(graph, id_, f"{partition}@{id_}") for id_, graph in entries]
                after = entries[-1][0]
        except RedisError as error:
            raise DataError.of("D4215", f"redis://{partition}: {error}", hint="see that Redis runs") from None

    def position(self, partition: str, mark: Any) -> Any:
        return mark

    def committed(self, positions: Mapping[str, Any]) -> None:
        """Redis keeps the entries: nothing is to be acknowledged."""


def source(request: SourceRequest) -> GraphSource:
    streams, ends = Streams(request.uris), not request.follow
    return DocumentSource(streams, Format.JSONLINES, request.options, fail=request.fail, ends=ends)
