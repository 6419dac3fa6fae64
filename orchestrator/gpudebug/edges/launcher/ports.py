"""Ports of this host: a free one for a server, and whether one is taken."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def taken(port: int) -> bool:
    """Tell whether something accepts connections on this port of localhost."""
    try:
        socket.create_connection(("localhost", port), 0.5).close()
    except OSError:
        return False
    return True
