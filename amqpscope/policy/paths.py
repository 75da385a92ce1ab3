"""Paths as they stand in files that several systems share: configurations, baselines, reports."""

import os

__all__ = ["slashes"]


def slashes(path: str, separator: str = os.sep) -> str:
    """A path with slashes, whatever the system writes between folders."""
    return path if separator == "/" else path.replace(separator, "/")
