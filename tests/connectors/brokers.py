"""A mosquitto of a test's own."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/bin")

needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")


class Mosquitto:
    """Owns the process; it keeps sessions over restarts. `saves`: it writes its store once a second while
    something changes, and not only at its end; the whole store, which costs more the more it has queued.
    """

    def __init__(self, folder: Path, more: str = "", *, saves: bool = True) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "store").mkdir(exist_ok=True)
        (folder / "store").chmod(0o777)
        (folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\npersistence true\npersistence_location {folder}/store/\n"
            f"autosave_interval {int(saves)}\nautosave_on_changes {str(saves).lower()}\n"
            f"max_queued_messages 0\n"
            f"max_inflight_messages 0\nuser root\n{more or 'allow_anonymous true'}\n"
        )
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        self.process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self.folder / "mosquitto.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("mosquitto does not listen")

    def stop(self) -> None:
        """In good order: it writes its sessions first."""
        self.process.terminate()
        self.process.wait(10)

    def kill(self) -> None:
        """SIGKILL: what it has not written is lost."""
        self.process.kill()
        self.process.wait(10)

    def save(self) -> None:
        """Let it write its store, and wait for that."""
        store = self.folder / "store" / "mosquitto.db"
        store.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 20
        while not store.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def client(self, **more: Any) -> paho.Client:
        """A connected client, whose thread runs."""
        client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5, **more)
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho
        properties.SessionExpiryInterval = 3600
        client.connect("127.0.0.1", self.port, properties=properties)
        client.loop_start()
        return client
