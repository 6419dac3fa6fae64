"""Patches for tests, written as a person would: the file is edited, diffed and put back."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.campaigns import Campaign, git


def write_patch(campaign: Campaign, name: str, files: Mapping[str, str]) -> str:
    """Write the change to `files` as the patch `name` of a campaign; the checkout is as it was. Its text."""
    old = {path: (campaign.folder / path).read_bytes() for path in files}
    for path, content in files.items():
        (campaign.folder / path).write_text(content)
    patch = git(campaign.folder, "diff")
    for path, data in old.items():
        (campaign.folder / path).write_bytes(data)
    (campaign.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (campaign.folder / name).write_text(patch)
    return patch
