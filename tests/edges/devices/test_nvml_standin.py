"""The driver stand-in agrees with nvidia-ml-py about constants and structures."""

from __future__ import annotations

import ctypes

import pynvml
import pytest
from tests.support import nvml

STRUCTURES = {
    "nvmlMemory_t": pynvml.c_nvmlMemory_t,
    "nvmlUtilization_t": pynvml.c_nvmlUtilization_t,
    "nvmlValue_t": pynvml.c_nvmlValue_t,
    "nvmlSample_t": pynvml.c_nvmlSample_t,
    "c_nvmlProcessInfo_v2_t": pynvml.c_nvmlProcessInfo_v2_t,
}


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(nvml.build() / nvml.LIBRARY))
    found.standin_layout.restype = ctypes.c_char_p
    found.standin_constants.restype = ctypes.c_char_p
    return found


def test_every_constant_has_the_value_of_nvidia_ml_py(library: ctypes.CDLL) -> None:
    constants = dict(line.split() for line in library.standin_constants().decode().splitlines())
    assert len(constants) > 15
    assert {name: int(value) for name, value in constants.items()} == {
        name: getattr(pynvml, name) for name in constants
    }


def test_every_structure_has_the_layout_of_nvidia_ml_py(library: ctypes.CDLL) -> None:
    lines = [line.split() for line in library.standin_layout().decode().splitlines()]
    assert {line[0] for line in lines} == set(STRUCTURES)
    for name, size, *fields in lines:
        structure = STRUCTURES[name]
        assert int(size) == ctypes.sizeof(structure)
        for field, offset in zip(fields[::2], fields[1::2], strict=True):
            assert int(offset) == getattr(structure, field).offset, (name, field)
