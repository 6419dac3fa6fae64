"""Which folders the nodes of a cluster can see."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gpudebug.core.errors import ClusterError
from gpudebug.edges.clusters.shared import cluster_file, elsewhere, own_to_each_host

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /scratch/ram tmpfs rw 0 0
server:/home /home nfs4 rw 0 0
server:/tmp /tmp/shared nfs rw 0 0
10.0.0.1@tcp:/lus /my\\040work lustre rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/tmp/campaign", "/tmp"),
        ("/var/tmp/x", "/var/tmp"),
        ("/scratch/ram/x", "/scratch/ram"),
        ("/tmp/shared/x", None),
        ("/home/me/x", None),
        ("/my work/x", None),
        ("/tmpx/y", None),
        ("/srv/x", None),
    ],
)
def test_what_each_host_has_of_its_own(path: str, own: str | None) -> None:
    assert own_to_each_host(path, MOUNTS) == own


def test_nodes_on_this_host_are_not_elsewhere() -> None:
    assert not elsewhere(["127.0.0.1", socket.gethostname(), ""])
    assert elsewhere(["127.0.0.1", "gpu-node-01"])


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
