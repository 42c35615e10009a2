"""A browser for the tests of pages."""

import os
from collections.abc import Iterator

import pytest

from sim.page.browser import Browser, browser_there


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped, or fails where PLEXUS_BROWSER is "required"."""
    if not browser_there():
        why = "there is no browser: make browser brings one"
        (pytest.fail if os.environ.get("PLEXUS_BROWSER") == "required" else pytest.skip)(why)
    with Browser() as found:
        yield found
