"""The TLS secrets of a capture: from key logs, from the capture file, and from private keys of servers.

A key log (the format of SSLKEYLOGFILE) has a line for each secret: its label, the client random of the
connection, the secret, the last two in hexadecimal. A private key of a server decrypts the secret that the
client sends in an RSA key exchange. Secrets appear in no output.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from amqpscope.limits import MAX_TLS_SECRETS, MAX_TLS_SESSIONS
from dissectors.wire import i64

__all__ = ["LABELS", "Secrets", "SecretsSource", "ServerKey"]

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

# Octets of a client random, and of secrets. Others are of a line that is not whole.
_RANDOM: Final = 32
_SIZES: Final = (32, 48)


@mypyc_attr(allow_interpreted_subclasses=True)
class SecretsSource:
    """Where more secrets may come from."""

    def look_further(self, secrets: "Secrets", random: bytes) -> bool:
        """Give `secrets` what could not be given before. False: there is nothing new. random: the client
        random of the connection that misses a secret; b"" to learn whether there are any.
        """
        return False

    def look_for(self, secrets: "Secrets", record: bytes) -> None:
        """Give `secrets` what may open a record of a connection whose client random is not known. record:
        what `SealedRecord.packed` gave.
        """
        self.look_further(secrets, b"")


@mypyc_attr(allow_interpreted_subclasses=True)
class ServerKey:
    """The private RSA key of a server."""

    def fits(self, certificate: bytes) -> bool:
        """Whether it is the key of this certificate, in DER."""
        return False

    def decrypt(self, octets: bytes) -> bytes:
        """What was encrypted with the public key (PKCS #1 v1.5); anything if the octets were not."""
        return b""


class Secrets:
    """The secrets that are known so far, by client random and label. shared: those of all captures."""

    def __init__(self, shared: "Secrets | None" = None) -> None:
        self.shared: Secrets | None = shared
        self._known: dict[bytes, dict[str, bytes]] = {}
        self._count: i64 = 0
        # Asked when a secret is missing.
        self.sources: list[SecretsSource] = []
        # The private keys of servers, and the master secrets of the sessions that they opened, by the
        # identity or ticket with which a client resumes the session.
        self.server_keys: list[ServerKey] = [] if shared is None else shared.server_keys
        self.sessions: dict[bytes, bytes] = {} if shared is None else shared.sessions
        # Somebody gave secrets: whoever misses one wants to know.
        self.given: bool = shared is not None and shared.given
        # They may still be written: what misses one may wait.
        self.growing: bool = shared is not None and shared.growing
        # Client randoms of the connections whose secrets were found, and not taken since (`take_found`).
        self._found: set[bytes] = set()
        # How often a record did not open with what was tried.
        self.trials: i64 = 0
        # How often secrets were tried on connections whose client random is not known.
        self.joining: i64 = 0
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
        if label not in LABELS or len(random) != 2 * _RANDOM or len(secret) // 2 not in _SIZES:
            return False
        try:
            key = bytes.fromhex(random.decode("ascii"))
            value = bytes.fromhex(secret.decode("ascii"))
        except ValueError:
            return False
        self._add(key, label, value)
        return True

    def _add(self, key: bytes, label: str, value: bytes) -> None:
        of_connection = self._known.get(key)
        if of_connection is None:
            of_connection = self._known[key] = {}
        if label not in of_connection:
            self._count += 1
        of_connection[label] = value
        while self._count > MAX_TLS_SECRETS:
            oldest = next(iter(self._known))
            self._count -= len(self._known.pop(oldest))

    def learn(self, random: bytes, label: str, secret: bytes) -> None:
        """A private key gave this secret of the connection with this client random."""
        if self.shared is not None:
            self.shared.learn(random, label, secret)
        else:
            self._add(random, label, secret)
            self._found.add(random)

    def learn_session(self, name: bytes, master: bytes) -> None:
        """A client may resume the session with this master secret by this identity or ticket."""
        while len(self.sessions) >= MAX_TLS_SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        self.sessions[name] = master

    def of(self, random: bytes, wanted: str) -> dict[str, bytes]:
        """The secrets of the connection with this client random, by label. wanted: the one that is needed."""
        found = self._find(random)
        if wanted not in found:
            for source in self.sources:
                if source.look_further(self, random):
                    found = self._find(random)
        if found:
            self._found.add(random)
        if wanted not in found and self.shared is not None:
            return found | self.shared.of(random, wanted)
        return found

    def newest(self, most: i64) -> list[tuple[bytes, dict[str, bytes]]]:
        """The secrets of the newest connections, so many at most, by client random and label."""
        found = list(reversed(self._known.items()))[:most]
        if self.shared is not None and len(found) < most:
            found += self.shared.newest(most - len(found))
        return found

    def look_for(self, record: bytes) -> None:
        """A record of a connection whose client random is not known needs a secret: look everywhere."""
        for source in self.sources:
            source.look_for(self, record)
        if self.shared is not None:
            self.shared.look_for(record)

    def known(self) -> bool:
        """Whether there are any."""
        if not self.given:
            for source in self.sources:
                source.look_further(self, b"")
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
