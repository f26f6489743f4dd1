"""The server's answers, good and bad, one by one."""

import hashlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.zoo.download import download
from harness.zoo.download import forget

if TYPE_CHECKING:
    from tests.zoo.conftest import Hub

CONTENT = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(256)) * 40  # 320 KiB


def test_brings_every_byte_and_tells_the_progress(hub: "Hub", tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    download(hub.add("w.pth", CONTENT), tmp_path / "w", lambda done, total: told.append((done, total)))
    assert (tmp_path / "w").read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_goes_on_where_the_connection_broke(hub: "Hub", tmp_path: Path) -> None:
    hub.faults = ["cut 1000", "cut 500", ""]
    download(hub.add("w.pth", CONTENT), tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=1000-", "bytes=1500-"]


def test_goes_on_in_a_later_call(hub: "Hub", tmp_path: Path) -> None:
    url = hub.add("w.pth", CONTENT)
    hub.faults = ["cut 1000", "status 503", "status 503", "status 503"]
    with pytest.raises(MissingInput, match=r"gave up after 4 tries \(HTTP status 503 .*\)\. 1000 bytes are kept"):
        download(url, tmp_path / "w")
    download(url, tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == CONTENT
    assert hub.ranges[-1] == "bytes=1000-"


def test_begins_anew_when_the_file_changed_on_the_server(hub: "Hub", tmp_path: Path) -> None:
    hub.faults = ["cut 1000", "status 500", "status 500", "status 500"]
    with pytest.raises(MissingInput):
        download(hub.add("w.pth", CONTENT), tmp_path / "w")
    url = hub.add("w.pth", CONTENT[::-1])
    download(url, tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("fault", ["no ranges", "wrong range"])
def test_begins_anew_when_the_server_cannot_resume(hub: "Hub", tmp_path: Path, fault: str) -> None:
    hub.faults = ["cut 1000", fault]
    download(hub.add("w.pth", CONTENT), tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == CONTENT
    assert hub.ranges[1] == "bytes=1000-"


def test_begins_anew_without_a_mark_of_the_version(hub: "Hub", tmp_path: Path) -> None:
    hub.weak = True
    hub.faults = ["cut 1000"]
    download(hub.add("w.pth", CONTENT), tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == CONTENT
    assert hub.ranges == [None, None]


def test_a_complete_part_is_not_fetched_again(hub: "Hub", tmp_path: Path) -> None:
    url = hub.add("w.pth", CONTENT)
    download(url, tmp_path / "w")
    download(url, tmp_path / "w")
    assert hub.ranges == [None, f"bytes={len(CONTENT)}-"]
    assert (tmp_path / "w").read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_begun_anew(hub: "Hub", tmp_path: Path) -> None:
    url = hub.add("w.pth", CONTENT)
    download(url, tmp_path / "w")
    with (tmp_path / "w").open("ab") as file:
        file.write(b"more")
    download(url, tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == CONTENT


def test_refusals_fail_at_once(hub: "Hub", tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match=r"/gone\.pth: the server answers with HTTP status 404 Not Found"):
        download(f"{hub.url}/gone.pth", tmp_path / "w")
    assert len(hub.ranges) == 1
    assert not (tmp_path / "w").exists()


def test_a_web_page_fails_at_once_with_its_title(hub: "Hub", tmp_path: Path) -> None:
    url = hub.add("w.pth", b"<!DOCTYPE html><html><head><title>Quota\n exceeded</title></head></html>")
    hub.html = {"/w.pth"}
    with pytest.raises(CorruptInput, match=r"w\.pth leads to an HTML page titled 'Quota exceeded', such as a login"):
        download(url, tmp_path / "w")
    assert len(hub.ranges) == 1


def test_a_silent_server_is_given_up(hub: "Hub", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.zoo.download.TIMEOUT", 0.1)
    hub.faults = ["stall"] * 4
    with pytest.raises(MissingInput, match=r"gave up after 4 tries \(timed out\)\. 40 bytes are kept"):
        download(hub.add("w.pth", CONTENT), tmp_path / "w")


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.zoo.download.PAUSES", (0.0,))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(MissingInput, match=r"gave up after 2 tries \(.*refused.*\)\. 0 bytes are kept"):
            download(f"http://127.0.0.1:{closed.getsockname()[1]}/w.pth", tmp_path / "w")


def test_forget_leaves_nothing(hub: "Hub", tmp_path: Path) -> None:
    download(hub.add("w.pth", CONTENT), tmp_path / "w")
    forget(tmp_path / "w")
    assert list(tmp_path.iterdir()) == []
