"""ImageNet's largest test set through chunks: images a second and peak memory, beside reading the file as a whole.

The file is synthetic, of 2048 dimensions, as MATLAB 7.3 writes it; ``python perf/zsl_stream.py [IMAGES]``.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from harness.zsl.matfile import open_hdf5
from harness.zsl.streams import chunks
from harness.zsl.streams import open_stream

CLASSES = 20_842
ALL = 12_800_000
DIM = 2048
_BLOCK = 4096


def main() -> None:
    """Print the figures."""
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.mat"
        _write(path, images)
        before = _peak()
        stream = open_stream(path, CLASSES)
        start = time.perf_counter()
        read = sum(chunk.labels.size for chunk in chunks(stream, np.arange(CLASSES)))
        seconds = time.perf_counter() - start
        assert read == images  # noqa: S101 - a figure of something else would be worthless
        chunked = _peak() - before
        print(f"chunks: {images} images in {seconds:.1f} s, {images / seconds:.0f} images/s, {chunked:.0f} MiB on top")
        print(f"12.8 M images: {ALL / images * seconds / 60:.0f} min of reading; labels {ALL * 8 / 2**20:.0f} MiB more")
        start = time.perf_counter()
        with open_hdf5(path) as file:
            whole = file["features"][()]
        seconds = time.perf_counter() - start
        print(f"whole:  {len(whole)} images in {seconds:.1f} s, {_peak() - before:.0f} MiB on top")


def _write(path: Path, images: int) -> None:
    stream = np.random.default_rng(0)
    with h5py.File(path, "w", userblock_size=512) as file:
        features = file.create_dataset("features", (images, DIM), np.float32)
        for begin in range(0, images, _BLOCK):
            features[begin : begin + _BLOCK] = stream.random((min(_BLOCK, images - begin), DIM), dtype=np.float32)
        file["labels"] = stream.integers(1, CLASSES + 1, (1, images)).astype(np.float64)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
