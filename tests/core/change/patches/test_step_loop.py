"""Which changes touch the printing or the step loop, and which a program may make without them."""

from __future__ import annotations

import pytest

from gpudebug.core.change.patches import read
from gpudebug.core.change.patches.step_loop import prints, touches_count


def patch(body: str, name: str = "train.py") -> bytes:
    lines = body.splitlines()
    old = sum(line[:1] in "- " for line in lines)
    new = sum(line[:1] in "+ " for line in lines)
    head = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,{old} +1,{new} @@\n"
    return (head + "\n".join(lines) + "\n").encode()


TOUCHES = [
    "-    print(step)\n+    for i in (1, 2, 3):\n+        print(step)",
    "+    print(f'step {n} loss 1')",
    "+    sys.stdout.write('x')",
    "+    logger.info('step')",
    "+    bar.set_postfix(loss=1)",
    "-for step in range(75):\n+for step in range(300):",
    "-for batch in loader:\n+for batch in cached_batches:",
    "+    global_step += 1",
    "+    n_steps = 4",
    "+    while time.monotonic() < until:\n+        pass",
    "-    time.sleep(0.01)",
    "+    yield batch",
    "+builtins.__dict__['x'] = 1",
    "+setattr(io, 'w', w)",
    "+exec(code)",
    "+os.execv(sys.executable, words)",
    "-    print(step)\n+        print(step)",
]


@pytest.mark.parametrize("body", TOUCHES)
def test_the_printing_and_the_loop_are_found(body: str) -> None:
    found = touches_count(read(patch(body), "h.patch"))
    assert found is not None
    assert found.startswith("train.py: ")


HONEST = [
    "-workers = 0\n+workers = 4",
    "-    return [read(i) for i in index]\n+    return [CACHE[i] for i in index]",
    "+    pool = ThreadPoolExecutor(8)\n+    futures = [pool.submit(read, i) for i in index]",
    "-torch.backends.cudnn.benchmark = False\n+torch.backends.cudnn.benchmark = True",
    "-x = 1  # print every step\n+x = 1  # do not print",
    "+# for step in range(3): print(step)\n+y = 2",
    "-model.to(device)\n+model.to(device, non_blocking=True)",
    " print(step)\n-x = 1\n+x = 2",
]


@pytest.mark.parametrize("body", HONEST)
def test_what_leaves_them_alone_is_none(body: str) -> None:
    assert touches_count(read(patch(body), "h.patch")) is None


def test_a_text_counts_nothing_and_a_binary_may_do_anything() -> None:
    assert touches_count(read(patch("+print each step", "README.md"), "h.patch")) is None
    binary = b"diff --git a/x.so b/x.so\nnew file mode 100644\nindex 0000000..1111111\nGIT binary patch\n"
    binary += b"literal 3\nKcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n"
    assert touches_count(read(binary, "h.patch")) == "x.so: a binary file"


def test_a_long_line_is_cut() -> None:
    found = touches_count(read(patch("+print(" + "'x', " * 50 + ")"), "h.patch"))
    assert found is not None
    assert len(found) < 80


PRINTED = [
    "+    print(f'step {n} loss 1')",
    "+    logger.info('step')",
    "-    loss = step(batch)\n+    loss = LOSSES[n]",
    "-    lossf = loss.item()\n+    lossf = 1.0",
    "+setattr(io, 'w', w)",
]
NOT_PRINTED = [
    "-OFFSETS = [-1, 0]\n+OFFSETS = [0]",
    "-for step in range(75):\n+for step in range(300):",
    "-    x = x[:, :64]\n+    x = x[:, :32]",
    "+# print(loss)",
]


@pytest.mark.parametrize("body", PRINTED)
def test_what_may_print_other_losses_is_found(body: str) -> None:
    assert prints(read(patch(body), "h.patch"))


@pytest.mark.parametrize("body", NOT_PRINTED)
def test_what_leaves_the_printed_losses_alone_is_not(body: str) -> None:
    assert not prints(read(patch(body), "h.patch"))
