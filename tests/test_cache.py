"""Upkeep of the cache: nothing whole is lost, nothing that is being built is touched. No torch needed."""

import json
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from harness import cache
from harness.digest import Plain
from harness.store import Key
from harness.store import Store
from harness.store import StoreWarning


def backbone(name: str, resize: int = 32) -> dict[str, Plain]:
    return {"architecture": {"source": "timm", "name": name}, "input": {"size": 32, "resize": resize}}


def features_key(name: str, images: str = "train", **of: int) -> Key:
    return {"backbone": backbone(name, **of), "weights": "w", "images": images}


def extracted(name: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "features.npy").write_bytes(b"x" * 1000)
        (folder / "extraction.json").write_text(json.dumps({"backbone": name}))

    return build


def probed(folder: Path) -> None:
    (folder / "score.json").write_text("{}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Features and a probe of each of two models."""
    store = Store(tmp_path / "cache" / "store")
    for name in ("a", "b"):
        store.get("features", features_key(name), extracted(name))
        store.get("probe", {"train": features_key(name, resize=40), "seeds": [1]}, probed)
    return store


def hold(root: Path, digest: str, held: Event, done: Event) -> None:
    with Store(root).claimed(digest) as claimed:
        assert claimed
        held.set()
        done.wait(30)


class Held:
    """The lock of a digest, held by another process within the block."""

    def __init__(self, store: Store, digest: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.held, self.done = context.Event(), context.Event()
        self.process = context.Process(target=hold, args=(store.root, digest, self.held, self.done))

    def __enter__(self) -> None:
        self.process.start()
        assert self.held.wait(30)

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.process.join()


def test_entries_know_their_models_by_what_features_say_and_by_the_models_file(store: Store) -> None:
    found = {(held.kind, held.models) for held in cache.entries(store)}
    assert found == {(kind, (model,)) for kind in ("features", "probe") for model in ("a", "b")}
    renamed = {cache.signature(backbone("a"), "w"): ["new"]}
    assert {held.models for held in cache.entries(store, renamed)} == {("a", "new"), ("b",)}


def test_sizes_are_those_of_the_files(store: Store) -> None:
    features = next(held for held in cache.entries(store) if held.kind == "features")
    assert features.size == sum(path.stat().st_size for path in features.path.iterdir()) > 1000
    weights = store.root.parent / "weights"
    weights.mkdir()
    (weights / "w.pth").write_bytes(b"y" * 77)
    assert cache.areas(store.root.parent) == {"work": 0, "weights": 77}


def test_a_whole_store_is_verified_silently(store: Store) -> None:
    assert [(fault, aside) for _, fault, aside in cache.verify(store)] == [(None, False)] * 4


@pytest.mark.parametrize("damage", ["flip", "move"])
def test_damage_is_named_and_set_aside(store: Store, damage: str) -> None:
    """A flipped byte keeps size and, here, time; an entry moved to another key's place is whole but the wrong one."""
    entry = store.entries()[0]
    if damage == "flip":
        Store(store.root).find("features", features_key("a"))
        (entry / "features.npy").write_bytes(b"x" * 999 + b"y")
    else:
        entry = entry.rename(entry.with_name("0" * 64))
    found = {path: (fault, aside) for path, fault, aside in cache.verify(store)}
    assert [path for path, (fault, _) in found.items() if fault] == [entry]
    fault, aside = found[entry]
    assert fault is not None
    assert ("features.npy" if damage == "flip" else "key has the digest") in fault
    assert aside
    assert not entry.exists()
    assert [held.kind for held in cache.set_aside(store)] == ["features"]


def test_a_damaged_entry_that_is_being_rebuilt_stays(store: Store) -> None:
    entry = store.entries()[0]
    (entry / "features.npy").write_bytes(b"")
    with Held(store, entry.name):
        assert [aside for _, fault, aside in cache.verify(store) if fault] == [False]
        assert entry.exists()


def test_nothing_under_a_held_lock_is_removed(store: Store) -> None:
    work = store.root / "work" / "features" / f"{'1' * 64}.abc"
    work.mkdir(parents=True)
    (work / "features.npy").write_bytes(b"half")
    (unfinished,) = cache.unfinished(store)
    entry = cache.entries(store)[0]
    with Held(store, "1" * 64):
        assert not cache.remove(store, unfinished)
        assert (work / "features.npy").exists()
        assert cache.remove(store, entry)
    assert cache.remove(store, unfinished)
    assert not work.exists()
    assert not entry.path.exists()
    assert cache.unfinished(store) == []


def test_removed_entries_are_built_again(store: Store) -> None:
    for held in cache.entries(store):
        assert cache.remove(store, held)
    assert cache.entries(store) == []
    assert store.get("probe", {"train": features_key("a", resize=40), "seeds": [1]}, probed).is_dir()


def test_without_locks_nothing_is_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("harness.files.FileLock.acquire", no_locks)
    assert [cache.remove(store, held) for held in cache.entries(store)] == [False] * 4


def test_age_counts_from_when_an_entry_was_built(store: Store) -> None:
    assert all(0 <= time.time() - held.since < 60 for held in cache.entries(store))


def test_entries_are_copied_once_and_only_whole(store: Store, tmp_path: Path) -> None:
    target = Store(tmp_path / "other")
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    damaged = store.entries()[3]
    (damaged / "score.json").write_text("x")
    before[damaged / "score.json"] = (damaged / "score.json").stat().st_mtime_ns
    first = cache.copy_entries(store, target)
    assert (first.copied, first.there, list(first.left)) == (3, 0, [damaged])
    assert "score.json" in first.left[damaged]
    second = cache.copy_entries(store, target)
    assert (second.copied, second.there, list(second.left)) == (0, 3, [damaged])
    assert [fault for _, fault, _ in cache.verify(target)] == [None] * 3
    assert cache.unfinished(target) == []
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert target.find("features", features_key("b")) is not None


def test_a_damaged_entry_gives_way_to_a_verified_copy(store: Store, tmp_path: Path) -> None:
    target = Store(tmp_path / "other")
    cache.copy_entries(store, target)
    (target.entries()[0] / "features.npy").write_bytes(b"")
    with pytest.warns(StoreWarning, match="replaced by a verified copy"):
        assert cache.copy_entries(store, target).copied == 1
    assert [fault for _, fault, _ in cache.verify(target)] == [None] * 4
