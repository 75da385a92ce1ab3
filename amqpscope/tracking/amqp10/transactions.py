"""Transactions of a connection: what both peers state about control links, transactions, and work under them.

Theory of operation. A controller attaches a control link to the coordinator of a resource and declares a
transaction there; the resource answers with an id. From then on both peers state which transaction a
delivery, an outcome or credit belongs to, until the controller discharges the transaction on the control link
and the resource states whether that was done. A transaction is therefore known only from the frames of *both*
peers. A `Ledger` beside the two endpoints keeps it once for the connection. Each fact in the ledger has the
offset after the frame that states it, in the stream of that frame's sender:

* the peer that sent the frame is bound by the fact from its next frame on;
* the other peer could know the fact if the offset is below its `could`, and must know it if the offset is
  below its `must` (see `tracking.knowledge`).

A frame that names a transaction proves that its sender has read the frame with the id (`Ledger.prove`).

Finished transactions are forgotten; a transaction is finished when its discharge is answered.
`tracking.amqp10.control` and `tracking.amqp10.work` have the kept objects.

Nothing here judges. An id that nobody declared changes nothing.

Sources: transactions.xml, "txn-declare", "txn-discharge", "txn-work", "coordination".
"""

from typing import Any, Final

from amqpscope.limits import MAX_ASKED, MAX_OVER_TRANSACTIONS, MAX_TRANSACTIONS, MAX_WORK
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.control import Control, ControlRequest, Transaction
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.legibility import obscure
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.outcomes import excludes
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transaction_names import asked_of, named_in, request_in
from amqpscope.tracking.amqp10.work import Asked, Work, Works, among_raw
from amqpscope.tracking.object_ids import ObjectIds
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Accepted, Received, Rejected, Source
from dissectors.amqp10.performatives import Attach, Begin, Detach, Disposition, End, Flow, Transfer
from dissectors.amqp10.transactions import Coordinator, Declare, Declared, Discharge
from dissectors.amqp10.values import Described
from dissectors.wire import i64

__all__ = ["NO_LEDGER", "Ledger"]


class Ledger:
    """All transactions of a connection, and the work under them.

    active: there was a control link; before that nothing is here. overfull: there was more than is kept, two
    of one id, or something that could not be read, so that what is not here may still have been.
    """

    def __init__(self) -> None:
        self.active: bool = False
        self.overfull: bool = False
        self.controls: list[Control] = []
        # By the controller, and the id.
        self.transactions: dict[tuple[str, bytes], Transaction] = {}
        self.finished: list[tuple[str, bytes]] = []
        # Those whose answer their controllers have not shown to have received.
        self.unread: list[Transaction] = []
        self.work: Works = Works()
        # By the sender of the deliveries and its channel: by delivery-id.
        self.requests: dict[tuple[str, int], dict[int, ControlRequest]] = {}
        # By the controller, its channel and the link's name.
        self.asked: dict[tuple[str, int, str], Asked] = {}

    # What is known of it

    def transaction(self, controller: str, txn_id: bytes) -> Transaction | None:
        """The newest transaction of this id that the resource of this controller declared."""
        return self.transactions.get((controller, txn_id))

    def control(self, controller: str, channel: i64, name: str) -> Control | None:
        """The newest control link of this name that a controller attached on a channel."""
        for control in reversed(self.controls):
            if control.controller == controller and control.channel == channel and control.name == name:
                return control
        return None

    def answered_control(self, controller: str, channel: i64, name: str, answered: bool) -> Control | None:
        """Of those of this name the one whose resource detaches now, or (not answered) attaches.

        Each attach is answered by one, in order; a detach is for what was attached last.
        """
        found: Control | None = None
        for control in self.controls:
            if control.controller == controller and control.channel == channel and control.name == name:
                if not answered and control.answer_end == UNKNOWN:
                    return control
                if answered and control.answer_end != UNKNOWN:
                    found = control
        return found

    def request(self, controller: str, channel: i64, number: int) -> ControlRequest | None:
        """A delivery on a control link."""
        requests = self.requests.get((controller, int(channel)))
        return None if requests is None else requests.get(number)

    def prove(self, me: Endpoint10, body: object) -> None:
        """Who names a transaction has read its id; who answers a discharge has read that."""
        if isinstance(body, (Transfer, Disposition)):
            named = named_in(body.state)
        elif isinstance(body, Flow):
            asked = asked_of(body)
            named = asked if isinstance(asked, bytes) else None
        else:
            return
        if named is not None:
            transaction = self.transactions.get((me.peer, named))
            if transaction is not None:
                me.knowledge.prove(transaction.declared_end)

    # What is said

    def attach(self, me: Endpoint10, session: SessionEnd, body: Attach, record: FrameRecord) -> None:
        """An attach, of a link to a coordinator or not."""
        target = body.target
        name = body.name
        if not isinstance(target, Coordinator) or name is None:
            return
        if body.role is False:
            control = Control(me.peer, int(session.channel), int(session.number), name, record.packet)
            source = body.source
            if isinstance(source, Source) and not isinstance(source.default_outcome, Rejected):
                control.offers_rejected = not excludes(source, "amqp:rejected:list")
            self.active = True
            if len(self.controls) >= MAX_TRANSACTIONS:
                self.overfull = True
                return
            self.controls.append(control)
            return
        other = _other(me)
        answered = self.answered_control(other, session.peer_channel, name, False)
        if answered is not None:
            answered.answer_end = record.frame.offset + record.frame.size
            if target.capabilities is not None:
                answered.capabilities = tuple(str(capability) for capability in target.capabilities)

    def apply(self, me: Endpoint10, record: FrameRecord) -> None:
        """A frame that was judged and is not sent yet: an attach, or any on a connection with them."""
        body = record.frame.body
        channel = record.frame.channel
        if record.frame.missing > 0 and record.frame.payload_size == 0:
            return
        if record.frame.problems and obscure(record.frame):
            self.overfull = True
        elif isinstance(body, (Transfer, Disposition)) and isinstance(body.state, Described):
            # A state that we do not know; it may name a transaction.
            self.overfull = True
        session = me.session_on(channel)
        if isinstance(body, Attach):
            if session is not None:
                self.attach(me, session, body, record)
            return
        if self.unread:
            self._read(me, record)
        if isinstance(body, Begin):
            # Deliveries of a session that was here before are out of reach.
            self._forget(me.peer, int(channel))
        if session is None:
            return
        if isinstance(body, Transfer):
            if body.handle is not None:
                link = session.handles.get(body.handle)
                if link is not None:
                    self._transfer(me, session, link, body, record)
        elif isinstance(body, Disposition):
            self._disposition(me, session, body, record)
        elif isinstance(body, Flow):
            if body.handle is not None:
                link = session.handles.get(body.handle)
                if link is not None and not link.sender:
                    self._flow(me, session, link, body, record)
        elif isinstance(body, Detach):
            if body.handle is not None:
                link = session.handles.get(body.handle)
                if link is not None:
                    self._detach(me, session, link, body, record)
        elif isinstance(body, End):
            self._end(me, session, record)

    def _read(self, me: Endpoint10, record: FrameRecord) -> None:
        """A controller speaks: it may have read the answers to its discharges by then."""
        left: list[Transaction] = []
        for transaction in self.unread:
            if transaction.control.controller != me.peer or transaction.answered_end > me.knowledge.could:
                left.append(transaction)
            else:
                transaction.answered_time = record.time
        self.unread = left

    def _transfer(
        self, me: Endpoint10, session: SessionEnd, link: LinkEnd, body: Transfer, record: FrameRecord
    ) -> None:
        delivery = link.open
        if delivery is not None and body.delivery_id is not None and delivery.number != UNKNOWN:
            if raw(delivery.number) != body.delivery_id:
                return  # whichever it is of
        number: i64 = UNKNOWN
        if delivery is not None:
            number = delivery.number
        elif body.delivery_id is not None:
            number = body.delivery_id
        if number == UNKNOWN:
            return
        key = (me.peer, int(session.channel))
        identity = int(raw(number))
        if link.coordinator:
            if body.more is not True and body.aborted is not True:
                settled = body.settled is True or (delivery is not None and delivery.settled)
                self._request(me, key, identity, link, settled, record)
            return
        work = self.work.of(me.peer, session.channel, identity)
        if delivery is None and work is not None:
            # The id of an earlier one, used again.
            self.work.drop(key, identity)
            work = None
        named = named_in(body.state)
        if named is None:
            if delivery is None:
                asked = self.asked.get((_other(me), int(session.peer_channel), link.name))
                if asked is not None and me.knowledge.confirmed(asked.ends[len(asked.ends) - 1]):
                    asked.odd = True
            elif work is not None and body.aborted is not True:
                work.odd = True
        elif work is None or work.transaction is None:
            transaction = self._meant(me, session, named)
            if transaction is not None:
                if work is None:
                    work = self._add(key, identity, link.name, record.packet)
                if work is not None:
                    work.transaction = transaction
                    work.odd = delivery is not None
        elif work.transaction.txn_id != named:
            work.odd = True
        if work is None:
            return
        if body.settled:
            work.settled = True
        if body.aborted:
            self.work.drop(key, identity)
        elif body.more is not True:
            work.complete = True
            if work.settled:
                self.work.drop(key, identity)

    def _meant(self, me: Endpoint10, session: SessionEnd, named: bytes) -> Transaction | None:
        """The transaction that one of the two names, as controller or as resource."""
        transaction = self.transactions.get((me.peer, named))
        if transaction is None:
            return self.transactions.get((_other(me), named))
        if transaction.discharge_end != UNKNOWN:
            return None
        if transaction.control.session != session.number:
            transaction.elsewhere = True
        return transaction

    def _request(
        self,
        me: Endpoint10,
        key: tuple[str, int],
        identity: int,
        link: LinkEnd,
        settled: bool,
        record: FrameRecord,
    ) -> None:
        control = self.control(me.peer, key[1], link.name)
        if control is None:
            return
        end = record.frame.offset + record.frame.size
        if settled:
            control.settled_end = end
            control.settled_packet = record.packet
        kind = ""
        transaction: Transaction | None = None
        message = Message.of(record.message)
        if message is not None and message.complete:
            value = request_in(message)
            if isinstance(value, Declare):
                kind = "declare"
            elif isinstance(value, Discharge):
                kind = "discharge"
                if isinstance(value.txn_id, bytes):
                    transaction = self.transactions.get((me.peer, value.txn_id))
                if transaction is not None and transaction.discharge_end == UNKNOWN:
                    transaction.discharge_end = end
                    transaction.discharge_packet = record.packet
                    transaction.fail = value.fail is True
                    if self.work.incomplete(transaction) is not None:
                        transaction.partial = record.packet
        if settled:
            return
        requests = self.requests.setdefault(key, {})
        if len(requests) >= MAX_TRANSACTIONS:
            self.overfull = True
            return
        requests[identity] = ControlRequest(control, end, record.packet, kind, transaction)

    def _disposition(
        self, me: Endpoint10, session: SessionEnd, body: Disposition, record: FrameRecord
    ) -> None:
        if body.first is None or body.role is None:
            return
        first = body.first
        last = first if body.last is None else body.last
        if nearest(last, first) < first:
            return
        end = record.frame.offset + record.frame.size
        if body.role is False:
            if isinstance(body.state, Declared):
                # Only a receiver declares. Whether the other end takes it for that is unknown.
                self.overfull = True
            if body.settled:
                key = (me.peer, int(session.channel))
                for number in self.work.among(key, first, last):
                    self.work.drop(key, number)
                requests = self.requests.get(key)
                if requests:
                    for number in among_raw(requests, first, last):
                        if requests[number].answered:
                            del requests[number]
            return
        key = (_other(me), int(session.peer_channel))
        state = body.state
        requests = self.requests.get(key)
        if requests:
            for number in among_raw(requests, first, last):
                self.answer(requests[number], state, end, record)
                if requests[number].answered and body.settled:
                    del requests[number]
        if isinstance(state, Declared) and isinstance(state.txn_id, bytes):
            if (key[0], state.txn_id) not in self.transactions:
                # Of no declare that is known to wait; whoever asked may take it for its answer.
                for control in reversed(self.controls):
                    if control.controller == key[0] and control.channel == key[1]:
                        self._declare(control, state.txn_id, end, record)
                        break
        named = named_in(state)
        if named is not None:
            self._retire(me, session, key, body, named, record)
        deliveries = self.work.deliveries.get(key)
        if deliveries:
            for number in among_raw(deliveries, first, last):
                work = deliveries[number]
                if state is not None:
                    work.outcome = state
                    work.stated_end = end
                    if named is None and work.retired is not None:
                        # Decided anew, outside any transaction.
                        work.retired = None
                if body.settled:
                    self.work.drop(key, number)

    def answer(self, request: ControlRequest, state: object, end: i64, record: FrameRecord) -> None:
        """The resource states the outcome of a request."""
        if state is None or request.answered or isinstance(state, Received):
            return
        request.answered = True
        control = request.control
        if control.settled_end < request.end:
            control.settled_end = UNKNOWN
        if isinstance(state, Declared) and isinstance(state.txn_id, bytes):
            self._declare(control, state.txn_id, end, record)
            return
        if request.kind == "declare" and not isinstance(state, Rejected):
            # No answer to a declare: the controller may have a transaction of an unknown id.
            self.overfull = True
        transaction = request.transaction
        if transaction is None or transaction.answered_end != UNKNOWN:
            return
        transaction.answered_end = end
        if len(self.unread) < MAX_OVER_TRANSACTIONS:
            self.unread.append(transaction)
        transaction.done = isinstance(state, Accepted)
        # It is over: one more that is only kept to tell how it ended.
        self.finished.append((control.controller, transaction.txn_id))
        if len(self.finished) > MAX_OVER_TRANSACTIONS:
            oldest = self.finished.pop(0)
            known = self.transactions.get(oldest)
            if known is not None and known.answered_end != UNKNOWN:
                del self.transactions[oldest]

    def _declare(self, control: Control, txn_id: bytes, end: i64, record: FrameRecord) -> None:
        key = (control.controller, txn_id)
        before = self.transactions.get(key)
        if before is None:
            full = len(self.transactions) >= MAX_TRANSACTIONS
        else:
            # Two that have one id cannot be distinguished.
            full = before.discharge_end == UNKNOWN and not before.control.over()
        if full:
            self.overfull = True
            return
        # Of a link that was detached and attached again since, it is declared on what is there now.
        newest = self.control(control.controller, control.channel, control.name)
        self.transactions[key] = Transaction(newest or control, txn_id, end, record.packet)

    def _retire(
        self,
        me: Endpoint10,
        session: SessionEnd,
        key: tuple[str, int],
        body: Disposition,
        named: bytes,
        record: FrameRecord,
    ) -> None:
        """A receiver gives deliveries an outcome under a transaction."""
        transaction = self.transactions.get((me.peer, named))
        if transaction is None or body.first is None:
            return
        if transaction.control.session != session.number:
            transaction.elsewhere = True
        first = session.received.number(body.first)
        last = first
        if body.last is not None:
            last = session.received.number(body.last)
        if first == UNKNOWN or last < first:
            return
        if last - first >= MAX_WORK:
            self.overfull = True
            return
        end = record.frame.offset + record.frame.size
        number = first
        while number <= last:
            identity = int(raw(number))
            work = self.work.of(key[0], key[1], identity)
            if work is None and not body.settled and identity not in self.requests.get(key, {}):
                work = self._add(key, identity, "", record.packet)
                if work is not None:
                    work.complete = True
            if work is not None:
                under = work.transaction
                if under is not None and under is not transaction and under.discharge_end == UNKNOWN:
                    under.mixed = record.packet
                    transaction.mixed = record.packet
                work.retired = transaction
                work.stated_end = end
            number += 1

    def _flow(
        self, me: Endpoint10, session: SessionEnd, link: LinkEnd, body: Flow, record: FrameRecord
    ) -> None:
        """A receiver's flow: under which transaction it wants messages, and how much credit that leaves."""
        key = (me.peer, int(session.channel), link.name)
        value = asked_of(body)
        asked = self.asked.get(key)
        if isinstance(value, bytes):
            transaction = self.transactions.get((me.peer, value))
            if transaction is not None:
                if transaction.control.session != session.number:
                    transaction.elsewhere = True
                if asked is None:
                    if len(self.asked) >= MAX_WORK:
                        self.overfull = True
                        return
                    asked = Asked()
                    self.asked[key] = asked
                asked.transactions.append(transaction)
                asked.ends.append(record.frame.offset + record.frame.size)
                asked.odd = False
                if len(asked.ends) > MAX_ASKED:
                    self.overfull = True
                    del asked.transactions[0]
                    del asked.ends[0]
        if asked is not None and body.link_credit is not None:
            base: i64 = link.receipt.count
            if body.delivery_count is not None:
                base = nearest(body.delivery_count, base)
            asked.limit = base + body.link_credit

    def _detach(
        self, me: Endpoint10, session: SessionEnd, link: LinkEnd, body: Detach, record: FrameRecord
    ) -> None:
        end = record.frame.offset + record.frame.size
        if link.sender:
            control = self.control(me.peer, session.channel, link.name)
            if control is not None and link.coordinator:
                control.leave(end, body.closed is True)
            self.work.leave_link((me.peer, int(session.channel)), link.name)
            key = (_other(me), int(session.peer_channel), link.name)
            asked = self.asked.get(key)
            if asked is not None and asked.ends[len(asked.ends) - 1] <= me.knowledge.could:
                del self.asked[key]
        else:
            control = self.answered_control(_other(me), session.peer_channel, link.name, True)
            if control is not None:
                control.drop(end, body.closed is True)
            # What it asked for may still be on its way; that ends with the other end's detach.
            self.work.leave_link((_other(me), int(session.peer_channel)), link.name)

    def _end(self, me: Endpoint10, session: SessionEnd, record: FrameRecord) -> None:
        end = record.frame.offset + record.frame.size
        other = _other(me)
        for control in self.controls:
            if control.controller == me.peer and control.channel == session.channel:
                control.leave(end, False)
            elif control.controller == other and control.channel == session.peer_channel:
                control.drop(end, False)
        self._forget_deliveries(me.peer, int(session.channel))
        self._forget(other, int(session.peer_channel))

    # What is kept

    def _add(self, key: tuple[str, int], identity: int, link: str, packet: i64) -> Work | None:
        work = self.work.add(key, identity, link, packet)
        if work is None:
            self.overfull = True
        return work

    def _forget(self, sender: str, channel: int) -> None:
        """A session is over for both, or begun anew."""
        self._forget_deliveries(sender, channel)
        for key in [key for key in self.asked if key[0] == sender and key[1] == channel]:
            del self.asked[key]

    def _forget_deliveries(self, sender: str, channel: int) -> None:
        self.work.leave_session((sender, channel))
        self.requests.pop((sender, channel), None)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, control links and transactions by number."""
        controls = ObjectIds()
        transactions = ObjectIds()
        for control in self.controls:
            controls.number(control)
        names = tuple((peer, txn, transactions.number(one)) for (peer, txn), one in self.transactions.items())
        requests = tuple(
            (key, tuple((number, one.dump(controls, transactions)) for number, one in some.items()))
            for key, some in self.requests.items()
        )
        work = self.work.dump(transactions)
        asked = tuple((key, some.dump(transactions)) for key, some in self.asked.items())
        unread = tuple(transactions.number(one) for one in self.unread)
        dumped: list[tuple[object, ...]] = []
        for one in transactions.objects:
            assert isinstance(one, Transaction)
            dumped.append(one.dump(controls))
        all_controls: list[tuple[object, ...]] = []
        for one in controls.objects:
            assert isinstance(one, Control)
            all_controls.append(one.dump())
        return (
            (self.active, self.overfull, len(self.controls)),
            tuple(all_controls),
            tuple(dumped),
            names,
            (tuple(self.finished), unread),
            requests,
            work,
            asked,
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Ledger":
        """The object of what `dump` returned."""
        about, controls, transactions, names, finished, requests, work, asked = state
        ledger = Ledger()
        ledger.active = about[0]
        ledger.overfull = about[1]
        all_controls = [Control.load(control) for control in controls]
        ledger.controls = all_controls[: about[2]]
        known = [Transaction.load(transaction, all_controls) for transaction in transactions]
        ledger.transactions = {(peer, txn): known[at] for peer, txn, at in names}
        ledger.finished = [(peer, txn) for peer, txn in finished[0]]
        ledger.unread = [known[at] for at in finished[1]]
        for (sender, channel), some in requests:
            loaded = {number: ControlRequest.load(one, all_controls, known) for number, one in some}
            ledger.requests[sender, channel] = loaded
        ledger.work = Works.load(work, known)
        for (controller, channel, name), one in asked:
            ledger.asked[controller, channel, name] = Asked.load(one, known)
        return ledger


# mypyc: null object, of a connection without transactions. Nothing writes to it.
NO_LEDGER: Final = Ledger()


def _other(me: Endpoint10) -> str:
    return "server" if me.peer == "client" else "client"
