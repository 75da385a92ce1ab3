"""What the program has to know of a protocol: its decoder, its rules, and how its frames are shown.

A protocol is one object of a subclass of `Protocol`. Each package asks it for the part that the package works
with. The parts are imported when they are asked for, so that a command loads only what it needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from amqpscope.protocols.rule_space import RuleSpace
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
    from amqpscope.rules.context import Contexts
    from amqpscope.rules.judge import Judge
    from amqpscope.tracking.correlation_budget import CorrelationBudget
    from amqpscope.tracking.events import Conversation
    from amqpscope.tracking.summary import ConnectionSummary
    from amqpscope.why.endings import Following
    from amqpscope.why.grounds import Grounds

__all__ = ["Protocol"]


class Protocol(RuleSpace, ABC):
    """One protocol. What has a default here a protocol need not bring: it is then left out of the output."""

    name: str
    """As `Connection.protocol` has it, and as the ids of its rules begin."""

    version: str
    """Its version, as short as a column is narrow."""

    kinds: tuple[str, ...]
    """The kinds of its frames (`Frame.kind`)."""

    dialect: str = ""
    """The dialect of its frames (`Frame.dialect`), if they are of a dialect."""

    usual: str = ""
    """The name of the protocol that it is a dialect of: both begin alike, and only that one is looked for."""

    websocket_binding: bool = False
    """Whether the AMQP WebSocket Binding defines how WebSocket carries it."""

    no_header: str = ""
    """The rule, without namespace, that a stream breaks that begins with neither a protocol header nor a
    frame; "" if there is none."""

    headers: tuple[str, ...] = ()
    """The AMQP protocol headers that announce it, as `ProtocolHeader.protocol` names them."""

    repeats_header: bool = True
    """Whether a protocol header may stand behind the first frame of a stream."""

    takes_header_of: tuple[str, ...] = ()
    """Protocols that are not decoded, whose header a server may take and then go on in this protocol."""

    session_word: str = "session"
    """What it calls a session."""

    agreed_heartbeat: bool = False
    """Whether the peers agree on one time without frames, of which two may pass. Else each peer sets a time
    for the other one."""

    passing: frozenset[str] = frozenset()
    """The names of frames that no later frame depends on for long: messages, what is said of these, and
    heartbeats."""

    terms: ClassVar[Mapping[str, str]] = {}
    """Of a dialect: its words for those of the protocol."""

    # Recognising it

    def detect(self, buf: bytes) -> str:
        """Which protocol a stream speaks that begins with these octets, six at least, without a header.

        Gives its own name, the name of another version, or of `dissectors.detect` MORE or UNKNOWN.
        """
        return ""

    def detect_midstream(self, buf: bytes, start: i64, end: i64) -> bool:
        """Whether its frames begin in the middle of a stream at buf[start:end], where a segment begins.

        A decoder finds its frames itself, wherever they begin; this is for what no decoder would believe.
        """
        return False

    def says_client(self, frame: Frame) -> i64:
        """Whether only a client says this: 1, only a server: 0, either: -1."""
        return -1

    def introduction(self, frame: Frame) -> PeerName | None:
        """What the sender of a frame calls itself in it; None if the frame does not say that."""
        return None

    # Decoding

    @abstractmethod
    def decoder(self, midstream: bool) -> StreamDecoder:
        """A decoder for one direction. midstream: it need not begin at a frame boundary."""

    @abstractmethod
    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        """What the `dump` of a decoder gave, as one again."""

    def assembler(self, keeping: bool) -> Assembler:
        """What puts messages together. keeping: also what they say, not only how large they are."""
        return Assembler()

    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        """What the `dump` of an assembler gave, as one again."""
        return Assembler()

    # Drawing

    def state_paths(self) -> StatePaths | None:
        """What follows a connection through the state diagrams, for pictures; None if there are none."""
        return None

    def flow_charts(self) -> FlowCharts | None:
        """What charts credit, windows and unsettled messages, for pictures; None if there is nothing."""
        return None

    def connection_map(self) -> ConnectionMap | None:
        """What maps links, queues and addresses, for pictures; None if there is nothing."""
        return None

    # Judging

    @abstractmethod
    def judge(
        self,
        connection: Connection,
        findings: list[Finding],
        contexts: Contexts | None,
        budget: CorrelationBudget | None,
    ) -> Judge:
        """The judge of a connection, see `Judge`.

        budget: of what is kept for other connections, shared with these; None for its own.
        """

    @abstractmethod
    def load_judge(self, state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> Judge:
        """A judge that goes on where its `dump` left off."""

    def correlate(self, summaries: list[ConnectionSummary], whole: bool) -> list[Finding]:
        """What its connections, and those of its dialects, show only together.

        summaries: what their judges left, in the order in which the connections began. whole: there were no
        other connections in the time of the capture.
        """
        return []

    def load_summary(self, state: tuple[Any, ...]) -> ConnectionSummary:
        """What the `dump` of a summary gave, as one again. Only of judges that leave a summary."""
        raise NotImplementedError

    # Diagnosing

    def diagnoses(self) -> ModuleType | None:
        """The package that declares diagnoses of its own; None if there is none."""
        return None

    def watches(
        self, notebook: Notebook, several: Several, conversation: Conversation | None
    ) -> ProtocolWatches:
        """What follows a connection and listens to it for diagnoses.

        conversation: what follows the connection already; None to follow it here.
        """
        from amqpscope.diagnoses.watch import ProtocolWatches

        return ProtocolWatches()

    def speech(self) -> Speech:
        """What understands what its frames say of their connection."""
        from amqpscope.diagnoses.speech import Speech

        return Speech()

    # Showing

    def json_renderer(self) -> JsonRenderer:
        """Its frames as data."""
        from amqpscope.report.json_renderer import JsonRenderer

        return JsonRenderer()

    def text_renderer(self) -> TextRenderer:
        """Its frames as text."""
        from amqpscope.report.text_renderer import TextRenderer

        return TextRenderer()

    def conversation(self) -> Conversation | None:
        """What follows a connection; None if `LinkNames` does."""
        return None

    def close_causes(self) -> CloseCauses:
        """What knows for what a peer closes something."""
        from amqpscope.report.close_causes import CloseCauses

        return CloseCauses()

    # Tables of the pipeline

    def delivery_log(
        self, links: LinkNames, connection: Connection, followed: Conversation | None
    ) -> DeliveryLog:
        """What follows the deliveries of a connection for the pipeline's table.

        links, followed: the names of links, and what follows the connection (`conversation`), which get every
        frame before the log does.
        """
        from amqpscope.pipeline.deliveries import DeliveryLog

        return DeliveryLog()

    def frame_fields(self, columns: FrameColumns) -> FrameFields:
        """What puts the fields of its frames into columns of the pipeline's table."""
        from amqpscope.pipeline.frame_columns import FrameFields

        return FrameFields()

    # Anonymising

    def masker(self, stand_ins: StandIns) -> Masker:
        """What puts stand-ins into the frames of one direction."""
        from amqpscope.cutting.masking import Masker

        return Masker(stand_ins)

    # `why` and `diff`

    def grounds(self) -> Grounds:
        """What knows which earlier frames have a say about a frame."""
        from amqpscope.why.grounds import Grounds

        return Grounds()

    def following(self, connection: Connection) -> Following:
        """What follows a connection for what begins and ends on it."""
        from amqpscope.why.endings import Following

        return Following(connection)

    def transcripts(
        self, room: Room, table: CanonicalFrameTable, names: Names, links: LinkNames
    ) -> Callable[[Connection], Transcript] | None:
        """What makes the transcripts of the connections of one capture; None if they are not compared.

        links: is asked for the link of every frame before a transcript takes it.
        """
        return None
