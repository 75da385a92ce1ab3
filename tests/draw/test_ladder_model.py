"""The model of ladders: which frames are in flight, and which are folded."""

from __future__ import annotations

from support.dialogue import Dialogue

from amqpscope.conformance.coverage import judged
from amqpscope.report.ladder_model import Arrow, Fold, Ladder, LadderBuilder, Remark, Silence, ladders
from amqpscope.report.links import LinkNames


def drawn(dialogue: Dialogue, **options: object) -> Ladder:
    """The ladder of the only connection."""
    frames, findings = judged(dialogue.pcap(), "test")
    builder = LadderBuilder(frames[0].connection, findings, folds=True, **options)  # type: ignore[arg-type]
    names = LinkNames()
    for record in frames:
        builder.add(record, names.of(record), names)
    return builder.ladder()


def sending(transfers: int, credit: int) -> Dialogue:
    """A client sends as many messages, with as much credit."""
    d = Dialogue()
    d.linked(credit=credit)
    for _ in range(transfers):
        d.client.transfer()
    return d


def test_an_arrow_is_in_flight_until_the_other_peer_acknowledges_it() -> None:
    d = Dialogue()
    d.begun()
    with d.on_their_way():
        d.client.flow()
        d.server.flow()
        d.server.empty()
    d.server.empty()
    (ladder,) = ladders(*judged(d.pcap(), "test"))
    rows = ladder.rows
    flow, answer, last, after = rows[-4:]
    assert isinstance(flow, Arrow) and isinstance(answer, Arrow) and isinstance(last, Arrow)
    assert (flow.peer, flow.name) == ("client", "flow")
    # The server's two frames do not acknowledge it, the third one does.
    assert rows[flow.lands] is last
    # Nothing shows that the client had anything to read: it sent nothing more.
    assert rows[answer.lands] is answer and rows[last.lands] is last
    assert isinstance(after, Arrow) and rows[after.lands] is after


def test_frames_that_repeat_others_are_folded_and_counted() -> None:
    ladder = drawn(sending(40, 100))
    (fold,) = [row for row in ladder.rows if isinstance(row, Fold)]
    transfers = [row for row in ladder.arrows if row.name == "transfer"]
    # Four of a name, three behind them, and the last three.
    assert len(transfers) == 10
    assert fold.counts == {("client", "transfer"): 30} and ladder.folded == 30
    assert fold.text.startswith("30 frames folded: 30 transfer by the client (packets ")
    assert [row.packet for row in ladder.rows] == sorted(row.packet for row in ladder.rows)


def test_what_is_found_is_not_folded_nor_are_the_frames_next_to_it() -> None:
    ladder = drawn(sending(40, 30))
    faulty = [arrow for arrow in ladder.arrows if arrow.findings]
    assert len(faulty) == 10
    at = ladder.arrows.index(faulty[0])
    assert all(
        arrow.packet == faulty[0].packet - back
        for back, arrow in zip((3, 2, 1), ladder.arrows[at - 3 : at], strict=True)
    )


def test_a_ladder_is_bounded_and_says_what_is_found_in_the_rest() -> None:
    ladder = drawn(sending(40, 30), most=15)
    assert len(ladder.arrows) == 15
    last = ladder.rows[-1]
    assert isinstance(last, Fold) and last.findings == 10
    assert ladder.folded + 15 == 9 + 40 and "10 findings" in last.text


def test_a_few_frames_are_not_worth_a_fold() -> None:
    assert drawn(sending(4 + 3 + 3 + 3, 100)).folded == 0
    assert drawn(sending(4 + 3 + 3 + 4, 100)).folded == 4


def test_a_packet_that_is_wanted_is_not_folded() -> None:
    whole = drawn(sending(40, 100))
    (fold,) = [row for row in whole.rows if isinstance(row, Fold)]
    middle = (fold.packet + fold.last_packet) // 2
    parted = drawn(sending(40, 100), wanted=frozenset([middle]))
    assert middle in [arrow.packet for arrow in parted.arrows]
    assert len([row for row in parted.rows if isinstance(row, Fold)]) == 2


def test_a_silence_before_the_end_of_a_stream_is_reported() -> None:
    d = Dialogue()
    d.begun()
    d.wait(seconds=8)
    d.client.fin()
    silence, end = drawn(d).rows[-2:]
    assert isinstance(silence, Silence) and silence.text == "8.0 s later"
    assert isinstance(end, Arrow) and end.kind == "end" and silence.packet == end.packet


def test_a_remark_stands_below_its_frame_and_a_silence_above() -> None:
    d = Dialogue()
    d.begun()
    d.wait(seconds=3)
    d.client.empty()
    packet = [row.packet for row in drawn(d).rows][-1]
    rows = drawn(d, remarks=[Remark("look here", packet)]).rows
    silence, arrow, remark = rows[-3:]
    assert isinstance(silence, Silence) and silence.text == "3.0 s later"
    assert isinstance(arrow, Arrow) and arrow.name == "empty"
    assert isinstance(remark, Remark) and remark.text == "look here"
