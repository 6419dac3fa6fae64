"""Asking CUDA in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import cuda, nvml

from gpudebug.core.errors import DeviceError
from gpudebug.core.hardware.plan import plain_uuid
from gpudebug.edges import cudaload


def test_the_gpus_come_in_cudas_own_order(tmp_path: Path) -> None:
    env = cuda.standin(tmp_path, "order=1,0", count=2)
    first, second = plain_uuid(nvml.uuid(0)), plain_uuid(nvml.uuid(1))
    assert cudaload.seen(env) == (12040, (second, first))
    assert cudaload.seen({**env, "CUDA_VISIBLE_DEVICES": "1"}).uuids == (first,)
    assert cudaload.seen({**env, "CUDA_VISIBLE_DEVICES": nvml.uuid(1)}).uuids == (second,)


def test_without_the_library_or_a_gpu_there_is_no_cuda(tmp_path: Path) -> None:
    (tmp_path / cuda.LIBRARY).touch()
    with pytest.raises(cudaload.NoGpuError, match="cannot be loaded"):
        cudaload.seen({**nvml.environment(tmp_path)})
    env = cuda.standin(tmp_path)
    with pytest.raises(cudaload.NoGpuError, match="CUDA_ERROR_NO_DEVICE"):
        cudaload.seen({**env, "CUDA_VISIBLE_DEVICES": ""})


def test_a_cuda_that_is_broken_is_not_one_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"does not start: cuInit: CUDA_ERROR_UNKNOWN") as caught:
        cudaload.seen(cuda.standin(tmp_path, "init_error=999"))
    assert caught.value.exit_code == 1
    env = {**cuda.standin(tmp_path), "CUDA_STANDIN": str(tmp_path / "missing")}
    with pytest.raises(DeviceError, match=r"crashed .exit status 99."):
        cudaload.seen(env)
