"""``--select``: what its words mean, and what is said of wrong ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case import Case
from harness.cog.cases import cases as cog_cases
from harness.errors import ConfigError
from harness.selection import parse
from harness.selection import select
from harness.suite import load_suite

MODELS = ("s-DINO", "s-MoCo-v2", "ResNet50", "net-N004-like")
SPLITS = ("seen", "L1", "L2", "L3")
COG = cog_cases(load_suite("mini"), {}, MODELS, SPLITS)
ZSL = [
    Case("zsl", "gzsl", model, "mini", {"data": data, "method": method, "split": "cv1"})
    for model in ("s-DINO", "res101")
    for data in ("SUN", "CUB")
    for method in ("ALE", "CMT", "CMT-nd")
]
CASES = [*COG, *ZSL]
EVERY_KEY = "benchmark, protocol, model, split, shots, data, method"
EVERY_MODEL = "s-DINO, s-MoCo-v2, ResNet50, net-N004-like, res101"


def names(*texts: str, cases: list[Case] = CASES) -> list[str]:
    return [case.id for case in select(texts, cases)]


def error(*texts: str, cases: list[Case] = CASES) -> str:
    with pytest.raises(ConfigError) as caught:
        select(texts, cases)
    return str(caught.value)


def test_all_words_of_one_text_have_to_hold() -> None:
    assert names("model=s-dino split=L3 shots=4") == ["cog/fewshot/s-DINO-L3-N004"]
    assert names("model=s-dino split=L3") == [
        "cog/linear/s-DINO-L3",
        "cog/fewshot/s-DINO-L3-N001",
        "cog/fewshot/s-DINO-L3-N004",
    ]


def test_several_texts_and_several_values_add_cases_in_the_order_of_the_list() -> None:
    both = ["cog/linear/s-DINO-L1", "cog/linear/s-DINO-L2"]
    assert names("model=s-DINO protocol=linear split=L2", "model=s-DINO protocol=linear split=L1") == both
    assert names("model=s-DINO protocol=linear split=L2,L1") == both
    assert names() == [case.id for case in CASES]


def test_values_are_whole_words_whatever_their_case() -> None:
    assert len(names("method=cmt")) == len(ZSL) / 3
    assert all(name.endswith("CMT-nd-cv1") for name in names("METHOD=Cmt-ND"))
    assert not any("ResNet50" in name for name in names("model=net-n004-like"))
    assert names("benchmark=zsl model=res101 data=sun method=ale") == ["zsl/gzsl/res101-SUN-ALE-cv1"]


def test_patterns_and_numbers() -> None:
    dino_and_moco = {case.id for case in COG if case.model in {"s-DINO", "s-MoCo-v2"}}
    assert set(names("benchmark=cog model=s-*")) == dino_and_moco
    assert names("model=S-D?NO shots=4 split=l[13]") == ["cog/fewshot/s-DINO-L1-N004", "cog/fewshot/s-DINO-L3-N004"]
    for four in ("4", "n4", "N004", "N0[0]4", "*4"):
        assert names(f"shots={four}") == [case.id for case in CASES if case.tokens.get("shots") == "N004"]
    padded = cog_cases(load_suite("mini"), {}, ["s-DINO"], ["seen", "L01", "L10"])
    assert {case.tokens["split"] for case in select(["split=L1"], padded)} == {"L01"}
    assert names("benchmark=cog split=2") == names("split=L2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"expected KEY=VALUE, with a key of {EVERY_KEY}"),
        ("splti=L1", f"no case has a key 'splti': expected one of {EVERY_KEY}. Did you mean 'split'?"),
        ("split=L9", "no case has split 'L9': expected one of seen, L1, L2, L3, cv1. Did you mean 'L3'?"),
        ("shots=8", "no case has shots '8': expected one of 1, 4 (N001, N004)."),
        ("model=s-dnio", f"no case has model 's-dnio': expected one of {EVERY_MODEL}. Did you mean 's-DINO'?"),
        ("model=t-*", f"no case has model 't-*': expected one of {EVERY_MODEL}."),
        ("L3", f"'L3' is not KEY=VALUE, with a key of {EVERY_KEY}. Did you mean split=L3?"),
        ("split=", f"'split=' is not KEY=VALUE, with a key of {EVERY_KEY}."),
        ("split=L1,,L2", f"'split=L1,,L2' is not KEY=VALUE, with a key of {EVERY_KEY}."),
        ("split=L1 Split=L2", "split stands twice; several values are split=A,B"),
        ("protocol=linear shots=4", "each of its words is known, but no case fits all of them"),
        ("method=ALE shots=4", "each of its words is known, but no case fits all of them"),
    ],
)
def test_mistakes_are_told_with_the_nearest_word(text: str, message: str) -> None:
    assert error("model=s-DINO", text) == f"--select {text!r}: {message}"


def test_a_number_that_may_be_two_tokens_is_refused() -> None:
    cases = [Case("cog", "linear", "net", "mini", {"split": split}) for split in ("L1", "S1", "L2")]
    assert error("split=1", cases=cases) == "--select 'split=1': split=1 may be L1 or S1: say which"
    assert names("split=2", cases=cases) == ["cog/linear/net-L2"]


def test_many_values_are_not_listed() -> None:
    cases = [Case("cog", "linear", f"net-{number}", "mini") for number in range(100)]
    assert error("model=nett-7", cases=cases).endswith("no case has model 'nett-7'. Did you mean 'net-7'?")


KEYS = st.sampled_from(["benchmark", "protocol", "model", "split", "shots", "data", "method"])


def value(case: Case, key: str) -> str | None:
    return {"benchmark": case.benchmark, "protocol": case.protocol, "model": case.model, **case.tokens}.get(key)


@given(st.lists(st.tuples(st.sampled_from(CASES), st.sets(KEYS, min_size=1)), min_size=1, max_size=3))
def test_a_case_is_selected_by_its_own_words_with_all_that_share_them_and_no_other(
    wanted: list[tuple[Case, set[str]]],
) -> None:
    shared = [[key for key in sorted(keys) if value(case, key)] or ["model"] for case, keys in wanted]
    texts = [
        " ".join(f"{key}={value(case, key)}".swapcase() for key in keys)
        for (case, _), keys in zip(wanted, shared, strict=True)
    ]
    expected = [
        case
        for case in CASES
        if any(
            all(value(case, key) == value(like, key) for key in keys)
            for (like, _), keys in zip(wanted, shared, strict=True)
        )
    ]
    selection = parse(texts, CASES)
    assert [case for case in CASES if case in selection] == expected
