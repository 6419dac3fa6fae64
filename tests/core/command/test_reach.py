"""Commands that hand their training to something that gpudebug does not see."""

from __future__ import annotations

import shlex

import pytest

from gpudebug.core.command.reach import out_of_reach

BEYOND = {
    "docker run --gpus all --rm -v $PWD:/w image python train.py": ("docker run", "in a container"),
    "sudo -E docker run image python train.py": ("docker run", "in a container"),
    "docker --context far exec box python train.py": ("docker exec", "in a container"),
    "docker compose run trainer": ("docker compose", "in a container"),
    "podman run image train": ("podman run", "in a container"),
    "ssh -p 22 box python train.py": ("ssh", "on another host"),
    "env A=1 ssh box 'cd w && python train.py'": ("ssh", "on another host"),
    "A=1 ssh box python train.py": ("ssh", "on another host"),
    "kubectl exec -it pod -- python train.py": ("kubectl exec", "in a pod"),
    "sbatch --gres=gpu:1 train.sh": ("sbatch", "in a job that the batch system starts"),
    "timeout 60 sbatch train.sh": ("sbatch", "in a job that the batch system starts"),
    "tmux new-session -d 'python train.py'": ("tmux", "in a server of its own"),
    "systemd-run --user python train.py": ("systemd-run", "in a service of systemd"),
    "jupyter console --existing": ("jupyter", "in a kernel that runs already"),
    "bash -c 'cd w && docker run image python train.py | tee log'": ("docker run", "in a container"),
    "sh -lc 'ssh box python train.py; echo done'": ("ssh", "on another host"),
    "gcloud compute ssh box --command 'python train.py'": ("gcloud ssh", "on another host"),
    "bash launch.sh": ("docker run", "in a container"),
    "./launch.sh 3": ("docker run", "in a container"),
}
WITHIN = [
    "python train.py --ssh=docker",
    "torchrun --nproc_per_node=2 train.py",
    "docker build .",
    "docker ps",
    "systemd-run --scope python train.py",
    "jupyter nbconvert --execute train.ipynb",
    "bash -c 'ssh box true && python train.py'",
    "bash -c 'echo docker run'",
    "bash here.sh",
    "apptainer exec image.sif python train.py",
    "nice -n 5 python ssh",
    "sh -c 'open \"quote'",
    "./missing.sh",
    "sh",
    "env",
]
SCRIPTS = {
    "launch.sh": "#!/bin/bash\n# python train.py\nset -e\nexec docker run \\\n  image python train.py\n",
    "./launch.sh": "docker run image python train.py\n",
    "here.sh": "docker pull image\nssh box true\npython train.py\n",
}


@pytest.mark.parametrize(("command", "found"), BEYOND.items(), ids=BEYOND)
def test_a_client_is_recognised_behind_whatever_starts_it(command: str, found: tuple[str, str]) -> None:
    beyond = out_of_reach(shlex.split(command), SCRIPTS.get)
    assert beyond is not None
    assert (beyond.client, beyond.where) == found
    assert beyond.instead
    assert beyond.client in beyond.unseen


@pytest.mark.parametrize("command", WITHIN)
def test_what_runs_below_the_command_is_within_reach(command: str) -> None:
    words = command.split() if 'open "' in command else shlex.split(command)
    assert out_of_reach(words, SCRIPTS.get) is None


def test_no_words_are_within_reach() -> None:
    assert out_of_reach([]) is None
