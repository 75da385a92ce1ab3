"""Verdicts in words: what is kept, how things are counted and said, why something is only possible."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support import commands
from support.dialogue import Dialogue

import amqpscope
from amqpscope.model.finding import Finding
from amqpscope.model.reaction import Reaction
from amqpscope.report.finding_counts import FindingCounts
from amqpscope.report.findings import expected_condition
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import Verdicts, why_possible
from amqpscope.rules.amqp10 import ending
from amqpscope.rules.catalogue import catalogue
from amqpscope.rules.explanation import explanation
from amqpscope.rules.registry import checked

CAPTURES = Path(__file__).resolve().parents[2] / "captures"


def found(dialogue: Dialogue) -> list[Finding]:
    with amqpscope.Capture(
        io.BytesIO(dialogue.pcap()), amqpscope.CaptureOptions(judge=True, context=True)
    ) as capture:
        return [finding for _ in capture.blocks() for finding in capture.take_findings()]


def shown(findings: list[Finding], most: int = 3) -> list[str]:
    verdicts = Verdicts(Clock("r"), most)
    for finding in findings:
        verdicts.add(finding)
    return ["".join(text for _, text in line) for line, _ in verdicts.lines()]


def overrun(deliveries: int) -> Dialogue:
    d = Dialogue()
    d.linked(credit=0)
    d.server.flow(handle=0, link_credit=0)
    for _ in range(deliveries):
        d.client.transfer()
    d.goodbye()
    return d


def test_no_more_findings_are_kept_than_are_shown() -> None:
    """Of a thousand the others are counted: memory must not grow with the faults of a peer."""
    verdicts = Verdicts(Clock("r"), 2)
    findings = found(overrun(1000))
    assert len(findings) == 1000
    for finding in findings:
        verdicts.add(finding)
    ((_, kept),) = verdicts._cases.connections()
    assert [one.more for one in kept] == [0, 998]
    assert verdicts.tally.text() == "1000 errors"
    lines = ["".join(text for _, text in line) for line, _ in verdicts.lines()]
    assert "    and 998 more of amqp10/L-CREDIT by the client (--max-per-rule)" in lines


def test_each_peer_and_connection_has_its_own() -> None:
    d = Dialogue()
    d.begun()
    for peer in (d.client, d.server):
        for _ in range(2):
            peer.frame(
                amqp.flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9, extra=[amqp.uint(1)])
            )
    d.goodbye()
    findings = [finding for finding in found(d) if finding.rule == "amqp10/T-COMP-EXTRA"]
    assert len(findings) == 4
    lines = shown(findings * 2, 1)
    for peer in ("client", "server"):
        assert f"    and 3 more of amqp10/T-COMP-EXTRA by the {peer} (--max-per-rule)" in lines


def test_of_a_packet_with_many_findings_of_a_rule_the_first_is_shown() -> None:
    first, second = found(overrun(2))
    verdicts = Verdicts(Clock("r"), 3, full=False)
    for finding in (first, first, first, second):
        verdicts.add(finding)
    lines = ["".join(text for _, text in line) for line, _ in verdicts.lines()]
    assert sum(line.startswith("error amqp10/L-CREDIT") for line in lines) == 2
    assert "    and 2 more of amqp10/L-CREDIT by the client in the same packets (--full)" in lines


def test_the_tally_counts_by_severity_and_certainty() -> None:
    finding = found(overrun(1))[0]
    tally = FindingCounts()
    assert tally.text() == ""
    tally.add(finding)
    assert tally.text() == "1 error"
    finding.certain = False
    tally.add(finding)
    tally.add(finding)
    assert tally.text() == "1 error, 2 possible errors"
    finding.certain = True
    finding.rule = "amqp10/T-COMP-EXTRA"
    other = FindingCounts()
    other.add(finding)
    tally.merge(other)
    assert tally.text() == "1 error, 2 possible errors, 1 warning"


def answers(reaction: str, condition: str, rule: str = "amqp10/L-CREDIT") -> str:
    finding = found(overrun(1))[0]
    finding.rule = rule
    finding.reaction = Reaction(reaction, condition, 1_234_567, 99)
    (line,) = [line for line in shown([finding]) if line.startswith("    answer")]
    return line.removeprefix("    answer    ")


@pytest.mark.parametrize(
    ("reaction", "condition", "rule", "said"),
    [
        (
            *("detach", "amqp:link:transfer-limit-exceeded", "amqp10/L-CREDIT"),
            "the server sent detach with amqp:link:transfer-limit-exceeded 1.23 ms later (packet 99), "
            "the condition that the specification asks for",
        ),
        (
            *("detach", "amqp:not-allowed", "amqp10/L-CREDIT"),
            "the server sent detach with amqp:not-allowed 1.23 ms later (packet 99); "
            "the specification asks for amqp:link:transfer-limit-exceeded",
        ),
        (
            *("close", "", "amqp10/L-CREDIT"),
            "the server gave no error afterwards, only close 1.23 ms later (packet 99); "
            "the specification asks for amqp:link:transfer-limit-exceeded",
        ),
        (
            *("", "", "amqp10/L-CREDIT"),
            "the server gave no error afterwards; "
            "the specification asks for amqp:link:transfer-limit-exceeded",
        ),
        (
            *("", "", "amqp10/T-STR-UTF8"),
            "the server gave no error afterwards; "
            "the specification names no answer, amqp:decode-error would fit",
        ),
        (
            *("close", "amqp:decode-error", "amqp10/T-STR-UTF8"),
            "the server sent close with amqp:decode-error 1.23 ms later (packet 99)",
        ),
        (
            *("close", "\x1b[2J", "amqp10/T-STR-UTF8"),
            "the server sent close with \\x1b[2J 1.23 ms later (packet 99); "
            "the specification names no answer, amqp:decode-error would fit",
        ),
        (*("", "", "amqp10/C-CLOSE-SENT"), "the server gave no error afterwards"),
    ],
)
def test_answers(reaction: str, condition: str, rule: str, said: str) -> None:
    assert answers(reaction, condition, rule) == said


def test_what_is_expected_is_a_condition() -> None:
    """Of every rule: no remarks of the catalogue's in brackets."""
    finding = found(overrun(1))[0]
    named = 0
    for finding.rule in (rule for rule in catalogue() if rule.startswith("amqp10/")):
        expected, by_the_text = expected_condition(finding)
        assert not re.search(r"[\[\](]the |\[|\]|^\(", expected), finding.rule
        assert expected == "" or expected.startswith("amqp:")
        named += by_the_text
    assert named > 30


def test_what_is_expected_is_a_reply_of_0_9_1() -> None:
    finding = found(overrun(1))[0]
    reported = set()
    for finding.rule in (rule for rule in catalogue() if rule.startswith("amqp091/")):
        expected, by_the_text = expected_condition(finding)
        assert by_the_text == bool(expected)
        reported.add(expected)
        for reply in expected.split(" or ") if expected else ():
            assert re.fullmatch(r"(connection|channel)\.close \d{3}|to close the socket", reply), finding.rule
    assert {"", "channel.close 406", "connection.close 503 or connection.close 540"} <= reported
    assert "connection.close 502 or to close the socket" in reported


def test_the_offending_frame_is_marked() -> None:
    d = overrun(1)
    lines = shown(found(d))
    (marked,) = [line for line in lines if line.startswith("  >>")]
    assert re.match(r"  >>   13  \d\.\d{6} 0 C→  0 transfer    #0 ", marked)
    around = [line[:11] for line in lines if re.match(r"(?:  >>|    ) {3}\d\d  \d", line)]
    assert [line.split()[-1] for line in around] == ["10", "11", "12", "13", "14", "15"]


def test_what_the_wire_says_is_escaped_and_cut() -> None:
    d = Dialogue()
    d.begun()
    d.client.attach(name="\x1b[31m" + "long" * 500, source=amqp.source(address=amqp.string(b"\xff")))
    d.goodbye()
    (finding,) = found(d)
    finding.link, finding.link_sender = "\x1b[31m" + "long" * 500, "client"
    finding.evidence = {"state": "\x9b2J" + "x" * 5000, "list": ["\u202e"] * 5000}
    lines = shown([finding])
    assert all(line.isprintable() for line in lines)
    assert max(len(line) for line in lines if "»" not in line and "attach" not in line) < 700
    assert any('link "\\x1b[31mlong' in line for line in lines)


def test_why_something_is_only_possible() -> None:
    """A rule that is never certain has a reason of its own, reported in words; it is not what a peer had
    read."""
    finding = found(overrun(1))[0]
    finding.certain = False
    race = "if the client had not yet read"
    assert race in why_possible(finding)
    never = set(ending.RULES.ids)
    for rule in checked():
        words = explanation(rule)
        if words is not None and words.only_possible:
            never.add(rule)
    never -= {"amqp10/SA-FAIL-STOP"}  # of a client only: it may not have read it
    assert len(never) > 40
    for rule in never:
        assert rule in catalogue()
        finding.rule = rule
        assert race not in why_possible(finding), rule


def test_the_reason_that_a_rule_itself_gives() -> None:
    finding = found(overrun(1))[0]
    finding.certain = False
    for rule, reason in (
        (
            "C-CLOSE-READON",
            "The capture does not show whether the program or the host of the client reset the connection.",
        ),
        (
            "C-ERR-SCOPE",
            "In the specification, only the name of a condition shows on which frame the condition belongs.",
        ),
        (
            "M-RES-TERMMAP",
            "No capture can prove this fault, because no frame shows why the client sends the data again.",
        ),
    ):
        finding.rule = f"amqp10/{rule}"
        assert why_possible(finding) == reason


def test_a_reason_names_no_one_but_the_two_peers() -> None:
    for rule in checked():
        words = explanation(rule)
        assert words is not None
        assert not re.search(r"[{}]", words.excuse().format(peer="client", other="server")), rule
        assert words.excuse().endswith(".") or not words.excuse(), rule
        assert not (words.possible and words.only_possible), rule


def test_the_frames_around_an_end_of_a_stream_are_in_the_order_of_their_packets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = commands.amqpscope(
        capsys, "check", "--select", "C-CLOSE-HANDSHAKE", CAPTURES / "pika-two-threads.pcap"
    )
    packets = [int(match[1]) for match in re.finditer(r"^ +(?:>> +)?(\d+)  \d", result.out, re.MULTILINE)]
    assert packets == [31, 32, 33, 34]


def test_a_silence_has_one_length(capsys: pytest.CaptureFixture[str]) -> None:
    path = CAPTURES / "pika-heartbeat-missed.pcap"
    outputs = [
        commands.amqpscope(capsys, "check", "--select", "C-HB-SEND", path).out,
        commands.amqpscope(capsys, "summary", path).out,
        commands.amqpscope(capsys, "why", "--end", path).out,
    ]
    lengths = {
        match
        for text in outputs
        for match in re.findall(r"([0-9.]+) s (?:(?:pass )?without a frame|of silence|\(agreed)", text)
    }
    assert lengths == {"2.995"}
    assert "silence-ms 2995" in outputs[0]


def test_the_frames_around_a_finding_name_their_links(capsys: pytest.CaptureFixture[str]) -> None:
    lines = commands.amqpscope(capsys, "check", "--full", CAPTURES / "rhea-transfer-after-detach.pcap").lines
    assert any("detach      coins (coins-out) closed" in line for line in lines)
    assert any("flow        coins link-credit=9" in line and " link=coins-out " in line for line in lines)
    # The link of this handle is detached by then.
    assert any(line.startswith("  >>   38 ") and "transfer    #10 handle=0 " in line for line in lines)
    lines = commands.amqpscope(capsys, "check", "--full", CAPTURES / "proton-windows.pcap").lines
    assert any(line.startswith("  >>   20 ") and "0 flow        scrolls-1 link" in line for line in lines)
    assert any(line.startswith("  >>   20 ") and "1 flow        scrolls-2 link" in line for line in lines)
