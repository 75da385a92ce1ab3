"""What the product says who waits for whom in a capture."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import amqpscope
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.layers.secrets import Secrets
from amqpscope.model.diagnosis import Diagnosis

__all__ = ["diagnosed"]


def diagnosed(
    source: bytes | Path, limits: Mapping[str, float] | None = None, secrets: Secrets | None = None
) -> list[Diagnosis]:
    """The diagnoses of a capture, connection by connection."""
    diagnoses = CaptureDiagnoses(limits or {})
    found: list[Diagnosis] = []
    options = amqpscope.CaptureOptions(keep=False, ended=True, judge=True, secrets=secrets)
    file = io.BytesIO(source) if isinstance(source, bytes) else str(source)
    with amqpscope.Capture(file, options) as capture:
        for records in capture.blocks():
            for record in records:
                diagnoses.add(record)
            diagnoses.judge(capture.take_findings())
            for analysis in capture.take_ended():
                found += diagnoses.end(analysis)
    return found + diagnoses.finish()
