"""`amqpscope ARGUMENTS`, but a worker of the cluster dies: `python dying_worker.py MARK ARGUMENTS`.

The first task that has written its files, and has not reported about them yet, kills its executor and the
worker that has started that, and makes the file MARK.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from amqpscope.cli.main import run
from amqpscope.pipeline import analysis, tasks


def _parent(process: int) -> int:
    """The process that has started another one."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class Dies(tasks.StagedFiles):
    """Writes, and dies before it reports, once."""

    mark: str

    def take(self, made: Any, rows: Any) -> Any:
        report = list(super().take(made, rows))
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield from report
            return
        # This process, the one that forks it, the executor, the worker.
        executor = _parent(os.getppid())
        worker = _parent(executor)
        os.kill(worker, signal.SIGKILL)
        os.kill(executor, signal.SIGKILL)
        os._exit(1)


if __name__ == "__main__":
    Dies.mark = sys.argv[1]
    analysis.StagedFiles = Dies  # type: ignore[misc]
    sys.exit(run(sys.argv[2:]))
