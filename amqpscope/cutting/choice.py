"""Which packets of a capture stay in its cut.

Whole connections stay whole. Of a connection of which only a part is wanted these packets stay:

- those of the wanted part;
- its handshake and its end (SYN, FIN, RST), which the frames beside them show;
- those with frames that later frames depend on: headers, login, `open`, `begin`, `attach`, `channel.open`,
  declarations, and what ends these. With them `check` knows the state at the wanted part.

What is missing between them looks like packets that were not captured, which no rule takes for a fault.
"""

from collections.abc import Iterable

from amqpscope.cutting.survey import FRAGMENT, CutSurvey, KnownFinding
from amqpscope.cutting.writing import IRRELEVANT, KEPT, LEFT_OUT

__all__ = ["Choice"]


class Choice:
    """The packets that stay: `kept` has KEPT for each of these, and why another one is left out.

    partial: connections of which packets are left out. whole: connections that stay whole.
    """

    def __init__(self, survey: CutSurvey) -> None:
        self.kept = bytearray(LEFT_OUT if stream >= 0 else IRRELEVANT for stream in survey.streams)
        self.partial: set[int] = set()
        self.whole: set[int] = set()
        self._survey = survey

    @property
    def packets(self) -> int:
        """How many packets stay."""
        return self.kept.count(KEPT)

    def keep_all(self) -> None:
        """Every packet stays, also those of other protocols."""
        self.kept[1:] = bytes([KEPT]) * (len(self.kept) - 1)
        self.whole |= set(self._survey.connections)
        self.partial.clear()

    def keep_connections(self, streams: Iterable[int]) -> None:
        """These connections stay whole."""
        self.whole |= set(streams)
        self.partial -= self.whole
        whole = self.whole
        for packet, stream in enumerate(self._survey.streams):
            if stream in whole or stream == FRAGMENT:
                self.kept[packet] = KEPT
        keys = {key for stream in whole for key in self._keys(stream)}
        for packet, key in self._survey.syns:
            if key in keys:
                self.kept[packet] = KEPT

    def keep_parts(self, parts: bytearray) -> None:
        """Of the wanted connections that have a packet here the parts stay, and what the parts rest on."""
        survey = self._survey
        streams = survey.streams
        touched = {streams[packet] for packet in _ones(parts)}
        touched &= survey.wanted
        self.partial |= touched - self.whole
        for packet, stream in enumerate(streams):
            if stream in touched and (parts[packet] or survey.lasting[packet] or survey.edges[packet]):
                self.kept[packet] = KEPT
            elif stream == FRAGMENT:
                self.kept[packet] = KEPT

    def span(self) -> bytearray:
        """The packets within the bounds of the selection, or of frames that it takes."""
        survey = self._survey
        if survey.selection.links or not survey.selection.bounded:
            return survey.taken
        within = survey.selection.within
        parts = bytearray(survey.taken)
        for packet in range(1, len(parts)):
            if not parts[packet] and within(packet, survey.times[packet]):
                parts[packet] = 1
        return parts

    def around(self, packets: Iterable[int], most: int) -> bytearray:
        """These packets, and up to `most` packets of the same connection on either side of each."""
        streams = self._survey.streams
        centres = [packet for packet in packets if 0 < packet < len(streams)]
        wanted = {streams[packet] for packet in centres}
        of_stream: dict[int, list[int]] = {stream: [] for stream in wanted if stream >= 0}
        places: dict[int, int] = {}
        needed = set(centres)
        for packet, stream in enumerate(streams):
            if stream in of_stream:
                if packet in needed:
                    places[packet] = len(of_stream[stream])
                of_stream[stream].append(packet)
        parts = bytearray(len(streams))
        for packet, place in places.items():
            for near in of_stream[streams[packet]][max(place - most, 0) : place + most + 1]:
                parts[near] = 1
        return parts

    def expected(self) -> list[KnownFinding]:
        """The findings whose packet stays."""
        return [
            one
            for one in self._survey.findings
            if one.packet < len(self.kept) and self.kept[one.packet] == KEPT
        ]

    def numbers(self) -> list[int]:
        """For each packet of the cut, from 1 on, the number that it has in the original."""
        return [0, *_ones(self.kept)]

    def _keys(self, stream: int) -> tuple[bytes, bytes]:
        key = self._survey.connections[stream].key
        size = (len(key) - 4) // 2
        ends = key[size : 2 * size] + key[:size]
        return key, ends + key[-2:] + key[-4:-2]


def _ones(flags: bytearray) -> list[int]:
    """The places of what is set."""
    found: list[int] = []
    at = flags.find(1)
    while at >= 0:
        found.append(at)
        at = flags.find(1, at + 1)
    return found
