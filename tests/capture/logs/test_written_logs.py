"""Logs in the forms of go-amqp and AMQP.Net Lite: written here after their public sources, not recorded,
because these libraries do not install here. What was captured is the key."""

from __future__ import annotations

import io
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.judged import Trickle
from support.written_logs import Writer, found, frames, written

from amqpscope import Capture, CaptureError, CaptureOptions

from . import go_frames, net_lite_frames
from .test_logs_without_names import bare
from .test_retold_scenarios import FAULTS, LEGAL, RULES

FOLDER = Path(__file__).parent / "recorded"
RECORDED = ("proton-frames", "proton-octets", "rhea-octets")
FORMS: dict[str, Writer] = {
    "go": go_frames.line,
    "slog-text": partial(go_frames.line, form="text"),
    "slog-json": partial(go_frames.line, form="json"),
    "net-lite": lambda _, sent, frame: net_lite_frames.line(sent, frame, False),
    "net-lite-newer": lambda _, sent, frame: net_lite_frames.line(sent, frame, True),
}
NO_MORE = "OfferedCapabilities: [], DesiredCapabilities: [], Properties: map[]}}"
NO_LOCALES = f"OutgoingLocales: [], IncomingLocales: [], {NO_MORE}"
GO = f"""\
14:26:21.985146 TX (openAMQP): Frame{{Type: AMQP, Channel: 0, Body: Open{{ContainerID : Zojl, \
Hostname: localhost, MaxFrameSize: 65536, ChannelMax: 1, IdleTimeout: 30s, {NO_LOCALES}
14:26:21.987200 RX (openAMQP): Frame{{Type: AMQP, Channel: 0, Body: Open{{ContainerID : Test, \
Hostname: , MaxFrameSize: 65536, ChannelMax: 1, IdleTimeout: 2m0s, {NO_LOCALES}
14:26:21.988585 TX (connWriter): Frame{{Type: AMQP, Channel: 0, Body: Begin{{RemoteChannel: <nil>, \
NextOutgoingID: 0, IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: 4294967295, {NO_MORE}
14:26:21.995370 RX (connReader): Frame{{Type: AMQP, Channel: 0, Body: Begin{{RemoteChannel: 0, \
NextOutgoingID: 1, IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: 262143, {NO_MORE}
"""
NET = """\
[11:47:33.203] SEND AMQP 0 1.0.0
[11:47:33.209] SEND (ch=0) open(container-id:a,host-name:h,max-frame-size:262144,\
channel-max:255,idle-time-out:9)
[12:59:33.218] SEND (ch=0) begin(remote-channel:0,next-outgoing-id:4294967293,incoming-window:2048,\
outgoing-window:2048,handle-max:63)
[01:00:33.241] RECV AMQP 0 1 0 0
[01:00:33.246] RECV (ch=0) open(container-id:v,max-frame-size:68157440,channel-max:255,idle-time-out:0,\
offered-capabilities:[ANONYMOUS-RELAY,APACHE.ORG:NO_LOCAL],properties:[topic-prefix:topic://,version:10.4])
[01:00:33.252] RECV (ch=1) begin(remote-channel:0,next-outgoing-id:1,incoming-window:2147483647,\
outgoing-window:2147483647,handle-max:63)
"""
"""The forms that users of the libraries have published, with other names."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RECORDED)
def test_the_log_has_the_fields_that_were_captured(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text(written(FOLDER / f"{name}.pcapng", True, FORMS[form]))
    retold, wire = frames(capsys, log), frames(capsys, FOLDER / f"{name}.pcapng")
    if "net" not in form:
        # Protocol headers and empty frames are not printed.
        retold, wire = (
            [one for one in each if one["name"] not in ("header", "empty")] for each in (retold, wire)
        )
    assert [one["name"] for one in retold] == [one["name"] for one in wire]
    for one, other in zip(retold, wire, strict=True):
        assert (one["kind"], one["peer"], one["channel"]) == (other["kind"], other["peer"], other["channel"])
        unknown = {problem["path"].split(".")[1] for problem in one["problems"]}
        unknown |= {key for key, value in one["fields"].items() if value == {"hidden": 0}}
        had = {key: value for key, value in other["fields"].items() if key not in unknown}
        fields = {key: value for key, value in one["fields"].items() if key not in unknown}
        assert bare(plain(fields)) == bare(plain(had))


FALSE = ("settled", "more", "resume", "aborted", "batchable", "drain", "echo", "closed", "dynamic")


def plain(value: object) -> object:
    """A value without what is as good as null."""
    if not isinstance(value, dict):
        return value
    kept = {key: plain(one) for key, one in value.items() if not (key in FALSE and one is False)}
    return {
        key: one
        for key, one in kept.items()
        if not (key in ("max-message-size", "idle-time-out") and not one)
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", LEGAL[::3], ids=lambda path: path.parent.name)
def test_a_legal_dialogue_is_legal_in_the_log_of_each_peer(path: Path, form: str) -> None:
    wire = found(path)
    for by_client in (True, False):
        assert found(written(path, by_client, FORMS[form]).encode()) <= wire


WITHOUT_HEADERS = ("C-OPEN-FIRST",)
"""Faults in which a protocol header has a part: go-amqp prints none."""


@pytest.mark.parametrize("rule", [rule for rule in FAULTS if rule not in WITHOUT_HEADERS])
def test_a_fault_is_found_in_the_log_of_go(rule: str) -> None:
    path = RULES / rule / "violating.pcap"
    fault = {one for one in found(path) if one[0] == f"amqp10/{rule}"}
    assert fault
    for by_client in (True, False):
        assert fault <= found(written(path, by_client, FORMS["go"]).encode())


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_found_in_the_log_of_net_lite_and_is_not_certain(rule: str) -> None:
    path = RULES / rule / "violating.pcap"
    fault = {one for one in found(path) if one[0] == f"amqp10/{rule}"}
    assert fault
    for by_client in (True, False):
        log = written(path, by_client, FORMS["net-lite"]).encode()
        assert fault <= found(log, False)
        assert found(log) == set()


@pytest.mark.parametrize("log", [GO, NET], ids=["go", "net-lite"])
def test_what_users_have_published_is_read(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    path.write_text("something else\n" + log)
    shown = frames(capsys, path)
    assert [one["name"] for one in shown if one["name"] != "header"].count("open") == 2
    begins = [one["fields"] for one in shown if one["name"] == "begin"]
    assert "remote-channel" not in begins[0]
    assert begins[1]["remote-channel"] == 0
    assert found(log.encode(), False) == set()


def test_a_clock_of_twelve_hours_goes_on() -> None:
    with Capture(io.BytesIO(NET.encode()), name="log") as capture:
        times = [record.time for record in capture]
    assert times == sorted(times)
    assert (times[3] - times[2]) // 1_000_000_000 == 60


@pytest.mark.parametrize("log", [GO, NET], ids=["go", "net-lite"])
def test_a_second_connection_beside_the_first_one_is_not_mixed_with_it(log: str) -> None:
    other = log.replace("Zojl", "two").replace("container-id:a", "container-id:b")
    octets = (log + other).encode()
    with Capture(io.BytesIO(octets), CaptureOptions(judge=True), name="log") as capture:
        for _ in capture:
            pass
        assert capture.take_findings() == []
        assert any("does not say to which connection" in note.detail for note in capture.notes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_line_cut_short_accuses_nobody(form: str, share: float) -> None:
    path = FOLDER / "proton-frames.pcapng"
    accused = found(path)
    lines = written(path, True, FORMS[form]).splitlines()
    for at in range(len(lines)):
        cut = [*lines[:at], lines[at][: int(len(lines[at]) * share)], *lines[at + 1 :]]
        assert found("\n".join(cut).encode()) <= accused, lines[at]


LINES = st.sampled_from([*GO.splitlines(), *NET.splitlines()])


@settings(max_examples=60)
@given(
    st.lists(st.one_of(LINES, st.text(max_size=30)), max_size=20),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
    st.integers(0, 300),
)
def test_any_lines_are_read_in_any_pieces(parts: list[str], sizes: list[int], cut: int) -> None:
    octets = (GO + "\n".join(parts)).encode("utf-8", "replace")
    octets = octets[: len(octets) - cut]

    def shown(source: Any) -> list[str] | str:
        try:
            with Capture(source, CaptureOptions(judge=True), name="log") as capture:
                seen = [repr(record) for record in capture]
                seen += [f"{one.rule} {one.certain}" for one in capture.take_findings()]
                assert not capture.mishaps
                return seen + [note.detail for note in capture.notes]
        except CaptureError as error:
            return str(error)

    assert shown(Trickle(octets, sizes)) == shown(io.BytesIO(octets))


@pytest.mark.parametrize(
    "hostile",
    [
        "TX (connWriter" * 300_000,
        "RX (connReader 0xc1): Frame{Type: AMQP, Channel: 0, Body: Open{ContainerID : "
        + ", Hostname: " * 200_000,
        "RX (connReader 0xc1): Frame{Type: AMQP, Channel: 0, Body: Close{Error: "
        + "*Error{" * 200_000
        + "}}",
        'msg="RX (connReader)" conn_ptr=0xc1' + ' frame="' * 300_000,
        "SEND (ch=" * 300_000,
        "SEND (ch=0) open(" + "container-id:a," * 200_000 + ")",
        "SEND (ch=0) close(error:" + "error(" * 200_000 + ")",
        "SEND (ch=0) open(container-id:" + "[" * 500_000 + ")",
    ],
    ids=["places", "fields", "errors", "quotes", "sends", "titles", "inner", "brackets"],
)
def test_a_hostile_line_takes_no_longer_than_another_one(hostile: str) -> None:
    before = time.process_time()
    found((GO + hostile + "\n").encode())
    found((NET + hostile + "\n").encode())
    assert time.process_time() - before < 5
