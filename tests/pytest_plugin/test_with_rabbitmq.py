"""The sample repository in `tests/sample`: pika against a RabbitMQ, recorded; and the guide's example."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest
from support.plugin_runs import ROOT, network, run
from support.rabbitmq import is_installed

NETWORK = network()
if not NETWORK:
    pytest.skip("there is no permission to have a network of one's own", allow_module_level=True)
if importlib.util.find_spec("pika") is None or not is_installed():
    pytest.skip("there is no RabbitMQ, or no pika", allow_module_level=True)


def documented_example() -> str:
    """The first example of the guide, without the test of a file that nobody has."""
    (example,) = re.findall(
        r"^```py\n(import os\n.*?)\n\n\ndef test_an_incident.*?^```$", GUIDE, re.DOTALL | re.MULTILINE
    )
    return str(example)


GUIDE = (ROOT / "docs/guides/pytest.md").read_text()


def part(text: str, name: str) -> str:
    """What is reported of one test."""
    found = re.search(rf"^_+ {name} _+$\n(.*?)(?=^_+ .* _+$|^=+ )", text, re.DOTALL | re.MULTILINE)
    assert found, text
    return found[1]


def test_a_suite_with_pika_and_rabbitmq(tmp_path: Path) -> None:
    sample = tmp_path / "sample"
    shutil.copytree(ROOT / "tests" / "sample", sample)
    (sample / "test_documented.py").write_text(documented_example())
    beside = [
        *NETWORK,
        sys.executable,
        str(ROOT / "tests" / "support" / "rabbitmq.py"),
        str(tmp_path / "rabbitmq"),
    ]
    done = run(sample, "-rA", "--tb=short", "--amqpscope-record=required", before=beside)
    text = done.stdout
    assert re.findall(r"^PASSED (\S+)", text, re.MULTILINE) == [
        "test_careless_shop.py::test_it_is_expected",
        "test_documented.py::test_an_order_is_delivered",
        "test_shop.py::test_orders_arrive_in_order",
        "test_shop.py::test_the_shop_and_the_store_are_two",
        "test_shop.py::test_the_connection_outlives_the_block",
    ], text
    assert len(re.findall(r"^FAILED", text, re.MULTILINE)) == 2, text
    assert len(list((sample / "recorded").glob("*.pcapng"))) == 7

    # The test has seen nothing of it. What the report says, a stranger understands: who did what, in which
    # state, what the rule is and where it stands, what the other one did about it, and where to look on.
    report = part(text, "test_careless_acknowledgements")
    first, *rest = report.splitlines()
    assert re.fullmatch(
        r"error amqp091/B-ACK-DUP by the client in packet \d+: basic\.ack has delivery-tag 2, "
        "which the client has already settled",
        first,
    ), report
    assert re.fullmatch(
        r".*/recorded/test_careless_shop.*\.pcapng: 1 error, .* in \d+ frames on 1 connection", rest[0]
    )
    for words in (
        r"^── connection 0 ── client 127\.0\.0\.1:\d+ \S.* → server 127\.0\.0\.1:5672 \S",
        r"^    rule      A client must settle each delivery only once, by basic\.ack, basic\.reject or "
        r"basic\.nack\. \(MUST NOT\)$",
        r"^    source    AMQP 0-9-1, basic\.ack <https://\S+#basic\.ack>$",
        r"^    where     channel 2, delivery 2$",
        r"^    answer    the server sent channel\.close with 406:precondition-failed \S+ ms later\s+"
        r"\(packet \d+\),\s+as\s+the\s+specification\s+asks$",
        r"^  >> +\d+  \d+\.\d+ 0 C→  2 basic\.ack      #2$",
        r"^ +\d+  \d+\.\d+ 0  ←S 2 channel\.close  406 \"PRECONDITION_FAILED - unknown delivery tag 2\"",
        r"^What led to it: amqpscope why /\S+/recorded/test_careless_shop\S+\.pcapng \d+$",
    ):
        assert re.search(words, report, re.MULTILINE), (words, report)
    assert "site-packages" not in report
    assert "Traceback" not in report

    # The test knows of it only that the broker has closed the connection; below that stands why.
    own, _, found = part(text, "test_a_late_order").partition("Captured AMQP call")
    assert "ConnectionClosedByBroker: (504" in own
    assert "error amqp091/CH-CLOSE-SILENT by the client in packet" in found
    message = "the client sends basic.publish on channel 1 after its own channel.close"
    assert message in found.replace("\n    ", " ")
    assert re.search(
        r"^  >> +\d+  \S+ 0 C→  1 basic\.publish  exchange=\"\" routing-key=orders$", found, re.MULTILINE
    )
    assert re.search(
        r"answer    the server sent connection\.close with 504:channel-error [^,]*,"
        r"\s+as\s+the\s+specification\s+asks$",
        found,
        re.MULTILINE,
    )
    assert "amqp091/" not in own
