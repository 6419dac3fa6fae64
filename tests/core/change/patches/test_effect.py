"""The same change is known again however it is written; another one is not taken for it."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.change import patches
from gpudebug.core.change.patches.effect import prints, settings_of, touches_count
from gpudebug.core.change.patches.hunks import read
from gpudebug.core.errors import InterventionError


def diff(old: str, new: str, path: str = "train.py", context: int = 3) -> bytes:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", n=context, lineterm=""
    )
    return "".join(f"{line}\n" for line in lines).encode()


def body(old: str, new: str, path: str = "train.py") -> str:
    lines = [*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n"))]
    counts = f"@@ -1,{old.count(chr(10)) + 1} +1,{new.count(chr(10)) + 1} @@"
    return "\n".join([f"--- a/{path}", f"+++ b/{path}", counts, *lines, ""])


SAME = {
    "blanks": ("x = 1", "x=2", "x  =  1", "x = 2", "py"),
    "a comment": ("x = 1", "x = 2", "x = 1", "x = 2  # twice", "py"),
    "another comment": ("x = 1  # a", "x = 2  # b", "x = 1", "x = 2  # 'c", "py"),
    "a line of comment": ("x = 1", "x = 2", "x = 1", "# why\nx = 2", "py"),
    "a blank line": ("x = 1", "x = 2", "x = 1", "\nx = 2\n", "py"),
    "a comment beside": ("x = 1", "x = 2", "x = 1\ny = 1  # a", "x = 2\ny = 1  # b", "py"),
    "C": ("int x;", "int y; // z", "int x; /* a */", "int /* b */ y;", "cu"),
    "YAML": ("a: 1", "a: 2", "a: 1 # one", "a: 2 # two", "yaml"),
    "ini": ("a = 1", "a = 2", "a = 1", "; said\na = 2", "ini"),
    "a string with a mark, and a comment": ("x", 's = "#a"  # b', "x", 's = "#a"', "py"),
    "an escaped quote": ("x", r's = "\"#a"  # b', "x", r's = "\"#a"', "py"),
}
DIFFERENT = {
    "a value": ("x = 1", "x = 2", "x = 1", "x = 3", "py"),
    "a string with a mark": ("x", 's = "#a"', "x", 's = "#b"', "py"),
    "a string with quotes in it": ("x", 's = "it\'s #a"', "x", 's = "it\'s #b"', "py"),
    "three quotes": ("x", "s = '''a'#b'''", "x", "s = '''a'#c'''", "py"),
    "an address": ("x", 'u = "http://a"', "x", 'u = "http://b"', "js"),
    "a preprocessor's line": ("x", "#define A 1", "x", "#define A 2", "h"),
    "no comment in YAML": ("x", "a: b#c", "x", "a: b#d", "yaml"),
    "no comment in a shell": ("x", "${a#b}", "x", "${a#c}", "sh"),
    "text": ("x", "# one", "x", "# two", "md"),
    "a line moved": ("a\nb\nc", "b\na\nc", "a\nb\nc", "a\nc\nb", "py"),
    "one line more": ("x = 1", "x = 2", "x = 1\ny = 1", "x = 2\ny = 2", "py"),
}


@pytest.mark.parametrize("a, b, c, d, suffix", SAME.values(), ids=SAME)
def test_the_same_change(a: str, b: str, c: str, d: str, suffix: str) -> None:
    one, other = body(a, b, f"f.{suffix}").encode(), body(c, d, f"f.{suffix}").encode()
    assert patches.effective(one) == patches.effective(other) != b""
    assert patches.digest(one) == patches.digest(other)


@pytest.mark.parametrize("a, b, c, d, suffix", DIFFERENT.values(), ids=DIFFERENT)
def test_another_change(a: str, b: str, c: str, d: str, suffix: str) -> None:
    one, other = body(a, b, f"f.{suffix}").encode(), body(c, d, f"f.{suffix}").encode()
    assert patches.effective(one) != patches.effective(other)


def test_a_patch_of_comments_has_no_effect() -> None:
    assert patches.effective(body("# a\nx = 1", "# b\nx=1 # c").encode()) == b""


def test_what_happens_to_the_file_counts() -> None:
    start = "diff --git a/x.py b/x.py\n"
    made = {
        "new": f"{start}new file mode 100644\n",
        "executable": f"{start}new file mode 100755\n",
        "mode": f"{start}old mode 100644\nnew mode 100755\n",
        "deleted": f"{start}deleted file mode 100644\n",
        "renamed": "diff --git a/y.py b/x.py\nrename from y.py\nrename to x.py\n",
        "renamed from another": "diff --git a/z.py b/x.py\nrename from z.py\nrename to x.py\n",
        "binary": f"{start}index 1..2 100644\nGIT binary patch\nliteral 3\nKcmZQzWC8#H2LJ>B\n\n",
        "other binary": f"{start}index 1..2 100644\nGIT binary patch\nliteral 3\nLcmZQzWC8#H2LJ>B\n\n",
    }
    assert len({patches.effective(text.encode()) for text in made.values()}) == len(made)
    plain = "--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+x\n"
    gits = f"{start}new file mode 100644\nindex 0..1\n{plain}"
    assert patches.effective(plain.encode()) == patches.effective(gits.encode())


def test_what_is_no_patch_is_named() -> None:
    with pytest.raises(InterventionError, match="change 7"):
        patches.effective(b"nothing", "change 7")


# Lines that are told apart by a word each, so that there is one way only to see what changed.
WORDS = st.lists(st.integers(0, 400), min_size=1, max_size=30, unique=True)
# git apply takes no patch without context.
CONTEXT = st.integers(1, 5)
NOISE = st.sampled_from(["", "   ", "# said", "\t# it's \"so", "#"])


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A file and what an edit made of it: lines replaced, deleted and put in, none moved."""
    old = [f"w{n} = f({n})" for n in draw(WORDS)]
    new: list[str] = []
    for place, line in enumerate(old):
        what = draw(st.sampled_from("kkkkrdi"))
        new += {"k": [line], "r": [f"r{place}()"], "d": [], "i": [f"i{place}('#')", line]}[what]
    return old, new


def noisy(draw: st.DrawFn, lines: list[str]) -> str:
    """The same code with other blanks, blank lines and comments."""
    said = []
    for line in lines:
        said += draw(st.lists(NOISE, max_size=2))
        spaced = line.replace(" ", draw(st.sampled_from(["", " ", "  \t"])))
        said.append(spaced + draw(st.sampled_from(["", "  # why", " #'"])))
    return "\n".join(said)


@given(st.data(), edits(), CONTEXT, CONTEXT)
def test_noise_and_context_make_no_difference(
    data: st.DataObject, edit: tuple[list[str], list[str]], one: int, other: int
) -> None:
    old, new = edit
    plain = diff("\n".join(old), "\n".join(new), context=one)
    noise = st.composite(noisy)
    written = diff(data.draw(noise(old)), data.draw(noise(new)), context=other)
    if old == new:
        assert not plain
        assert not written or patches.effective(written) == b""
    else:
        assert patches.effective(plain) == patches.effective(written) != b""


@given(edits(), edits())
def test_other_code_makes_one(a: tuple[list[str], list[str]], b: tuple[list[str], list[str]]) -> None:
    one, other = (diff("\n".join(old), "\n".join(new), context=0) for old, new in (a, b))
    if one and other:
        changed = [[line for line in p.split(b"\n")[2:] if line[:1] in (b"-", b"+")] for p in (one, other)]
        told = [[[line for line in c if line[:1] == sign] for sign in (b"-", b"+")] for c in changed]
        assert (patches.effective(one) == patches.effective(other)) == (told[0] == told[1])


@given(edits(), edits(), st.permutations(["a.py", "b.py"]))
def test_the_order_of_files_makes_none(
    a: tuple[list[str], list[str]], b: tuple[list[str], list[str]], order: list[str]
) -> None:
    parts = {
        name: diff("\n".join(old), "\n".join(new), name)
        for name, (old, new) in zip(order, (a, b), strict=True)
    }
    if all(parts.values()):
        forward, backward = parts["a.py"] + parts["b.py"], parts["b.py"] + parts["a.py"]
        assert patches.effective(forward) == patches.effective(backward)
        assert patches.effective(forward) != patches.effective(parts["a.py"])


@given(st.binary(max_size=400) | st.text("-+@ ab\n/1,", max_size=200).map(str.encode))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for text in (data, b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + data, b"diff --git " + data):
        try:
            patch = patches.read(text, "p")
        except InterventionError:
            continue
        patches.effective(patch)
        try:
            patches.refuse_unsafe(patch)
        except InterventionError as e:
            assert "\n" not in str(e)


def of_settings(path: str, *lines: str) -> bytes:
    old = sum(line[0] in "- " for line in lines)
    new = sum(line[0] in "+ " for line in lines)
    body = "".join(f"{line}\n" for line in lines)
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@\n{body}".encode()


@pytest.mark.parametrize(
    ("path", "lines", "names"),
    [
        ("ppo.yml", ("-  n_envs: 1", "+  n_envs: 8"), ("n_envs",)),
        ("a/ppo.toml", (" x = 1", "-n_envs = 1", "+n_envs = 8", "+n_steps = 32"), ("n_envs", "n_steps")),
        ("ppo.json", ('-  "n_envs": 1,', '+  "n_envs": 8,'), ("n_envs",)),
        ("ppo.yaml", ("-# one", "+# eight", "-n_envs: 1", "+n_envs: 8"), ("n_envs",)),
        ("ppo.yaml", ("-  - 1", "+  - 8"), None),
        ("train.py", ("-n_envs = 1", "+n_envs = 8"), None),
    ],
)
def test_the_settings_of_a_patch(path: str, lines: tuple[str, ...], names: tuple[str, ...] | None) -> None:
    assert settings_of(read(of_settings(path, *lines), "x.patch")) == names


def test_a_patch_that_also_changes_code_is_none_of_settings() -> None:
    both = of_settings("a.yaml", "-n_envs: 1", "+n_envs: 8") + of_settings("b.py", "-n = 1", "+n = 2")
    assert settings_of(read(both, "x.patch")) is None


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
