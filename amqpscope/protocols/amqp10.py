"""AMQP 1.0: all that the program has for this protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from amqpscope.protocols.interface import Protocol
from dissectors.amqp10.detect import NO_HEADER, may_begin
from dissectors.detect import MORE, UNKNOWN
from dissectors.interface import Assembler, Frame
from dissectors.stream_decoder import CREDIBLE, NOT_CREDIBLE, StreamDecoder
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
    from amqpscope.report.json_renderer import JsonRenderer
    from amqpscope.report.links import LinkNames
    from amqpscope.report.text_renderer import TextRenderer
    from amqpscope.rules.amqp10.judge import Judge10
    from amqpscope.rules.context import Contexts
    from amqpscope.rules.judge import Judge
    from amqpscope.tracking.correlation_budget import CorrelationBudget
    from amqpscope.tracking.events import Conversation
    from amqpscope.tracking.summary import ConnectionSummary
    from amqpscope.why.endings import Following
    from amqpscope.why.grounds import Grounds

__all__ = ["Amqp10"]


class Amqp10(Protocol):
    """AMQP 1.0, OASIS Standard of 29 October 2012."""

    name = "amqp10"
    label = "AMQP 1.0"
    websocket_binding = True
    version = "1.0"
    passing = frozenset({"transfer", "flow", "disposition", "empty"})
    kinds = ("amqp", "sasl")
    no_header = NO_HEADER
    headers: tuple[str, ...] = ("AMQP 1.0", "TLS", "SASL")
    unchecked = "amqp10.tsv"
    guards = "amqp10-guards.tsv"
    editions = "amqp10-editions.tsv"
    layers: ClassVar[Mapping[str, str]] = {
        "T": "types",
        "F": "framing",
        "C": "connection",
        "SA": "sasl",
        "TL": "tls",
        "S": "session",
        "L": "link",
        "D": "delivery",
        "M": "messaging",
        "TX": "transactions",
    }

    def detect(self, buf: bytes) -> str:
        if len(buf) >= 8 and not may_begin(buf):
            return UNKNOWN
        from dissectors.amqp10.frame import credible_frame
        from dissectors.amqp10_draft2011.frame import credible_draft

        # Alone: what follows a frame may have come already or not, and must make no difference.
        verdict = credible_frame(buf, 0, len(buf))
        if verdict == NOT_CREDIBLE:
            verdict = credible_draft(buf, 0, len(buf))
        if verdict == CREDIBLE:
            return self.name
        return UNKNOWN if verdict == NOT_CREDIBLE else MORE

    def says_client(self, frame: Frame) -> i64:
        # security.xml, section "sasl"
        if frame.name in ("sasl-init", "sasl-response"):
            return 1
        if frame.name in ("sasl-mechanisms", "sasl-challenge", "sasl-outcome"):
            return 0
        return -1

    def introduction(self, frame: Frame) -> PeerName | None:
        from amqpscope.tracking.amqp10.introduction import introduction

        return introduction(frame)

    def decoder(self, midstream: bool) -> StreamDecoder:
        from dissectors.amqp10_draft2011.frame import DialectDecoder

        return DialectDecoder(midstream)

    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        from dissectors.amqp10_draft2011.frame import DialectDecoder

        return DialectDecoder.load(state)

    def assembler(self, keeping: bool) -> Assembler:
        from dissectors.amqp10.delivery import MessageAssembler

        return MessageAssembler()

    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        from dissectors.amqp10.delivery import MessageAssembler

        return MessageAssembler.load(state)

    def rules(self) -> ModuleType | None:
        from amqpscope.rules import amqp10

        return amqp10

    def state_paths(self) -> StatePaths | None:
        from amqpscope.draw.states10 import StatePaths10

        return StatePaths10()

    def flow_charts(self) -> FlowCharts | None:
        from amqpscope.draw.flow10 import FlowCharts10

        return FlowCharts10()

    def connection_map(self) -> ConnectionMap | None:
        from amqpscope.draw.map10 import ConnectionMap10

        return ConnectionMap10()

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
        from amqpscope.correlation.amqp10 import correlate

        return correlate(summaries, whole)

    def load_summary(self, state: tuple[Any, ...]) -> ConnectionSummary:
        from amqpscope.tracking.amqp10.summary import Amqp10Summary

        return Amqp10Summary.load(state)

    def diagnoses(self) -> ModuleType:
        from amqpscope.diagnoses import amqp10

        return amqp10

    def watches(
        self, notebook: Notebook, several: Several, conversation: Conversation | None
    ) -> ProtocolWatches:
        from amqpscope.diagnoses.amqp10.watches import Watches10
        from amqpscope.tracking.amqp10.conversation import Conversation10

        known = conversation if isinstance(conversation, Conversation10) else None
        return Watches10(notebook, several, known)

    def speech(self) -> Speech:
        from amqpscope.diagnoses.amqp10.speech import Speech10

        return Speech10()

    def json_renderer(self) -> JsonRenderer:
        from amqpscope.report.amqp10.json_form import Amqp10JsonRenderer

        return Amqp10JsonRenderer()

    def text_renderer(self) -> TextRenderer:
        from amqpscope.report.amqp10.text_renderer import Amqp10TextRenderer

        return Amqp10TextRenderer()

    def delivery_log(
        self, links: LinkNames, connection: Connection, followed: Conversation | None
    ) -> DeliveryLog:
        from amqpscope.pipeline.deliveries10 import Amqp10Log

        return Amqp10Log(links.conversation(connection))

    def frame_fields(self, columns: FrameColumns) -> FrameFields:
        from amqpscope.pipeline.fields10 import Amqp10Fields

        return Amqp10Fields(columns)

    def masker(self, stand_ins: StandIns) -> Masker:
        from amqpscope.cutting.masking10 import Masker10

        return Masker10(stand_ins)

    def grounds(self) -> Grounds:
        from amqpscope.why.grounds10 import Grounds10

        return Grounds10()

    def following(self, connection: Connection) -> Following:
        from amqpscope.why.endings10 import Following10

        return Following10(connection)

    def transcripts(
        self, room: Room, table: CanonicalFrameTable, names: Names, links: LinkNames
    ) -> Callable[[Connection], Transcript]:
        from amqpscope.diff.forms10 import CanonicalFrames10
        from amqpscope.diff.transcript10 import Transcript10

        forms = CanonicalFrames10(names)
        return lambda connection: Transcript10(connection, room, table, names, forms, links)


@cache
def _judge() -> type[Judge10]:
    """Imported when the first connection is judged, and only then: an import takes as long as a judge."""
    from amqpscope.rules.amqp10.judge import Judge10

    return Judge10
