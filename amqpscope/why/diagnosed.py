"""Which diagnoses explain an end, and which of them concern a packet.

A diagnosis explains an end surely if it says so itself: it names the packet of the end, and its declaration
says that the other peer ends something because of it. A wait that still lasted when something ended explains
the end perhaps.
"""

from typing import Final

from amqpscope.diagnoses.declaration import ENDS, MAY_END, NO_OPENING, REFUSES
from amqpscope.diagnoses.registry import kind_of
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.report.diagnosis_text import is_trouble
from amqpscope.why.endings import CauseStep, Ending, StreamEnd

__all__ = ["concerns", "explain_endings", "shown_packets"]

_SHOWN: Final = 3
"""Packets of a diagnosis that are shown."""


def shown_packets(one: Diagnosis) -> list[int]:
    """The packets of a diagnosis whose frames are shown below it."""
    return one.packets[:_SHOWN]


def concerns(one: Diagnosis, packet: int) -> bool:
    """Whether a diagnosis names a packet, or lasts while the packet is sent."""
    if packet in one.packets:
        return True
    return one.seconds >= 0 and one.packet <= packet and (not one.ended_packet or packet <= one.ended_packet)


def explain_endings(
    endings: list[Ending], stream_end: StreamEnd | None, found: list[Diagnosis]
) -> tuple[list[Ending], list[Diagnosis]]:
    """The endings of a connection, with those of its diagnoses that explain them; and the other ones.

    stream_end: as of `Following`. found: the diagnoses of the connection. Facts that are no trouble are left
    out.
    """
    troubles = [one for one in found if is_trouble(one)]
    used: set[int] = set()
    explained = []
    for ending in endings:
        packet = _packet_of(ending, stream_end)
        steps = _explained(ending, packet, troubles) if packet and troubles else ending.steps
        used.update(id(step.diagnosis) for step in steps if step.diagnosis is not None)
        explained.append(ending._replace(steps=steps))
    return explained, [one for one in troubles if id(one) not in used]


def _packet_of(ending: Ending, stream_end: StreamEnd | None) -> int:
    """The packet in which a peer ended something, 0 if none did."""
    if ending.mark is not None:
        return int(ending.mark.packet)
    return stream_end.packet if ending.itself and stream_end is not None else 0


def _explained(ending: Ending, packet: int, troubles: list[Diagnosis]) -> list[CauseStep]:
    """The steps of an end with the diagnoses that explain it. packet: of the end."""
    whole = ending.thing == "connection"
    own = [one for one in troubles if _explains(one, packet, whole)]
    if own:
        # What only came before the end says less.
        refused = any(REFUSES in kind_of(one.code).explains for one in own)
        sure = not refused or all(step.sure for step in ending.steps)
        steps = [step for step in ending.steps if step.sure or not sure]
        steps += [_step(one, sure) for one in own]
    else:
        steps = _with_causes(ending.steps, troubles)
    named = {id(step.diagnosis) for step in steps}
    for one in troubles:
        if id(one) not in named and _lasts(one, packet) and (whole or _is_about(one, ending.thing)):
            steps.append(_step(one, False))
    return steps


def _explains(one: Diagnosis, packet: int, whole: bool) -> bool:
    """Whether a diagnosis says that this end follows from it. whole: the connection ends in the packet."""
    if not _is_sure(one) or packet <= 0:
        return False
    if packet == one.ended_packet or (len(one.packets) > 1 and packet == one.packets[-1]):
        return True
    if not whole or one.packet >= packet:
        return False
    return NO_OPENING in kind_of(one.code).explains or (
        one.subject == "connection" and packet <= one.ended_packet
    )


def _is_sure(one: Diagnosis) -> bool:
    """Whether the sentence of a diagnosis says that an end follows from it."""
    explains = kind_of(one.code).explains
    return ENDS in explains or NO_OPENING in explains or REFUSES in explains


def _lasts(one: Diagnosis, packet: int) -> bool:
    """Whether a wait began before a packet and lasted until then."""
    waits = MAY_END in kind_of(one.code).explains
    return waits and one.packet < packet and (not one.ended_packet or packet <= one.ended_packet)


def _is_about(one: Diagnosis, thing: str) -> bool:
    return one.subject == thing or f'"{one.subject}"' in thing


def _with_causes(steps: list[CauseStep], troubles: list[Diagnosis]) -> list[CauseStep]:
    """The steps of an end up to the first that diagnoses explain, with these diagnoses."""
    found: list[CauseStep] = []
    for step in steps:
        found.append(step)
        packet = step.mark.packet if step.mark is not None else step.packet
        if step.finding is not None:
            packet = int(step.finding.packet)
        causes = [
            one
            for one in troubles
            if _explains(one, packet, False) or (step.sure and _is_sure(one) and packet in one.packets)
        ]
        if causes:
            return [*found, *(_step(one, True) for one in causes)]
    return found


def _step(one: Diagnosis, sure: bool) -> CauseStep:
    """A diagnosis as a step back."""
    return CauseStep("", None, None, one.packet, sure, one)
