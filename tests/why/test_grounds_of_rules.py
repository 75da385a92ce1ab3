"""`why` at the packet that breaks a rule names what that rests on: the grant, the bound or the prohibition.

For the captures that come with the product, by rule; and with AMQPSCOPE_CAPTURES=FOLDER for those of a folder
that are named here, if they are there.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from amqpscope.input.replay import ReplayableCapture
from amqpscope.why.frame_ref import Ground
from amqpscope.why.inquiry import inquire
from amqpscope.why.text import is_decisive, weighed

ROOT = Path(__file__).parent.parent.parent / "captures" / "rules"

# Rule: effect, packet and name of what it rests on; (None, None) where it is what is lacking.
OF_RULES: dict[str, tuple[str, int | None, str | None]] = {
    "amqp10/C-CHMAX": ("limits", 7, "open"),
    "amqp10/C-CLOSE-AFTEROPEN": ("lacks", None, None),
    "amqp10/C-CLOSE-LAST": ("forbids", 10, "close"),
    "amqp10/C-CLOSE-SENT": ("lacks", None, None),
    "amqp10/C-IDLE-KEEP": ("limits", 6, "open"),
    "amqp10/C-MAXFRAME": ("limits", 7, "open"),
    "amqp10/C-OPEN-FIRST": ("lacks", None, None),
    "amqp10/D-DISP-RESETTLE": ("forbids", 16, "disposition"),
    "amqp10/D-DISP-UNKNOWN": ("lacks", None, None),
    "amqp10/D-ID-CONT": ("belongs to", 13, "transfer"),
    "amqp10/D-ID-SEQ": ("belongs to", 13, "transfer"),
    "amqp10/D-NOINTERLEAVE": ("belongs to", 13, "transfer"),
    "amqp10/D-RESUME-FLAG": ("grants", 10, "attach"),
    "amqp10/D-SNDMODE-SETTLED": ("grants", 10, "attach"),
    "amqp10/D-SNDMODE-UNSETTLED": ("grants", 10, "attach"),
    "amqp10/L-CREDIT": ("grants", 12, "flow"),
    "amqp10/L-CREDIT-INIT": ("lacks", None, None),
    "amqp10/L-DC-UNSET": ("lacks", None, None),
    "amqp10/L-ERRANT-INPUT": ("forbids", 16, "detach"),
    "amqp10/L-HANDLE-INUSE": ("forbids", 10, "attach"),
    "amqp10/L-NAME-UNIQUE": ("forbids", 10, "attach"),
    "amqp10/L-UNATTACHED-DETACH": ("forbids", 13, "detach"),
    "amqp10/L-UNATTACHED-FLOW": ("lacks", None, None),
    "amqp10/L-UNATTACHED-TRANSFER": ("lacks", None, None),
    "amqp10/S-BEGIN-FIRST": ("lacks", None, None),
    "amqp10/S-BEGIN-REMOTESET": ("sets up", 8, "begin"),
    "amqp10/S-BEGIN-REUSE": ("forbids", 8, "begin"),
    "amqp10/S-END-LAST": ("forbids", 10, "end"),
    "amqp10/S-FLOW-NEXTOUT": ("belongs to", 13, "transfer"),
    "amqp10/S-HANDLEMAX": ("limits", 9, "begin"),
    "amqp10/S-WIN-FORMULA": ("grants", 15, "flow"),
    "amqp10/SA-INIT-OFFERED": ("limits", 6, "sasl-mechanisms"),
    "amqp091/B-ACK-DUP": ("forbids", 17, "basic.ack"),
    "amqp091/B-ACK-KNOWN": ("lacks", None, None),
    "amqp091/B-ACK-MULTIPLE": ("forbids", 19, "basic.ack"),
    "amqp091/B-CANCEL-CTAG": ("lacks", None, None),
    "amqp091/B-CONSUME-QEXIST": ("forbids", 16, "queue.delete"),
    "amqp091/B-CTAG-UNIQUE": ("forbids", 14, "basic.consume"),
    "amqp091/B-DELIVER-CTAG": ("lacks", None, None),
    "amqp091/B-REJECT-KNOWN": ("lacks", None, None),
    "amqp091/C-BLOCKED-PUBLISH": ("limits", 15, "connection.blocked"),
    "amqp091/C-CLOSE-HANDSHAKE": ("lacks", None, None),
    "amqp091/C-CLOSE-REPLY": ("grants", 12, "connection.close"),
    "amqp091/C-CLOSE-SILENT": ("forbids", 12, "connection.close"),
    "amqp091/C-HS-ORDER-CLIENT": ("lacks", None, None),
    "amqp091/C-TUNEOK-CHMAX-LE": ("limits", 7, "connection.tune"),
    "amqp091/C-TUNEOK-FRAMEMAX-LE": ("limits", 7, "connection.tune"),
    "amqp091/CF-ONCE": ("forbids", 16, "basic.ack"),
    "amqp091/CH-CLOSE-SILENT": ("forbids", 12, "channel.close"),
    "amqp091/CH-COUNT-MAX": ("limits", 8, "connection.tune-ok"),
    "amqp091/CH-FLOW-STOP": ("forbids", 13, "channel.flow"),
    "amqp091/CH-NUM-MAX": ("limits", 8, "connection.tune-ok"),
    "amqp091/CH-OPEN-FIRST": ("lacks", None, None),
    "amqp091/CH-OPEN-STATE": ("forbids", 10, "channel.open"),
    "amqp091/CH-SYNC-UNSOLICITED": ("lacks", None, None),
    "amqp091/CH-SYNC-WAIT": ("sets up", 12, "queue.declare"),
    "amqp091/F-BODY-ORPHAN": ("lacks", None, None),
    "amqp091/F-CONTENT-NO-METHOD": ("forbids", 12, "basic.publish"),
    "amqp091/F-FRAME-SIZE": ("limits", 8, "connection.tune-ok"),
    "amqp091/F-HEADER-ORPHAN": ("lacks", None, None),
    "amqp091/F-PROTO-HDR-ONCE": ("forbids", 4, "header"),
}

# Of captures that somebody has in a folder: rule, its packet, and as above.
OF_CAPTURES: dict[str, tuple[str, int, str, int | None, str | None]] = {
    "a091-viol-ack-unknown-tag": ("amqp091/B-ACK-KNOWN", 23, "lacks", None, None),
    "a091-viol-channel-opened-twice": ("amqp091/CH-OPEN-STATE", 20, "forbids", 17, "channel.open"),
    "a091-viol-eof-in-content": ("amqp091/C-CLOSE-HANDSHAKE", 25, "lacks", None, None),
    "a091-viol-frame-too-large": ("amqp091/F-FRAME-SIZE", 23, "limits", 11, "connection.tune-ok"),
    "a091-viol-frames-after-channel-close": ("amqp091/B-PUBLISH-XEXIST", 20, "grants", 17, "channel.open"),
    "a091-viol-header-wrong-class": ("amqp091/F-HEADER-CLASS", 23, "belongs to", 23, "basic.publish"),
    "a091-viol-method-in-content": ("amqp091/F-CONTENT-NO-METHOD", 23, "forbids", 23, "basic.publish"),
    "a091-viol-open-before-start-ok": ("amqp091/C-HS-ORDER-CLIENT", 8, "lacks", None, None),
    "a091-viol-tune-ok-higher": ("amqp091/C-TUNEOK-FRAMEMAX-LE", 11, "limits", 9, "connection.tune"),
    "a091-viol-unexpected-header": ("amqp091/F-HEADER-ORPHAN", 20, "lacks", None, None),
    "a10-odd-reset-mid-frame": ("amqp10/C-CLOSE-SENT", 17, "lacks", None, None),
    "a10-real-channel-above-max-proton": ("amqp10/C-CHMAX", 11, "limits", 9, "open"),
    "a10-real-credit-overrun-proton": ("amqp10/L-CREDIT", 17, "grants", 15, "flow"),
    "a10-real-frame-too-large-proton": ("amqp10/C-MAXFRAME", 17, "limits", 9, "open"),
    "a10-real-window-overrun-proton": ("amqp10/S-WIN-IN", 17, "sets up", 12, "begin"),
    "a10-viol-attach-before-begin": ("amqp10/S-BEGIN-FIRST", 10, "lacks", None, None),
    "a10-viol-begin-no-remote-channel": ("amqp10/S-BEGIN-REMOTESET", 11, "sets up", 10, "begin"),
    "a10-viol-close-before-open": ("amqp10/C-CLOSE-AFTEROPEN", 8, "lacks", None, None),
    "a10-viol-delivery-id-changes": ("amqp10/D-ID-CONT", 17, "belongs to", 16, "transfer"),
    "a10-viol-delivery-id-gap": ("amqp10/D-ID-SEQ", 19, "belongs to", 17, "transfer"),
    "a10-viol-disposition-last-before-first": ("amqp10/D-DISP-RANGE", 25, "grants", 23, "transfer"),
    "a10-viol-disposition-wrong-role": ("amqp10/D-DISP-ROLE", 19, "lacks", None, None),
    "a10-viol-double-begin": ("amqp10/S-BEGIN-REUSE", 16, "forbids", 10, "begin"),
    "a10-viol-double-close": ("amqp10/C-CLOSE-LAST", 11, "forbids", 10, "close"),
    "a10-viol-flow-next-outgoing-id-jump": ("amqp10/S-FLOW-NEXTOUT", 19, "belongs to", 17, "transfer"),
    "a10-viol-flow-no-next-incoming-id": ("amqp10/S-FLOW-NEXTIN-SET", 16, "sets up", 10, "begin"),
    "a10-viol-frame-on-ended-session": ("amqp10/S-END-LAST", 17, "forbids", 16, "end"),
    "a10-viol-frame-too-large": ("amqp10/C-MAXFRAME", 16, "limits", 9, "open"),
    "a10-viol-handle-above-max": ("amqp10/S-HANDLEMAX", 12, "limits", 11, "begin"),
    "a10-viol-idle-timeout-ignored": ("amqp10/C-IDLE-KEEP", 12, "limits", 8, "open"),
    "a10-viol-no-credit-at-all": ("amqp10/L-CREDIT-INIT", 14, "lacks", None, None),
    "a10-viol-resume-not-set": ("amqp10/D-RESUME-FLAG", 16, "grants", 12, "attach"),
    "a10-viol-sasl-unoffered-mechanism": ("amqp10/SA-INIT-OFFERED", 10, "limits", 8, "sasl-mechanisms"),
    "a10-viol-session-window-exceeded": ("amqp10/S-WIN-IN", 20, "grants", 14, "flow"),
    "a10-viol-settled-on-unsettled-link": ("amqp10/D-SNDMODE-UNSETTLED", 16, "grants", 12, "attach"),
    "a10-viol-transfer-unattached-handle": ("amqp10/L-UNATTACHED-TRANSFER", 16, "lacks", None, None),
    "a10-viol-txn-post-after-discharge": ("amqp10/TX-STATE-KNOWN", 26, "belongs to", 24, "transfer"),
}


def broken_at(rule: str) -> int:
    """The packet in which the capture of a rule breaks it."""
    with (ROOT / "expected.tsv").open() as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if row["rule"] == rule and row["captures"] == rule:
                return int(row["packet"])
    raise AssertionError(rule)


def rests_on(capture: Path, rule: str, packet: int) -> list[Ground]:
    """What the frame that breaks a rule rests on, what says most first."""
    answer = inquire(ReplayableCapture(str(capture)), packet)
    asked = answer.questions + ([answer.ended] if answer.ended is not None else [])
    for question in asked:
        if any(finding.rule == rule for finding in question.findings):
            return weighed(question)
    raise AssertionError((capture, rule, packet))


def named(grounds: list[Ground]) -> list[tuple[str, int | None, str | None]]:
    return [
        (one.effect, None, None) if one.mark is None else (one.effect, one.mark.packet, one.mark.name)
        for one in grounds
    ]


@pytest.mark.parametrize("rule", OF_RULES)
def test_it_names_what_a_rule_rests_on(rule: str) -> None:
    grounds = rests_on(ROOT / rule / "violating.pcap", rule, broken_at(rule))
    assert OF_RULES[rule] in named(grounds)


def test_what_a_finding_names_comes_first() -> None:
    for rule in ("amqp10/L-CREDIT", "amqp10/C-MAXFRAME", "amqp10/S-WIN-FORMULA", "amqp091/CH-OPEN-STATE"):
        grounds = rests_on(ROOT / rule / "violating.pcap", rule, broken_at(rule))
        assert named(grounds)[0] == OF_RULES[rule]


def test_a_bound_is_decisive_where_the_finding_has_its_value() -> None:
    rule = "amqp091/F-FRAME-SIZE"
    answer = inquire(ReplayableCapture(str(ROOT / rule / "violating.pcap")), broken_at(rule))
    question = next(one for one in answer.questions if one.findings)
    decisive = [ground for ground in question.grounds if is_decisive(ground, question)]
    assert named(decisive) == [("limits", 8, "connection.tune-ok")]
    assert "frame-max 8192" in decisive[0].what


FOLDERS = [Path(folder) for folder in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep) if folder]


@pytest.mark.skipif(not FOLDERS, reason="AMQPSCOPE_CAPTURES is not set")
@pytest.mark.parametrize("name", OF_CAPTURES)
def test_captures_of_a_folder(name: str) -> None:
    path = next((folder / f"{name}.pcap" for folder in FOLDERS if (folder / f"{name}.pcap").exists()), None)
    if path is None:
        pytest.skip(f"there is no {name}.pcap")
    rule, packet, *expected = OF_CAPTURES[name]
    assert tuple(expected) in named(rests_on(path, rule, packet))
