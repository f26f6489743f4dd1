"""Killed, cut short or out of disk: extraction goes on where it stopped and ends with the same features."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from harness.features import FeatureMatrix
from harness.features import Options
from harness.features import features
from harness.features.rows import RowWriter
from harness.images import EncodedImages
from harness.images import Unreadable
from harness.store import Store

PROGRAM = Path(__file__).with_name("killed.py")


def process(store: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, PROGRAM, store, log, str(seconds)], env=environment)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def entry(store: Path) -> FeatureMatrix:
    (found,) = store.glob("entries/features/*")
    return FeatureMatrix.load(found)


def test_a_killed_extraction_computes_no_finished_batch_again(tmp_path: Path) -> None:
    undisturbed = process(tmp_path / "whole", tmp_path / "whole.log", 0)
    child = process(tmp_path / "store", tmp_path / "first.log", 0.1)
    while len(lines(tmp_path / "first.log")) < 6:
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not list((tmp_path / "store").glob("entries/*/*"))
    (journal,) = (tmp_path / "store").glob("work/features/*/journal.jsonl")
    finished = len(lines(journal)) - 1
    assert finished >= 5
    assert process(tmp_path / "store", tmp_path / "second.log", 0).wait() == 0
    assert undisturbed.wait() == 0
    batches = lines(tmp_path / "whole.log")
    assert len(batches) == 20
    assert lines(tmp_path / "second.log") == batches[finished:]
    found, expected = entry(tmp_path / "store"), entry(tmp_path / "whole")
    assert np.array_equal(found.features, expected.features)
    assert found.ids == expected.ids
    assert found.about["resumed_at"] == 5 * finished
    assert not list((tmp_path / "store").glob("work/features/*"))


ROWS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
WORK = {"images": "some"}


def write(folder: Path, stop: int, work: dict[str, str] = WORK) -> int:
    """Write batches of four images, of which the second has no row, up to ``stop``. Returns the batches written."""
    batches = 0
    with RowWriter(folder, 20, 3, work) as writer:
        for start in range(writer.done, stop, 4):
            rows = ROWS[[start, start + 2, start + 3]]
            writer.append(start + 4, rows, [Unreadable(str(start + 1), "broken")])
            batches += 1
        writer.finish()
        assert [image.id for image in writer.unreadable] == [str(start + 1) for start in range(0, writer.done, 4)]
    return batches


def complete(folder: Path) -> bool:
    return np.array_equal(np.load(folder / "features.npy"), np.delete(ROWS, range(1, 20, 4), axis=0))


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(["features.npy", "journal.jsonl"]),
    where=st.floats(0, 1),
    fault=st.sampled_from(["cut", "zeroed", "garbled"]),
)
def test_whatever_a_crash_leaves_of_either_file_is_taken_up_or_done_again(
    tmp_path_factory: pytest.TempPathFactory, name: str, where: float, fault: str
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    assert write(folder, 16) == 4
    content = bytearray((folder / name).read_bytes())
    at = int(where * (len(content) - 1))
    rest = len(content) - at
    content[at:] = {"cut": b"", "zeroed": bytes(rest), "garbled": np.random.default_rng(at).bytes(rest)}[fault]
    (folder / name).write_bytes(content)
    assert 1 <= write(folder, 20) <= 5
    assert complete(folder)
    assert write(folder, 20) == 0
    assert complete(folder)


def test_what_is_left_of_other_work_is_thrown_away(tmp_path: Path) -> None:
    write(tmp_path, 16, {"images": "others"})
    assert write(tmp_path, 20) == 5
    assert complete(tmp_path)


@pytest.mark.parametrize("name", ["features.npy", "journal.jsonl"])
def test_one_file_without_the_other_is_worth_nothing(tmp_path: Path, name: str) -> None:
    write(tmp_path, 16)
    (tmp_path / name).unlink()
    assert write(tmp_path, 20) == 5
    assert complete(tmp_path)


def test_finished_rows_cost_no_work_when_only_publishing_was_interrupted(tmp_path: Path) -> None:
    assert write(tmp_path, 20) == 5
    assert write(tmp_path, 20) == 0
    assert complete(tmp_path)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_half_way_names_the_file_and_the_work_goes_on_later(
    store: Store, images: EncodedImages, backbone: Any
) -> None:
    options = Options(batch_size=10)
    with file_size_limit(1500), pytest.raises(OSError, match="writing features") as caught:
        # Ten rows of twelve numbers take 480 bytes: the third batch is cut.
        features(store, images, {}, lambda: backbone, options)
    assert caught.value.errno == errno.EFBIG
    assert str(caught.value.filename).endswith("features.npy")
    assert store.find("features", {}) is None
    assert backbone.batches == [10, 10, 10]
    matrix = features(store, images, {}, lambda: backbone, options)
    assert backbone.batches == [10] * 6
    again = features(store, images, {"again": True}, lambda: backbone, options)
    assert np.array_equal(matrix.features, again.features)


def test_a_full_disk_leaves_no_entry_and_says_so(
    store: Store, images: EncodedImages, backbone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(RowWriter, "_note", full)
        with pytest.raises(OSError, match=r"No space left on device.*features\.npy"):
            features(store, images, {}, lambda: backbone, Options())
    assert store.find("features", {}) is None
    assert not list(store.root.glob("entries/*/*"))
    assert len(features(store, images, {}, lambda: backbone, Options()).ids) == 50


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
@pytest.mark.parametrize("name", ["features.npy", "ids.txt", "unreadable.json", "extraction.json", "journal.jsonl"])
def test_a_damaged_entry_is_set_aside_and_rebuilt(
    store: Store, images: EncodedImages, backbone: Any, damage: str, name: str
) -> None:
    first = np.array(features(store, images, {}, lambda: backbone, Options()).features)
    (path,) = store.root.glob(f"entries/features/*/{name}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if damage == "flipped" else content[:-1])
    batches = len(backbone.batches)
    with pytest.warns(UserWarning, match="damaged cache entry set aside"):
        again = features(store, images, {}, lambda: backbone, Options())
    assert len(backbone.batches) == 2 * batches
    assert np.array_equal(again.features, first)
    assert len(list(store.root.glob("quarantine/features-*"))) == 1


def test_an_entry_killed_while_it_was_published_is_published_later(
    store: Store, images: EncodedImages, backbone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            features(store, images, {}, lambda: backbone, Options())
    matrix = features(store, images, {}, lambda: backbone, Options())
    assert matrix.about["resumed_at"] == 50
    assert sum(backbone.batches) == 50
    folder = store.find("features", {})
    assert folder is not None
    assert "manifest.json" not in json.loads((folder / "manifest.json").read_text())["files"]
