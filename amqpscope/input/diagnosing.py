"""The diagnoses of a capture, for a program."""

from collections.abc import Iterator, Mapping, Sequence

from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.diagnoses.registry import known_limits
from amqpscope.input.capture import Capture, CaptureOptions, File
from amqpscope.input.key_log import tls_secrets
from amqpscope.model.diagnosis import Diagnosis

__all__ = ["diagnose"]


def diagnose(
    source: File | Sequence[File],
    *,
    limits: Mapping[str, float] | None = None,
    tls_keylog: Sequence[str] = (),
    tls_key: Sequence[str] = (),
) -> Iterator[Diagnosis]:
    """The diagnoses of a capture: path, `-`, or an open binary file; or several of these, read as one.

    They come connection by connection, when each is over. limits: other limits than the usual ones, such as
    `{"credit-none.seconds": 20}`. tls_keylog, tls_key: as of `read`.

    Raises CaptureError at once when it cannot be opened, and on the first diagnosis when it is no capture;
    FilterError for a limit that there is not.
    """
    options = CaptureOptions(
        keep=False,
        ended=True,
        judge=True,
        records=False,
        secrets=tls_secrets(tls_keylog, tls_key),
    )
    return _diagnoses(Capture(source, options), CaptureDiagnoses(known_limits(limits or {})))


def _diagnoses(capture: Capture, watches: CaptureDiagnoses) -> Iterator[Diagnosis]:
    with capture:
        capture.watch(watches)
        for _ in capture.blocks():
            watches.judge(capture.take_findings())
            for analysis in capture.take_ended():
                yield from watches.end(analysis)
    yield from watches.finish()
