"""Faults on request: what the proxy does to a connection so that a client can be tested.

Octets stay as they are, and in order. Each fault is certain to happen where it can, so two runs of the same
dialogue have the same faults.
"""

import re
from dataclasses import dataclass
from typing import Final

from amqpscope.capture.proxy.frame_names import FRAME_NAMES
from amqpscope.errors import FilterError

__all__ = ["Fault", "parse_fault"]

_SECONDS: Final = {"ms": 0.001, "s": 1.0}
_SIZES: Final = {"B": 1, "kB": 1000, "MB": 1_000_000}
_NUMBER: Final = r"([0-9]{1,9}(?:\.[0-9]{1,3})?)"
_FRAME: Final = r"([a-z][a-z.-]*[a-z])"

_DELAY: Final = re.compile(rf"delay {_FRAME} {_NUMBER}(ms|s)")
_DROP: Final = re.compile(rf"drop-connection after ([0-9]{{1,9}}) {_FRAME}")
_SPLIT: Final = re.compile(r"split ([0-9]{1,5})")
_THROTTLE: Final = re.compile(rf"throttle {_NUMBER}(B|kB|MB)/s")

_LONGEST: Final = 3600.0


@dataclass(frozen=True)
class Fault:
    """One fault. text: as it was asked for. Exactly one of the others is not 0.

    delay: seconds by which frames called `frame` are complete later. drop: after so many
    frames called `frame` the connection is reset. split: octets that are handed on at a time. throttle: how
    many are handed on in a second.
    """

    text: str
    frame: str = ""
    delay: float = 0.0
    drop: int = 0
    split: int = 0
    throttle: float = 0.0


def _frame(text: str, word: str) -> str:
    """The name of a frame in the singular or the plural. Raises FilterError if there is none like that."""
    for name in (word, word.removesuffix("s"), word.removesuffix("es")):
        if name in FRAME_NAMES:
            return name
    raise FilterError(
        f"--fault {text!r}: no frame is called {word!r}; `amqpscope read` shows the names of frames, for "
        "example transfer or basic.publish"
    )


def parse_fault(text: str) -> Fault:
    """The fault of `--fault`. Raises FilterError."""
    plain = " ".join(text.split())
    if found := _DELAY.fullmatch(plain):
        seconds = float(found[2]) * _SECONDS[found[3]]
        if 0 < seconds <= _LONGEST:
            return Fault(plain, frame=_frame(text, found[1]), delay=seconds)
    elif found := _DROP.fullmatch(plain):
        if int(found[1]) > 0:
            return Fault(plain, frame=_frame(text, found[2]), drop=int(found[1]))
    elif found := _SPLIT.fullmatch(plain):
        if int(found[1]) > 0:
            return Fault(plain, split=int(found[1]))
    elif found := _THROTTLE.fullmatch(plain):
        rate = float(found[1]) * _SIZES[found[2]]
        if rate >= 1:
            return Fault(plain, throttle=rate)
    raise FilterError(
        f"--fault {text!r}: must be 'delay FRAME TIME', 'drop-connection after N FRAMES', 'split OCTETS' or "
        "'throttle SIZE/s', for example 'delay transfer 200ms' or 'throttle 10kB/s'"
    )
