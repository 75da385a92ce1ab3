"""amqpscope: what AMQP peers said to each other, from captured traffic, and who broke the protocol.

`read(path)` gives the frames of a capture one by one, `check(path)` what was found wrong, `diagnose(path)`
who waits for whom; `Capture` also its connections and notes. `judge(paths, load_policy())` applies a
configuration, as the command `check` does.

What is listed here is for users. Modules of the package are not, and may change with any release; only the
typed bodies of frames, in `dissectors.amqp10.performatives` and its neighbours, keep their places, too.
"""

from typing import TYPE_CHECKING

from amqpscope.errors import AmqpscopeError, CaptureError, ConfigurationError, FilterError

__version__ = "0.1.0"

# What reads captures takes a third of a second to load: it is, when somebody asks for it. pytest loads this
# package in every run, for the plugin, whether a test has to do with AMQP or not.
_PLACES = {
    "Capture": "amqpscope.input.capture",
    "CaptureOptions": "amqpscope.input.capture",
    "CheckRun": "amqpscope.policy",
    "Diagnosis": "amqpscope.model.diagnosis",
    "Finding": "amqpscope.model.finding",
    "FrameRecord": "amqpscope.model.records",
    "JudgedCapture": "amqpscope.policy",
    "Note": "amqpscope.model.note",
    "Policy": "amqpscope.policy",
    "check": "amqpscope.input.capture",
    "check_dicts": "amqpscope.report.objects",
    "diagnose": "amqpscope.input.diagnosing",
    "judge": "amqpscope.policy",
    "load_policy": "amqpscope.policy",
    "read": "amqpscope.input.capture",
    "read_dicts": "amqpscope.report.objects",
    "weight": "amqpscope.rules.profiles",
}

__all__ = [
    "AmqpscopeError",
    "Capture",
    "CaptureError",
    "CaptureOptions",
    "CheckRun",
    "ConfigurationError",
    "Diagnosis",
    "FilterError",
    "Finding",
    "FrameRecord",
    "JudgedCapture",
    "Note",
    "Policy",
    "check",
    "check_dicts",
    "diagnose",
    "judge",
    "load_policy",
    "read",
    "read_dicts",
    "weight",
]

if TYPE_CHECKING:
    from amqpscope.input.capture import Capture, CaptureOptions, check, read
    from amqpscope.input.diagnosing import diagnose
    from amqpscope.model.diagnosis import Diagnosis
    from amqpscope.model.finding import Finding
    from amqpscope.model.note import Note
    from amqpscope.model.records import FrameRecord
    from amqpscope.policy import CheckRun, JudgedCapture, Policy, judge, load_policy
    from amqpscope.report.objects import check_dicts, read_dicts
    from amqpscope.rules.profiles import weight
else:

    def __getattr__(name):
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_PLACES[name]), name)

    def __dir__():
        return sorted({*globals(), *__all__})
