"""The interfaces of a capture as its files describe them, and what was lost on each.

In a file an interface has a link type: one that gives packets of two is described twice. Its number is its
place in the order of description, the same in every file of a set.
"""

from typing import Final

from amqpscope.capture.recording.blocks import (
    end_of_options,
    interface_description,
    interface_statistics,
    lost_before,
    plain,
)
from amqpscope.limits import MAX_INTERFACES

__all__ = ["Interfaces"]

_HIGHEST_LINK_TYPE: Final = 0xFFFF
_PRIVATE_LINK_TYPE: Final = 147  # LINKTYPE_USER0


class DescribedInterface:
    """An interface as the file describes it; `index` is the number that the capture gives it."""

    def __init__(self, index: int, link_type: int, name: bytes, description: bytes, filter: bytes) -> None:
        self.index = index
        self.link_type = link_type
        self.name = name
        self.description = description
        self.filter = filter


class Interfaces:
    """All of them. lost: packets that were lost on each before its next one."""

    def __init__(self) -> None:
        self.lost: dict[int, int] = {}
        self._lost_in_all: dict[int, int] = {}
        self._described: list[DescribedInterface] = []
        # Their places by number in the capture and link type.
        self._places: dict[tuple[int, int], int] = {}

    @property
    def count(self) -> int:
        """How many descriptions there are."""
        return len(self._described)

    def tell(self, index: int, name: str, link_type: int, description: str, filter: str) -> None:
        """What is known of an interface."""
        texts = (plain(name, 200), plain(description, 1000), plain(filter, 4000))
        place = self._places.get((index, link_type))
        if place is None:
            self._describe(index, link_type, texts)
        else:
            known = self._described[place]
            known.name, known.description, known.filter = texts

    def place(self, index: int, link_type: int) -> int:
        """The place of an interface, which is described if it was not. -1: there is none left."""
        place = self._places.get((index, link_type))
        if place is not None:
            return place
        texts = (b"", b"", b"")
        for known in self._described:
            if known.index == index:
                texts = (known.name, known.description, known.filter)
                break
        return self._describe(index, link_type, texts)

    def descriptions(self, known: int) -> bytes:
        """The blocks that describe them, but for the first `known` ones."""
        if known == len(self._described):
            return b""
        return b"".join(
            [
                interface_description(one.link_type, one.name, one.description, one.filter)
                for one in self._described[known:]
            ]
        )

    def lose(self, index: int, count: int) -> None:
        """`count` packets of an interface were lost before its next one."""
        if count > 0 and len(self.lost) < MAX_INTERFACES:
            self.lost[index] = self.lost.get(index, 0) + count
            self._lost_in_all[index] = self._lost_in_all.get(index, 0) + count

    def lost_before(self, index: int) -> bytes:
        """The option of a packet's block that says how many were lost before it, or nothing."""
        count = self.lost.pop(index, 0)
        return lost_before(count) + end_of_options() if count else b""

    def statistics(
        self,
        start: int,
        end: int,
        received: list[int],
        dropped: list[int],
        remarks: bytes,
        in_file: dict[int, int] | None,
    ) -> bytes:
        """The blocks that end a file: what came on each interface, and what was lost.

        start, end: of the time that the file is about, ns since 1970. received, dropped: packets of each
        interface in all, as far as they are known. remarks: options for the first block. in_file: of a file
        that has not the whole capture, the packets lost in it, by place.
        """
        reported: set[int] = set()
        blocks: list[bytes] = []
        for place, one in enumerate(self._described):
            came = gone = -1
            if one.index not in reported:
                reported.add(one.index)
                came = received[one.index] if 0 <= one.index < len(received) else -1
                gone = dropped[one.index] if 0 <= one.index < len(dropped) else -1
            if in_file is not None:
                came = -1
                ours = in_file.get(place, 0) + self.lost.pop(one.index, 0)
                if gone >= 0 or ours > 0:
                    gone = max(gone - self._lost_in_all.get(one.index, 0), 0) + ours
            blocks.append(interface_statistics(place, start, end, came, gone, remarks))
            remarks = b""
        return b"".join(blocks)

    def _describe(self, index: int, link_type: int, texts: tuple[bytes, bytes, bytes]) -> int:
        place = len(self._described)
        if place >= MAX_INTERFACES:
            return -1
        name, description, its_filter = texts
        written = link_type if 0 <= link_type <= _HIGHEST_LINK_TYPE else _PRIVATE_LINK_TYPE
        self._described.append(DescribedInterface(index, written, name, description, its_filter))
        self._places[(index, link_type)] = place
        return place
