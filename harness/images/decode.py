"""Encoded bytes to RGB, read as leniently as the reference code of the benchmarks does."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from PIL import Image
from PIL import ImageFile

from harness.errors import CorruptInput

_lenient_lock = Lock()


def decode_image(content: bytes) -> Image.Image:
    """Return the image in RGB. Of a truncated one, what is missing stays as the decoder left it (grey or black).

    Equal to Pillow with ``LOAD_TRUNCATED_IMAGES = True`` (naver/cog reads its images so). That switch is global,
    therefore it is thrown only for images that do not load without it, and only while they load.

    Raises:
        CorruptInput: no image can be made of these bytes.
    """
    try:
        return _rgb(content)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Pillow's parsers let any error of theirs through; the second try reports it
        return _decode_truncated(content)


def _decode_truncated(content: bytes) -> Image.Image:
    try:
        with _lenient():
            return _rgb(content)
    except MemoryError:
        raise
    except Exception as error:
        raise CorruptInput(f"{type(error).__name__}: {_without_address(str(error))}") from error


def _rgb(content: bytes) -> Image.Image:
    with Image.open(io.BytesIO(content)) as image:
        return image.convert("RGB")


@contextmanager
def _lenient() -> Iterator[None]:
    """Let Pillow load truncated images. Threads that decode meanwhile only skip a first try that fails."""
    with _lenient_lock:
        before = ImageFile.LOAD_TRUNCATED_IMAGES
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def _without_address(message: str) -> str:
    """Drop the memory address that Pillow prints for a stream: equal faults must read equal in records."""
    return message.split(" <_io.BytesIO", maxsplit=1)[0]
