"""The store: whole entries or none, whatever happens."""

import errno
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import MissingInput
from harness.store import Key
from harness.store import Overwrite
from harness.store import Store
from harness.store import StoreWarning
from harness.store import differences

KEY: Key = {"weights": "abc", "protocol": {"trials": 3}}


def write(text: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "value.txt").write_text(text)

    return build


def never(folder: Path) -> None:
    raise AssertionError(f"nothing had to be built in {folder}")


def read(entry: Path) -> str:
    return (entry / "value.txt").read_text()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def leftovers(store: Store) -> list[Path]:
    return [path for path in (store.root / "work").rglob("*") if path.is_file()]


def test_an_entry_is_built_once_and_found_again_by_another_process(store: Store) -> None:
    first = store.get("probe", KEY, write("a"))
    assert read(first) == "a"
    assert Store(store.root).get("probe", {name: KEY[name] for name in reversed(list(KEY))}, never) == first
    assert store.find("probe", {**KEY, "weights": "other"}) is None
    assert store.find("features", KEY) is None


def test_a_failed_build_leaves_nothing(store: Store) -> None:
    def full(folder: Path) -> None:
        (folder / "value.txt").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        store.get("probe", KEY, full)
    assert store.find("probe", KEY) is None
    assert leftovers(store) == []
    assert read(store.get("probe", KEY, write("whole"))) == "whole"


@pytest.mark.parametrize("name", ["value.txt", "key.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_a_damaged_entry_is_set_aside_with_a_warning_and_rebuilt(store: Store, name: str, damage: str) -> None:
    path = store.get("probe", KEY, write("abc")) / name
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        half = len(content) // 2
        flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        path.write_bytes(content[:half] if damage == "truncate" else flipped)
    with pytest.warns(StoreWarning, match="set aside"):
        entry = store.get("probe", KEY, write("abc"))
    assert read(entry) == "abc"
    assert len(list((store.root / "quarantine").iterdir())) == 1
    assert Store(store.root).find("probe", KEY) == entry


def test_overwrite_always_rebuilds_once_a_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.get("probe", KEY, write("old"))
    time.sleep(0.01)
    run = Store(tmp_path, run_started=time.time())
    assert read(run.get("probe", KEY, write("new"), overwrite=Overwrite.ALWAYS)) == "new"
    assert read(run.get("probe", KEY, never, overwrite=Overwrite.ALWAYS)) == "new"
    assert read(store.get("probe", KEY, never)) == "new"


def test_only_cache_builds_nothing(store: Store) -> None:
    with pytest.raises(MissingInput, match="only-cache"):
        store.get("probe", KEY, never, overwrite=Overwrite.ONLY_CACHE)
    store.get("probe", KEY, write("a"))
    assert read(store.get("probe", KEY, never, overwrite=Overwrite.ONLY_CACHE)) == "a"


def build_then_hang(root: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "part.txt").write_text("batch 0")
        time.sleep(60)

    Store(root).get("features", KEY, build, resumable=True)


def test_the_work_of_a_killed_builder_is_handed_on(store: Store) -> None:
    process = multiprocessing.get_context("spawn").Process(target=build_then_hang, args=(store.root,))
    process.start()
    deadline = time.monotonic() + 30
    while not list(store.root.rglob("part.txt")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    found: list[str] = []

    def resume(folder: Path) -> None:
        found.append((folder / "part.txt").read_text())
        (folder / "value.txt").write_text("done")

    assert read(store.get("features", KEY, resume, resumable=True)) == "done"
    assert found == ["batch 0"]
    assert leftovers(store) == []


def test_a_builder_killed_just_before_publishing_is_taken_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            store.get("features", KEY, write("a"), resumable=True)
    assert {path.name for path in leftovers(store)} == {"value.txt", "key.json", "manifest.json"}
    entry = store.get("features", KEY, write("a"), resumable=True)
    assert Store(store.root).find("features", KEY) == entry


def build_slowly(root: Path, results: "multiprocessing.Queue[str]") -> None:
    def build(folder: Path) -> None:
        time.sleep(0.3)
        (folder / "value.txt").write_text(str(os.getpid()))

    results.put(read(Store(root).get("probe", KEY, build)))


def test_two_processes_share_one_build(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=build_slowly, args=(store.root, results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert results.get() == results.get()


def test_without_a_lock_the_first_to_finish_wins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without locks a second builder neither takes nor removes the folder of the first."""

    def no_locks(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("harness.files.FileLock.acquire", no_locks)
    inner: list[Path] = []

    def slow(folder: Path) -> None:
        (folder / "value.txt").write_text("first to begin")
        inner.append(Store(store.root).get("probe", KEY, write("first to finish"), resumable=True))
        assert (folder / "value.txt").read_text() == "first to begin"

    entry = store.get("probe", KEY, slow, resumable=True)
    assert inner == [entry]
    assert store.find("probe", KEY) == entry
    assert read(entry) == "first to finish"


def test_always_does_not_take_up_what_was_begun_before_the_run(store: Store) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "part.txt").write_text("of another network")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get("features", KEY, interrupted, resumable=True)
    time.sleep(0.01)
    run = Store(store.root, run_started=time.time())
    entry = run.get("features", KEY, write("new"), resumable=True, overwrite=Overwrite.ALWAYS)
    assert not (entry / "part.txt").exists()


def test_keys_lists_what_is_there_and_passes_over_what_is_damaged(store: Store) -> None:
    store.get("probe", KEY, write("a"))
    damaged = store.get("probe", {"x": 1}, write("b"))
    (damaged / "key.json").write_text("{")
    assert [key for _, key in store.keys("probe")] == [KEY]


def test_differences_name_the_fields_by_path() -> None:
    theirs: Key = {"weights": "abc", "protocol": {"trials": 30, "seeds": [1]}}
    assert differences(KEY, theirs) == {"protocol.trials": (3, 30), "protocol.seeds": (None, [1])}
    assert differences(KEY, json.loads(json.dumps(KEY))) == {}
    assert differences({"seeds": (22, 37)}, {"seeds": [22, 37]}) == {}


def test_the_manifest_remembers_the_time_of_building(store: Store) -> None:
    def build(folder: Path) -> None:
        time.sleep(0.05)
        write("a")(folder)

    assert 0.05 <= store.seconds(store.get("probe", KEY, build)) < 30
