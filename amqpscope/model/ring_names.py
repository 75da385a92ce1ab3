"""What tables call the files of a ring, whose names come again: NAME, and the next one NAME#2."""

import re

__all__ = ["AGAIN"]

AGAIN = re.compile("#([0-9]{1,9})$")
"""What such a name has in addition to that of the file (see `pipeline.followed`)."""
