"""Files that appear whole or not at all, and their digests."""

import hashlib
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.digest import canonical_json
from harness.digest import digest_of
from harness.digest import file_digest
from harness.digest import read_digest
from harness.files import replacing
from harness.files import write_atomic

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def test_a_failed_write_leaves_the_old_content_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_atomic(path, "old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_text_is_utf8_with_lf(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "é\n")
    assert (tmp_path / "a").read_bytes() == "é\n".encode()


def test_digest_is_of_canonical_json() -> None:
    assert canonical_json({"b": 1, "a": [True, None, 0.5]}) == '{"a":[true,null,0.5],"b":1}'
    assert digest_of({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_json_cannot_say_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        digest_of({"x": value})


@given(st.dictionaries(st.text(), PLAIN, min_size=2))
def test_digest_does_not_depend_on_key_order(value: dict[str, object]) -> None:
    assert digest_of(value) == digest_of(dict(reversed(value.items())))  # type: ignore[arg-type]  # plain by construction


def test_file_digest_follows_a_change(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(b"abc")
    first = file_digest(path)
    assert first == read_digest(path) == hashlib.sha256(b"abc").hexdigest()
    path.write_bytes(b"abcd")
    assert file_digest(path) != first
