"""Compressing, where there is something that can."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


def _module() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


ZSTD = _module()

needs_zstd = pytest.mark.skipif(ZSTD is None, reason="needs compression.zstd or backports.zstd")


def zstd(octets: bytes) -> bytes:
    """One zstd frame, with a sum at its end."""
    compressed: bytes = ZSTD.compress(octets, options={ZSTD.CompressionParameter.checksum_flag: 1})
    return compressed
