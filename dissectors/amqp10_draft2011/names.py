"""The names of the dialects of AMQP 1.0, and of what only some of their connections have."""

from typing import Final

__all__ = ["DRAFT_2011", "FINAL_2011", "REVISION"]

DRAFT_2011: Final = "draft2011"
"""The name of the draft's dialect."""

FINAL_2011: Final = "final"
"""The name of the final specification's dialect, where one is asked for."""

REVISION: Final = "revision"
"""The code of a problem that shows another revision of the draft. It accuses nobody."""
