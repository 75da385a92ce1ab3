"""A run of a command that watches live traffic: its options become a watch, an audience and a recording."""

import sys
from collections.abc import Callable, Sequence

from amqpscope.capture.live.privileges import give_up
from amqpscope.capture.live.source import LiveSource
from amqpscope.cli import quantities
from amqpscope.cli.inputs import refuse_repeated, refuse_taken
from amqpscope.cli.judging import given_of, today
from amqpscope.cli.live_options import BEFORE, LiveFormat, LiveOptions
from amqpscope.cli.live_session import LiveSession, Stop
from amqpscope.cli.live_view import LiveView
from amqpscope.cli.live_writers import LiveJson, LiveText
from amqpscope.cli.nonblocking_output import NonBlockingOutput
from amqpscope.cli.recording import LiveRecording, rotation_of
from amqpscope.cli.selection import Selection, parse_names
from amqpscope.errors import FilterError
from amqpscope.input.capture import CaptureOptions
from amqpscope.input.live import LiveWatch
from amqpscope.policy.policy import Policy
from amqpscope.rules.rule_names import rules_like

__all__ = ["watch_live"]


def watch_live(
    options: LiveOptions,
    open_source: Callable[[], LiveSource],
    packet_filter: str = "",
    read: Sequence[str] = (),
) -> int:
    """Watch what a source brings until the run ends; the exit status.

    open_source: called once all options are known to make sense; privileges are given up behind it.
    packet_filter: by which it captures, in libpcap's language. read: the files that the source reads, `-`
    being standard input. Raises AmqpscopeError.
    """
    configuration = options.rules.configuration()
    policy = Policy(configuration, given_of(options.findings, options.rules, options.status), today())
    only = parse_names(",".join(options.only)) if options.only else None
    selection = Selection(address=options.address, only=only)
    path, quiet, form = options.path, options.quiet, options.form
    for option, number in (("--files", options.files), ("--count", options.most)):
        if number is not None and number < 1:
            raise FilterError(f"{option} {number}: must be at least 1")
    limits = [quantities.rotation("--rotate", one) for one in options.rotate or []]
    rotation = rotation_of(limits, options.files or 0)
    if rotation is not None and path is None:
        raise FilterError("--rotate: needs -w, which names the file to rotate")
    until, before = options.until, options.before
    awaited: frozenset[str] = rules_like("--until", ",".join(until)) if until else frozenset()
    if before is not None and (not until or path is None or rotation is not None):
        raise FilterError("--before: needs --until and -w, and cannot be combined with --rotate")
    kept = quantities.duration("--before", before) if before is not None else BEFORE * 1_000_000_000
    if not until or rotation is not None:
        kept = 0
    limit = quantities.duration("--duration", options.duration) if options.duration is not None else 0
    stop = Stop(limit, options.most or 0, awaited, policy.terms.possible)
    if options.top and (quiet or form is not LiveFormat.text or path == "-"):
        raise FilterError("--top: cannot be combined with --quiet, --format or -w -")
    refuse_repeated([*read, *options.decoding.files(configuration)])
    secrets = options.decoding.secrets(configuration, growing=True)
    if options.embed_keys and (path is None or secrets is None):
        raise FilterError("--embed-keys: needs -w and --tls-keylog or --tls-key")
    if path not in (None, "-"):
        refuse_taken("--write", path, [*read, *options.decoding.files(configuration), configuration.file])
    with open_source() as source:
        give_up()
        recording = None
        if path is not None:
            embedded = secrets if options.embed_keys else None
            recording = LiveRecording(path, source, packet_filter, rotation, kept, embedded)
        watch = LiveWatch(
            source,
            CaptureOptions(
                records=not quiet,
                profile=policy.profile,
                spec=policy.spec,
                dialect=options.decoding.dialect or "",
                secrets=secrets,
            ),
            recorder=None if recording is None else recording.recorder,
            limits=policy.limits if policy.diagnosing(True) else None,
        )
        audience = _audience(options, watch, selection)
        if recording is not None:
            recording.tell = audience.tell
        session = LiveSession(watch, audience, recording, stop, policy)
        session.run()
    return session.status()


def _audience(options: LiveOptions, watch: LiveWatch, selection: Selection) -> LiveView:
    """Who is shown what the watch brings."""
    if options.top:
        from amqpscope.cli.live_top import LiveTop  # termios, which not every system has

        return LiveTop(watch)
    # What is recorded to standard output has it for itself.
    outlet = NonBlockingOutput(2 if options.path == "-" else 1, sys.stdout.encoding)
    name, quiet = watch.source.name, options.quiet
    if options.form is LiveFormat.ndjson:
        return LiveJson(name, selection, quiet, outlet, options.verbose >= 2)
    return LiveText(name, selection, quiet, outlet, options.time.value, options.verbose)
