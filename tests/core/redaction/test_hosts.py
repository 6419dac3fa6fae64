"""Names and addresses of hosts in texts: gone, whoever names them, and figures stay."""

from __future__ import annotations

import pytest

from gpudebug.core.redaction.hosts import host_names, without_hosts

SLURM = {
    "SLURM_JOB_NODELIST": "gpu[001-003,7],login1",
    "SLURMD_NODENAME": "gpu001",
    "SLURM_LAUNCH_NODE_IPADDR": "10.2.3.4",
    "SLURM_CLUSTER_NAME": "snowfall",
    "SLURM_JOB_USER": "anna",
    "SLURM_NTASKS": "8",
}


@pytest.mark.parametrize(
    ("env", "names"),
    [
        (SLURM, {"gpu001", "gpu002", "gpu003", "gpu7", "login1", "snowfall", "anna"}),
        (
            {"MASTER_ADDR": "trainer-0.team.svc.cluster.local"},
            {"trainer-0", "trainer-0.team.svc.cluster.local"},
        ),
        ({"PET_RDZV_ENDPOINT": "hopper:29500"}, {"hopper"}),
        ({"LSB_MCPU_HOSTS": "ada 8 bell 16"}, {"ada", "bell"}),
        ({"SSH_CONNECTION": "10.0.0.1 5022 10.0.0.2 22"}, set()),
        ({"DOCKER_HOST": "unix:///var/run/docker.sock"}, set()),
        ({"DOCKER_HOST": "tcp://builder:2376"}, {"builder"}),
        ({"HOSTFILE": "/home/anna/hosts"}, set()),
        ({"MASTER_ADDR": "localhost", "NODE_RANK": "1", "HOSTNAME": ""}, set()),
        ({"PATH": "/usr/bin", "MODEL": "resnet50", "GHOST": "x"}, set()),
    ],
)
def test_who_is_named_by_a_scheduler_or_a_launcher(env: dict[str, str], names: set[str]) -> None:
    found = set(host_names(env))
    assert names <= found
    assert found - names <= {"team.svc.cluster.local"}


def test_a_hosts_own_name_counts_however_short_and_its_domain_too() -> None:
    assert host_names({}, ("a.lab.example", "")) == ("a.lab.example", "a", "lab.example")
    assert host_names({}, ("localhost",)) == ()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("rank 3 on gpu003 died", "rank 3 on (a name) died"),
        # Another node of the same cluster, which no variable names.
        ("cannot reach gpu127:29500", "cannot reach (a name):29500"),
        ("connect to 10.2.3.4 port 22", "connect to (an address) port 22"),
        ("peer fe80::1ff:fe23:4567:890a%eth0 is gone", "peer (an address) is gone"),
        ("[2001:db8::7]:29500", "[(an address)]:29500"),
        ("from ::ffff:10.2.3.4", "from ::ffff:(an address)"),
        ("card 3c:ec:ef:12:34:56", "card (an address)"),
        ("db-4.internal refused", "(a name) refused"),
        ("see node9.uni-x.de and ip-10-0-3-7", "see (a name) and (a name)"),
        ("ssh anna@db-4", "ssh (a name)@(a name)"),
        ("https://wandb.company/x and tcp://bell:29500", "https://(a name)/x and tcp://(a name):29500"),
        ("TCPStore(db-4:29500)", "TCPStore((a name):29500)"),
    ],
)
def test_no_host_stays(text: str, clean: str) -> None:
    assert without_hosts(text, host_names(SLURM)) == clean


@pytest.mark.parametrize(
    "text",
    [
        "driver 550.54.15, CUDA 12.4, 95.1 % at 1,410 MHz",
        "GPU 0: 15 % asked, 14.8 % read; 44.1 GB/s, 1/2, p50 3.2 s",
        "at 12:34:56 on 0000:65:00.0",
        "torch.cuda.OutOfMemoryError in train.py:1234 (c10::Error, std::vector)",
        "see https://docs.nvidia.com/deploy/nvml-api/ and `ls -l /dev/nvidia*`",
        "step:1000 of 20000, loss: 0.1; gpu_util 12.3",
        "libnvidia-ml.so.1 and samples.csv",
        "run: gpudebug doctor --gpu",
        ":: and 1:2",
    ],
)
def test_what_is_no_host_stays(text: str) -> None:
    assert without_hosts(text, host_names(SLURM)) == text
