"""Why the kernel refuses to let one process look into another, and what allows it.

Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst; the seccomp
profiles of container runtimes.
"""

from __future__ import annotations

from typing import NamedTuple

_CAPABILITY = "CAP_SYS_PTRACE"
_CONTAINER = (
    "start the container with --cap-add SYS_PTRACE (Kubernetes: securityContext.capabilities.add: "
    "[SYS_PTRACE])"
)


class PtraceFacts(NamedTuple):
    """What decides. `yama` is kernel.yama.ptrace_scope, None without Yama; `capable` whether this process has
    CAP_SYS_PTRACE, `root` whether it is root, `same_user` whether the target is this user's, `filtered`
    whether a seccomp filter is in force here, `contained` whether this is a container's PID namespace."""

    yama: int | None
    capable: bool
    root: bool
    same_user: bool
    filtered: bool
    contained: bool


class Refusal(NamedTuple):
    """Why looking is refused, and what a person can do to allow it."""

    why: str
    allow: str


def refusal(facts: PtraceFacts, command: str) -> Refusal:
    """Explain a refusal that has happened; `command` is what to run again with more rights."""
    asking = f"sudo {command}" if not facts.root else _CONTAINER
    if facts.yama == 3:
        return Refusal(
            "kernel.yama.ptrace_scope is 3: no process may look into another until a reboot",
            "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d and reboot, then run gpudebug as root",
        )
    if not facts.same_user and not facts.capable:
        return Refusal(f"the process is another user's, and gpudebug runs without {_CAPABILITY}", asking)
    if facts.yama in (1, 2) and not facts.capable:
        lower = " or sudo sysctl kernel.yama.ptrace_scope=0" if facts.yama == 1 else ""
        return Refusal(
            f"kernel.yama.ptrace_scope is {facts.yama}: only root may look into what it did not start",
            f"{asking}{lower}",
        )
    if facts.filtered:
        return Refusal(
            "a seccomp filter refuses it, as those of containers do",
            f"{_CONTAINER}, or with --security-opt seccomp=unconfined",
        )
    if not facts.capable:
        return Refusal(
            "the process is protected (it has changed its user, or has capabilities), and gpudebug runs "
            f"without {_CAPABILITY}",
            asking,
        )
    where = _CONTAINER if facts.contained else "look for SELinux or AppArmor in the kernel's log (dmesg)"
    return Refusal("the kernel refuses it", where)
