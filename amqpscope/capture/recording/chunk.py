"""Packets in hand, as the blocks that they will be in a file."""

from dissectors.wire import i64


class Chunk:
    """Blocks of packets that follow one another, in memory for `room` octets.

    `octets[start:end]` are the blocks that are still to be written, the last of them from `last` on; `first`
    is the number of the first one's packet, `next` the one after the last one's, with none left out.
    `time`: of the first packet, `latest`: the highest; later ones than `until`, and earlier ones than `time`,
    do not belong here. `commented`: there are comments on some of them; `lossy`: packets were lost, too.
    """

    def __init__(self, room: i64, number: i64, time: i64, until: i64) -> None:
        self.octets = bytearray(room)
        self.room = room
        self.start: i64 = 0
        self.end: i64 = 0
        self.last: i64 = 0
        self.first = number
        self.next = number
        self.time = time
        self.latest = time
        self.until = until
        self.commented = False
        self.lossy = False
