"""Packets of the files of a set in sentences."""

from __future__ import annotations

from amqpscope.pipeline.packets import first_number, in_text

CAPTURES = ["taps/a.pcap", "taps/b.pcap", "taps/c.pcap"]


def test_a_packet_is_reported_by_its_number_in_its_file() -> None:
    here = first_number(1)
    packets = [here + 20, here + 2, 20, first_number(2) + 5]
    sentence = f"20 of 2 (packet {packets[1]}), packet 20 and packet {packets[3]}; packet 7"
    assert in_text(sentence, packets, CAPTURES) == (
        "20 of 2 (packet 2), packet 20 of a.pcap and packet 5 of c.pcap; packet 7"
    )


def test_of_one_file_nothing_changes() -> None:
    assert in_text("packet 3 after packet 4", [3, 4], CAPTURES) == "packet 3 after packet 4"
