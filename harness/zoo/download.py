"""One file over HTTP: resumed where it stopped, checked against what the server announced. Imports no torch."""

import http.client
import json
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.error import HTTPError
from urllib.error import URLError
from urllib.request import Request
from urllib.request import urlopen

from harness.errors import CorruptInput
from harness.errors import MissingInput
from harness.files import write_atomic
from harness.zoo.contents import describe_html
from harness.zoo.contents import html_title

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes on disk and the whole length, where the server said it."""

PAUSES = (1.0, 2.0, 4.0)
"""Seconds waited before each further try."""
TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as lost."""
_BLOCK = 1 << 18
_RETRIED = {408, 425, 429, 500, 502, 503, 504}


class _LostConnectionError(Exception):
    """The transfer broke off in a way that another try may mend."""


@dataclass(frozen=True)
class _Partial:
    """A file on its way: its bytes so far and the mark by which the server's version of it is known."""

    path: Path

    @property
    def memo(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def resume_point(self, url: str) -> tuple[int, str]:
        """Return the bytes that can be kept and the validator they belong to; (0, "") where nothing can."""
        try:
            memo = json.loads(self.memo.read_text())
        except (OSError, ValueError):
            return 0, ""
        if memo.get("url") != url or not memo.get("validator") or not self.path.exists():
            return 0, ""
        return self.path.stat().st_size, memo["validator"]

    def remember(self, url: str, headers: Message) -> None:
        """Note the validator of the answer: without a strong one, bytes of two versions could be joined."""
        etag = headers.get("ETag", "")
        validator = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")
        write_atomic(self.memo, json.dumps({"url": url, "validator": validator}))

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self.memo.unlink(missing_ok=True)


def download(url: str, path: Path, progress: Progress | None = None) -> None:
    """Bring the file at ``url`` to ``path``, going on from what an earlier call left there.

    Resumes by ``Range`` with ``If-Range``, so that a file that changed on the server is begun anew. What arrived is
    kept when the transfer fails for good. A memo beside ``path`` says what it is part of; call `forget` when done.

    Raises:
        MissingInput: the server cannot be reached, refuses, or broke off on each of the tries.
        CorruptInput: the server answers with an HTML page.
    """
    partial = _Partial(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for pause in (*PAUSES, None):
        try:
            _attempt(url, partial, progress)
        except _LostConnectionError as fault:
            if pause is None:
                kept = path.stat().st_size if path.exists() else 0
                raise MissingInput(
                    f"{url}: gave up after {len(PAUSES) + 1} tries ({fault}). {kept} bytes are kept: the next fetch "
                    "goes on from there where the server allows it"
                ) from fault
            time.sleep(pause)
        else:
            return


def forget(path: Path) -> None:
    """Remove what `download` left at ``path`` and beside it."""
    _Partial(path).forget()


def _attempt(url: str, partial: _Partial, progress: Progress | None) -> None:
    done, validator = partial.resume_point(url)
    headers = {"User-Agent": "generalization-harness", "Accept-Encoding": "identity"}
    if done:
        headers |= {"Range": f"bytes={done}-", "If-Range": validator}
    try:
        with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as answer:  # noqa: S310 - specs admit http(s) alone
            start = _accept(url, answer, partial, done)
            _receive(answer, partial.path, start, progress)
    except HTTPError as error:
        _refused(url, error, partial, done)
    except (URLError, TimeoutError, ConnectionError, http.client.HTTPException, ssl.SSLError) as error:
        raise _LostConnectionError(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _accept(url: str, answer: http.client.HTTPResponse, partial: _Partial, done: int) -> int:
    """Check the head of an answer; return the offset that its body begins at."""
    if answer.headers.get_content_type() == "text/html":
        title = html_title(answer.read(4096)) or ""
        raise CorruptInput(f"{url} leads to {describe_html(title)}, not to weights")
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        partial.remember(url, answer.headers)
        return 0
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
    if not found or int(found[1]) != done:
        partial.forget()
        raise _LostConnectionError("the server sent another part of the file than was asked for")
    return done


def _receive(answer: http.client.HTTPResponse, path: Path, start: int, progress: Progress | None) -> None:
    announced = answer.headers.get("Content-Length")
    total = start + int(announced) if announced is not None else None
    received = start
    with path.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        while block := answer.read1(_BLOCK):
            file.write(block)
            received += len(block)
            if progress:
                progress(received, total)
    if total is not None and received != total:
        raise _LostConnectionError(f"the answer ended after {received} of {total} bytes")


def _refused(url: str, error: HTTPError, partial: _Partial, done: int) -> None:
    """Return where the refusal means that the file is complete; raise otherwise."""
    if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and done:
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return
        partial.forget()
        raise _LostConnectionError("the file on the server is shorter than what was kept of it") from error
    if error.code in _RETRIED:
        raise _LostConnectionError(f"HTTP status {error.code} {error.reason}") from error
    raise MissingInput(f"{url}: the server answers with HTTP status {error.code} {error.reason}") from error
