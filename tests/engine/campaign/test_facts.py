"""What a campaign's files say to the state machine about claims and about runs that were cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign

from gpudebug.core.campaign.decide import Claimed
from gpudebug.core.progress.claims import Claim
from gpudebug.core.words import Status
from gpudebug.edges.store import leases
from gpudebug.engine.campaign.load import load

SINCE = "2026-11-21T10:00:00.000000+00:00"
MINE, THEIRS = Claim("a", SINCE), Claim("b", SINCE)


def put_in_test(campaign: Campaign, claim: Claim | None) -> None:
    note = f" - {claim.note}" if claim else ""
    campaign.add(f"\n### Hypothesis 1: x\n- **Intervention**: --set --lr=0.2\n- **Status**: TESTING{note}\n")


def lease(campaign: Campaign, claim: Claim) -> None:
    leases.take(campaign.folder / "runs" / ".leases" / "test", 1, claim.session, claim.since)


CASES: list[tuple[str, Claim | None, Claim | None, Claimed | None]] = [
    ("mine", MINE, MINE, Claimed.MINE),
    ("another's", THEIRS, THEIRS, Claimed.OTHERS),
    ("a person's", Claim(None, SINCE), Claim(None, SINCE), Claimed.OTHERS),
    ("without a lease", MINE, None, None),
    ("with the lease of an earlier claim", MINE, MINE._replace(since=SINCE.replace("10:", "09:")), None),
    ("with somebody else's lease", MINE, THEIRS, None),
    ("told by nobody", None, MINE, None),
]


@pytest.mark.parametrize(("told", "leased", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_whose_claim_a_hypothesis_is_under(
    recorded: Campaign, told: Claim | None, leased: Claim | None, expected: Claimed | None
) -> None:
    put_in_test(recorded, told)
    if leased:
        lease(recorded, leased)
    found = load(recorded.folder, "a").campaign.hypotheses[0]
    assert (found.status, found.claimed) == (Status.TESTING, expected)


def claimed_by(claim: Claim | None) -> Callable[[Campaign], None]:
    def change(campaign: Campaign) -> None:
        text = campaign.text.replace("- **Status**: VALIDATED", f"- **Status**: TESTING{_note(claim)}")
        head, _, rest = text.partition("- **Result**:")
        campaign.progress.write_text(head + rest.partition("\n\n")[2])

    return change


def _note(claim: Claim | None) -> str:
    return f" - {claim.note}" if claim else ""


@pytest.mark.parametrize(
    ("claim", "adopted"), [(None, True), (MINE, False)], ids=["a claim that is not told", "another claim"]
)
def test_a_verdict_is_adopted_under_its_own_claim_only(
    told: Campaign, claim: Claim | None, adopted: bool
) -> None:
    claimed_by(claim)(told)
    loose = load(told.folder).campaign.loose_runs
    assert [run.hypothesis for run in loose] == ([1] if adopted else [])


def test_a_hand_written_acceptance_is_no_command(recorded: Campaign) -> None:
    recorded.add(
        "\n### Hypothesis 1: x\n- **Intervention**: --set --lr=0.9\n- **Status**: VALIDATED\n"
        "- **Accepted**: 1\n- **Result**:\n  - Improvement: +50pp\n"
    )
    loaded = load(recorded.folder)
    assert "--lr=0.9" not in loaded.setup.config.workload.argv()
    assert loaded.history.baselines["workload"].why is None


def test_an_unreadable_lease_is_no_claim(recorded: Campaign, tmp_path: Path) -> None:
    put_in_test(recorded, MINE)
    lease(recorded, MINE)
    (recorded.folder / "runs" / ".leases" / "test" / "h1.json").write_bytes(b"\xff{")
    assert load(recorded.folder, "a").campaign.hypotheses[0].claimed is None
