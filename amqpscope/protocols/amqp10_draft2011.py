"""AMQP 1.0 in the draft of April 2011: what the program has for it beyond the final specification's."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from amqpscope.protocols.amqp10 import Amqp10
from dissectors.amqp10_draft2011.names import DRAFT_2011
from dissectors.detect import UNKNOWN
from dissectors.interface import Assembler

if TYPE_CHECKING:
    from amqpscope.model.finding import Finding
    from amqpscope.model.records import Connection
    from amqpscope.report.json_renderer import JsonRenderer
    from amqpscope.report.text_renderer import TextRenderer
    from amqpscope.rules.context import Contexts
    from amqpscope.rules.judge import Judge
    from amqpscope.tracking.correlation_budget import CorrelationBudget

__all__ = ["Amqp10Draft2011"]


class Amqp10Draft2011(Amqp10):
    """AMQP 1.0, draft of 5 April 2011 (revision 1239M).

    Its connections begin like those of the final specification. So they are detected as that, and have this
    name when their frames have shown the dialect.
    """

    name = "amqp10-draft2011"
    label = "AMQP 1.0 (draft of April 2011)"
    version = "1.0d11"
    dialect = DRAFT_2011
    usual = Amqp10.name
    headers = ()
    unchecked = ""
    guards = ""
    editions = ""
    layers: ClassVar[Mapping[str, str]] = Amqp10.layers
    terms: ClassVar[Mapping[str, str]] = {
        "delivery-count": "transfer-count",
        "delivery-id": "transfer-id",
    }

    def detect(self, buf: bytes) -> str:
        return UNKNOWN

    def assembler(self, keeping: bool) -> Assembler:
        from dissectors.amqp10_draft2011.message import DraftAssembler

        return DraftAssembler()

    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        from dissectors.amqp10_draft2011.message import DraftAssembler

        return DraftAssembler.load(state)

    def rules(self) -> ModuleType:
        from amqpscope.rules import amqp10_draft2011

        return amqp10_draft2011

    def judge(
        self,
        connection: Connection,
        findings: list[Finding],
        contexts: Contexts | None,
        budget: CorrelationBudget | None,
    ) -> Judge:
        from amqpscope.rules.amqp10_draft2011.judge import JudgeDraft2011

        return JudgeDraft2011(connection, findings, contexts, budget)

    def load_judge(self, state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> Judge:
        from amqpscope.rules.amqp10_draft2011.judge import JudgeDraft2011

        return JudgeDraft2011.load(state, connection, findings)

    def json_renderer(self) -> JsonRenderer:
        from amqpscope.report.amqp10_draft2011.json_form import Draft2011JsonRenderer

        return Draft2011JsonRenderer()

    def text_renderer(self) -> TextRenderer:
        from amqpscope.report.amqp10_draft2011.text_renderer import Draft2011TextRenderer

        return Draft2011TextRenderer()
