"""A real Slurm on this machine: munge, a controller and two nodes of one core and one pretended GPU each.

Its ports and its folder are its own, it asks nothing of the machine's Slurm if there is one, and all of it
ends with `stop`. Accounting, by a MariaDB and a slurmdbd of its own, is there if it is asked for. Two nodes
of one host share clock, disk and boot.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

NODES = ("n0", "n1")
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
FOR_ACCOUNTING = ("slurmdbd", "sacctmgr", "sacct", "mariadbd", "mariadb-install-db")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
LOOKS_S = 30.0
"""The controller looks at time limits so often."""
_STARTS_S = 60.0
_ENDS_S = 20.0
# A job starts at once, is requeued after 5 s, and an interrupted one is killed after 5 s.
_CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
SlurmctldParameters=preempt_send_user_signal
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
{accounting}
JobAcctGatherType=jobacct_gather/none
KillWait=5
MessageTimeout=10
SlurmdTimeout=30
ReturnToService=2
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 Gres=gpu:1 RealMemory=500
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 Gres=gpu:1 RealMemory=500
PartitionName=main Nodes=n0,n1 Default=YES MaxTime=120 State=UP PriorityTier=1 GraceTime=5
PartitionName=high Nodes=n0,n1 MaxTime=60 State=UP PriorityTier=10
PartitionName=down Nodes=n0 State=DOWN
"""
_NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
# A job that has ended is forgotten at the first look after 2 s: there is one a minute.
_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.sock
MinJobAge=2"""
_SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports[0]}
SlurmUser={user}
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[1]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
_GRANTS = """\
CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm';
GRANT ALL ON *.* TO slurm@'127.0.0.1';
"""
_GRES = "NodeName=n0 Name=gpu File=/dev/zero\nNodeName=n1 Name=gpu File=/dev/full\n"


def lacking(*, accounting: bool = False) -> list[str]:
    """The programs that this machine lacks (Debian: slurm-wlm and munge; slurmdbd, mariadb-server)."""
    needed = (*NEEDED, *(FOR_ACCOUNTING if accounting else ()))
    return [name for name in needed if shutil.which(name, path=_PATH) is None]


class SlurmSystem:
    """One Slurm, started by its making."""

    def __init__(self, *, accounting: bool = False) -> None:
        # Short: a socket's path has 107 characters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="gpudebug-slurm-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.conf = self.folder / "slurm.conf"
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(5)
        known = {"host": host, "folder": self.folder, "user": getpass.getuser()}
        kept = _ACCOUNTING.format(port=ports[3], folder=self.folder) if accounting else _NO_ACCOUNTING
        self.conf.write_text(_CONF.format(ports=ports[:3], accounting=kept, **known))
        (self.folder / "gres.conf").write_text(_GRES)
        (self.folder / "cgroup.conf").write_text("ConstrainCores=no\n")
        (self.folder / "state").mkdir()
        try:
            self._start_munge()
            if accounting:
                self._start_database(ports[4])
                self._start_accounting(_SLURMDBD.format(ports=ports[3:], **known))
            self.start_controller()
            for node in NODES:
                self.start_node(node)
            self.wait_for(lambda: self.node_states() == dict.fromkeys(NODES, "idle"), _STARTS_S)
        except BaseException:
            self.stop()
            raise

    @property
    def env(self) -> dict[str, str]:
        """Variables with which Slurm's commands ask this one."""
        return {"SLURM_CONF": str(self.conf), "PATH": _PATH}

    def run(self, *argv: str, check: bool = True) -> str:
        """The output of one of Slurm's commands."""
        env = {**_bare_environment(), **self.env, "LC_ALL": "C"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0 or not check, f"{argv}: {done.stderr}"
        return done.stdout

    def queue(self) -> dict[str, str]:
        """Each job that waits or runs, with its state; {} also while the controller is away."""
        lines = self.run("squeue", "-h", "-o", "%i %T", check=False).splitlines()
        return {id: state for id, _, state in (line.partition(" ") for line in lines)}

    def array(self, id: str) -> dict[str, str]:
        """Each element of a job array that waits or runs, with its state."""
        lines = self.run("squeue", "-h", "-r", "-j", id, "-o", "%i %T", check=False).splitlines()
        return {id: state for id, _, state in (line.partition(" ") for line in lines)}

    def state(self, id: str) -> str:
        """The state of a job in Slurm's words, of one that has ended too; empty if it is not known."""
        return self.run("squeue", "-h", "-t", "all", "-j", id, "-o", "%T", check=False).strip()

    def node_states(self) -> dict[str, str]:
        lines = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T", check=False).split("\n")
        return {name: state for name, _, state in (line.partition(" ") for line in lines if line)}

    def node_of(self, id: str) -> str:
        """The node that a job runs on."""
        return self.run("squeue", "-h", "-j", id, "-o", "%N").strip()

    def node_down(self, node: str) -> None:
        """End the jobs of a node, as its failure does."""
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def node_up(self, node: str) -> None:
        self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def shorten(self, id: str) -> None:
        """Shorten a job's time limit below what has gone by: it ends, TIMEOUT, within `LOOKS_S`."""
        self.run("scontrol", "update", f"JobId={id}", "TimeLimit=0")

    def start_controller(self) -> None:
        self._daemon("slurmctld")

    def kill_controller(self) -> None:
        """`kill -9`; its state is on disk, and `start_controller` goes on with it."""
        self._end("slurmctld", signal.SIGKILL)

    def start_node(self, node: str) -> None:
        self._daemon("slurmd", "-N", node)

    def clear(self) -> None:
        """End all jobs, and bring nodes and controller back: the state in which a test begins."""
        if self._process("slurmctld") is None:
            self.start_controller()
        self.wait_for(lambda: bool(self.node_states()))
        for id in self.queue():
            self.run("scancel", id, check=False)
        for node in NODES:
            self.node_up(node)
        self.wait_for(lambda: not self.queue(), _STARTS_S)
        self.wait_for(lambda: set(self.node_states().values()) == {"idle"}, _STARTS_S)

    def stop(self) -> None:
        """End all daemons, and remove the folder."""
        for name in (*NODES, "slurmctld", "slurmdbd", "mariadbd", "munged"):
            self._end(name, signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_for(self, what: Callable[[], bool], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, self._told()
            time.sleep(0.1)

    def _told(self) -> str:
        logs = (path.read_text(errors="replace")[-1500:] for path in sorted(self.folder.glob("*.log")))
        return "\n".join((f"{self.node_states()} {self.queue()}", *logs))

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self._daemon(
            "munged",
            "--force",
            f"--key-file={key}",
            f"--socket={self.folder}/munge.sock",
            f"--seed-file={self.folder}/munge.seed",
            f"--log-file={self.folder}/munged.log",
            f"--pid-file={self.folder}/munged.pid",
        )

    def _start_database(self, port: int) -> None:
        """A MariaDB that listens to this host alone."""
        data, user = f"--datadir={self.folder}/database", f"--user={getpass.getuser()}"
        (self.folder / "grants.sql").write_text(_GRANTS)
        self._daemon("mariadb-install-db", "--no-defaults", data, user, "--skip-test-db")
        self._daemon(
            *("setsid", "--fork", "mariadbd", "--no-defaults", data, user, f"--port={port}"),
            "--bind-address=127.0.0.1",
            f"--socket={self.folder}/mariadb.sock",
            f"--pid-file={self.folder}/mariadbd.pid",
            f"--log-error={self.folder}/mariadbd.log",
            f"--init-file={self.folder}/grants.sql",
            "--innodb-buffer-pool-size=32M",
            "--innodb-lock-wait-timeout=900",
        )
        self.wait_for(lambda: _listens(port), _STARTS_S)

    def _start_accounting(self, conf: str) -> None:
        path = self.folder / "slurmdbd.conf"
        path.write_text(conf)
        path.chmod(0o600)
        self._daemon("slurmdbd")
        user = getpass.getuser()
        self.wait_for(lambda: "Cluster" in self.run("sacctmgr", "show", "cluster", check=False), _STARTS_S)
        self.run("sacctmgr", "-i", "add", "cluster", "tests")
        self.run("sacctmgr", "-i", "add", "account", "tests", "cluster=tests", "Organization=t")
        self.run("sacctmgr", "-i", "add", "user", user, "account=tests")

    def _daemon(self, name: str, *arguments: str) -> None:
        """Start what detaches itself, without the tests' mark: it is not one test's to leave behind."""
        env = {**_bare_environment(), **self.env}
        done = subprocess.run(
            [name, *arguments], env=env, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"

    def _process(self, name: str) -> psutil.Process | None:
        try:
            process = psutil.Process(int((self.folder / f"{name}.pid").read_text()))
            # The number may be another's by now.
            return process if process.name().startswith(("slurm", "munge", "mariadbd")) else None
        except (OSError, ValueError, psutil.Error):
            return None

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._process(name)
        if process is None:
            return
        with contextlib.suppress(psutil.Error):
            process.send_signal(how)
            process.wait(_ENDS_S)
        with contextlib.suppress(psutil.Error):
            process.kill()


def _bare_environment() -> dict[str, str]:
    """The environment without a Slurm around us and without the mark of a test."""
    return {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("SLURM", "SBATCH_", "SQUEUE_", "GPUDEBUG_", "PYTEST_"))
    }


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def running(*, accounting: bool = False) -> Iterator[SlurmSystem]:
    """A Slurm for the length of a block."""
    system = SlurmSystem(accounting=accounting)
    try:
        yield system
    finally:
        system.stop()
