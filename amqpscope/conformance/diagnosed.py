"""The diagnoses of a capture that came with the program."""

import io

from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import FrameRecord

__all__ = ["FINE", "TROUBLED", "diagnosed"]

TROUBLED = "troubled"
FINE = "fine"
"""The captures of a diagnosis: one in which the diagnosis is made, and a similar one without any."""


def diagnosed(octets: bytes, name: str) -> tuple[list[FrameRecord], list[Diagnosis]]:
    """The frames of a capture, and its diagnoses. Raises CaptureError if it is none."""
    diagnoses = CaptureDiagnoses({})
    frames: list[FrameRecord] = []
    found: list[Diagnosis] = []
    options = CaptureOptions(keep=False, ended=True, judge=True)
    with Capture(io.BytesIO(octets), options, name=name) as capture:
        for records in capture.blocks():
            frames += records
            for record in records:
                diagnoses.add(record)
            diagnoses.judge(capture.take_findings())
            for analysis in capture.take_ended():
                found += diagnoses.end(analysis)
    return frames, found + diagnoses.finish()
