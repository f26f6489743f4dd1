"""Where weights are, whether they are the right ones, and how they get there."""

import hashlib
import io
import json
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import pytest
import torch

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.zoo.weights import LOCK_FILE
from harness.zoo.weights import fetch
from harness.zoo.weights import locate
from harness.zoo.weights import verify
from harness.zoo.weights import weights_digest

if TYPE_CHECKING:
    from tests.zoo.conftest import Hub
    from tests.zoo.conftest import MakeSpec


def checkpoint_bytes(value: float = 1.0) -> bytes:
    buffer = io.BytesIO()
    torch.save({"w": torch.full((3,), value)}, buffer)
    return buffer.getvalue()


WEIGHTS = checkpoint_bytes()
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()


def url_weights(url: str, **fields: Any) -> dict[str, Any]:
    return {"source": "url", "url": url, **fields}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_missing_weights_are_named_with_the_way_to_get_them(make_spec: "MakeSpec", tmp_path: Path) -> None:
    spec = make_spec(name="s-DINO", weights=url_weights("https://example.org/a/dino.pth"))
    with pytest.raises(MissingInput) as caught:
        locate(spec, tmp_path)
    assert str(caught.value) == (
        f"s-DINO: no weights at {tmp_path}/dino.pth. Run: harness fetch s-DINO (it downloads "
        "https://example.org/a/dino.pth), or put the file there yourself"
    )


def test_manual_downloads_say_where_to_put_the_file(make_spec: "MakeSpec", tmp_path: Path) -> None:
    weights = url_weights("https://drive.example.org/v", file="t2t/model.pth.tar", manual=True)
    spec = make_spec(weights=weights)
    expected = f"no weights at {tmp_path}/t2t/model.pth.tar. Download them by hand from https://drive.example.org/v and"
    with pytest.raises(MissingInput, match=expected):
        fetch(spec, tmp_path)


def test_a_package_that_is_not_installed(make_spec: "MakeSpec", tmp_path: Path) -> None:
    weights = {"source": "package", "package": "no_such_package", "file": "a/b.pth", "distribution": "no-such==1.0"}
    with pytest.raises(MissingInput, match=r"no_such_package/a/b\.pth\. Run: pip install no-such==1\.0"):
        locate(make_spec(weights=weights), tmp_path)


def test_a_file_of_the_users_own(make_spec: "MakeSpec", tmp_path: Path) -> None:
    (tmp_path / "mine.pth").write_bytes(WEIGHTS)
    relative = make_spec(weights={"source": "file", "path": "mine.pth", "sha256": SHA256[:10]})
    absolute = make_spec(weights={"source": "file", "path": str(tmp_path / "mine.pth")})
    assert verify(relative, tmp_path) == tmp_path / "mine.pth"
    assert verify(absolute, Path("elsewhere")) == tmp_path / "mine.pth"
    assert weights_digest(relative, tmp_path) == SHA256
    with pytest.raises(MissingInput, match=r"gone\.pth\. Put the file there, or correct weights\.path of the entry"):
        locate(make_spec(weights={"source": "file", "path": "gone.pth"}), tmp_path)


def test_random_weights_need_no_file(make_spec: "MakeSpec", tmp_path: Path) -> None:
    spec = make_spec(weights={"source": "random", "seed": 7})
    assert locate(spec, tmp_path) is None
    assert fetch(spec, tmp_path, offline=True) is None
    assert weights_digest(spec, tmp_path) == "random:7"


def test_fetched_weights_are_whole_checked_and_noted(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights(hub.add("w.pth", WEIGHTS)))
    assert fetch(spec, tmp_path) == tmp_path / "w.pth"
    assert names(tmp_path) == {"w.pth", LOCK_FILE}
    assert json.loads((tmp_path / LOCK_FILE).read_text()) == {
        "w.pth": {"bytes": len(WEIGHTS), "sha256": SHA256, "url": f"{hub.url}/w.pth"}
    }
    assert fetch(spec, tmp_path, offline=True) == tmp_path / "w.pth"
    assert len(hub.ranges) == 1


def test_the_noted_digest_guards_later_fetches(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights(hub.add("w.pth", WEIGHTS)))
    fetch(spec, tmp_path)
    (tmp_path / "w.pth").unlink()
    other = checkpoint_bytes(2.0)
    hub.add("w.pth", other)
    found = hashlib.sha256(other).hexdigest()
    with pytest.raises(
        CorruptInput, match=f"has sha256 {found}, but {LOCK_FILE}, from an earlier fetch, says {SHA256}"
    ):
        fetch(spec, tmp_path)


def test_a_wrong_checksum_sets_the_download_aside(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights(hub.add("w.pth", WEIGHTS), sha256="0123456789"))
    with pytest.raises(CorruptInput) as caught:
        fetch(spec, tmp_path)
    assert str(caught.value) == (
        f"tiny: {tmp_path}/w.pth.part has sha256 {SHA256}, but the entry says 0123456789: the file is damaged, "
        "or it is another file; what came is set aside as w.pth.set-aside"
    )
    assert names(tmp_path) == {"w.pth.set-aside"}


def test_damaged_weights_in_place_fail_until_fetched_again(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights(hub.add("w.pth", WEIGHTS), sha256=SHA256))
    (tmp_path / "w.pth").write_bytes(WEIGHTS[:-1])
    with pytest.raises(CorruptInput, match=f"has sha256 [0-9a-f]{{64}}, but the entry says {SHA256}"):
        fetch(spec, tmp_path, offline=True)
    assert names(tmp_path) == {"w.pth"}
    fetch(spec, tmp_path)
    assert verify(spec, tmp_path) == tmp_path / "w.pth"
    assert (tmp_path / "w.pth.set-aside").read_bytes() == WEIGHTS[:-1]


def test_a_page_in_place_of_a_manual_download(make_spec: "MakeSpec", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights("https://drive.example.org/v", file="w.pth", manual=True))
    (tmp_path / "w.pth").write_text("<!doctype html><title>Sign in</title>")
    with pytest.raises(CorruptInput, match=r"an HTML page titled 'Sign in'.*\. It was set aside as w\.pth\.set-aside"):
        fetch(spec, tmp_path)


def test_weights_put_there_by_hand_are_noted_by_a_fetch(make_spec: "MakeSpec", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights("https://drive.example.org/v", file="w.pth", manual=True))
    (tmp_path / "w.pth").write_bytes(WEIGHTS)
    assert fetch(spec, tmp_path) == tmp_path / "w.pth"
    assert json.loads((tmp_path / LOCK_FILE).read_text())["w.pth"]["sha256"] == SHA256


def test_offline_fails_at_once(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights(hub.add("w.pth", WEIGHTS)))
    with pytest.raises(MissingInput, match=r"no weights at .*w\.pth\. Run: harness fetch tiny"):
        fetch(spec, tmp_path, offline=True)
    assert hub.ranges == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html><head><title>404</title>", "an HTML page titled '404', such as a login, quota or download page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a Git LFS pointer: the repository was cloned"),
        (b"", "holds no weights: it is empty"),
        (WEIGHTS[: len(WEIGHTS) // 2], "is a damaged or truncated zip file"),
    ],
)
def test_what_came_is_told_and_set_aside(
    make_spec: "MakeSpec", hub: "Hub", tmp_path: Path, content: bytes, words: str
) -> None:
    with pytest.raises(CorruptInput, match=words) as caught:
        fetch(make_spec(weights=url_weights(hub.add("w.pth", content))), tmp_path)
    assert str(caught.value).startswith("tiny: ")
    assert not (tmp_path / "w.pth").exists()


def test_a_server_that_refuses(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    with pytest.raises(MissingInput) as caught:
        fetch(make_spec(weights=url_weights(f"{hub.url}/w.pth")), tmp_path)
    assert str(caught.value) == (
        f"tiny: {hub.url}/w.pth: the server answers with HTTP status 404 Not Found. "
        f"Put the file at {tmp_path}/w.pth by hand if you have it"
    )


def test_a_member_of_a_zip_archive(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("folder/net.pth.tar", WEIGHTS)
    url = hub.add("release.zip", archive.getvalue())
    spec = make_spec(weights=url_weights(url, member="folder/net.pth.tar", sha256=SHA256))
    assert fetch(spec, tmp_path) == tmp_path / "net.pth.tar"
    assert (tmp_path / "net.pth.tar").read_bytes() == WEIGHTS
    assert names(tmp_path) == {"net.pth.tar", LOCK_FILE}
    absent = make_spec(weights=url_weights(url, member="folder/other.pth"))
    with pytest.raises(CorruptInput, match=r"has no member 'folder/other\.pth'; it has \['folder/net\.pth\.tar'\]"):
        fetch(absent, tmp_path)


def test_workers_that_ask_at_once_share_one_download(make_spec: "MakeSpec", hub: "Hub", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights(hub.add("w.pth", WEIGHTS)))
    workers = [threading.Thread(target=fetch, args=(spec, tmp_path)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert hub.ranges == [None]
    assert verify(spec, tmp_path) == tmp_path / "w.pth"


def test_a_damaged_lock_file_is_told(make_spec: "MakeSpec", tmp_path: Path) -> None:
    spec = make_spec(weights=url_weights("https://example.org/w.pth"))
    (tmp_path / "w.pth").write_bytes(WEIGHTS)
    (tmp_path / LOCK_FILE).write_text("{")
    with pytest.raises(ConfigError, match=r"weights\.lock\.json is not valid JSON"):
        fetch(spec, tmp_path)
    assert (tmp_path / "w.pth").exists()
