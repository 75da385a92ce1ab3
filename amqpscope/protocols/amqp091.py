"""AMQP 0-9-1: all that the program has for this protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from amqpscope.protocols.interface import Protocol
from dissectors.amqp091.detect import BEGINS, has_frames, opening
from dissectors.amqp091.problems import NO_HEADER
from dissectors.interface import Assembler, Frame
from dissectors.stream_decoder import StreamDecoder
from dissectors.wire import i64

if TYPE_CHECKING:
    from collections.abc import Callable

    from amqpscope.cutting.masking import Masker
    from amqpscope.cutting.stand_ins import StandIns
    from amqpscope.diagnoses.notebook import Notebook
    from amqpscope.diagnoses.several import Several
    from amqpscope.diagnoses.speech import Speech
    from amqpscope.diagnoses.watch import ProtocolWatches
    from amqpscope.diff.forms import CanonicalFrameTable
    from amqpscope.diff.transcript import Names, Room, Transcript
    from amqpscope.draw.flow import FlowCharts
    from amqpscope.draw.map import ConnectionMap
    from amqpscope.draw.states import StatePaths
    from amqpscope.model.finding import Finding
    from amqpscope.model.peer_name import PeerName
    from amqpscope.model.records import Connection
    from amqpscope.pipeline.deliveries import DeliveryLog
    from amqpscope.pipeline.frame_columns import FrameColumns, FrameFields
    from amqpscope.report.close_causes import CloseCauses
    from amqpscope.report.json_renderer import JsonRenderer
    from amqpscope.report.links import LinkNames
    from amqpscope.report.text_renderer import TextRenderer
    from amqpscope.rules.amqp091.judge import Judge091
    from amqpscope.rules.context import Contexts
    from amqpscope.rules.judge import Judge
    from amqpscope.tracking.correlation_budget import CorrelationBudget
    from amqpscope.tracking.events import Conversation
    from amqpscope.tracking.summary import ConnectionSummary
    from amqpscope.why.endings import Following
    from amqpscope.why.grounds import Grounds

__all__ = ["Amqp091"]


class Amqp091(Protocol):
    """AMQP 0-9-1, of 13 November 2008."""

    name = "amqp091"
    label = "AMQP 0-9-1"
    version = "0-9-1"
    kinds = ("method", "content-header", "body", "heartbeat", "unknown")
    passing = frozenset(
        {
            "basic.publish",
            "basic.deliver",
            "basic.return",
            "basic.get",
            "basic.get-ok",
            "basic.get-empty",
            "basic.ack",
            "basic.nack",
            "basic.reject",
            "content-header",
            "body",
            "heartbeat",
        }
    )
    no_header = NO_HEADER
    headers = ("AMQP 0-9-1",)
    repeats_header = False
    takes_header_of = ("amqp09",)
    session_word = "channel"
    agreed_heartbeat = True
    unchecked = "amqp091.tsv"
    named_rules = "amqp091-xml.tsv"
    layers: ClassVar[Mapping[str, str]] = {
        "T": "types",
        "F": "framing",
        "C": "connection",
        "CH": "channel",
        "X": "exchange",
        "Q": "queue",
        "B": "basic",
        "TX": "tx",
        "CF": "confirm",
    }

    def detect(self, buf: bytes) -> str:
        found = opening(buf)
        return self.name if found == BEGINS else found

    def detect_midstream(self, buf: bytes, start: i64, end: i64) -> bool:
        return has_frames(buf, start, end)

    def says_client(self, frame: Frame) -> i64:
        if frame.kind != "method":
            return -1
        from dissectors.amqp091.arguments import Method

        body = frame.body
        if isinstance(body, Method):
            definition = body.definition()
            if definition.from_client != definition.from_server:
                return 1 if definition.from_client else 0
        return -1

    def introduction(self, frame: Frame) -> PeerName | None:
        from amqpscope.tracking.amqp091.introduction import introduction

        return introduction(frame)

    def decoder(self, midstream: bool) -> StreamDecoder:
        from dissectors.amqp091.frame import Amqp091FrameDecoder

        return Amqp091FrameDecoder(midstream)

    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        from dissectors.amqp091.frame import Amqp091FrameDecoder

        return Amqp091FrameDecoder.load(state)

    def assembler(self, keeping: bool) -> Assembler:
        from dissectors.amqp091.message import Amqp091MessageAssembler

        return Amqp091MessageAssembler(keeping)

    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        from dissectors.amqp091.message import Amqp091MessageAssembler

        return Amqp091MessageAssembler.load(state)

    def rules(self) -> ModuleType:
        from amqpscope.rules import amqp091

        return amqp091

    def state_paths(self) -> StatePaths | None:
        from amqpscope.draw.states091 import StatePaths091

        return StatePaths091()

    def flow_charts(self) -> FlowCharts | None:
        from amqpscope.draw.flow091 import FlowCharts091

        return FlowCharts091()

    def connection_map(self) -> ConnectionMap | None:
        from amqpscope.draw.map091 import ConnectionMap091

        return ConnectionMap091()

    def judge(
        self,
        connection: Connection,
        findings: list[Finding],
        contexts: Contexts | None,
        budget: CorrelationBudget | None,
    ) -> Judge:
        return _judge()(connection, findings, contexts, budget)

    def load_judge(self, state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> Judge:
        return _judge().load(state, connection, findings)

    def correlate(self, summaries: list[ConnectionSummary], whole: bool) -> list[Finding]:
        from amqpscope.correlation.amqp091 import correlate

        return correlate(summaries, whole)

    def load_summary(self, state: tuple[Any, ...]) -> ConnectionSummary:
        from amqpscope.tracking.amqp091.summary import Amqp091Summary

        return Amqp091Summary.load(state)

    def diagnoses(self) -> ModuleType:
        from amqpscope.diagnoses import amqp091

        return amqp091

    def watches(
        self, notebook: Notebook, several: Several, conversation: Conversation | None
    ) -> ProtocolWatches:
        from amqpscope.diagnoses.amqp091.watches import Watches091
        from amqpscope.tracking.amqp091.conversation import Conversation091

        known = conversation if isinstance(conversation, Conversation091) else None
        return Watches091(notebook, known)

    def speech(self) -> Speech:
        from amqpscope.diagnoses.amqp091.speech import Speech091

        return Speech091()

    def json_renderer(self) -> JsonRenderer:
        from amqpscope.report.amqp091.json_form import Amqp091JsonRenderer

        return Amqp091JsonRenderer()

    def text_renderer(self) -> TextRenderer:
        from amqpscope.report.amqp091.text_renderer import Amqp091TextRenderer

        return Amqp091TextRenderer()

    def conversation(self) -> Conversation:
        from amqpscope.tracking.amqp091.conversation import Conversation091

        return Conversation091()

    def close_causes(self) -> CloseCauses:
        from amqpscope.report.amqp091.close_causes import CloseCauses091

        return CloseCauses091()

    def delivery_log(
        self, links: LinkNames, connection: Connection, followed: Conversation | None
    ) -> DeliveryLog:
        from amqpscope.pipeline.deliveries091 import Amqp091Log

        return Amqp091Log(followed)

    def frame_fields(self, columns: FrameColumns) -> FrameFields:
        from amqpscope.pipeline.fields091 import Amqp091Fields

        return Amqp091Fields(columns)

    def masker(self, stand_ins: StandIns) -> Masker:
        from amqpscope.cutting.masking091 import Masker091

        return Masker091(stand_ins)

    def grounds(self) -> Grounds:
        from amqpscope.why.grounds091 import Grounds091

        return Grounds091()

    def following(self, connection: Connection) -> Following:
        from amqpscope.why.endings091 import Following091

        return Following091(connection)

    def transcripts(
        self, room: Room, table: CanonicalFrameTable, names: Names, links: LinkNames
    ) -> Callable[[Connection], Transcript]:
        from amqpscope.diff.forms091 import CanonicalFrames091
        from amqpscope.diff.transcript091 import Transcript091

        forms = CanonicalFrames091(names)
        return lambda connection: Transcript091(connection, room, table, names, forms)


@cache
def _judge() -> type[Judge091]:
    """Imported when the first connection is judged, and only then: an import takes as long as a judge."""
    from amqpscope.rules.amqp091.judge import Judge091

    return Judge091
