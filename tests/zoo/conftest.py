"""Entries, checkpoints in every published format, and a hub to fetch from."""

import hashlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

import pytest

from harness.zoo.spec import ModelSpec

if TYPE_CHECKING:
    from torch import Tensor

MakeSpec: TypeAlias = Callable[..., ModelSpec]
WriteTar: TypeAlias = "Callable[[Path, Mapping[str, Tensor]], Path]"
Published: TypeAlias = "Callable[[str], OrderedDict[str, Tensor]]"


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)


@pytest.fixture
def make_spec() -> MakeSpec:
    """Build an entry; keywords replace whole fields."""

    def make(**fields: Any) -> ModelSpec:
        entry = {
            "name": "tiny",
            "group": "architecture",
            "architecture": {"source": "torchvision", "name": "resnet18"},
            "weights": {"source": "random", "seed": 0},
            "feature": {"take": "identity", "module": "fc"},
            "input": {"size": 32},
            "training_data": "none",
            "licence": "none",
        }
        return ModelSpec.model_validate({**entry, **fields})

    return make


@pytest.fixture(scope="session")
def published() -> Published:
    """Make the model part of a published checkpoint, prefixes and head included."""
    from tests.zoo.checkpoints import published_layout

    return published_layout


@pytest.fixture(scope="session")
def write_tar() -> WriteTar:
    """Write tensors as ``torch.save`` did before torch 0.1.10, by the description of that format."""
    from tests.zoo.checkpoints import write_legacy_tar

    return write_legacy_tar


@dataclass
class Hub:
    """A server of files whose next answers can be spoilt."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    html: set[str] = field(default_factory=set)
    weak: bool = False
    """Send no ETag or date that a resumed transfer could rely on."""
    faults: list[str] = field(default_factory=list)
    """One for each coming request: ``cut N``, ``status N``, ``no ranges``, ``wrong range``, ``stall`` or ````."""
    ranges: list[str | None] = field(default_factory=list)
    """The ``Range`` header of each request so far."""
    released: threading.Event = field(default_factory=threading.Event)

    def add(self, name: str, content: bytes) -> str:
        self.files[f"/{name}"] = content
        return f"{self.url}/{name}"


class _Answer(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        hub, fault = self.hub, (self.hub.faults.pop(0) if self.hub.faults else "")
        hub.ranges.append(self.headers.get("Range"))
        content = hub.files.get(self.path)
        if fault.startswith("status") or content is None:
            self.send_error(int(fault.split()[1]) if fault else 404)
            return
        etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        start = self._start(etag, fault)
        if start >= len(content) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self._send(content, start, etag, fault)

    def _start(self, etag: str, fault: str) -> int:
        asked = self.headers.get("Range")
        if not asked or fault == "no ranges" or self.headers.get("If-Range") != etag:
            return 0
        return int(asked.removeprefix("bytes=").rstrip("-"))

    def _send(self, content: bytes, start: int, etag: str, fault: str) -> None:
        body = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "text/html" if self.path in self.hub.html else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        if start:
            first = start + 1 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        if not self.hub.weak:
            self.send_header("ETag", etag)
        self.end_headers()
        if fault == "stall":
            self.wfile.write(body[:10])
            self.wfile.flush()
            self.hub.released.wait(30)
            return
        self.wfile.write(body[: int(fault.split()[1])] if fault.startswith("cut") else body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server uses
        """Say nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serve files on this machine; tries follow each other at once."""
    monkeypatch.setattr("harness.zoo.download.PAUSES", (0.0, 0.0, 0.0))
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answer", (_Answer,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield hub
    hub.released.set()
    server.shutdown()
    server.server_close()
    thread.join()
