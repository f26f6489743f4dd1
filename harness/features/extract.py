"""Image set x backbone -> a matrix on disk."""

import time
from collections.abc import Generator
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from harness.digest import Plain
from harness.errors import CorruptInput
from harness.features.backbone import Backbone
from harness.features.decoding import Inputs
from harness.features.decoding import decoded
from harness.features.decoding import default_workers
from harness.features.matrix import describe
from harness.features.network import Network
from harness.features.options import Options
from harness.features.rows import RowWriter
from harness.images import ImageSet
from harness.images import Unreadable
from harness.probe.chains import threads
from harness.progress import FEATURES
from harness.progress import report


def extract(images: ImageSet, backbone: Backbone, folder: Path, key: Mapping[str, Plain], options: Options) -> None:
    """Fill ``folder`` with the features of ``images``, going on from what an earlier call for the same key left.

    The rows follow the order of the images. Images that cannot be decoded are listed and have no row. In float32
    the features do not depend on the batch size but for rounding: 1e-5 of a vector's length.

    Raises:
        MissingInput: an image file has gone.
        ConfigError: the backbone does not give vectors of its stated length.
        CorruptInput: features are infinite or not a number.
        OSError: the disk is full.
    """
    network = Network(backbone, options)
    with RowWriter(folder, len(images), backbone.dim, key) as writer, threads(options.threads):
        error = _settle_precision(network, images, backbone, options)
        resumed_at, began = writer.done, time.perf_counter()
        with closing(_inputs(images, backbone, options, range(resumed_at, len(images)))) as batches:
            for batch, inputs in batches:
                features = _checked(network, backbone, _stacked(inputs))
                writer.append(batch.stop, features, [image for image in inputs if isinstance(image, Unreadable)])
                report(FEATURES, batch.stop, len(images))
        writer.finish()
    lost = {image.id for image in writer.unreadable}
    about: dict[str, Plain] = {
        "backbone": backbone.name,
        "checkpoint": backbone.describe(),
        "device": torch.cuda.get_device_name(options.device) if options.device_type == "cuda" else options.device,
        "threads": options.threads,
        "batch_size": options.batch,
        "effective_batch_size": network.batch,
        "precision": network.precision,
        "precision_error": error,
        "images": len(images),
        "resumed_at": resumed_at,
        "images_per_second": (len(images) - resumed_at) / (time.perf_counter() - began),
    }
    describe(folder, [identity for identity in images.ids if identity not in lost], about, writer.unreadable)


def _settle_precision(network: Network, images: ImageSet, backbone: Backbone, options: Options) -> float | None:
    """Try a precision below float32 on the first batch, on a resumed run too: all rows must have the same precision."""
    if options.precision == "float32":
        return None
    with closing(_inputs(images, backbone, options, range(len(images))[: options.batch])) as batches:
        first = _stacked(next(batches, (range(0), []))[1])
    return None if first is None else network.reduce(getattr(torch, options.precision), first)


def _inputs(
    images: ImageSet, backbone: Backbone, options: Options, positions: range
) -> Generator[tuple[range, Inputs], None, None]:
    batches = (positions[start : start + options.batch] for start in range(0, len(positions), options.batch))
    return decoded(images, backbone.preprocess, batches, options.workers or default_workers())


def _stacked(inputs: Inputs) -> Tensor | None:
    """Return the readable inputs of a batch, uint8 [n, 3, S, S], if there are any."""
    readable = [image for image in inputs if isinstance(image, Tensor)]
    return torch.stack(readable) if readable else None


def _checked(network: Network, backbone: Backbone, inputs: Tensor | None) -> npt.NDArray[np.float32]:
    """Return the features of a batch, float32 [n, dim], refusing what no classifier can use."""
    if inputs is None:
        return np.empty((0, backbone.dim), np.float32)
    features = network(inputs)
    if not np.isfinite(features).all():
        raise CorruptInput(f"{backbone.name}: features are infinite or not a number, in {network.precision}")
    return features
