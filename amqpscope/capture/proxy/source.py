"""The proxy itself: it listens, opens a connection to the target for each client, and keeps their packets.

All of it is one asyncio loop, which runs while somebody waits for packets. So nothing happens at the same
time, octets are forwarded before they are judged, and clients that send more than can be judged wait as for
any slow peer.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from amqpscope.capture.link_layer import LINK_ETHERNET
from amqpscope.capture.live.source import LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.proxy.address import show_address
from amqpscope.capture.proxy.encryption import Encryption
from amqpscope.capture.proxy.faults import Fault
from amqpscope.capture.proxy.packets import ACK, CLIENT, RST, SERVER, SYN, SyntheticConnection
from amqpscope.capture.proxy.relay import Exchange, Relay
from amqpscope.capture.proxy.side import Side
from amqpscope.capture.proxy.watchful_selector import WatchfulSelector
from amqpscope.errors import CaptureError

__all__ = ["MAX_CONNECTIONS", "ProxySource"]

MAX_CONNECTIONS: Final = 256
"""Connections at a time, if nothing else is said. Each takes at most half a megabyte."""

_ACCEPTED_AT_ONCE: Final = 64
_WAITING_OCTETS: Final = 4 * 1024 * 1024
"""Octets of packets that wait to be taken, from which on nothing is read."""

_CONNECT: Final = 10.0
"""Seconds for the target to be found, to accept, and to begin TLS; and for a client to begin TLS."""

_CONNECT_FIRST: Final = 3.0
"""Seconds for the target to accept at an address, if it has further ones."""

_DRAIN: Final = 1.0
"""Seconds at the end in which peers get what was read for them."""

_REPORTED: Final = 10.0
"""Seconds in which the same failure is reported once; then only how many more times there were."""

_FAILURES: Final = 32
"""Different failures that are counted apart. Their texts come from few causes."""


class _Failure:
    """A failure that was reported. reported: when, count: how often it came again since."""

    def __init__(self, reported: float) -> None:
        self.reported = reported
        self.count = 0


class ProxySource(LiveSource, Exchange):
    """Listens at `listen` and forwards to `target`, both host and port.

    to_tls, listen_tls: TLS with the target and with clients, None without. connections: at a time. faults:
    what is done to each connection. Raises CaptureError if it cannot listen there.
    """

    buffered = False

    def __init__(
        self,
        listen: tuple[str, int],
        target: tuple[str, int],
        *,
        to_tls: ssl.SSLContext | None = None,
        listen_tls: ssl.SSLContext | None = None,
        connections: int = MAX_CONNECTIONS,
        faults: Sequence[Fault] = (),
    ) -> None:
        self._listener = _listener(listen)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._target = target
        super().__init__(f"{show_address(*self.address)} for {show_address(*target)}")
        self.interfaces.append(LiveInterface("proxy", self.name, LINK_ETHERNET, True))
        self._to_tls = to_tls
        self._listen_tls = listen_tls
        self._most = connections
        self._faults = tuple(faults)
        self._remarks: list[tuple[int, str]] = []
        self._closed = False
        self._packets: list[tuple[int, bytes]] = []
        self._octets = 0  # of the packets that wait
        self._taken = 0  # of those that were taken last
        self._number = 0
        self._time = 0  # of the newest packet
        self._serial = 0
        self._relays: dict[Relay, None] = {}
        self._openings: set[asyncio.Task[None]] = set()
        self._connecting = 0  # clients without a relay so far
        self._failures: dict[str, _Failure] = {}  # by what failed
        self.loop = asyncio.SelectorEventLoop(WatchfulSelector(self._was_blind))
        self.loop.set_exception_handler(self._failed_within)
        self.loop.add_reader(self._wake_reader, self._woken)
        self.loop.add_reader(self._listener.fileno(), self._accept)

    # A source of packets.

    @property
    def number(self) -> int:
        return self._number

    def wait(self, seconds: float) -> None:
        if not self._packets and not self._events:
            self._turn(seconds)

    def take(self, decoder: PacketDecoder) -> int:
        """Hand on all packets: there are never many."""
        packets, self._packets = self._packets, []
        self._taken, self._octets = self._octets, 0
        decoder.interface = 0
        for moment, packet in packets:
            self._number += 1
            decoder.packet(self._number, moment, LINK_ETHERNET, packet, 0, len(packet), len(packet))
        return len(packets)

    def dropped(self) -> int:
        return 0

    def drops(self, index: int) -> int:
        return 0

    def fill(self) -> float:
        """How much of what may wait was there when it was taken."""
        return min(self._taken / _WAITING_OCTETS, 1.0)

    def ended(self) -> bool:
        return False

    def close(self) -> None:
        """End. What was read is still handed on, if the peers take it soon."""
        if self.loop.is_closed():
            return
        self._closed = True
        self.loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for task in self._openings:
            task.cancel()
        for relay in self._relays:
            relay.stop_reading()
        deadline = time.monotonic() + _DRAIN
        while (
            self._openings or any(relay.waiting for relay in self._relays)
        ) and time.monotonic() < deadline:
            self._turn(0.01)
        for relay in list(self._relays):
            relay.close()
        self.loop.close()
        super().close()

    def _waiting(self) -> bool:
        return bool(self._packets)

    def _stirred(self, descriptor: int) -> bool:
        return True

    # What relays do.

    @property
    def full(self) -> bool:
        return self._octets >= _WAITING_OCTETS

    def emit(self, packet: bytes, time: int = 0) -> None:
        self._time = max(self._time, time or _now())
        self._packets.append((self._time, packet))
        self._octets += len(packet)
        self.loop.stop()

    def remark(self, text: str) -> None:
        self._remarks.append((self._number + len(self._packets), text))

    def take_remarks(self) -> list[tuple[int, str]]:
        remarks, self._remarks = self._remarks, []
        return remarks

    def report(self, text: str) -> None:
        self._events.append(text)
        self.loop.stop()

    def over(self, relay: Relay) -> None:
        self._relays.pop(relay, None)

    # Connections.

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                raw, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # Too many open files: those that wait are accepted when one of them is closed.
                self._fail(f"cannot accept a connection: {error.strerror or error}")
                self.loop.remove_reader(self._listener.fileno())
                self.loop.call_later(1, self._accept_again)
                return
            raw.setblocking(False)
            name = show_address(*address[:2])
            if len(self._relays) + self._connecting >= self._most:
                self._fail(
                    f"a connection was refused: {self._most} connections are open, which is the maximum"
                )
                Side(raw).close(True)
                continue
            self._connecting += 1
            task = self.loop.create_task(self._open(Side(raw), address[:2], name))
            self._openings.add(task)
            task.add_done_callback(self._openings.discard)

    def _accept_again(self) -> None:
        if not self._closed:
            self.loop.add_reader(self._listener.fileno(), self._accept)

    async def _open(self, client: Side, address: tuple[str, int], name: str) -> None:
        """Open the connection to the target, and forward."""
        relay: Relay | None = None
        try:
            self._serial += 1
            try:
                raw, found = await self._connect()
            finally:
                self._connecting -= 1
            if found is None:
                client.close(True)
                return
            connection = SyntheticConnection(address, found, self._serial)
            if raw is None:
                self.emit(connection.packet(CLIENT, SYN, 0))
                self.emit(connection.packet(SERVER, RST | ACK, 0))
                client.close(True)
                return
            relay = Relay(self, connection, client, Side(raw), name, self._faults)
            self._relays[relay] = None
            relay.open()
            if await self._secure(relay):
                relay.start()
        except BaseException:
            if relay is None:
                client.close(True)
            else:
                relay.close(True)
            raise

    async def _connect(self) -> tuple[socket.socket | None, tuple[str, int] | None]:
        """A socket connected to the target, None if there is none, and the address; None: there is none."""
        shown = show_address(*self._target)
        address: tuple[str, int] | None = None
        reason = "it has no address"
        try:
            async with asyncio.timeout(_CONNECT):
                places = await self._addresses(*self._target)
        except (OSError, UnicodeError) as error:  # the second: no name of a host looks like that
            places, reason = [], _reason(error)
        for number, (family, kind, protocol, _, full) in enumerate(places, 1):
            address = (str(full[0]), int(full[1]))
            if self._is_own(address):
                reason = "it is the address of the proxy itself"
                break
            raw = socket.socket(family, kind, protocol)
            raw.setblocking(False)
            try:
                async with asyncio.timeout(_CONNECT if number == len(places) else _CONNECT_FIRST):
                    await self.loop.sock_connect(raw, full)
            except BaseException as error:
                raw.close()
                if not isinstance(error, OSError):
                    raise
                reason = _reason(error)
            else:
                return raw, address
        self._fail(f"cannot connect to {shown}: {reason}")
        return None, address

    async def _addresses(self, host: str, port: int) -> list[Any]:
        """What `socket.getaddrinfo` gives. A name may take long: nobody waits for this thread at the end."""
        answer: asyncio.Future[list[Any]] = self.loop.create_future()

        def settle(found: list[Any], error: Exception | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)

        def ask() -> None:
            found, error = [], None
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as failure:
                error = failure
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(settle, found, error)

        threading.Thread(target=ask, name="addresses of the target", daemon=True).start()
        return await answer

    def _is_own(self, address: tuple[str, int]) -> bool:
        """Whether this proxy listens at an address."""
        if address == self.address:
            return True
        host, port = self.address
        if address[1] != port or host not in ("0.0.0.0", "::"):  # noqa: S104  it is compared, not bound
            return False
        with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as probe:
            try:
                probe.bind((address[0], 0))
            except OSError:
                return False  # of another machine
        return True

    async def _secure(self, relay: Relay) -> bool:
        """Begin TLS where it was asked for. False: it failed, and the connection is over."""
        for side, context in ((SERVER, self._to_tls), (CLIENT, self._listen_tls)):
            if context is None:
                continue
            end = relay.sides[side]
            encryption = Encryption(context, self._target[0] if side == SERVER else None)
            try:
                async with asyncio.timeout(_CONNECT):
                    await encryption.shake_hands(end.raw)
            except (OSError, TimeoutError) as error:
                who = show_address(*self._target) if side == SERVER else relay.name
                reason = _reason(error)
                # Every client has a port of its own, so that of clients only the reason is the same.
                common = "" if side == SERVER else f"TLS with clients failed: {reason}"
                self._fail(f"TLS with {who} failed: {reason}", common)
                relay.fail(side)
                return False
            end.encrypt(encryption)
        return True

    def _fail(self, text: str, common: str = "") -> None:
        """Report a failure. A client may try again very often, and there may be many clients.

        common: what all failures of this kind have in common, without the one client; "" if that is the text.
        The first one is reported in full, and then how many more there were, after a while and at the end.
        """
        common = common or text
        now = time.monotonic()
        known = self._failures.get(common)
        if known is None:
            self._report_failures()
            if len(self._failures) >= _FAILURES:
                self._failures.clear()
            self._failures[common] = _Failure(now)
            self.report(text)
            return
        known.count += 1
        if now - known.reported >= _REPORTED:
            self._report_failures(common)

    def report_rest(self) -> None:
        self._report_failures()

    def _report_failures(self, only: str = "") -> None:
        """Report how often something has failed again. only: this failure; else all of them."""
        for text, failure in self._failures.items():
            if failure.count and only in ("", text):
                times = "once more" if failure.count == 1 else f"{failure.count} more times"
                self.report(f"{text} ({times})")
                failure.count, failure.reported = 0, time.monotonic()

    # The loop.

    def _turn(self, seconds: float) -> None:
        """Let the loop run until there is something to take, but at most so long."""
        timer = self.loop.call_later(seconds, self.loop.stop)
        try:
            self.loop.run_forever()
        finally:
            timer.cancel()

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_reader, 4096)
        self.loop.stop()

    def _was_blind(self, since: int, until: int) -> None:
        for relay in list(self._relays):
            relay.was_blind(since, until)

    def _failed_within(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error of ours ends one connection, not the proxy."""
        error = context.get("exception")
        self.report(f"internal error while forwarding: {error!r}" if error else str(context.get("message")))


def _listener(listen: tuple[str, int]) -> socket.socket:
    shown = show_address(*listen)
    try:
        found = socket.getaddrinfo(*listen, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listener = socket.create_server(listen, family=found[0][0], backlog=1024)
    except (OSError, UnicodeError) as error:  # the second: no name of a host looks like that
        raise CaptureError(f"cannot listen on {shown}: {_reason(error)}") from error
    listener.setblocking(False)
    return listener


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    if isinstance(error, TimeoutError) and getattr(error, "errno", None) != errno.ETIMEDOUT:
        return "it did not answer in time"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)  # asyncio has words of its own
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


def _now() -> int:
    return time.time_ns()
