"""How certain a fault is: by what its sender must have known, and by what it could have known.

The theory is at the top of `amqpscope/tracking/knowledge.py`. Greater means more certain.
"""

from typing import Final

__all__ = ["CERTAIN", "LEGAL", "POSSIBLE"]

LEGAL: Final = 0
POSSIBLE: Final = 1
CERTAIN: Final = 2
