"""What tests of pages share: one browser for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running
