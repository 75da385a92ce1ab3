"""A secret that can be found again, in whatever form it slipped through."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

# Twelve octets, so that its base64 is a part of that of anything it stands in at a multiple of three.
MARKER = "Xq7GEHEIM9zW"


def forms_of(secret: str | bytes) -> list[str]:
    """Everything that would give a secret away, as text in lower case: itself, as Python and JSON write it,
    in hex (dense, and in a hexdump), in base64 and base64url wherever it stands in what was encoded, as
    percent encoding, as Unicode of two octets each.
    """
    octets = secret.encode() if isinstance(secret, str) else secret
    text = octets.decode("latin-1")
    every = "".join(f"%{octet:02x}" for octet in octets)
    wide = [text.encode(form) for form in ("utf-16-le", "utf-16-be")]
    found = [text, repr(octets)[2:-1], every, quote(octets, safe=""), json.dumps(text)[1:-1]]
    found += ["".join(f"\\u{octet:04x}" for octet in octets)]
    for one in (octets, *wide):
        found += [one.hex(), one[:8].hex(" "), one[4:12].hex(" "), one[:8].hex(":")]
    for one in wide:
        found += [one.decode("latin-1"), repr(one)[2:-1], repr(one)[2:-1].replace("\\x", "\\u00")]
    for before in range(3):
        # The characters that depend on the secret alone, wherever it stands in what was encoded.
        encoded = base64.b64encode(bytes(before) + octets)
        dependent = encoded[(0, 2, 3)[before] : len(encoded) - 4].decode()
        found += [dependent, dependent.replace("+", "-").replace("/", "_")]
    # What is shorter may be chance.
    return sorted({one.lower() for one in found if len(one) >= 8})


class SecretSearch:
    """Looks for any of some secrets, in any form."""

    def __init__(self, secrets: Iterable[str | bytes]) -> None:
        self._forms = {form: secret for secret in secrets for form in forms_of(secret)}

    def found_in(self, written: str | bytes) -> str:
        """The first form of a secret in what was written, and what is around it; "" for none."""
        text = (written if isinstance(written, str) else written.decode("latin-1")).lower()
        for form, secret in self._forms.items():
            at = text.find(form)
            if at >= 0:
                return f"{secret!r} as {form!r}: {text[max(at - 200, 0) : at + 200]}"
        return ""


GIVEN_AWAY = re.compile("|".join(map(re.escape, forms_of(MARKER))), re.IGNORECASE)
