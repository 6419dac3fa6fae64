"""What is pinned beside what gpudebug.yaml asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.campaigns import Campaign, make_campaign

from gpudebug.core.errors import ConfigError
from gpudebug.engine.campaign import settings
from gpudebug.engine.campaign.load import load

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return make_campaign(tmp_path / "repo")


def test_the_device_that_is_found_first_is_pinned(campaign: Campaign) -> None:
    campaign.config.write_text(campaign.config.read_text().replace("device: cpu:1", "device: auto"))
    loaded = load(campaign.folder)
    settings.pin(loaded.setup, loaded.history.records)
    settings.settle(loaded.setup, {"kind": "cpu", "cores": 4.0})
    settings.settle(loaded.setup, {"kind": "cpu", "cores": 4.0})
    with pytest.raises(ConfigError, match=r"resolved.device is nvml, pinned is cpu"):
        settings.settle(loaded.setup, {"kind": "nvml"})
    settings.settle(loaded.setup, {"kind": "nvml"}, pins=True)
    assert load(campaign.folder).setup.compared.bar["resolved.device"] == "nvml"


def test_pinning_again_keeps_the_device_that_was_found(campaign: Campaign) -> None:
    campaign.config.write_text(campaign.config.read_text().replace("device: cpu:1", "device: auto"))
    loaded = load(campaign.folder)
    settings.pin(loaded.setup, loaded.history.records, "nvml")
    settings.pin(loaded.setup, loaded.history.records)
    assert loaded.setup.compared.bar["resolved.device"] == "nvml"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"[" * 100_000, b'{"format": 99, "when": "x", "settings": {}}']
)
def test_a_pin_that_cannot_be_read_is_named_and_pinned_anew(campaign: Campaign, content: bytes) -> None:
    campaign.pin()
    file = load(campaign.folder).setup.compared.file
    file.write_bytes(content)
    assert str(file) in str(campaign.json("status")["settings"]["problem"])
    error = campaign.run("next").expect(1).err
    assert str(file) in error
    assert "gpudebug settings --accept" in error
    campaign.run("settings", "--accept").expect(0)
    assert campaign.json("status")["settings"]["problem"] is None


def test_no_secret_is_shown(campaign: Campaign) -> None:
    text = campaign.config.read_text()
    campaign.config.write_text(text.replace("timeout: 60s", f"timeout: 60s\n  env: {{API_TOKEN: {SECRET}}}"))
    campaign.pin()
    for verb in ([], ["--json"]):
        assert SECRET not in campaign.run("settings", *verb).out
    campaign.config.write_text(text)
    done = campaign.run("next").expect(1)
    assert "workload.env.API_TOKEN" in done.err
    assert SECRET not in done.err
    shown = campaign.run("settings")
    assert "workload.env.API_TOKEN is not set" in shown.out
    assert SECRET not in shown.out


def test_settings_are_printed_with_what_differs(campaign: Campaign) -> None:
    assert "Nothing is pinned yet" in campaign.run("settings").expect(0).out
    assert "Pinned the settings" in campaign.run("settings", "--accept").expect(0).out
    assert "gpudebug.yaml has the same." in campaign.run("settings").expect(0).out
    campaign.config.write_text(campaign.config.read_text().replace("max_runs: 3", "max_runs: 2"))
    shown = campaign.run("settings").expect(0).out
    assert "Changed in gpudebug.yaml since:\n  protocol.max_runs is 2, pinned is 3\n" in shown
    assert "Next: gpudebug settings --accept" in shown
    told = campaign.json("settings")
    assert told["changed"] == [{"key": "protocol.max_runs", "value": 2, "pinned": 3, "weaker": False}]
    assert "not what is pinned: protocol.max_runs is 2" in " ".join(campaign.run("status").out.split())


def test_a_file_of_an_older_version_is_mended_by_what_accept_says(campaign: Campaign) -> None:
    """What was pinned by the older version binds nothing that is gone."""
    text = campaign.config.read_text()
    campaign.pin()
    file = load(campaign.folder).setup.compared.file
    gone = {"protocol.min_window": 5.0, "protocol.baseline_runs": 2, "protocol.early_stop": True}
    pinned = json.loads(file.read_text())
    file.write_text(json.dumps({**pinned, "settings": {**pinned["settings"], **gone}}))
    keys = "min_window: 5s, baseline_runs: 2, early_stop: true, "
    campaign.config.write_text(text.replace("protocol: {", f"protocol: {{{keys}"))
    error = campaign.run("settings", "--accept").expect(1).err
    for key in gone:
        assert f"{key} is gone: " in error
    assert "next: delete these keys: line 6" in error
    campaign.config.write_text(text)
    assert campaign.json("settings")["changed"] == []
