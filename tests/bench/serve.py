"""What a server takes in, how soon events are seen, and what readers cost.

Method:  `dotr serve` in a process of its own, a client beside it in this one, over plain sockets (httpx takes
         longer for a request than the server). CPU time of the server is that of its process.
           throughput  posts of 500 lines by one connection, until all is processed and committed
           latency     200 graphs a second, one a post, keyed; from the call to the event at a reader (the
                       next post closes its instant)
           readers     200 and 1,000 readers of the same events; CPU beyond that with one, a delivery
           memory      the resident set of the server at a tenth of the graphs, and at the end; messages are
                       kept for an hour of the stream (3,600 graphs), which has passed by then
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

RULES = """PREFIX : <urn:x:>
RULE Hot
DEFINE { dotr_h a :Hot ; :in ?room ; :value ?v }
FROM R := { SELECT ?room ?v { ?o :room ?room ; :celsius ?v FILTER(?v >= 60) } }
WITH ?room := R.?room, ?v := R.?v
"""

LINES = 500
"""Lines of a post."""


class Server:
    """Owns the process. Use as a context; `port` is where it listens."""

    def __init__(self, folder: str, *more: str) -> None:
        Path(folder, "rules.dotr").write_text(RULES)
        command = [
            sys.executable,
            "-m",
            "dotr.cli.main",
            "serve",
            "rules.dotr",
            "--listen",
            "127.0.0.1:0",
            *more,
        ]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = next(line for line in self.process.stderr if "http://" in line)
        self.port = int(line.strip().rpartition(":")[2])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(15)

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """MiB of memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Client:
    """Owns one connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, method: str, path: str, body: bytes = b"", more: str = "") -> tuple[int, Any]:
        """Status and JSON of an answer."""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        status = int(answer[9:12])
        length = next(
            int(line.partition(b":")[2])
            for line in answer.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        content = await self.reader.readexactly(length)
        return status, json.loads(content)


JSON_LINES = "content-type: application/x-ndjson\r\n"


def lines(start: int, count: int, share: int = 10) -> bytes:
    """Graphs of one reading each, one a second; of `share` one is hot."""
    return b"".join(
        b'{"time":%d,"graph":"<urn:x:o> <urn:x:room> <urn:x:r%d> ; <urn:x:celsius> %d ."}\n'
        % (n, n % 100, 70 if n % share == 0 else 20)
        for n in range(start, start + count)
    )


async def throughput(server: Server, graphs: int) -> dict[str, float]:
    """Graphs a second: accepted, and processed and committed. Posts of one stream keep their order."""
    posts = [lines(start, LINES) for start in range(0, graphs, LINES)]
    begun, cpu = time.perf_counter(), server.cpu()
    early = server.resident()
    async with Client(server.port) as client:
        token = ""
        for number, body in enumerate(posts):
            while True:
                status, answer = await client.ask("POST", "/v1/streams/input", body, JSON_LINES)
                if status != 429:
                    break
                await asyncio.sleep(0.05)
            assert status == 202, answer
            token = answer["token"]
            if number == len(posts) // 10:
                early = server.resident()
        accepted = time.perf_counter() - begun
        while (await client.ask("GET", f"/v1/tokens/{token}"))[1]["state"] == "pending":
            await asyncio.sleep(0.02)
        done = time.perf_counter() - begun
        _, status = await client.ask("GET", "/v1/status")
    assert status["graphs"] == graphs, status
    return {
        "accepted": graphs / accepted,
        "processed": graphs / done,
        "cpu_us": (server.cpu() - cpu) / graphs * 1e6,
        "early_mib": early,
        "late_mib": server.resident(),
    }


async def events(port: int, count: int, seen: list[tuple[int, float]] | None = None) -> int:
    """Read so many events from the first on; `seen` gets the time of each and when it came."""
    found = 0
    async with Client(port) as client:
        client.writer.write(
            b"GET /v1/events?after=0 HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n"
        )
        while found < count:
            content = await client.reader.read(1 << 20)
            if not content:
                break
            found += content.count(b"\ndata: ")
            if seen is not None:
                now = time.perf_counter()
                for part in content.split(b'"time":')[1:]:
                    digits = part[:20].partition(b",")[0]
                    if digits.isdigit():
                        seen.append((int(digits), now))
    return found


async def latency(server: Server, seconds: float, rate: int = 200) -> dict[str, float]:
    """Milliseconds from a post to its event at a reader, all of whose graphs are hot."""
    count = round(seconds * rate)
    seen: list[tuple[int, float]] = []
    sent: dict[int, float] = {}
    reading = asyncio.ensure_future(events(server.port, count - 1, seen))
    await asyncio.sleep(0.3)
    async with Client(server.port) as client:
        begun = time.perf_counter()
        for number in range(count):
            wait = begun + number / rate - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            sent[number] = time.perf_counter()
            status, _ = await client.ask(
                "POST",
                "/v1/streams/input",
                lines(number, 1, 1),
                f"{JSON_LINES}idempotency-key: k{number}\r\n",
            )
            assert status == 202
    await asyncio.wait_for(reading, 20)
    first: dict[int, float] = {}
    for stamp, when in seen:
        first.setdefault(stamp, when)
    taken = [(when - sent[stamp]) * 1e3 for stamp, when in first.items() if stamp in sent]
    cut = quantiles(taken, n=100)
    return {"p50_ms": cut[49], "p99_ms": cut[98], "events": len(taken)}


async def reading(server: Server, readers: int, graphs: int, rate: int) -> dict[str, float]:
    """CPU of the server for so many readers of the same events."""
    count = graphs - 1
    tasks = [asyncio.ensure_future(events(server.port, count)) for _ in range(readers)]
    await asyncio.sleep(1.0)
    cpu, begun = server.cpu(), time.perf_counter()
    async with Client(server.port) as client:
        for start in range(0, graphs, 50):
            wait = begun + start / rate - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            await client.ask("POST", "/v1/streams/input", lines(start, 50, 1), JSON_LINES)
    found = await asyncio.wait_for(asyncio.gather(*tasks), 120)
    return {"cpu": server.cpu() - cpu, "complete": sum(n >= count for n in found)}


def figures(quick: bool, graphs: int) -> tuple[list[dict[str, Any]], dict[str, float], dict[str, bool]]:
    """The table of readers, the other figures, and what must hold."""
    with tempfile.TemporaryDirectory() as folder, Server(folder, "--keep-messages", "1h") as server:
        taken = asyncio.run(throughput(server, graphs))
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        late = asyncio.run(latency(server, 5 if quick else 30))
    rows: list[dict[str, Any]] = []
    many = [1, 50] if quick else [1, 200, 1_000]
    length = 2_000 if quick else 10_000
    for readers in many:
        with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
            found = asyncio.run(reading(server, readers, length, 1_000))
        rows.append({"readers": readers, "complete": found["complete"], "cpu": round(found["cpu"], 2)})
    for row in rows:
        extra = (row["cpu"] - rows[0]["cpu"]) / max(1, (row["readers"] - 1) * (length - 1))
        row["us/delivery"] = round(extra * 1e6, 2)
    others = {**{k: round(v, 1) for k, v in taken.items()}, **{k: round(v, 1) for k, v in late.items()}}
    checks = {
        "at least 20,000 graphs/s are accepted, processed and committed": taken["processed"] >= 20_000,
        "an event is seen within 30 ms (p50) and 150 ms (p99)": late["p50_ms"] <= 30
        and late["p99_ms"] <= 150,
        "a delivery to one of many readers costs at most 5 µs of CPU": rows[1]["us/delivery"] <= 5,
        "every reader gets every event": all(row["complete"] == row["readers"] for row in rows),
        "memory is flat": taken["late_mib"] <= 1.25 * taken["early_mib"] + 20,
    }
    return rows, others, checks
