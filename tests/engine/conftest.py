"""A campaign of recordings: one hypothesis helps, one does nothing, one crashes, one makes the loss NaN."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, copied, make_replay_campaign, record
from tests.support.patches import write_patch
from tests.support.waiting import make_waiting_campaign

from gpudebug.engine.hypotheses.accept import accept

CampaignOnce = Callable[[str, Callable[[Path], Campaign]], Campaign]
CRASH = """\
step 1/100 loss 2.0
Traceback (most recent call last):
  File 'train.py', line 1
ValueError: bad shape
"""


def make_recordings(folder: Path) -> Path:
    record(folder, "0001-baseline-workload", util=20, rate=10)
    record(folder, "0002-baseline-workload", util=20, rate=10)
    record(folder, "0003-baseline-reference", util=90, rate=45)
    record(folder, "0004-h1", util=60, rate=30)
    record(folder, "0005-h2", util=20, rate=10)
    record(folder, "0006-h3", log=CRASH, seconds=3, exit_status=1)
    record(folder, "0007-h4", util=60, rate=30, losses=lambda share: 2.0 - share if share < 0.5 else "nan")
    return folder


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    return make_recordings(tmp_path / "recordings")


@pytest.fixture
def campaign(tmp_path: Path, recordings: Path) -> Campaign:
    return make_replay_campaign(tmp_path / "repo", recordings)


@pytest.fixture(scope="session")
def campaign_once(made_once: Callable[[str, Callable[[Path], str]], str]) -> CampaignOnce:
    """`campaign_once(name, make)`: what `make(folder)` makes, once for all processes; tests copy it."""

    def get(name: str, make: Callable[[Path], Campaign]) -> Campaign:
        return Campaign(Path(made_once(f"campaign-{name}", lambda folder: str(make(folder).folder))))

    return get


@pytest.fixture(scope="session")
def original(campaign_once: CampaignOnce) -> Campaign:
    def make(folder: Path) -> Campaign:
        recordings = make_recordings(folder / "recordings")
        made = make_replay_campaign(folder / "repo", recordings, files={"helper.py": "y = 1\n"})
        made.json("next")
        return made

    return campaign_once("original", make)


@pytest.fixture
def recorded(original: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline, recorded once for all tests."""
    return copied(original, tmp_path / "recorded")


@pytest.fixture(scope="session")
def original_told(original: Campaign, campaign_once: CampaignOnce) -> Campaign:
    def make(folder: Path) -> Campaign:
        made = copied(original, folder / "repo")
        made.propose("--set --lr=0.2")
        made.json("next")
        made.propose("--set --lr=0.3", "Waiting")
        return made

    return campaign_once("told", make)


@pytest.fixture
def told(original_told: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline, a VALIDATED hypothesis and an untested one."""
    return copied(original_told, tmp_path / "told")


LOADER = "workers = 1\n\n\ndef load():\n    return workers\n"
WORKERS = LOADER.replace("workers = 1", "import os\n\nworkers = os.cpu_count()")
PATCHES = "hypotheses/patches"


def make_judged(folder: Path) -> Campaign:
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    record(recordings, "0010-original", util=20, rate=10)
    record(recordings, "0005-h1", util=60, rate=30)
    record(recordings, "0006-h2", util=61, rate=30)
    record(recordings, "0007-h3", util=20, rate=10)
    record(recordings, "0008-h4", util=62, rate=31)
    made = make_replay_campaign(folder / "repo", recordings, files={"loader.py": LOADER})
    write_patch(made, f"{PATCHES}/workers.patch", {"loader.py": WORKERS})
    write_patch(made, f"{PATCHES}/twice.patch", {"loader.py": LOADER.replace("workers\n", "2 * workers\n")})
    proposed = {
        "Helps": "--set --lr=0.2",
        "One worker | loads": f"--patch {PATCHES}/workers.patch",
        "Nothing": "--set --work=0.3",
        "Too few load": f"--patch {PATCHES}/twice.patch",
    }
    made.progress.parent.mkdir()
    for number, (title, change) in enumerate(proposed.items(), 1):
        made.add(
            f"### Hypothesis {number}: {title}\n- **Intervention**: {change}\n- **Status**: UNTESTED\n\n"
        )
    for _ in range(5):
        made.json("next")
    # From here on the baseline has what is accepted; how many runs the trials had of it is no matter.
    record(recordings, "0009-baseline-workload", util=75, rate=40)
    return made


@pytest.fixture(scope="session")
def original_judged(campaign_once: CampaignOnce) -> Campaign:
    return campaign_once("judged", make_judged)


@pytest.fixture
def judged(original_judged: Campaign, tmp_path: Path) -> Campaign:
    """On one baseline: a flag and a patch VALIDATED, a flag REJECTED, another patch VALIDATED."""
    return copied(original_judged, tmp_path / "judged")


@pytest.fixture(scope="session")
def original_adopted(original_judged: Campaign, campaign_once: CampaignOnce) -> Campaign:
    def make(folder: Path) -> Campaign:
        made = copied(original_judged, folder / "repo")
        accept(made.folder, 2)
        accept(made.folder, 1)
        made.json("next")
        return made

    return campaign_once("adopted", make)


@pytest.fixture
def adopted(original_adopted: Campaign, tmp_path: Path) -> Campaign:
    """The same with patch and flag accepted, in this order, and the baseline recorded with both."""
    return copied(original_adopted, tmp_path / "adopted")


@pytest.fixture(scope="session")
def original_waiting(campaign_once: CampaignOnce) -> Campaign:
    def make(folder: Path) -> Campaign:
        made = make_waiting_campaign(folder)
        made.json("next")
        return made

    return campaign_once("waiting", make)


@pytest.fixture
def waiting(original_waiting: Campaign, tmp_path: Path) -> Campaign:
    """A campaign with its baseline, in which training waits for its data."""
    return copied(original_waiting, tmp_path / "waiting")
