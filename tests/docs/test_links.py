"""Every link in a document leads somewhere: to a file of this repository, and to a heading in it."""

from __future__ import annotations

import pytest
from tests.support.documents import Page, page, pages


@pytest.mark.parametrize("source", pages(), ids=lambda source: source.path.name)
def test_each_link_leads_somewhere(source: Page) -> None:
    wrong = []
    for link in source.links():
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = source.path.parent / name if name else source.path
        if not target.exists() or (anchor and anchor not in page(target.resolve()).anchors()):
            wrong.append(link)
    assert wrong == []


def test_each_page_of_docs_is_linked_from_the_readme() -> None:
    readme, *others = pages()
    linked = {(readme.path.parent / link.partition("#")[0]).resolve() for link in readme.links()}
    # What lies in docs/changes is a part of the next CHANGELOG.md.
    mine = [p for p in others if "docs" in p.path.parts and p.path.parent.name != "changes"]
    assert [p.path.name for p in mine if p.path.resolve() not in linked] == []


def test_the_readme_stays_one_page() -> None:
    assert len(pages()[0].path.read_text("utf-8").splitlines()) <= 220
