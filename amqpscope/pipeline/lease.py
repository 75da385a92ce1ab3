"""One run at a time writes to a lake: a file in the lake names the run that may, and is renewed meanwhile.

    LAKE/_lease.json    {"run": ..., "host": ..., "process": ...}

A run is refused while another one has renewed its lease within STALE seconds, by the clock of the file
system. A run that was killed does not renew it; where this machine can see that its process is gone, the
next run does not wait.

Two runs may begin at the same moment. A local file system gives a file a second name only if nothing has that
name: so a free lease is taken at once, and one of the two runs is refused. On other file systems, and where a
stale lease is taken over, a run writes the file, waits, and reads it back: the file then names one of the two
runs. Before a run commits, it looks again whether the lease is still its own.
"""

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from pyarrow import fs

from amqpscope.pipeline.failure import PipelineError

__all__ = ["LEASE", "Lease"]

LEASE = "_lease"

STALE = 60.0
RENEWED_EVERY = 10.0
"""Seconds after which a lease that was not renewed is taken over, and between two renewals."""

_SETTLED = 0.2
"""Seconds until the file is read back: longer than another run takes from its look to its own writing."""


class Lease:
    """The lease of a lake. system, root: where the lake is. name: what the lake is called."""

    def __init__(self, system: fs.FileSystem, root: str, name: str) -> None:
        self._system = system
        self._root = root
        self._path = f"{root}/{LEASE}.json"
        self._name = name
        self._run = ""
        self._over = threading.Event()
        self._renewing: threading.Thread | None = None

    def refuse_if_held(self, run: str) -> None:
        """Raise PipelineError if a run is at work that writes to the lake. run: of who asks."""
        self._write(run)
        now = self._system.get_file_info(self._own(run)).mtime_ns or 0
        self._system.delete_file(self._own(run))
        held = self._system.get_file_info(self._path)
        if held.type != fs.FileType.File or now - (held.mtime_ns or 0) > STALE * 1e9:
            return
        holder = self._holder()
        if not _gone(holder):
            raise self._refusal(holder)

    def take(self, run: str) -> None:
        """Take the lease for this run, and renew it until it is released."""
        self.refuse_if_held(run)
        if not self._link(run):
            self.refuse_if_held(run)
            self._renew(run)
            time.sleep(_SETTLED)
        self._run = run
        self.check()
        self._clear()
        self._over.clear()
        self._renewing = threading.Thread(target=self._keep, daemon=True)
        self._renewing.start()

    def _clear(self) -> None:
        """Delete what runs have left that were killed as they took the lease."""
        now = self._system.get_file_info(self._path).mtime_ns or 0
        for found in self._system.get_file_info(fs.FileSelector(self._root)):
            if found.base_name.startswith(f"{LEASE}-") and now - (found.mtime_ns or 0) > STALE * 1e9:
                self._system.delete_file(found.path)

    def check(self) -> None:
        """Raise PipelineError if another run has taken the lease over."""
        holder = self._holder()
        if holder.get("run") != self._run:
            self._stop()
            raise self._refusal(holder)

    def release(self) -> None:
        """Another run may begin."""
        run = self._run
        self._stop()
        if run and self._holder().get("run") == run:
            with contextlib.suppress(OSError):
                self._system.delete_file(self._path)

    def _stop(self) -> None:
        self._run = ""
        self._over.set()
        if self._renewing is not None:
            self._renewing.join()
            self._renewing = None

    def _keep(self) -> None:
        run = self._run
        while not self._over.wait(RENEWED_EVERY):
            with contextlib.suppress(OSError):  # the next time, if the file system is back
                if self._holder().get("run") != run:
                    return
                self._renew(run)

    def _own(self, run: str) -> str:
        return f"{self._root}/{LEASE}-{run}"

    def _write(self, run: str) -> None:
        holder = {"run": run, "host": socket.gethostname(), "machine": _machine(), "process": os.getpid()}
        with self._system.open_output_stream(self._own(run)) as file:
            file.write(json.dumps(holder).encode())

    def _renew(self, run: str) -> None:
        self._write(run)
        self._system.move(self._own(run), self._path)

    def _link(self, run: str) -> bool:
        """Make this run's file the lease if there is none. Whether that was possible."""
        if not isinstance(self._system, fs.LocalFileSystem):
            return False
        self._write(run)
        try:
            os.link(self._own(run), self._path)
        except OSError:  # there is one, or the file system has no second names
            return self._holder().get("run") == run  # what a server has done may be reported as undone
        finally:
            self._system.delete_file(self._own(run))
        return True

    def _holder(self) -> dict[str, Any]:
        """What the file says; nothing if there is none, or none that can be read."""
        try:
            with self._system.open_input_stream(self._path) as file:
                holder = json.loads(file.read())
        except (OSError, ValueError):
            return {}
        return holder if isinstance(holder, dict) else {}

    def _refusal(self, holder: dict[str, Any]) -> PipelineError:
        who = f" (process {holder.get('process')} on {holder.get('host')})" if holder else ""
        return PipelineError(f"{self._name}: another run writes to this lake{who}: wait until it ends")


def _machine() -> str:
    """What is different where the number of a process means something else; "" if that cannot be known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _gone(holder: dict[str, Any]) -> bool:
    """Whether the process that holds a lease was on this machine, and is no more."""
    process = holder.get("process")
    if not isinstance(process, int) or not holder.get("machine") or holder["machine"] != _machine():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
