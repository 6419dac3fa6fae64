"""The file of a cluster's defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters.defaults import cluster_file


def test_the_named_file_counts_before_the_usual_one(tmp_path: Path) -> None:
    usual, named = tmp_path / "usual.yaml", tmp_path / "named.yaml"
    assert cluster_file({}, usual) is None
    usual.write_text("a")
    named.write_text("b")
    assert cluster_file({}, usual) == ("a", str(usual))
    assert cluster_file({"GPUDEBUG_CLUSTER": str(named)}, usual) == ("b", str(named))


def test_a_named_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ClusterError, match="GPUDEBUG_CLUSTER: ") as caught:
            cluster_file({"GPUDEBUG_CLUSTER": str(path)})
        assert caught.value.file == str(path)
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(ClusterError, match="not UTF-8"):
        cluster_file({}, tmp_path / "x")
