"""`gpudebug catalogue`: every root cause that is known, one in full, and the user's own among them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug, make_repository
from tests.support.causes import TEXT, having

from gpudebug.core.answers.catalogue import CatalogueAnswer
from gpudebug.core.errors import CatalogueError, UsageError
from gpudebug.engine.diagnosis import catalogue_view
from gpudebug.terminal import catalogue as render

CONFIG = "campaign: c\nworkload:\n  command: lerobot-train --policy.type=act --steps=200\n"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    (tmp_path / "gpudebug.yaml").write_text(CONFIG)
    return tmp_path


def write(folder: Path, text: str, name: str = "catalogue/sync/slow-thing.yaml") -> None:
    path = folder / "hypotheses" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_list_works_without_a_campaign(tmp_path: Path) -> None:
    answer = catalogue_view.overview(tmp_path)
    ids = [cause.id for group in answer.groups for cause in group.causes]
    assert len(ids) == len(set(ids)) == answer.count > 50
    assert {"dl-no-workers", "py-hot-forward"} <= set(ids)
    assert all(cause.shows and cause.title for group in answer.groups for cause in group.causes)
    assert [group.group for group in catalogue_view.overview(tmp_path, "sync").groups] == ["sync"]
    assert render.overview(CatalogueAnswer(groups=(), count=0, next_command="")) == "No root cause found."


def test_the_command_lists_them(tmp_path: Path) -> None:
    text = gpudebug(tmp_path, "catalogue").expect(0).out
    assert "data-loading (training waits for batches, or its workers for data): dl-" in text
    assert "root causes. One in full: gpudebug" in text
    assert len(text) <= render.INDEX
    listed = {cause.id for group in catalogue_view.overview(tmp_path).groups for cause in group.causes}
    assert all(re.search(rf"(?<![\w-]){id}(?![\w-])", text) for id in listed)


def test_the_index_has_a_plain_sign_for_each_group_and_a_bound(tmp_path: Path) -> None:
    known = catalogue_view.overview(tmp_path)
    assert all(f"{group.group} (" in render.index(known) for group in known.groups)
    many = [replace(group, causes=group.causes * 9) for group in known.groups]
    text = render.index(replace(known, groups=tuple(many), count=9 * known.count))
    assert len(text) <= render.INDEX
    assert re.search(r"… \d+ more lines: gpudebug catalogue --group G", text)


def test_a_group_shows_in_plain_words(tmp_path: Path) -> None:
    text = render.overview(catalogue_view.overview(tmp_path, "data-loading"))
    assert "dl-storage\n" in text
    assert not re.search(r"through /|lines with /|\\w|\(\?", text)


def test_one_cause_in_full(campaign: Path) -> None:
    answer = catalogue_view.one(campaign, "dl-no-workers")
    assert answer.here is not None
    assert answer.here.framework == answer.tests[0].framework == "lerobot"
    assert answer.here.offers[0].change == "--set num_workers=4"
    text = render.one(answer)
    for part in (
        "Signs    x",
        "For the command in gpudebug.yaml\n  --set num_workers=4",
        "\nFix ",
        "\nMoves ",
        "\nHollow ",
        "\nSources ",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) < 120


def test_the_campaigns_own_program_decides_what_tests_it(campaign: Path) -> None:
    (campaign / "gpudebug.yaml").write_text(CONFIG.replace("lerobot-train", "python train.py"))
    (campaign / "train.py").write_text("import lightning as L\nL.Trainer(max_steps=9)\n")
    found = catalogue_view.one(campaign, "eval-frequent").here
    assert found is not None
    assert (found.framework, found.offers[0].change) == ("lightning", None)
    assert found.offers[0].instructions.startswith("In train.py, set check_val_every_n_epoch=5 where")


def test_without_a_campaign_no_test_is_of_it(tmp_path: Path) -> None:
    answer = catalogue_view.one(tmp_path, "dl-no-workers")
    assert answer.here is None
    assert "For the command in gpudebug.yaml" not in render.one(answer)


def test_words_of_the_user_find_causes_the_best_first(campaign: Path) -> None:
    answer = catalogue_view.asked(campaign, "slow NFS")
    assert isinstance(answer, CatalogueAnswer)
    assert answer.groups[0].causes[0].id == "dl-network-disk"
    assert answer.next_command == "gpudebug catalogue dl-network-disk"
    assert "dl-network-disk" in render.asked(answer)
    assert not isinstance(catalogue_view.asked(campaign, "dl-storage"), CatalogueAnswer)
    write(campaign, TEXT.replace("A thing is slow", "The flux zither waits"))
    found = catalogue_view.asked(campaign, "flux zithers")
    assert isinstance(found, CatalogueAnswer)
    assert [cause.id for group in found.groups for cause in group.causes] == ["slow-thing"]


@pytest.mark.parametrize(
    ("words", "named"), [("dl-storag", "dl-storage"), ("checkpiont", "checkpoint"), ("xylophone", None)]
)
def test_words_that_find_nothing_name_the_nearest_id(tmp_path: Path, words: str, named: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        catalogue_view.asked(tmp_path, words)
    assert (named or "gpudebug catalogue") in str(caught.value.next)


def test_the_command_finds_causes_by_words(tmp_path: Path) -> None:
    text = gpudebug(tmp_path, "catalogue", "decode", "backend").expect(0).out
    assert text.startswith("data-loading\n  dl-decode-backend")
    assert "One in full: gpudebug catalogue dl-decode-backend" in text
    gpudebug(tmp_path, "catalogue", "decode", "--signals").expect(2)


def test_own_causes_stand_beside_those_that_are_shipped(campaign: Path) -> None:
    write(campaign, TEXT)
    answer = catalogue_view.overview(campaign, "sync")
    assert {c.id: c.own for c in answer.groups[0].causes}["slow-thing"] is True
    assert "  slow-thing  (own)" in render.overview(answer)
    assert catalogue_view.one(campaign, "slow-thing").file == "hypotheses/catalogue/sync/slow-thing.yaml"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (
            having("title: A", "titel: A"),
            "slow-thing.yaml",
            "hypotheses/slow-thing.yaml:2: unknown key titel",
        ),
        (
            having("{signal: data_wait_share, above", "{signal: data_waits, above"),
            "catalogue/sync/slow-thing.yaml",
            "slow-thing.yaml:10: signature 1.signal: 'data_waits' is evidence that no run has",
        ),
        (
            "group: sync\n" + having("id: slow-thing", "id: dl-no-workers"),
            "dl-no-workers.yaml",
            "hypotheses/dl-no-workers.yaml: the id dl-no-workers is that of a cause that gpudebug ships, ",
        ),
        (
            having("{set: {num_workers: 4}}", "{set: {prefetch_factor: 4}, versions: '>=0.4'}"),
            "catalogue/sync/slow-thing.yaml",
            "slow-thing.yaml:15: interventions.lerobot: LeRobot has no prefetch_factor before 0.6",
        ),
    ],
    ids=["key", "evidence", "id", "version"],
)
def test_a_broken_file_is_one_clear_line(campaign: Path, text: str, name: str, said: str) -> None:
    write(campaign, text, name)
    with pytest.raises(CatalogueError) as e:
        catalogue_view.overview(campaign)
    assert said in str(e.value) and "; next: " in str(e.value)


@pytest.mark.slow
def test_the_command_says_that_line_alone(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repo", {"gpudebug.yaml": CONFIG})
    write(folder, having("title: A", "titel: A"), "slow-thing.yaml")
    done = gpudebug(folder, "catalogue").expect(1)
    assert done.err.startswith("gpudebug: hypotheses/slow-thing.yaml:2: unknown key titel")
    assert len(done.err.splitlines()) == 1
    assert "exclude each other" in gpudebug(folder, "catalogue", "x", "--group", "y").expect(2).err
    rows = gpudebug(folder, "catalogue", "--signals", "--json").expect(0).json["signals"]
    assert {"name": "gpu_util", "unit": "%", "source": "samples", "said": "the device is busy {}"} in rows


@pytest.mark.parametrize(
    ("id", "next"), [("dl-no-worker", "gpudebug catalogue dl-no-workers"), ("zzz", "gpudebug catalogue")]
)
def test_an_unknown_id_is_answered_with_the_nearest(tmp_path: Path, id: str, next: str) -> None:
    with pytest.raises(UsageError) as e:
        catalogue_view.one(tmp_path, id)
    assert e.value.next == next


def test_an_unknown_group_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no group is called 'sinc'") as e:
        catalogue_view.overview(tmp_path, "sinc")
    assert e.value.next == "gpudebug catalogue --group sync"


def test_the_evidence_that_conditions_read() -> None:
    text = render.signals(catalogue_view.signals())
    assert "data_wait_share" in text and "the device is busy …" in text
