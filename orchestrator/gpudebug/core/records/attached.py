"""What was seen from outside of a training that ran already."""

from __future__ import annotations

from gpudebug.core.records.base import Record


class SeenProcess(Record):
    """A process of the job over `seconds`, by /proc; None is what could not be read.

    `of` is `training` (the one whose stacks are shown), `rank`, `worker` (a DataLoader's) or `other`. `cores`
    is CPU time a second, `system_share` the kernel's part of it. Of its main thread, or the one that trains:
    `main_running` and `main_ready` are the shares of the time that it ran, and was ready to while others had
    the core; `disk_wait` that it waited for a disk. Rates a second: `major_faults_s` page faults that read,
    `read_mb_s` and `write_mb_s` of storage, `waits_s` and `forced_s` how often threads gave up a core, and
    had it taken. `affinity` is how many cores it may use. `looks` counts stacks that py-spy read; `place` is
    the line in which most were, with its share (0 to 1) of the last span. `why` says why there are none,
    `allow` what to do about that. `loader` is its DataLoader's iterator, "" if none.
    """

    pid: int
    of: str
    rank: int | None = None
    name: str = ""
    seconds: float | None = None
    cores: float | None = None
    system_share: float | None = None
    main_running: float | None = None
    main_ready: float | None = None
    disk_wait: float | None = None
    major_faults_s: float | None = None
    read_mb_s: float | None = None
    write_mb_s: float | None = None
    waits_s: float | None = None
    forced_s: float | None = None
    threads: int | None = None
    affinity: int | None = None
    rss_mb: float | None = None
    swap_mb: float | None = None
    looks: int = 0
    place: str = ""
    place_share: float | None = None
    why: str | None = None
    allow: str | None = None
    loader: str = ""


class AttachedEvidence(Record):
    """The processes of a job that gpudebug did not start. `members` are its Python processes, of which the
    first are looked at; `observer_cores` is what looking took, in cores, without the sampler's; `ended` says
    that the job ended meanwhile."""

    processes: tuple[SeenProcess, ...] = ()
    members: int | None = None
    observer_cores: float | None = None
    ended: bool = False

    @property
    def main(self) -> SeenProcess | None:
        """The process whose stacks are the run's."""
        return next((one for one in self.processes if one.of == "training"), None)

    def of(self, kind: str) -> tuple[SeenProcess, ...]:
        """Return those of one kind."""
        return tuple(one for one in self.processes if one.of == kind)
