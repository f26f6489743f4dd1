"""Features through the store."""

from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.digest import Plain
from harness.features.matrix import FeatureMatrix
from harness.features.options import Options
from harness.images import ImageSet
from harness.store import Store

if TYPE_CHECKING:
    from harness.features.backbone import Backbone

KIND = "features"
"""The kind of entry that features are in the store."""


def features(
    store: Store,
    images: ImageSet,
    key: Mapping[str, Plain],
    load_backbone: Callable[[], "Backbone"],
    options: Options,
) -> FeatureMatrix:
    """Return the features of ``images``, extracted where the store does not have them.

    Args:
        store: Where they are kept.
        images: The image set; its order is that of the rows.
        key: The result of `feature_key` for this backbone, these images and these options.
        load_backbone: Called only where the features are missing.
        options: How to extract.

    Raises:
        MissingInput: an image file has gone; or nothing is cached and the overwrite option is ``only-cache``.
        CorruptInput: some images cannot be decoded and the policy is ``fail`` (the features of the others are kept,
            so that neither the message nor a change of policy costs a second extraction); or features are not finite.
        ConfigError: the backbone does not give vectors of its stated length.
        OSError: the disk is full; a later call goes on where this one stopped.
    """

    def build(folder: Path) -> None:
        from harness.features.extract import extract

        extract(images, load_backbone(), folder, key, options)

    folder = store.get(KIND, key, build, overwrite=options.overwrite, resumable=True)
    return FeatureMatrix.load(folder).under(options.unreadable)
