"""Whatever texts the peers send, the document of a page has only the page's own elements."""

from __future__ import annotations

import re
import tempfile
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.browser import Browser
from support.pictures import opened, planted091, planted10
from support.sampling import examples

from amqpscope.cli.draw import draw_capture
from amqpscope.cli.inputs import CaptureArgument
from amqpscope.cli.selection import Selection
from amqpscope.report.page import page_html

MARKUP = (
    "</script>",
    "<script>window.planted = 1</script>",
    "<img src=x onerror='window.planted = 2'>",
    "<svg onload=window.planted=3>",
    "javascript:window.planted=4",
    "-->",
    "<!--",
    "]]>",
    "\"'><b a=",
    "&lt;i&gt;",
    "\\u003cu\\u003e",
    "__proto__",
    "constructor",
    "${window.planted=5}",
    "\u2028\u2029\u202e\x00\x1b[31m",
)
"""What has ended a text, a comment, a string or an attribute somewhere."""

TEXTS = st.lists(
    st.lists(st.sampled_from(MARKUP) | st.text(max_size=12), min_size=1, max_size=3).map("".join),
    min_size=1,
    max_size=12,
)


def own_elements() -> set[str]:
    """The elements that the files of the page name."""
    folder = files("amqpscope.draw")
    scripts = [one.read_text("utf-8") for one in folder.iterdir() if one.name.endswith(".js")]
    made = re.findall(r'(?:make|svg)\("([a-zA-Z0-9]+)"', "".join(scripts))
    whole = page_html("", folder.joinpath("page.html").read_text("utf-8"), "", "", "")
    return {*made, *re.findall(r"<([a-z0-9]+)", whole)}


OWN = own_elements()


@pytest.mark.chromium
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, st.booleans())
@example(list(MARKUP), True)
@example(list(MARKUP), False)
def test_texts_of_peers_stay_texts(browser: Browser, texts: list[str], newer: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder) / "hostile.pcap", Path(folder) / "page.html"
        path.write_bytes(planted10(texts) if newer else planted091(texts))
        draw_capture(CaptureArgument([str(path)]), str(page), Selection())
        opened(browser, page)
        browser.value("[...document.querySelectorAll('.ladder [id]')].forEach((one) => one.click())")
        for view in ("states", "flow", "map", "ladder"):
            browser.value(f"document.getElementById('tab-{view}').click()")
            found = set(browser.value("[...document.querySelectorAll('*')].map((one) => one.localName)"))
            assert found <= OWN
            attributes = browser.value(
                "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
            )
            assert not [one for one in attributes if one.startswith("on") or one in ("src", "srcdoc")]
        assert browser.value("document.querySelectorAll('script').length") == 2
        assert browser.value("document.querySelectorAll('[href]').length") == 1
        assert browser.value("window.planted === undefined")
        assert browser.problems == [] and browser.requests == [page.as_uri()]
