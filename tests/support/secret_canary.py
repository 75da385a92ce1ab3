"""A secret that can be found again, in whatever form it slipped through."""

from __future__ import annotations

import base64
import re

# Twelve octets, so that its base64 is a part of that of anything it stands in at a multiple of three.
MARKER = "Xq7GEHEIM9zW"


def forms_of(marker: str) -> list[str]:
    """Everything that would give the marker away: itself, in hex (dense, and in a hexdump), in base64."""
    octets = marker.encode()
    found = [marker, octets.hex(), octets[:8].hex(" "), octets[4:].hex(" ")]
    for before in range(3):
        # The characters that depend on the marker alone, wherever it stands in what was encoded.
        encoded = base64.b64encode(b"\0" * before + octets)
        found.append(encoded[(0, 2, 3)[before] : len(encoded) - 4].decode())
    return found


GIVEN_AWAY = re.compile("|".join(map(re.escape, forms_of(MARKER))), re.IGNORECASE)
