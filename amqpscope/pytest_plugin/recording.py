"""Packets of a test, in a file: a thread that takes them from the kernel while the test runs.

Theory of operation. From `start` on the kernel keeps what passes the interface in its ring, so nothing is
missed however late the thread gets to run; it only has to come before the ring is full. The thread writes
packets as they are, and judges nothing: that is for the file, when the block has ended, and takes no time
from the test meanwhile.

To be complete at the end takes two things. What the test has just sent over loopback may still wait in a
queue of the kernel, from which both the receiver and the ring get it; a datagram of our own, sent behind it,
has come back when the queue is through. (What the test has received, the ring has had before it.) Then the
ring is asked how many packets have come into it, and is read until that many were taken. Both are bounded,
and neither is a guess at a time that will do. What has not been sent yet when the block ends, since the
receiver was too slow, or what is under way on other interfaces than loopback, is not waited for.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from amqpscope import __version__
from amqpscope.capture.live.opening import open_source
from amqpscope.capture.live.recorded import SourceRecorder
from amqpscope.capture.packet import PacketDecoder, SegmentSink
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_DRAINING, MAX_QUEUE_WAIT, TEST_RING

__all__ = ["PacketRecording"]

_PATIENCE: Final = 0.5  # seconds to wait for packets; `stop` ends the wait
_LOT: Final = 0.1  # seconds after which the kernel has handed over any packet
_LOOPBACK: Final = ("lo", "any")


class PacketRecording:
    """Records into a file at `path`, from `start` until `stop`, what is sent from and to `ports`.

    interface: its name, or `any`. ports: all of TCP if there are none.

    packets: in the file. lost: that the kernel had no room for. left: that had come and were not taken in the
    time there is for it. failure: why the recording ended early, or "".
    """

    def __init__(self, path: Path, interface: str, ports: Sequence[int]) -> None:
        self.path = path
        self.packets = 0
        self.lost = 0
        self.left = 0
        self.failure = ""
        self._interface = interface
        self._ports = list(ports)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """From now on every packet is taken. Raises CaptureError: NotPermitted, or what else hinders."""
        self._source = open_source(
            [self._interface], any_port=not self._ports, ports=self._ports, buffer_octets=TEST_RING
        )
        try:
            recorder = PcapngRecorder(str(self.path), f"amqpscope {__version__}")
            self._recorded = SourceRecorder(self._source, recorder, "")
        except BaseException:
            self._source.close()
            raise
        self._decoder = PacketDecoder(SegmentSink())
        self._decoder.recorder = recorder
        self._thread = threading.Thread(target=self._run, name="amqpscope recording", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """When it returns the file has every packet that had come. A second call does nothing."""
        thread = self._thread
        if thread is None:
            return
        if self._interface in _LOOPBACK:
            _pass_queue()
        self._stopping.set()
        self._source.wake()
        thread.join(2 * MAX_DRAINING)
        self._thread = None
        if thread.is_alive():  # it holds what it uses for as long as it lives
            self.failure = self.failure or "the recording does not end"
            return
        self.packets = self._source.number
        self.lost = self._source.dropped()
        self._source.close()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._take(_PATIENCE)
            self._drain()
        except CaptureError as error:
            self.failure = str(error)
        except Exception as error:
            self.failure = f"the recording failed: {type(error).__name__}: {error}"
            raise
        finally:
            try:
                self._recorded.finish(time.time_ns())
            except CaptureError as error:
                self.failure = self.failure or str(error)

    def _take(self, seconds: float) -> int:
        """Wait for packets, at most so long, and take what there is. How many packets that were."""
        source = self._source
        source.wait(seconds)
        before = source.dropped()
        taken = source.take(self._decoder)
        self._recorded.describe()
        if source.dropped() > before:
            self._recorded.count_lost()
        self._recorded.recorder.flush(time.time_ns())
        return taken

    def _drain(self) -> None:
        """Take all that had come before the end."""
        source = self._source
        arrived = source.arrived()
        deadline = time.monotonic() + MAX_DRAINING
        while True:
            taken = self._take(_LOT)
            if arrived is None:
                if not taken:
                    return
            else:
                self.left = max(arrived - source.number - source.dropped(), 0)
                if not self.left:
                    return
            if time.monotonic() >= deadline:
                return


def _pass_queue() -> None:
    """Wait until what this thread has sent over loopback before has come out of the kernel's queue."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.settimeout(MAX_QUEUE_WAIT)
        own.sendto(b"amqpscope", own.getsockname())
        own.recv(16)
