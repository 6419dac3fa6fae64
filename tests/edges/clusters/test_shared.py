"""Which folders the nodes of a cluster can see."""

from __future__ import annotations

import socket

import pytest

from gpudebug.edges.clusters.shared import elsewhere, own_to_each_host

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
