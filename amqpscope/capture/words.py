"""The words of a header all at once, for the interpreter.

Compiled, reading a word with `dissectors.wire` takes two nanoseconds and `struct` thirty; interpreted, it
takes 260 and `struct` 70. So the three headers that each packet has are read either way, as `INTERPRETED`
says.
"""

from struct import Struct
from types import FunctionType
from typing import Final

from dissectors.wire import u32

INTERPRETED: Final = isinstance(u32, FunctionType)
"""Whether these modules run as they stand: compiled functions are of another type."""

FOUR_WORDS: Final = Struct(">IIII")
FOUR_WORDS_LITTLE: Final = Struct("<IIII")
SEVEN_WORDS: Final = Struct(">IIIIIII")
SEVEN_WORDS_LITTLE: Final = Struct("<IIIIIII")
TWO_WORDS: Final = Struct(">II")
