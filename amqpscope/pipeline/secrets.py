"""TLS secrets on their way to Spark's workers: asked of the driver, connection by connection.

Theory of operation. The key logs and private keys are read on the driver, and stay there. A worker that meets
a TLS connection asks for the secrets of its client random, or for what a private key decrypts, over a socket
of its own. So neither a task, a shuffle, a log nor a lake has a secret. A task knows where to ask, and a
password that is of no use when the run is over. All connections of a capture set may need what its files
have (pcapng). In the flow plan, the worker that reads a file gives that to the driver, and all files are read
before any connection is analysed.

The data source has no process on the driver that lasts. So it names the files (`SecretsFiles`), and each
worker reads them where it reads the captures; or `register` is given the files, and the process that called
it answers the workers.
"""

import contextlib
import secrets as passwords
import socket
import threading
from multiprocessing.connection import (
    Client,
    Connection,
    answer_challenge,
    deliver_challenge,
)
from typing import Final, NamedTuple

from amqpscope.capture.decompression import Unpacked
from amqpscope.errors import FilterError
from amqpscope.input.key_log import take_blocks, tls_secrets
from amqpscope.layers.secrets import Secrets, SecretsSource, ServerKey
from amqpscope.layers.tls.joining import SealedRecord, candidates, joined
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import READ_ERRORS, open_file

__all__ = ["SecretsAddress", "SecretsFiles", "SecretsServer", "give", "secrets_for"]

_GET: Final = b"g"
_TAKE: Final = b"t"
_FITS: Final = b"f"
_DECRYPT: Final = b"d"
_JOIN: Final = b"j"
"""What a worker asks for: the secrets of a client random, to take a key log, whether a key fits a
certificate, to decrypt, and the secrets that open a record. Behind that: the number of the capture set, or of
the key."""

_NUMBER: Final = 4
_LARGEST: Final = 16 * 1024 * 1024
"""Octets of a question: the largest block of secrets of a capture file that is taken."""


class SecretsAddress(NamedTuple):
    """Where a worker asks. password: of this run. given: the user gave key logs or keys. keys: how many
    private keys there are.
    """

    host: str
    port: int
    password: bytes
    given: bool
    keys: int

    def __repr__(self) -> str:
        return f"SecretsAddress({self.host}:{self.port})"


class SecretsFiles(NamedTuple):
    """Paths of key logs, and of files with private keys, where workers read the captures."""

    logs: tuple[str, ...]
    keys: tuple[str, ...]

    def read(self) -> Secrets | None:
        """What is in them, None if there are no files. Raises PipelineError."""
        try:
            return tls_secrets(self.logs, self.keys)
        except FilterError as error:
            raise PipelineError(str(error)) from error


class SecretsServer:
    """Answers the workers. known: what the user gave, if anything. host: the address of this machine that
    workers reach. Raises PipelineError.
    """

    def __init__(self, known: Secrets | None, host: str) -> None:
        self._known = known or Secrets()
        self._of_sets: dict[int, Secrets] = {}
        self._lock = threading.Lock()
        try:
            self._listener = socket.create_server((host, 0), backlog=64)
        except OSError as error:
            raise PipelineError(
                f"cannot listen on {host} for workers that need TLS secrets: {error}"
            ) from error
        self.address = SecretsAddress(
            host,
            int(self._listener.getsockname()[1]),
            passwords.token_bytes(32),
            known is not None,
            len(self._known.server_keys),
        )
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Nobody is given anything any more."""
        with self._lock, contextlib.suppress(OSError):
            self._known = Secrets()
            self._of_sets = {}
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connected = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(Connection(connected.detach()),), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        # A worker that ends, or whoever does not know the password, costs nobody else anything.
        with contextlib.suppress(Exception), connection:
            deliver_challenge(connection, self.address.password)
            answer_challenge(connection, self.address.password)
            while True:
                connection.send_bytes(self._answer(connection.recv_bytes(_LARGEST)))

    def _answer(self, question: bytes) -> bytes:
        what, rest = question[:1], question[1 + _NUMBER :]
        number = int.from_bytes(question[1 : 1 + _NUMBER], "big")
        if what in (_FITS, _DECRYPT):
            key = self._known.server_keys[number]
            return bytes((key.fits(rest),)) if what == _FITS else key.decrypt(rest)
        with self._lock:
            known = self._of_sets.get(number)
            if known is None:
                known = self._of_sets[number] = Secrets(self._known)
            if what == _TAKE:
                known.take(rest)
                return b""
            if what == _JOIN:
                record = SealedRecord.unpacked(rest)
                found = joined(known, candidates(known, record, b""), record)
                rest = b"" if found is None else found.random
            lines = [f"{label} {rest.hex()} {value.hex()}\n" for label, value in known.of(rest, "").items()]
            return bytes((known.given,)) + "".join(lines).encode()


class _Wire:
    """The connection of this process to a driver."""

    def __init__(self, address: SecretsAddress) -> None:
        self.address = address
        self._connection: Connection | None = None

    def ask(self, what: bytes, number: int, rest: bytes) -> bytes:
        """An answer. Raises PipelineError if the driver cannot be reached."""
        try:
            if self._connection is None:
                where = (self.address.host, self.address.port)
                self._connection = Client(where, "AF_INET", authkey=self.address.password)
            self._connection.send_bytes(what + number.to_bytes(_NUMBER, "big") + rest)
            return self._connection.recv_bytes(_LARGEST)
        except (OSError, EOFError) as error:
            self._connection = None
            raise PipelineError(
                f"the workers cannot reach this machine at {self.address.host}:{self.address.port} for the "
                f"secrets of TLS: {type(error).__name__}"
            ) from None


_wires: dict[SecretsAddress, _Wire] = {}
"""One for each driver that this process has asked."""


def _wire(address: SecretsAddress) -> _Wire:
    found = _wires.get(address)
    if found is None:
        _wires.clear()  # of a run that is over
        found = _wires[address] = _Wire(address)
    return found


class _DriverSecrets(SecretsSource):
    """The secrets that the driver has for a capture set."""

    def __init__(self, address: SecretsAddress, set_number: int) -> None:
        super().__init__()
        self._address = address
        self._set = set_number
        self._asked: set[bytes] = set()

    def look_further(self, secrets: Secrets, random: bytes) -> bool:
        if random in self._asked:
            return False
        self._asked.add(random)
        try:
            answer = _wire(self._address).ask(_GET, self._set, random)
        except PipelineError:
            if self._address.given:
                raise
            return False  # whoever gave the driver something has reached it
        secrets.given = secrets.given or answer[:1] == b"\1"
        return secrets.take(answer[1:]) > 0

    def look_for(self, secrets: Secrets, record: bytes) -> None:
        with contextlib.suppress(PipelineError):
            answer = _wire(self._address).ask(_JOIN, self._set, record)
            secrets.given = secrets.given or answer[:1] == b"\1"
            secrets.take(answer[1:])


class _LaterBlocks(SecretsSource):
    """The secrets in the files of a capture set, looked for in all of them when one is missing."""

    def __init__(self, one: CaptureSet) -> None:
        super().__init__()
        self._set = one
        self._looked = False

    def look_further(self, secrets: Secrets, random: bytes) -> bool:
        if self._looked:
            return False
        self._looked = True
        taken = False
        for file in self._set.files:
            if file.trouble is None:
                with contextlib.suppress(*READ_ERRORS), open_file(file) as stream:
                    read = Unpacked(stream.read).read1 if file.compression else stream.read
                    taken = take_blocks(read, secrets) or taken
        return taken


class _DriverKey(ServerKey):
    """A private key that the driver has."""

    def __init__(self, address: SecretsAddress, number: int) -> None:
        super().__init__()
        self._address = address
        self._number = number

    def fits(self, certificate: bytes) -> bool:
        return _wire(self._address).ask(_FITS, self._number, certificate) == b"\1"

    def decrypt(self, octets: bytes) -> bytes:
        return _wire(self._address).ask(_DECRYPT, self._number, octets)


def secrets_for(address: SecretsAddress | Secrets | None, one: CaptureSet | None, set_number: int) -> Secrets:
    """The secrets that a worker uses for a capture set. one: its files, where the worker reads them whole.
    address: where it asks, or what it has read itself.

    Raises PipelineError if the driver has secrets and cannot be reached.
    """
    if isinstance(address, Secrets):
        found, address = Secrets(address), None
    else:
        found = Secrets()
    if one is not None:
        found.sources.append(_LaterBlocks(one))
    if address is not None:
        found.sources.append(_DriverSecrets(address, set_number))
        found.server_keys = [_DriverKey(address, number) for number in range(address.keys)]
        found.given = address.given
        if address.given:
            _wire(address).ask(_GET, set_number, b"")
    return found


def give(address: SecretsAddress | None, set_number: int, octets: bytes) -> None:
    """A file of a capture set has these lines of a key log: the driver takes them. Raises PipelineError."""
    if address is not None:
        _wire(address).ask(_TAKE, set_number, octets)
