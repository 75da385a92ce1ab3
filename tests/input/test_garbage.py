"""The collector of cyclic garbage in a process that only does tasks."""

from __future__ import annotations

import subprocess
import sys

WORKER = """
import gc
from amqpscope.input.garbage import calm_worker
frozen = []
loaded = []
for task in range(5):
    calm_worker()
    frozen.append(gc.get_freeze_count())
    loaded.append([[] for _ in range(1000)])
print(*frozen)
"""


def test_what_first_tasks_load_is_not_looked_through() -> None:
    """What a task has loaded is frozen where the next one begins, for three tasks; what later ones make is
    not, since it would never be collected.
    """
    result = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=True)
    first, second, third, *later = map(int, result.stdout.split())
    assert first > 0
    assert second >= first + 1000
    assert third >= second + 1000
    assert later == [third, third]
