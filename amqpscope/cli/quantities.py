"""Durations and sizes as people write them: `90`, `1.5s`, `15min`, `2h`; `100MB`, `1GiB`, `500k`."""

import re

from amqpscope.errors import FilterError

__all__ = ["delay", "duration", "rotation", "size"]

_SECOND = 1_000_000_000

_DURATIONS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}

_SIZES = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    for _suffix in ("", "b"):
        _SIZES[f"{_letter}{_suffix}"] = 1000**_power
    _SIZES[f"{_letter}ib"] = 1024**_power

_PACKETS = ("p", "packet", "packets")

_LONGEST = 10 * 366 * 86_400
_LARGEST = 1 << 62


def duration(option: str, text: str) -> int:
    """Nanoseconds, more than none. Raises FilterError, which names the option."""
    number, unit = _split(option, text)
    if unit not in _DURATIONS or not 0 < number * _DURATIONS[unit] <= _LONGEST:
        raise FilterError(
            f"{option} {text!r}: must be a duration such as 0.5s, 15min, 2h or 7d, above 0 and up to 3660d"
        )
    return max(int(number * _DURATIONS[unit] * _SECOND), 1)


def delay(option: str, text: str) -> int:
    """Nanoseconds, or none at all. Raises FilterError, which names the option."""
    number, unit = _split(option, text)
    return duration(option, text) if number or unit not in _DURATIONS else 0


def size(option: str, text: str) -> int:
    """Octets, more than none. Raises FilterError, which names the option."""
    number, unit = _split(option, text)
    if unit not in _SIZES or not 1 <= number * _SIZES[unit] <= _LARGEST:
        raise FilterError(f"{option} {text!r}: must be a size such as 500k, 100MB or 1GiB")
    return int(number * _SIZES[unit])


def rotation(option: str, text: str) -> tuple[str, int]:
    """What a file of a set is full with: (`size`, octets), (`duration`, ns) or (`packets`, number).

    Raises FilterError, which names the option.
    """
    number, unit = _split(option, text)
    if unit in _PACKETS and 1 <= number <= _LARGEST:
        return "packets", int(number)
    if unit and unit != "m" and unit in _DURATIONS:
        return "duration", duration(option, text)
    if unit and unit != "m" and unit in _SIZES:
        return "size", size(option, text)
    raise FilterError(
        f"{option} {text!r}: must be a size (100MB), a duration (15min) or a number of packets (1000packets)"
    )


def _split(option: str, text: str) -> tuple[float, str]:
    parts = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([a-zA-Z]{0,7})\s*", text)
    if parts is None:
        raise FilterError(f"{option} {text!r}: must be a number with a unit")
    return float(parts[1]), parts[2].lower()
