"""How many processes read captures."""

import os
import re
from typing import Final

from amqpscope.errors import FilterError
from amqpscope.limits import MAX_JOBS

__all__ = ["jobs_of"]

_NUMBER: Final = r"[0-9]{1,3}"


def jobs_of(jobs: str | None, what: str = "--jobs") -> int:
    """How many processes `auto` or a number asks for; one without either.

    what: is named by the FilterError for anything else.
    """
    if jobs is None:
        return 1
    if jobs == "auto":
        # Those that this process may use, where the system can tell.
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(usable, MAX_JOBS)
    if not re.fullmatch(_NUMBER, jobs) or not 1 <= int(jobs) <= MAX_JOBS:
        raise FilterError(f"{what} {jobs}: must be auto or a number from 1 to {MAX_JOBS}")
    return int(jobs)
