"""Whatever stands in a finding, and whatever a file is called: each form is read back as what it says."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands import unprintable
from support.reports import commands, junit_suites, markdown_blocks, sarif_run, sarif_text

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.reaction import Reaction
from amqpscope.model.records import Connection, FrameRef
from amqpscope.policy.baseline import BaselineEntry
from amqpscope.policy.config_finding import ConfigFinding, RunConclusion
from amqpscope.policy.terms import Terms
from amqpscope.report.finding_counts import ALL_IN_FULL
from amqpscope.report.forms import ReportOptions, declared
from amqpscope.report.forms.markdown import inline
from amqpscope.report.printable import printable

NASTY = [
    "]]>",
    "<!--",
    "<script>alert(1)</script>",
    "&amp;&lt;",
    '"\'`',
    "```\n# heading\n",
    "| a | b |",
    "[click](http://evil.example)",
    "![](http://evil.example/x.png)",
    "\\[x\\](y)",
    "{0} {{1}} }{",
    "$x$ :smile: *a* _b_ ~c~ \\| |\\",
    "`` ` ```",
    "\\[",
    "1. x",
    "- x",
    "a  b",
    "=",
    " ` ",
    "=HYPERLINK(\"http://evil\")",
    "@everyone #1 GH-1 www.evil.example",
    "::error title=x::y",
    "%0A::add-mask::z",
    "##[error]w",
    "\x00\x1b[31m\x7f\x9b",
    "a\r\nb\u2028c\x85d",
    "\u202egnp\u2066",
    "\ufffe\uffff\U0010ffff",
    "\udc80\ud800",
    "</testcase></testsuite>",
]  # fmt: skip

TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map("".join),
    st.text(st.characters(), max_size=40),
)

OPTIONS = ReportOptions(Terms(("error",), False, False), most=3, detail=ALL_IN_FULL)


def finding(text: str, certain: bool, instance: int = 0) -> Finding:
    """One in which everything that comes from a peer is this text."""
    connection = Connection("x", 0, instance, bytes([10, 0, 0, 1, 10, 0, 0, 2, 0xC3, 0x50, 0x16, 0x28]))
    spot = FrameRef(0, 17, 1_700_000_000_000_000_000, 0, "transfer", 0)
    found = Finding(
        "amqp10/L-CREDIT",
        CERTAIN if certain else POSSIBLE,
        f"before {text} behind",
        connection,
        spot,
        {"value": text, "values": [text, text]},
        [3],
    )
    found.link, found.link_sender = text, "client"
    found.reaction = Reaction("end", text)
    return found


def written(form: str, text: str, certain: bool) -> str:
    """A report of one finding, in a capture of this name, which could not be read further for this reason."""
    out = io.StringIO()
    writer = declared(form).writer(out, OPTIONS)
    writer.begin(text)
    writer.take([finding(text, certain)])
    writer.fail(f"no more: {text}")
    writer.end()
    return out.getvalue()


def shown(text: str) -> str:
    """As much of it as any form shows."""
    return printable(text)[:200]


@given(TEXTS, st.booleans())
def test_github(text: str, certain: bool) -> None:
    report = written("github", text, certain)
    assert unprintable(report) == []
    reported, failed = commands(report)
    assert reported[0] == ("error" if certain else "warning")
    assert reported[1].get("file", "-") == printable(text)
    # Standard input has no lines.
    assert reported[1].get("line") == (None if text == "-" else "17")
    assert reported[1]["title"].endswith("error amqp10/L-CREDIT by the client in packet 17")
    assert reported[2].startswith(f"before {shown(text)}")
    assert (failed[0], failed[2]) == ("error", f"no more: {printable(text)}")
    assert report.count("\n") == 3


@given(TEXTS, st.booleans())
def test_sarif(text: str, certain: bool) -> None:
    run = sarif_run(written("sarif", text, certain))
    (result,) = run["results"]
    assert f"packet 17, client: before {shown(text)}" in sarif_text(result["message"])
    assert result["properties"]["evidence"]["values"] == [printable(text)] * 2
    (failed,) = run["invocations"][0]["toolExecutionNotifications"]
    assert sarif_text(failed["message"]) == f"no more: {printable(text)}"


@given(TEXTS, st.booleans())
def test_junit(text: str, certain: bool) -> None:
    (suite,) = junit_suites(written("junit", text, certain))
    assert suite.get("name") == printable(text)
    reported, failed = suite.iter("testcase")
    (result,) = reported
    assert result.tag == ("failure" if certain else "system-out")
    assert f"error amqp10/L-CREDIT by the client in packet 17: before {shown(text)}" in result.text
    assert failed.find("error").get("message") == f"no more: {printable(text)}"


def test_junit_tells_connections_of_one_number_apart() -> None:
    """Wireshark counts a connection without a handshake as the one before it between the same ends."""
    out = io.StringIO()
    writer = declared("junit").writer(out, OPTIONS)
    writer.begin("x")
    writer.take([finding("", True, instance) for instance in (0, 1)])
    writer.fail("")
    writer.end()
    (suite,) = junit_suites(out.getvalue())
    names = [case.get("name") for case in suite.iter("testcase")]
    assert len(names) == len(set(names)) == 3


@given(TEXTS, st.booleans())
def test_markdown(text: str, certain: bool) -> None:
    blocks = markdown_blocks(written("markdown", text, certain))
    assert blocks[0] == ("heading", in_code(text))
    cells = [reported for kind, reported in blocks if kind == "td"]
    assert cells[0] == ("" if certain else "possible ") + "error amqp10/L-CREDIT"
    assert cells[1:3] == ["client", "17"]
    assert cells[3].startswith("before " + printable(text).replace("|", "\\x7c")[:150])
    assert len(cells) == 4


@given(TEXTS)
def test_markdown_shows_text_as_it_is(text: str) -> None:
    ((_, whole), (_, cell)) = [
        one
        for one in markdown_blocks(f"{inline(text)}\n\n| a |\n|---|\n| {inline(text)} |\n")
        if one[0] in ("paragraph", "td")
    ]
    assert whole == cell == in_code(text)


def in_code(text: str) -> str:
    """A text as it is shown in Markdown."""
    return printable(text).replace("|", "\\x7c") or '""'


def concluded(form: str, text: str) -> str:
    """A report of one finding that is allowed for this reason, and of an entry in a file of this name."""
    out = io.StringIO()
    writer = declared(form).writer(out, OPTIONS)
    writer.begin("x.pcap")
    allowed = finding("plain", True)
    allowed.assessment = allowed.assessment.by_policy("", "allow", text)
    writer.take([allowed])
    writer.fail("no more")
    closing = RunConclusion()
    evidence = {"entry": 1, "rules": text, "reason": text}
    closing.remarks.append(ConfigFinding("config/ALLOW-EXPIRED", f"before {text}", text, 3, evidence, True))
    closing.baseline = text
    closing.fixed.append(BaselineEntry("0" * 16, text, "client", text, {text: 1}))
    writer.conclude(closing)
    writer.end()
    return out.getvalue()


@given(TEXTS)
def test_what_a_configuration_says_breaks_no_form(text: str) -> None:
    text = json.loads(json.dumps(text))  # JSON joins two halves of a surrogate pair into one character
    github = concluded("github", text)
    assert unprintable(github) == []
    (_, reported) = commands(github)  # none of the finding that is allowed
    assert (reported[0], reported[1]["title"]) == ("error", "error config/ALLOW-EXPIRED")
    assert reported[2] == f"before {printable(text)}"
    run = sarif_run(concluded("sarif", text))
    (allowed, remark) = run["results"]
    (suppression,) = allowed["suppressions"]
    assert sarif_text({"text": suppression["justification"]}) == printable(text)
    assert sarif_text(remark["message"]) == f"before {printable(text)}."
    (suite, about) = junit_suites(concluded("junit", text))
    (first, _) = suite.iter("testcase")
    assert first.find("system-out") is not None
    assert f"It is allowed: {printable(text).rstrip('.')}." in first.find("system-out").text
    (case,) = about.iter("testcase")
    assert case.find("failure").get("message").endswith(f": before {printable(text)}")
    markdown = concluded("markdown", text)
    assert unprintable(markdown) == []
    items = [content for kind, content in markdown_blocks(markdown) if kind == "paragraph"]
    assert any(
        item.startswith("allowed: amqp10/L-CREDIT by the client (1, first in packet 17): ") for item in items
    )
    assert any(item.startswith("error config/ALLOW-EXPIRED in ") for item in items)
    assert any(item.startswith("fixed: ") for item in items)


@given(TEXTS)
def test_nor_text_and_json(text: str) -> None:
    written = concluded("text", text)
    assert unprintable(written) == []
    whole = json.loads(concluded("json", text))
    lines = concluded("ndjson", text).splitlines()
    text = json.loads(json.dumps(text))  # two halves of a pair are one character there
    (allowed, remark) = whole["findings"]
    assert allowed["suppressed"] == {"by": "allow", "reason": text}
    assert list(remark) == list(allowed)
    assert (remark["rule"], remark["evidence"]["reason"]) == ("config/ALLOW-EXPIRED", text)
    assert whole["fixed"][0]["captures"] == {text: 1}
    assert [json.loads(line) for line in lines] == whole["findings"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It answers with amqp:link:stolen.", "It answers with `amqp:link:stolen`."),
        ("a_b, c_d; and (e_f).", "`a_b, c_d`; and `(e_f)`."),
        ("_.", "`_`."),
        ("`.", "`` ` ``."),
    ],
)
def test_punctuation_is_no_code(text: str, shown: str) -> None:
    assert inline(text) == shown
