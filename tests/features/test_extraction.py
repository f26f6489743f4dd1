"""Features equal those of a plain loop, whatever the batch size, the threads and the memory."""

import threading
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from torch import Tensor

from harness.errors import ConfigError
from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.features import FeatureMatrix
from harness.features import Options
from harness.features import features
from harness.features.matrix import kept_labels
from harness.images import EncodedImages
from harness.images import Unreadable
from harness.progress import listening
from harness.store import Store

Key = dict[str, Any]


def plain_loop(images: EncodedImages, backbone: Any) -> npt.NDArray[np.float32]:
    rows = []
    for index in range(len(images)):
        (image,) = images.decode([index])
        rows.append(backbone(backbone.preprocess(image)[None]))
    found: npt.NDArray[np.float32] = torch.cat(rows).numpy()
    return found


def distance(found: npt.NDArray[np.float32], expected: npt.NDArray[np.float32]) -> float:
    return float((np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)).max())


@pytest.fixture
def extracted(store: Store, images: EncodedImages, backbone: Any) -> Callable[..., FeatureMatrix]:
    """Return ``extracted(batch_size=..., ...)``: the features of ``images``, each time extracted anew."""
    runs: list[int] = []

    def run(**options: Any) -> FeatureMatrix:
        runs.append(0)
        return features(store, images, {"run": len(runs)}, lambda: backbone, Options(**options))

    return run


def test_equals_a_plain_loop(extracted: Callable[..., FeatureMatrix], images: EncodedImages, backbone: Any) -> None:
    matrix = extracted()
    assert matrix.features.dtype == np.float32
    assert isinstance(matrix.features, np.memmap)
    assert matrix.ids == images.ids
    assert matrix.unreadable == ()
    assert distance(matrix.features, plain_loop(images, backbone)) < 1e-4


@pytest.mark.parametrize("batch_size", [1, 7, 25, 49, 50, 1000])
def test_does_not_depend_on_the_batch_size(extracted: Callable[..., FeatureMatrix], batch_size: int) -> None:
    assert distance(extracted(batch_size=batch_size).features, extracted(batch_size=16).features) < 1e-5


def test_does_not_depend_on_the_decoding_threads(extracted: Callable[..., FeatureMatrix]) -> None:
    one, five = extracted(workers=1), extracted(workers=5)
    assert np.array_equal(one.features, five.features)


def test_rows_follow_the_order_of_the_images(store: Store, images: EncodedImages, backbone: Any) -> None:
    order = np.random.default_rng(1).permutation(50).tolist()
    shuffled = images.subset(order)
    assert shuffled.digest != images.digest
    first, second = (
        features(store, some, {"images": some.digest}, lambda: backbone, Options()) for some in (images, shuffled)
    )
    assert second.ids == tuple(images.ids[index] for index in order)
    assert distance(second.features, first.features[order]) < 1e-5


def test_torch_threads_are_set_and_restored(extracted: Callable[..., FeatureMatrix], backbone: Any) -> None:
    before = torch.get_num_threads()
    extracted(threads=before + 1)
    assert backbone.threads == {before + 1}
    assert torch.get_num_threads() == before


def test_progress_is_told_after_each_batch(extracted: Callable[..., FeatureMatrix]) -> None:
    told: list[tuple[str, int | None, int | None]] = []
    with listening(lambda *progress: told.append(progress)):
        extracted(batch_size=20)
    assert told == [("features", 20, 50), ("features", 40, 50), ("features", 50, 50)]


def test_the_batch_is_halved_until_it_fits(
    extracted: Callable[..., FeatureMatrix], backbone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = extracted()
    run = type(backbone).__call__
    memory = 5

    def limited(self: Any, batch: Tensor, autocast: torch.dtype | None = None) -> Any:
        if len(batch) > memory:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, batch, autocast)

    monkeypatch.setattr(type(backbone), "__call__", limited)
    backbone.batches.clear()
    matrix = extracted(batch_size=16)
    assert (matrix.about["batch_size"], matrix.about["effective_batch_size"]) == (16, 4)
    assert set(backbone.batches) == {4, 2}
    assert distance(matrix.features, expected.features) < 1e-5
    memory = 0
    with pytest.raises(torch.OutOfMemoryError):
        extracted()


def test_reduced_precision_is_used_within_the_tolerance(extracted: Callable[..., FeatureMatrix]) -> None:
    full, reduced = extracted(), extracted(precision="bfloat16")
    assert (full.about["precision"], full.about["precision_error"]) == ("float32", None)
    assert reduced.about["precision"] == "bfloat16"
    assert 0 < distance(reduced.features, full.features) < 1e-2
    assert reduced.about["precision_error"] == pytest.approx(
        distance(reduced.features[:16], full.features[:16]), rel=1e-3
    )


def test_reduced_precision_is_not_used_beyond_the_tolerance(
    extracted: Callable[..., FeatureMatrix], backbone: Any
) -> None:
    with torch.no_grad():
        # The output is the small difference of large numbers.
        backbone.network[0].bias += 1000
        backbone.network[4].weight -= backbone.network[4].weight.mean(1, keepdim=True)
    full, reduced = extracted(), extracted(precision="bfloat16")
    assert reduced.about["precision"] == "float32"
    assert reduced.about["precision_error"] > 1e-2  # type: ignore[operator] # a plain value, here a float
    assert np.array_equal(reduced.features, full.features)


def test_reduced_precision_that_overflows_is_not_used(extracted: Callable[..., FeatureMatrix], backbone: Any) -> None:
    with torch.no_grad():
        backbone.network[4].weight *= 1e6
    full, reduced = extracted(), extracted(precision="float16")
    assert (reduced.about["precision"], reduced.about["precision_error"]) == ("float32", None)
    assert np.array_equal(reduced.features, full.features)


def test_features_that_are_not_finite_are_refused(extracted: Callable[..., FeatureMatrix], backbone: Any) -> None:
    with torch.no_grad():
        backbone.network[4].bias[2] = torch.nan
    with pytest.raises(CorruptInput, match="fake: features are infinite or not a number, in float32"):
        extracted()


def test_features_of_another_length_than_stated_are_refused(
    extracted: Callable[..., FeatureMatrix], backbone: Any
) -> None:
    backbone.dim = 13
    with pytest.raises(ConfigError, match=r"fake: 16 images gave features of shape \[16, 12\], expected \[16, 13\]"):
        extracted()


@dataclass
class Watched:
    """An image set that counts what it decodes and may fail at one position."""

    inner: EncodedImages
    bad: tuple[int, ...] = ()
    gone: int = -1
    decoded: int = 0

    @property
    def ids(self) -> Sequence[str]:
        return self.inner.ids

    @property
    def digest(self) -> str:
        return self.inner.digest

    def __len__(self) -> int:
        return len(self.inner)

    def decode(self, indices: Sequence[int]) -> list[Image.Image | Unreadable]:
        if self.gone in indices:
            raise MissingInput("gone")
        self.decoded += len(indices)
        found = self.inner.decode(indices)
        for place, index in enumerate(indices):
            if index in self.bad:
                found[place] = Unreadable(self.ids[index], "broken")
        return found

    def subset(self, indices: Sequence[int]) -> "Watched":
        return replace(self, inner=self.inner.subset(indices))


def test_decoding_runs_only_a_few_batches_ahead(store: Store, images: EncodedImages, backbone: Any) -> None:
    watched = Watched(images)
    ahead: list[int] = []
    with listening(lambda _, done, __: ahead.append(watched.decoded - (done or 0))):
        features(store, watched, {}, lambda: backbone, Options(batch_size=5, workers=2))
    assert max(ahead) <= 15
    assert watched.decoded == 50


def test_a_fault_in_a_decoding_thread_is_raised_and_the_threads_end(
    store: Store, images: EncodedImages, backbone: Any
) -> None:
    with pytest.raises(MissingInput, match="gone"):
        features(store, Watched(images, gone=37), {}, lambda: backbone, Options())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("decode")]
    assert sum(backbone.batches) == 32


def test_unreadable_images_fail_the_case_and_cost_no_second_extraction(
    store: Store, images: EncodedImages, backbone: Any
) -> None:
    bad = (0, 3, 16, 17, 18, 19, *range(32, 48))
    watched = Watched(images, bad=bad)
    loads: list[int] = []

    def load() -> Any:
        loads.append(1)
        return backbone

    for _ in range(2):
        with pytest.raises(CorruptInput) as caught:
            features(store, watched, {}, load, Options())
        assert str(caught.value).startswith(f"22 of 50 images cannot be read: {images.ids[0]} (broken), ")
        assert images.ids[18] in str(caught.value)
        assert images.ids[19] not in str(caught.value)
    matrix = features(store, watched, {}, load, Options(unreadable="drop"))
    assert len(loads) == 1
    good = [index for index in range(50) if index not in bad]
    assert matrix.ids == tuple(images.ids[index] for index in good)
    assert matrix.unreadable == tuple(Unreadable(images.ids[index], "broken") for index in bad)
    assert kept_labels(np.arange(50), images, matrix).tolist() == good
    assert distance(matrix.features, plain_loop(images.subset(good), backbone)) < 1e-5


def test_nothing_readable_fails_under_either_policy(store: Store, images: EncodedImages, backbone: Any) -> None:
    watched = Watched(images, bad=tuple(range(50)))
    with pytest.raises(CorruptInput, match="50 of 50 images cannot be read"):
        features(store, watched, {}, lambda: backbone, Options(unreadable="drop"))
