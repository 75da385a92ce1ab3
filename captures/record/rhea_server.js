// A small AMQP 1.0 broker on rhea. What is sent to an address is kept there and handed to receivers of that
// address. Special addresses: `examine` judges each message by its subject, `stocked` has messages from the
// start, `nowhere` refuses links, `$cbs` takes any token (claims-based security as the Azure clients speak
// it). Runs until it is told to end, or for LIFETIME milliseconds.
'use strict';

const rhea = require('rhea');
const { parseArgs } = require('node:util');

const LIFETIME = 90000;
// Message format of a Service Bus batch: data sections that each hold one encoded message.
const BATCH = 0x80013700;

const { values: options } = parseArgs({ options: {
    'listen': { type: 'string' }, 'folder': { type: 'string' }, 'max-frame-size': { type: 'string' },
} });
setTimeout(() => process.exit(3), LIFETIME).unref();

const container = rhea.create_container({ id: 'rhea-broker' });
container.sasl_server_mechanisms.enable_anonymous();

const queues = {};      // address: { messages, consumers, returned }
let handed_out = 0;

function queue_of(address) {
    if (!queues[address]) queues[address] = { messages: [], consumers: [], returned: [] };
    return queues[address];
}

function hand_out(address) {
    const queue = queue_of(address);
    for (const sender of queue.consumers) {
        while (queue.messages.length && sender.sendable() && sender.to_hand !== 0) {
            const message = queue.messages.shift();
            sender.send(message, delivery_tag()).message = message;
            // rhea lowers the credit only when it writes: without a count of our own more would be queued
            // than granted.
            if (sender.to_hand !== undefined) sender.to_hand--;
        }
    }
}

// Service Bus clients read a lock token, 16 octets, from the delivery tag; any other client takes it as well.
function delivery_tag() {
    const tag = Buffer.alloc(16);
    tag.writeUInt32BE(++handed_out, 12);
    return tag;
}

function messages_in(batch) {
    const sections = rhea.message.decode(batch).body;
    const encoded = sections.multiple ? sections.content : [sections.content];
    return encoded.map((octets) => rhea.message.decode(octets));
}

function judge(message, delivery) {
    switch (message.subject) {
    case 'reject':
        delivery.reject({ condition: 'amqp:precondition-failed', description: 'the examiner does not like it',
                          info: { 'examined-at': 'desk 4' } });
        break;
    case 'release':
        delivery.release();
        break;
    case 'modify':
        delivery.modified({ delivery_failed: true, undeliverable_here: true,
                            message_annotations: { 'x-opt-reason': 'smudged' } });
        break;
    default:
        delivery.accept();
    }
}

container.on('receiver_open', (context) => {
    const receiver = context.receiver;
    const address = receiver.target && receiver.target.address;
    if (address === 'nowhere') {
        receiver.close({ condition: 'amqp:not-found', description: 'there is no node called nowhere' });
        return;
    }
    receiver.set_source({ address: receiver.source && receiver.source.address });
    receiver.set_target({ address: address });
});

container.on('sender_open', (context) => {
    const sender = context.sender;
    const address = sender.source && sender.source.address;
    if (address === 'nowhere') {
        sender.close({ condition: 'amqp:not-found', description: 'there is no node called nowhere' });
        return;
    }
    sender.set_source({ address: address });
    sender.set_target({ address: sender.target && sender.target.address });
    sender.local.attach.rcv_settle_mode = sender.rcv_settle_mode;
    queue_of(address).consumers.push(sender);
});

container.on('sender_flow', (context) => {
    const sender = context.sender;
    const address = sender.source.address;
    sender.to_hand = sender.credit;
    hand_out(address);
    if (sender._draining && !queue_of(address).messages.length) {
        // After what is queued has been written, or the credit given up would not be right.
        setImmediate(() => sender.set_drained(true) || context.connection._register());
    }
});

container.on('sender_close', (context) => {
    const queue = queue_of(context.sender.source.address);
    queue.consumers = queue.consumers.filter((sender) => sender !== context.sender);
    queue.messages = queue.returned.concat(queue.messages);
    queue.returned = [];
});

// What comes back is kept for the next receiver: the present one has just said that it does not want it.
for (const outcome of ['released', 'modified']) {
    container.on(outcome, (context) => {
        const state = context.delivery.remote_state;
        const message = context.delivery.message;
        if (state.delivery_failed) message.delivery_count = (message.delivery_count || 0) + 1;
        if (state.message_annotations) message.message_annotations = { 'x-opt-note': 'came back' };
        queue_of(context.sender.source.address).returned.push(message);
    });
}

// A receiver that settles second has only said its outcome: it forgets the delivery when the sender has
// settled it. The outcome is said back bare, as Service Bus does: its client takes a rejection with an
// error as a refusal of the request.
for (const outcome of ['accepted', 'rejected', 'released', 'modified']) {
    container.on(outcome, (context) => {
        if (context.delivery.remote_settled) return;
        context.delivery.update(true, rhea.message[outcome]({}).described());
    });
}

container.on('message', (context) => {
    const address = context.receiver.target.address;
    if (address === '$cbs') {
        context.delivery.accept();
        queue_of(context.message.reply_to || '$cbs').messages.push({
            correlation_id: context.message.message_id,
            application_properties: { 'status-code': 202, 'status-description': 'Accepted' } });
        hand_out(context.message.reply_to || '$cbs');
        return;
    }
    if (address === 'examine') {
        judge(context.message, context.delivery);
        return;
    }
    const messages = context.format === BATCH ? messages_in(context.message) : [context.message];
    queue_of(address).messages.push(...messages);
    context.delivery.accept();
    hand_out(address);
});

for (const event of ['error', 'protocol_error', 'connection_error', 'session_error', 'disconnected']) {
    container.on(event, (problem) => console.error(event, problem.message || ''));
}

for (let number = 1; number <= 3; number++) {
    queue_of('stocked').messages.push({ message_id: `stocked-${number}`, body: 'on the shelf' });
}

container.listen({
    host: options.listen, port: 5672, container_id: 'rhea-broker', properties: { product: 'rhea-broker' },
    max_frame_size: options['max-frame-size'] ? Number(options['max-frame-size']) : undefined,
    tcp_no_delay: true, receiver_options: { autoaccept: false, credit_window: 10 },
    sender_options: { treat_modified_as_released: false },
});
