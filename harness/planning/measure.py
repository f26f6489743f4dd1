"""A short real measurement of how fast models extract, where nothing tells it. Loads them."""

from collections.abc import Iterator
from collections.abc import Sequence

from harness.errors import HarnessError
from harness.planning.needs import Need
from harness.planning.rates import Rates
from harness.session import Session

_FIRST = 32
_MORE = 512
_SECONDS = 2.0
"""Where the first images take less, more are extracted: the start of a network would count too much."""


def measure(session: Session, found: Sequence[Need], rates: Rates) -> Iterator[str]:
    """Extract a few images with each model that has something to extract and no rate of its own.

    The features stay in the store, where `Rates` finds how fast they were extracted.

    Yields:
        A line for each model, when it is done.
    """
    protocol = session.suite.cog
    for model in dict.fromkeys(need.case.model for need in found if need.to_do):
        rate = rates.of(session.models[model])
        absent = [e for n in found if n.to_do and n.case.model == model for e in n.extractions if e.entry is None]
        if not absent or (rate is not None and rate.measured):
            continue
        images = max((extraction.images for extraction in absent), key=len)
        speed = 0.0
        try:
            for number in (_FIRST, _MORE):
                matrix = session.features(
                    model,
                    images.subset(range(min(number, len(images)))),
                    resize=protocol.resize,
                    precision=protocol.feature_precision,
                    drop_unreadable=True,
                )
                speed = float(str(matrix.about["images_per_second"]))
                if number / speed > _SECONDS:
                    break
        except HarnessError as fault:
            yield f"{model}: not measured: {fault}"
        else:
            yield f"{model}: {speed:.0f} images a second"
