"""Exports of Nsight Systems, read as traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import nsys
from tests.support.nsys import Export

from gpudebug.core.errors import GpudebugError
from gpudebug.core.trace.nsys import NsysExport, ProcessEvents, pid_of
from gpudebug.core.trace.summary import summarise_events
from gpudebug.edges.sqlite import Database

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def answers(path: Path) -> list[dict[str, Any]]:
    with Database(path) as database:
        export = NsysExport(database)
        return [
            summarise_events(ProcessEvents(export, process)).answer for process in export.processes or [None]
        ]


def one_process(path: Path, **kwargs: Any) -> Path:
    export = Export(path, **kwargs)
    export.range("step 3", 0, 1000)
    export.range(LOADER, 10, 300, registered=True)
    export.range("aten::addmm, op_id = 314359", 320, 60)
    export.kernel("gemm", 325, 400, 100)
    export.copy(600, 50, 1 << 20)
    export.call("cudaStreamSynchronize_v3020", 660, 200)
    export.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 900, 910, 40)
    return export.close()


def test_what_a_device_did_and_the_host_meanwhile(tmp_path: Path) -> None:
    (answer,) = answers(one_process(tmp_path / "a.sqlite"))
    (device,) = answer["devices"]
    assert device["busy_s"] == pytest.approx(190e-6)
    assert device["span_s"] == pytest.approx(550e-6)
    assert answer["steps"]["count"] == 1
    assert answer["steps"]["data_wait_share"] == pytest.approx(0.3)
    assert answer["nccl"]["seconds"] == pytest.approx(40e-6)
    (copy,) = answer["memcpy"]
    assert (copy["kind"], copy["host_memory"], copy["bytes"]) == ("HtoD", "pageable", 1 << 20)
    assert answer["syncs"][0]["call"] == "cudaStreamSynchronize"
    assert [o["name"] for o in answer["operators"]] == ["aten::addmm"]
    assert {c["cause"] for c in answer["gaps"]["by_cause"]} >= {"synchronising", "launch"}
    assert answer["kernels"][0]["name"] == "void gemm(int)"


def test_each_process_is_a_rank_with_its_gpu(tmp_path: Path) -> None:
    path = nsys.two_ranks(tmp_path / "a.sqlite")
    first, second = answers(path)
    # Both call it device 0; the export says which GPU that is.
    assert [d["device"] for d in (*first["devices"], *second["devices"])] == [0, 1]
    assert first["devices"][0]["name"] == "NVIDIA H100 80GB HBM3"
    assert first["steps"]["count"] == second["steps"]["count"] == 20
    with Database(path) as database:
        export = NsysExport(database)
        assert [pid_of(p) for p in export.processes] == [100, 101]
        assert export.source == "Nsight Systems 2026.1.1, schema 3.24.14"


def test_an_export_without_most_columns_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    export = Export(path, without=set(nsys.SCHEMA) - {"StringIds", "META_DATA_EXPORT"})
    export._connection.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, shortName INT)"
    )
    for n in range(3):
        export.put("CUPTI_ACTIVITY_KIND_KERNEL", 1000 * n, 1000 * n + 500, 0, export.text("gemm"))
    (answer,) = answers(export.close())
    assert answer["devices"][0]["busy_s"] == pytest.approx(1.5e-6)
    assert answer["kernels"][0]["name"] == "gemm"


def test_a_loaders_process_is_no_rank(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    export = Export(path)
    export.kernel("gemm", 0, 5, 10)
    export.kernel("gemm", 100, 105, 10)
    export.range("decode", 20, 60, pid=555)
    (answer,) = answers(export.close())
    assert {c["cause"] for c in answer["gaps"]["by_cause"]} == {"unknown", "launch"}


def test_the_names_of_gpus_are_unknown_if_the_export_does_not_say_whose(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    export = Export(path, without=["TARGET_INFO_CUDA_DEVICE"])
    export.put("TARGET_INFO_GPU", 0, "NVIDIA T4", "u0", 0)
    export.put("TARGET_INFO_GPU", 1, "NVIDIA H100", "u1", 1)
    export.kernel("gemm", 0, 5, 10)
    assert answers(export.close())[0]["devices"][0]["name"] is None


def test_another_database_is_refused_by_what_it_holds(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.db", without=set(nsys.SCHEMA) - {"META_DATA_EXPORT"})
    export._connection.execute("CREATE TABLE cuda_calls (id INTEGER)")
    export.close()
    with pytest.raises(
        GpudebugError, match=r"no export of Nsight Systems \(it holds META_DATA_EXPORT, cuda_calls\)"
    ):
        answers(tmp_path / "a.db")


def test_an_export_without_cuda_is_refused(tmp_path: Path) -> None:
    tables = [name for name in nsys.SCHEMA if name.startswith("CUPTI")]
    path = Export(tmp_path / "a.sqlite", without=tables).close()
    with pytest.raises(GpudebugError, match="without CUDA events") as told:
        answers(path)
    assert "--trace cuda" in str(told.value.next)


def test_events_without_an_end_are_counted(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel("gemm", 0, 5, 10)
    export.put("CUPTI_ACTIVITY_KIND_KERNEL", 1, None, 0, 7, 1, (1 << 48) + (100 << 24), 1, 1)
    export.put("CUPTI_ACTIVITY_KIND_RUNTIME", "soon", 9, (1 << 48) + (100 << 24), 1, 1)
    (answer,) = answers(export.close())
    assert answer["notes"][0] == "2 events cannot be read"


@pytest.mark.parametrize("odd", [b"\xff", "seven", 1.5], ids=["blob", "text", "real"])
def test_values_of_other_types_are_unknown(tmp_path: Path, odd: object) -> None:
    """SQLite keeps them in any column; an answer of JSON does not."""
    export = Export(tmp_path / "a.sqlite")
    export.kernel("gemm", 0, 5, 10)
    of = (1 << 48) + (100 << 24)
    export.put("TARGET_INFO_GPU", odd, odd, odd, odd)
    export.put("CUPTI_ACTIVITY_KIND_KERNEL", 20_000, 30_000, odd, odd, odd, of, odd, odd)
    export.put("CUPTI_ACTIVITY_KIND_MEMCPY", 40_000, 50_000, 0, odd, odd, of, odd, odd, odd, odd)
    export.put("CUPTI_ACTIVITY_KIND_RUNTIME", 19_000, 20_000, odd, odd, odd)
    export.put("NVTX_EVENTS", 0, 60_000, 59, odd, odd, odd)
    (answer,) = answers(export.close())
    json.dumps(answer)
    assert sum(d["busy_s"] for d in answer["devices"]) == pytest.approx(30e-6)
