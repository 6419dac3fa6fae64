"""Where the program's own words begin, whatever starts it; and that no change reaches a word before."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.change import intervention
from gpudebug.core.change.permits import Allowed
from gpudebug.core.command import launchers
from gpudebug.core.errors import InterventionError

# `|` stands before the program's first own word; a command without one has no certain beginning.
COMMANDS = """
    lerobot-train | --a=1
    ./train.sh | --a=1
    python train.py | --a=1
    python -u train.py | --a=1
    python -X dev -W error::UserWarning -B train.py | --a=1
    python -Xdev -um pkg.train | --a=1
    python -m train | --a=1
    python -mtrain | --a=1
    python -c code | --a=1
    python3.11 -- train.py | --a=1
    python - | --a=1
    python -m torch.distributed.run --nproc_per_node 2 train.py | --a=1
    python -m accelerate.commands.launch --num_processes 2 train.py | --a=1
    torchrun --standalone train.py | --a=1
    torchrun --standalone --nproc-per-node=2 --rdzv_id job src/train.py | --a=1
    torchrun --nproc_per_node 2 -m pkg.train | --a=1
    torchrun --no-python lerobot-train | --a=1
    torchrun --no_python python -u train.py | --a=1
    accelerate launch --config_file c.yaml train.py | --a=1
    accelerate launch --mixed_precision bf16 bin/lerobot-train | --a=1
    deepspeed --num_gpus 2 --hostfile h train.py | --deepspeed ds.json
    ./isaaclab.sh -p scripts/rsl_rl/train.py | --task=A --headless
    env A=1 B=2 -u C nice -n 5 nohup lerobot-train | --a=1
    env -i A=1 python train.py | --a=1
    time -p taskset -c 0-3 numactl --cpunodebind 0 -m 0 python train.py | --a=1
    taskset 0xff lerobot-train | --a=1
    timeout -k 5 10m python train.py | --a=1
    nice lerobot-train | --a=1
    srun -n 4 --gpus-per-node=2 python train.py | --a=1
    mpirun -np 2 --mca btl ^tcp -x A python train.py | --a=1
    uv run --with torch --frozen lerobot-train | --a=1
    uv run --frozen -- lerobot-train | --a=1
    uv run --unheard-of x lerobot-train | --a 1 y
    uv run --unheard-of lerobot-train | --a=1
    uv run -p 3.11 train.py | --a=1
    poetry run lerobot-train | --a=1
    conda run -n e --no-capture-output python train.py | --a=1
    xvfb-run -a -s '-screen 0 1x1x24' python train.py | --a=1
    docker run --rm -it -v /data:/data --gpus all image python train.py | --a=1
    docker run image | --a=1
    docker exec -e A=1 box lerobot-train | --a=1
    apptainer exec --nv -B /data image.sif python -u train.py | --a=1
    bash -e train.sh | --a=1
    coverage run -m train | --a=1
    my-wrapper --x y python -u train.py | --a=1
    nsys profile -o out python train.py | --a=1
    bash -c 'python train.py --a=1'
    bash -ec 'python train.py --a=1'
    docker run image sh -c 'python train.py --a=1'
    ssh -o X host python train.py --a=1
    xargs python train.py --a=1
    make train ARGS=--a=1
    env -S 'python train.py' --a=1
    python -m timeit -s x --a=1
    python -m pdb train.py --a=1
    colossalai run --nproc_per_node 2 train.py --a=1
    srun --multi-prog conf --a=1
    uv pip install x --a=1
    uv run --unheard-of x --a 1 y
    docker compose run box train --a=1
    python
    perl -e 'exec' --a=1
"""
LINES = [line.strip() for line in COMMANDS.strip().splitlines()]


@pytest.mark.parametrize("line", LINES)
def test_where_the_program_begins(line: str) -> None:
    before, bar, after = line.partition(" | ")
    argv = shlex.split(before) + shlex.split(after)
    assert launchers.launch(argv).start == (len(shlex.split(before)) if bar else None)


CHANGES = [
    *("-m=timeit", "-s=import os", "-u=x", "-v=/:/host", "-o=ProxyCommand=id", "--with=evil", "A=2", "-X=x"),
    *(
        "--config_file=/tmp/evil",
        "--num_processes=8",
        "-c=id",
        "-W=x",
        "--no_python",
        "-n=9",
        "--mca=x",
        "p=x",
    ),
    *("--hostfile=evil", "--gpus=none", "-e=X=1", "--entrypoint=sh", "-B=/x", "-x=LD_PRELOAD", "--frozen=1"),
]


def reaches(line: str, asked: dict[str, list[str]]) -> bool:
    """Whether a change gets at a word before the program, or is refused without saying what to do."""
    before, bar, after = line.partition(" | ")
    head = shlex.split(before)
    try:
        made = intervention.from_options(**asked).apply(head + shlex.split(after), {})  # type: ignore[arg-type]
    except InterventionError as e:
        return not e.next
    return not bar or list(made.argv[: len(head)]) != head


@pytest.mark.parametrize("line", LINES)
def test_no_change_reaches_a_word_before_the_program(line: str) -> None:
    changes = [{"set": [c]} for c in CHANGES] + [{"unset": [c.partition("=")[0]]} for c in CHANGES]
    assert [asked for asked in changes if reaches(line, asked)] == []


@pytest.mark.parametrize(
    ("command", "change", "expected"),
    [
        ("torchrun --nproc_per_node 2 t.py", "--set --nproc_per_node=4", "torchrun --nproc_per_node 4 t.py"),
        ("torchrun --nproc_per_node=2 t.py", "--set --nproc-per-node=4", "torchrun --nproc_per_node=4 t.py"),
        ("torchrun --nproc_per_node 2 t.py", "--unset --nproc_per_node", "torchrun t.py"),
        (
            "torchrun --nproc_per_node 2 t.py --nproc_per_node 3",
            "--set --nproc_per_node=4",
            "torchrun --nproc_per_node 2 t.py --nproc_per_node 4",
        ),
        ("torchrun t.py", "--set --nproc_per_node=4", "torchrun t.py --nproc_per_node=4"),
    ],
)
def test_a_launchers_flag_that_gpudebug_yaml_opens_is_changed_in_place(
    command: str, change: str, expected: str
) -> None:
    opened = Allowed(flags={"torchrun": ("--nproc_per_node",)})
    assert shlex.join(intervention.parse(change).apply(shlex.split(command), {}, opened).argv) == expected


@pytest.mark.parametrize("value", ["--module", "--", "-m", ":"])
def test_a_value_never_becomes_a_word_of_the_launcher(value: str) -> None:
    opened = Allowed(flags={"torchrun": ("--nproc_per_node",)})
    change = intervention.from_options(set=[f"--nproc_per_node={value}"])
    with pytest.raises(InterventionError):
        change.apply(["torchrun", "--nproc_per_node", "2", "t.py"], {}, opened)


def test_a_launchers_flag_that_is_not_opened_names_the_line_that_opens_it() -> None:
    with pytest.raises(InterventionError, match="is before the program") as caught:
        intervention.parse("--set --nproc_per_node=4").apply(
            ["torchrun", "--nproc_per_node", "2", "t.py"], {}
        )
    assert "allow_flags: {torchrun: [--nproc_per_node]}" in str(caught.value.next)


WORDS = st.sampled_from(
    [
        *("python", "torchrun", "uv", "run", "env", "docker", "-m", "-c", "-u", "--", "train.py", "image"),
        *("A=1", "--x", "--x=1", "-n", "4", "sh", "launch", "accelerate", "t"),
    ]
)


@given(st.lists(WORDS, min_size=1, max_size=9), WORDS)
def test_any_command_keeps_what_stands_before_its_program(argv: list[str], value: str) -> None:
    found = launchers.launch(argv)
    assert found.start is None or 0 < found.start <= len(argv)
    try:
        made = intervention.from_options(set=[f"--x={value}"]).apply(argv, {})
    except InterventionError:
        return
    assert found.start is not None
    assert list(made.argv[: found.start]) == argv[: found.start]
