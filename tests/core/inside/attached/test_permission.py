"""A refusal is explained by what really decides, with a way to allow it."""

from __future__ import annotations

import pytest

from gpudebug.core.inside.attached.permission import PtraceFacts, refusal

FREE = PtraceFacts(yama=None, capable=True, root=True, same_user=True, filtered=False, contained=False)
USER = FREE._replace(capable=False, root=False)
COMMAND = "gpudebug why --pid 7"


@pytest.mark.parametrize(
    ("facts", "why", "allow"),
    [
        (USER._replace(yama=1), "ptrace_scope is 1", f"sudo {COMMAND} or sudo sysctl"),
        (USER._replace(yama=2), "ptrace_scope is 2", f"sudo {COMMAND}"),
        (FREE._replace(yama=3), "until a reboot", "reboot"),
        (USER._replace(same_user=False), "another user's", f"sudo {COMMAND}"),
        (FREE._replace(capable=False, same_user=False), "CAP_SYS_PTRACE", "--cap-add SYS_PTRACE"),
        (FREE._replace(filtered=True), "seccomp", "seccomp=unconfined"),
        (USER, "protected", f"sudo {COMMAND}"),
        (FREE, "the kernel refuses it", "dmesg"),
        (FREE._replace(contained=True), "the kernel refuses it", "--cap-add SYS_PTRACE"),
    ],
)
def test_each_refusal_names_its_reason_and_what_allows_it(facts: PtraceFacts, why: str, allow: str) -> None:
    found = refusal(facts, COMMAND)
    assert why in found.why
    assert allow in found.allow


def test_root_is_not_told_to_become_root() -> None:
    assert "sudo" not in refusal(FREE._replace(capable=False, same_user=False), COMMAND).allow
