"""What both directions of a TLS connection share: the handshake, and the keys that it leads to.

Theory of operation. Messages of the handshake tell the version, the suite and the randoms; the client random
finds the secrets. Each direction gets a chain of ciphers: that of its records now, and behind it those that
may follow (TLS 1.3: early data, handshake, application data). The messages that change keys move a direction
on in its chain. So does a record that opens only with a later cipher: then those messages were lost.
"""

import importlib.util
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqpscope.layers.interface import LayerContext
from amqpscope.layers.tls import handshake
from amqpscope.layers.tls.ciphers import APPLICATION, EARLY, HANDSHAKE, RecordCipher, Traffic13, cipher_of
from amqpscope.layers.tls.handshake import Hello
from amqpscope.layers.tls.joining import LABELS13, MASTER, SUITES, SealedRecord, candidates, joined
from amqpscope.layers.tls.key_exchange import KeyExchange
from amqpscope.layers.tls.suites import suite
from amqpscope.limits import (
    MAX_TLS_ALERTS,
    MAX_TLS_JOIN_GUESSES,
    MAX_TLS_JOIN_NUMBERS,
    MAX_TLS_JOIN_RECORDS,
    MAX_TLS_WAITING,
    MAX_TLS_WAITING_ALL,
)
from amqpscope.model.tls_facts import TlsAlert, TlsFacts
from amqpscope.reassembly.provenance import Provenance
from dissectors.wording import count

if TYPE_CHECKING:
    from amqpscope.layers.tls.stream import TlsStream

__all__ = ["ALERT", "CHANGE_CIPHER", "DATA", "MESSAGES", "HeldOctets", "TlsSession"]

CHANGE_CIPHER: Final = 20
ALERT: Final = 21
MESSAGES: Final = 22
DATA: Final = 23
"""Types of records; the last one is that of application data, and of all protected records of TLS 1.3."""

_TLS13: Final = 0x0304
_VERSIONS: Final = {
    0x0300: "SSL 3.0",
    0x0301: "TLS 1.0",
    0x0302: "TLS 1.1",
    0x0303: "TLS 1.2",
    0x0304: "TLS 1.3",
}


# What holding a piece costs beside its octets.
_EACH: Final = 128

NOWHERE: Final = Provenance(0, 0, -1)
"""Of what no packet shows."""


class HeldOctets(NamedTuple):
    """Octets of a direction that wait, or how many are missing there."""

    direction: int
    offset: int
    octets: bytes
    missing: int
    provenance: Provenance


class TlsSession:
    """The session of one connection. client: the direction of the client."""

    def __init__(self, context: LayerContext, client: int) -> None:
        self.context = context
        self.client = client
        self.streams: list[TlsStream] = []
        self.version = 0
        self.suite = 0
        self.client_random = b""
        self.server_random = b""
        self.encrypt_then_mac = False
        self.compressed = False
        # The messages of the last handshake; only where there are private keys.
        self.exchange = KeyExchange()
        # Which directions have sent ChangeCipherSpec, before TLS 1.3.
        self.changed: set[int] = set()
        # What becomes of 0-RTT data: "" (there are none), `offered`, `taken` or `refused`.
        self.early = ""
        # Directions that lack a secret which may still come, what has come of both since, and how much of it.
        self.lacking: list[int] = []
        self.held: list[HeldOctets] = []
        self.held_octets = 0
        self.patient = context.secrets.growing
        # The capture begins in the middle of the connection; only the ClientHello was not captured. Of each
        # direction, how many records were tried to find out whose secrets open them.
        self.midstream = False
        self.unheard = False
        self.tried = [0, 0]
        connection = context.notes.connection
        self.facts = connection.tls or TlsFacts()
        if connection.tls is None:
            self.facts.client = client
            connection.tls = self.facts
            connection.encrypted = True
            if not connection.protocol:
                connection.protocol = "tls"

    @property
    def tls13(self) -> bool:
        return self.version >= _TLS13

    @property
    def sought(self) -> bool:
        """Whether the client random is to be found by trying the secrets that there are."""
        return (self.midstream or self.unheard) and not self.client_random

    def role(self, direction: int) -> int:
        """0 for the client's direction, 1 for the server's."""
        return direction ^ self.client

    # Messages

    def follow(self, direction: int, kind: int, place: Provenance) -> None:
        """A record of the handshake, of which perhaps only the type can be read."""
        facts = self.facts
        by_client = direction == self.client
        if kind == ALERT:
            return
        if by_client:
            facts.client_packet, facts.client_time = place.packet, place.time
        else:
            facts.server_packet, facts.server_time = place.packet, place.time
        if kind == CHANGE_CIPHER and self.version and not self.tls13:
            self.changed.add(direction)
        # The client is the last to send its part in TLS 1.3; before, both send ChangeCipherSpec.
        protected = kind == DATA and bool(self.version)
        facts.agreed = len(self.changed) == 2 or (protected and (by_client or not self.tls13))

    def message(self, direction: int, kind: int, body: bytes, place: Provenance) -> None:
        """A whole message of a handshake, in the clear or decrypted."""
        by_client = direction == self.client
        facts = self.facts
        if self.context.secrets.server_keys:
            if kind == handshake.CLIENT_HELLO and by_client:
                self.exchange = KeyExchange()
            self.exchange.take(by_client, kind, body, self.context.secrets)
        if kind == handshake.CLIENT_HELLO and by_client:
            self.client_hello(handshake.client_hello(body))
        elif kind == handshake.SERVER_HELLO and not by_client:
            self.server_hello(handshake.server_hello(body), place)
        elif kind == handshake.ENCRYPTED_EXTENSIONS and not by_client:
            self.choices(handshake.read_extensions(body))
            if self.early == "offered":
                taken = handshake.EARLY_DATA in handshake.read_extensions(body)
                self.settle_early(taken)
        elif kind == handshake.CERTIFICATE:
            der = handshake.certificates(body, self.tls13)
            read = handshake.certificate(der) if der else None
            if by_client:
                facts.client_certificate = read
                facts.certificate_refused = der == b""
            elif read is not None:
                facts.server_certificate = read
        elif kind == handshake.CERTIFICATE_REQUEST and not by_client:
            facts.certificate_requested = True
        elif self.tls13:
            self.change_keys(direction, kind)

    def change_keys(self, direction: int, kind: int) -> None:
        """The messages of TLS 1.3 behind which other keys hold."""
        stream = self.streams[direction]
        if kind == handshake.FINISHED:
            stream.advance(APPLICATION)
        elif kind == handshake.END_OF_EARLY_DATA:
            self.settle_early(True)
            stream.advance(HANDSHAKE)
        elif kind == handshake.KEY_UPDATE and stream.chain:
            now = stream.chain[0]
            if isinstance(now, Traffic13):
                stream.chain = [now.updated()]

    def client_hello(self, hello: Hello) -> None:
        """The client begins a handshake, or goes on with one that the server wants begun again."""
        facts = self.facts
        facts.server_name = handshake.server_name(hello.extensions) or facts.server_name
        facts.offered = handshake.protocols(hello.extensions) or facts.offered
        self.know_client(hello.random)
        if handshake.EARLY_DATA in hello.extensions:
            self.early = "offered"
            secret = self.secrets("CLIENT_EARLY_TRAFFIC_SECRET").get("CLIENT_EARLY_TRAFFIC_SECRET", b"")
            if secret:
                self.give(self.client, self.traffic(secret, EARLY))

    def know_client(self, random: bytes) -> None:
        """The client random became known."""
        if len(random) == 32:
            self.client_random = random
            self.facts.random = random.hex()

    def server_hello(self, hello: Hello, place: Provenance) -> None:
        """The server has chosen."""
        facts = self.facts
        self.version = hello.version
        facts.version = _VERSIONS.get(hello.version, f"version 0x{hello.version:04X}")
        self.suite = hello.suite
        facts.suite = suite(hello.suite).name
        self.choices(hello.extensions)
        if hello.retry:
            self.settle_early(False)
            return
        self.server_random = hello.random
        self.compressed = hello.compressed
        self.encrypt_then_mac = handshake.ENCRYPT_THEN_MAC in hello.extensions
        if self.tls13:
            for direction in (0, 1):
                self.begin_traffic(direction, place)

    def choices(self, extensions: dict[int, bytes]) -> None:
        """What the server's extensions choose."""
        chosen = handshake.protocols(extensions)
        if len(chosen) == 1:
            self.facts.alpn = chosen[0]

    def settle_early(self, taken: bool) -> None:
        """It is known whether the server takes 0-RTT data."""
        if self.early == "offered":
            self.early = "taken" if taken else "refused"
            self.streams[self.client].give_early(taken)

    # Keys

    def secrets(self, wanted: str) -> dict[str, bytes]:
        """The secrets of the connection, by label. wanted: the one that is needed."""
        return self.context.secrets.of(self.client_random, wanted)

    def traffic(self, secret: bytes, stage: int) -> list[RecordCipher]:
        """The ciphers of a traffic secret: of each suite that it may be for."""
        codes = (self.suite,) if self.tls13 and stage != EARLY else SUITES.get(len(secret), ())
        found: list[RecordCipher] = []
        for code in codes:
            of = suite(code)
            if of.tls13 and of.mode and has_cryptography():
                cipher = Traffic13(of, secret)
                cipher.stage = stage
                found.append(cipher)
        return found

    def begin_traffic(self, direction: int, place: Provenance) -> None:
        """Give a direction the ciphers of TLS 1.3."""
        labels = LABELS13[self.role(direction)]
        secrets = self.secrets(labels[1])
        chain: list[RecordCipher] = []
        for stage, label in zip((HANDSHAKE, APPLICATION), labels, strict=True):
            if label in secrets:
                chain += self.traffic(secrets[label], stage)
        if not chain or chain[-1].stage != APPLICATION:
            self.lack(direction, labels[1], labels[1] in secrets, place)
        else:
            self.give(direction, chain)

    def give(self, direction: int, chain: list[RecordCipher]) -> None:
        """A direction goes on with these behind what it has."""
        self.streams[direction].chain += chain

    def change_cipher(self, direction: int, place: Provenance) -> None:
        """ChangeCipherSpec: a direction goes on with the keys of its last handshake (TLS 1.2 and before)."""
        cipher = self.cipher12(direction, place)
        if cipher is not None:
            self.streams[direction].chain = [cipher]

    def cipher12(self, direction: int, place: Provenance) -> RecordCipher | None:
        """The cipher of the last handshake of TLS 1.2 and before; None if there cannot be one."""
        of = suite(self.suite)
        master = self.master()
        if (
            len(master) != 48
            or not self.server_random
            or self.compressed
            or not of.mode
            or not has_cryptography()
        ):
            self.lack(direction, MASTER, bool(master), place)
            return None
        randoms = (self.client_random, self.server_random)
        try:
            return cipher_of(of, self.version, master, randoms, self.role(direction), self.encrypt_then_mac)
        except ValueError:
            self.unreadable(
                direction,
                ("this system does not allow the digest algorithms of TLS versions before 1.2"),
                place,
            )
            return None

    def master(self) -> bytes:
        """The master secret of TLS 1.2 and before, of a key log or by a private key; b"" for none."""
        secrets = self.context.secrets
        master = self.secrets(MASTER).get(MASTER, b"")
        if not master and secrets.server_keys and self.server_random:
            randoms = self.client_random + self.server_random
            master = self.exchange.secret(self.version, suite(self.suite), randoms, secrets)
            if master:
                secrets.learn(self.client_random, MASTER, master)
        return master

    def recover(self, direction: int, place: Provenance) -> None:
        """Octets of the handshake are missing in a direction without a cipher: give it what can follow."""
        stream = self.streams[direction]
        self.exchange.torn = True
        if direction == self.client and not self.client_random and stream.messages[:1] == b"\1":
            self.know_client(bytes(stream.messages[6:38]))
        if direction == self.client and not self.server_random:
            return
        if self.server_random:
            cipher = None if self.tls13 else self.cipher12(direction, place)
            if cipher is not None:
                stream.chain = [cipher]
            return
        if "SERVER_TRAFFIC_SECRET_0" in self.secrets("SERVER_TRAFFIC_SECRET_0"):
            for one in (0, 1):
                if not self.streams[one].chain or self.early:
                    self.begin_traffic(one, place)
        else:
            what = "the ServerHello was not captured, and no keys can be computed without it"
            for one in (0, 1):
                self.unreadable(one, what, place)

    # The client random is not known

    def sealed(self, direction: int, kind: int) -> bool:
        """Whether a record of this type is protected, of a direction without a cipher."""
        return kind == DATA or (kind == MESSAGES and direction in self.changed)

    def join(
        self, direction: int, header: bytes, body: bytes, before: bytes | None, lost: int, place: Provenance
    ) -> bytes | None:
        """What a record carries of a direction without a cipher; None if no secret opens it. before: as
        `RecordCipher.open` takes it. lost: how many records may have been lost before it.
        """
        secrets = self.context.secrets
        stream = self.streams[direction]
        older = 0 < self.version < _TLS13
        may_be = header[0] == DATA or (older and header[0] == MESSAGES and not handshake.in_clear(body))
        if not may_be or stream.opaque or not has_cryptography():
            return None
        record = self.known_of(direction)._replace(header=header, body=body, before=before)
        if not self.midstream:
            record = record._replace(numbers=lost + 1)
        elif self.tried[direction] < MAX_TLS_JOIN_GUESSES:
            record = record._replace(numbers=MAX_TLS_JOIN_NUMBERS)
        if not self.client_random:
            secrets.look_for(record.packed())
        tried = candidates(secrets, record, self.client_random)
        found = joined(secrets, tried, record)
        # A client writes its secrets before it answers the server.
        if not (self.patient and self.unheard and direction != self.client and not self.tried[self.client]):
            self.tried[direction] += 1
        if found is None:
            if self.tried[direction] >= MAX_TLS_JOIN_RECORDS or not (tried or self.patient):
                self.cannot_join(direction, place)
            return None
        if record.sender < 0:
            self.client = direction if found.label == LABELS13[0][1] else 1 - direction
            self.facts.client = self.client
        if not self.version:
            self.version = _TLS13
            self.facts.version = _VERSIONS[_TLS13]
        self.know_client(found.random)
        self.suite = found.cipher.suite.code
        self.facts.suite = found.cipher.suite.name
        if self.tls13:
            self.begin_traffic(direction, place)
            stream.advance(found.cipher.stage)
        stream.chain[:1] = [found.cipher]
        return found.content

    def known_of(self, direction: int) -> SealedRecord:
        """What is known of the protected records of a direction."""
        sender = -1 if self.midstream and not self.client_random else self.role(direction)
        return SealedRecord(
            self.version, self.suite, self.server_random, sender, self.encrypt_then_mac, 0, None, b"", b""
        )

    def cannot_join(self, direction: int, place: Provenance) -> None:
        """A direction cannot be read, since its beginning was not captured."""
        of = len({one[0] for one in candidates(self.context.secrets, self.known_of(direction), b"")})
        reason = "the beginning of the connection was not captured"
        needed = "; for TLS 1.2 and older versions, amqpscope needs the handshake"
        if self.unheard:
            reason, needed = "the ClientHello was not captured", ""
        records = count(self.tried[direction], "record")
        if not self.context.secrets.given:
            reason = "there are no TLS secrets"
        elif not of:
            reason += f", and there are no secrets of {self.facts.version or 'TLS 1.3'}{needed}"
        elif self.tried[direction]:
            reason += (
                f", and none of the secrets of {count(of, 'connection')} decrypts any of {records}{needed}"
            )
        self.unreadable(direction, reason, place)

    # What waits for secrets

    def hold(self, held: HeldOctets) -> None:
        """What comes of a direction while a secret is awaited."""
        secrets = self.context.secrets
        self.held.append(held)
        self.held_octets += len(held.octets) + _EACH
        secrets.waiting += len(held.octets) + _EACH
        full = self.held_octets > MAX_TLS_WAITING or secrets.waiting > MAX_TLS_WAITING_ALL
        labels = [LABELS13[self.role(one)][1] if self.tls13 else MASTER for one in self.lacking]
        if full or all(label in self.secrets(label) for label in labels):
            self.resume(full)

    def resume(self, last: bool) -> None:
        """Try again; last: nothing is awaited any longer."""
        if last:
            self.patient = False
        lacking, held = self.lacking, self.held
        self.lacking, self.held = [], []
        self.context.secrets.waiting -= self.held_octets
        self.held_octets = 0
        for direction in lacking:
            if self.tls13:
                self.begin_traffic(direction, NOWHERE)
            else:
                self.change_cipher(direction, NOWHERE)
        for one in held:
            stream = self.streams[one.direction]
            if one.missing:
                stream.gap(one.offset, one.missing, one.provenance.packet, one.provenance.time)
            else:
                stream.data(one.offset, one.octets, 0, len(one.octets), one.provenance)

    # What cannot be read

    def lack(self, direction: int, label: str, known: bool, place: Provenance) -> None:
        """There is no cipher for a direction. label: of the secret that it needs. known: there was one."""
        of = suite(self.suite)
        if self.compressed:
            self.unreadable(direction, "the TLS records are compressed", place)
        elif self.suite and not of.mode:
            self.unreadable(direction, f"the cipher suite {of.name} is not supported", place)
        elif not self.context.secrets.given:
            self.unreadable(direction, "there are no TLS secrets", place)
        elif self.sought and has_cryptography():
            pass  # the records show whose secrets they need
        elif not known and self.patient:
            self.lacking.append(direction)
        elif not known:
            self.unreadable(direction, self.without(label), place)
        elif not has_cryptography():
            what = 'the package cryptography is missing (pip install "amqpscope[tls]")'
            self.unreadable(direction, what, place)
        else:
            self.unreadable(
                direction, f"the secret {label} of the key log does not fit the cipher suite", place
            )

    def without(self, label: str) -> str:
        """Why there is no secret of this label."""
        reason = f"there is no secret {label} for the client random {self.facts.random}"
        if not self.context.secrets.server_keys:
            return reason
        why = self.exchange.reason
        if self.tls13:
            why = (
                "a private key (--tls-key) cannot decrypt TLS 1.3, but only RSA key exchange in older "
                "versions of TLS"
            )
        return f"{why}; {reason}" if why else reason

    def unreadable(self, direction: int, reason: str, place: Provenance) -> None:
        """A direction cannot be read from here on."""
        stream = self.streams[direction]
        if stream.opaque:
            return
        stream.be_opaque()
        notes = self.context.notes
        notes.connection.encrypted = True
        if self.facts.unread:
            return
        self.facts.unread = reason
        if self.context.secrets.given:
            notes.report("capture/tls", place.packet, place.time, f"TLS is not decrypted: {reason}")

    def decrypted(self, place: Provenance) -> None:
        """Application data can be read."""
        if not self.facts.decrypted:
            self.facts.decrypted = True
            if not self.facts.unread:
                self.context.notes.connection.encrypted = False
            for stream in self.streams:
                if stream.opaque:
                    stream.leave(stream.at + len(stream.pending), place)

    def alert(self, direction: int, octets: bytes, place: Provenance) -> None:
        """An alert: two octets, or more if it cannot be read."""
        alerts = self.facts.alerts
        if len(alerts) < MAX_TLS_ALERTS:
            name = "encrypted"
            if len(octets) == 2:
                name = handshake.ALERTS.get(octets[1], f"alert {octets[1]}")
            alerts.append(TlsAlert(direction, octets[:1] == b"\2", name, place.packet, place.time))

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        chosen = (self.version, self.suite, self.client_random, self.server_random)
        held = [(*one[:4], one.provenance.dump()) for one in self.held]
        flags = (
            self.encrypt_then_mac,
            self.compressed,
            self.patient,
            (self.midstream, self.unheard),
            tuple(self.tried),
            tuple(self.changed),
        )
        return (chosen, flags, self.early, self.lacking, held, self.exchange.dump())

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        chosen, flags, self.early, lacking, held, exchange = state
        self.encrypt_then_mac, self.compressed, self.patient, missed, tried, changed = flags
        self.midstream, self.unheard = missed
        self.changed = set(changed)
        self.tried = list(tried)
        self.exchange = KeyExchange.load(exchange)
        self.lacking = list(lacking)
        self.held = [
            HeldOctets(direction, offset, octets, missing, Provenance(*place))
            for direction, offset, octets, missing, place in held
        ]
        self.held_octets = sum(len(one.octets) + _EACH for one in self.held)
        self.version, self.suite, self.client_random, self.server_random = chosen


def has_cryptography() -> bool:
    """Whether the package for the primitives is installed."""
    return importlib.util.find_spec("cryptography") is not None
