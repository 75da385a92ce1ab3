"""The TLS secrets of a capture, from key logs and from the capture file itself.

A key log (the format of SSLKEYLOGFILE) has a line for each secret: its label, the client random of the
connection, the secret, the last two in hexadecimal. Secrets appear in no output.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from amqpscope.limits import MAX_TLS_SECRETS
from dissectors.wire import i64

__all__ = ["LABELS", "Secrets", "SecretsSource"]

LABELS: Final = frozenset(
    [
        "CLIENT_RANDOM",
        "CLIENT_EARLY_TRAFFIC_SECRET",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ]
)
"""The labels of the secrets that are used. The others are of no use for reading."""

# Octets of a client random, and of the longest secret.
_RANDOM: Final = 32
_LONGEST: Final = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class SecretsSource:
    """Where more secrets may come from."""

    def look_further(self, secrets: "Secrets") -> bool:
        """Give `secrets` what could not be given before. False: there is nothing new."""
        return False


class Secrets:
    """The secrets that are known so far, by client random and label. shared: those of all captures."""

    def __init__(self, shared: "Secrets | None" = None) -> None:
        self.shared: Secrets | None = shared
        self._known: dict[bytes, dict[str, bytes]] = {}
        self._count: i64 = 0
        # Asked when a secret is missing.
        self.sources: list[SecretsSource] = []
        # Somebody gave secrets: whoever misses one wants to know.
        self.given: bool = shared is not None and shared.given
        # They may still be written: what misses one may wait.
        self.growing: bool = shared is not None and shared.growing
        # Client randoms of the connections whose secrets were found, and not taken since (`take_found`).
        self._found: set[bytes] = set()
        # How often a record did not open with what was tried.
        self.trials: i64 = 0
        # How many octets wait for secrets.
        self.waiting: i64 = 0

    def take(self, octets: bytes) -> int:
        """Take the lines of a key log that are secrets. Returns how many there were."""
        taken = 0
        for line in octets.splitlines():
            words = line.split()
            if len(words) == 3 and self._take_secret(words[0], words[1], words[2]):
                taken += 1
        if taken:
            self.given = True
        return taken

    def _take_secret(self, name: bytes, random: bytes, secret: bytes) -> bool:
        label = name.decode("ascii", "replace")
        if label not in LABELS or len(random) != 2 * _RANDOM or len(secret) > 2 * _LONGEST:
            return False
        try:
            key = bytes.fromhex(random.decode("ascii"))
            value = bytes.fromhex(secret.decode("ascii"))
        except ValueError:
            return False
        of_connection = self._known.get(key)
        if of_connection is None:
            of_connection = self._known[key] = {}
        if label not in of_connection:
            self._count += 1
        of_connection[label] = value
        while self._count > MAX_TLS_SECRETS:
            oldest = next(iter(self._known))
            self._count -= len(self._known.pop(oldest))
        return True

    def of(self, random: bytes, wanted: str) -> dict[str, bytes]:
        """The secrets of the connection with this client random, by label. wanted: the one that is needed."""
        found = self._find(random)
        if wanted not in found:
            for source in self.sources:
                if source.look_further(self):
                    found = self._find(random)
        if found:
            self._found.add(random)
        if wanted not in found and self.shared is not None:
            return found | self.shared.of(random, wanted)
        return found

    def known(self) -> bool:
        """Whether there are any."""
        if not self.given:
            for source in self.sources:
                source.look_further(self)
        return self.given

    def take_found(self) -> bytes:
        """The secrets of the connections that asked for theirs since the last call, as lines of a key log."""
        lines = [
            f"{label} {random.hex()} {secret.hex()}\n"
            for random in sorted(self._found)
            for label, secret in self._find(random).items()
        ]
        self._found = set()
        return "".join(lines).encode("ascii")

    def _find(self, random: bytes) -> dict[str, bytes]:
        found = self._known.get(random)
        return {} if found is None else found
