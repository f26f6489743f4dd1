"""GPUs and cores, from what nvidia-smi and the kernel say."""

from pathlib import Path

import pytest

from harness import devices
from harness.devices import DeviceWarning
from harness.devices import Gpu
from harness.devices import leased_gpu
from harness.devices import machine_gpus
from harness.devices import parse
from harness.devices import share_of_cores
from harness.devices import usable_cores
from harness.devices import visible_gpus

LISTING = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa1111-0000-0000-0000-000000000000)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa2222-0000-0000-0000-000000000000)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)
GPU 10: NVIDIA H200 (UUID: GPU-bbbb1111-0000-0000-0000-000000000000)
"""

WHOLE, OTHER = "GPU-aaaa1111-0000-0000-0000-000000000000", "GPU-bbbb1111-0000-0000-0000-000000000000"
PARTS = ["MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb"]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called nvidia-smi."""
    (tmp_path / "listing").write_text(LISTING)
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\n[ "$*" = "-L" ] && exec cat {tmp_path}/listing\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_a_divided_gpu_is_its_instances() -> None:
    assert parse(LISTING) == [
        Gpu(0, "NVIDIA A100-SXM4-40GB", WHOLE),
        Gpu(1, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", PARTS[0]),
        Gpu(1, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", PARTS[1]),
        Gpu(10, "NVIDIA H200", OTHER),
    ]
    assert parse("No devices were found\n") == []


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (None, [WHOLE, *PARTS, OTHER]),
        ("", []),
        (" ", []),
        ("0", [WHOLE]),
        ("10, 0", [OTHER, WHOLE]),
        ("1", [PARTS[0]]),
        ("0,-1,10", [WHOLE]),
        ("7,0", []),
        ("NoDevFiles", []),
        (OTHER, [OTHER]),
        ("GPU-bbbb,0", [OTHER, WHOLE]),
        ("GPU-aaaa1", [WHOLE]),
        ("GPU-", []),
        (",".join(PARTS), PARTS),
        ("MIG-GPU-aaaa2222/1/0", ["MIG-GPU-aaaa2222/1/0"]),
    ],
)
@pytest.mark.usefixtures("smi")
def test_the_outer_cuda_visible_devices_is_honoured(listed: str | None, found: list[str]) -> None:
    environment = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert [gpu.uuid for gpu in visible_gpus(environment)] == found


def test_without_nvidia_smi_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine_gpus() == []
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0"}) == []


def test_a_driver_that_does_not_answer_is_warned_of(smi: Path) -> None:
    smi.write_text("#!/bin/sh\necho 'Failed to initialize NVML'\nexit 9\n")
    with pytest.warns(DeviceWarning, match="exit status 9"):
        assert machine_gpus() == []


def test_one_gpu_by_its_identity_is_a_lease() -> None:
    assert leased_gpu({"CUDA_VISIBLE_DEVICES": OTHER}) == OTHER
    for listed in ("0", "", f"{WHOLE},{OTHER}"):
        assert leased_gpu({"CUDA_VISIBLE_DEVICES": listed}) is None
    assert leased_gpu({}) is None


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 16),
        ({"a/b/cpu.max": "max 100000\n"}, 16),
        ({"a/b/cpu.max": "350000 100000\n"}, 3),
        ({"a/b/cpu.max": "350000 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        ({"a/b/cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 16),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
    ],
)
def test_cores_are_those_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    own = tmp_path / "own"
    own.write_text("1:cpu:/\n0::/a/b\n")
    limits = list(devices._container_limits(tmp_path, own))
    monkeypatch.setattr(devices, "_container_limits", lambda: limits)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert usable_cores() == cores


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "usable_cores", lambda: 16)
    assert share_of_cores({}) == 16
    assert share_of_cores({"PYTEST_XDIST_WORKER_COUNT": "3"}) == 5
    assert share_of_cores({"PYTEST_XDIST_WORKER_COUNT": "64"}) == 1
