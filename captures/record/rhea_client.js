// AMQP 1.0 clients on rhea, one function a scenario. Each ends by itself, or fails after LIFETIME
// milliseconds.
'use strict';

const rhea = require('rhea');
const { parseArgs } = require('node:util');
const types = rhea.types;

const LIFETIME = 25000;
const MADE = new Date(1700000000000);   // fixed: two recordings differ as little as possible

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: {
    'connect': { type: 'string' }, 'user': { type: 'string' }, 'password': { type: 'string' },
    'max-frame-size': { type: 'string' },
} });
setTimeout(() => fail('not done in time'), LIFETIME).unref();

function fail(problem) {
    console.error(problem);
    process.exit(3);
}

function connect(extra) {
    const connection = rhea.create_connection(Object.assign({
        host: options.connect, port: 5672, username: options.user || 'shop', password: options.password,
        container_id: 'shop', hostname: 'warehouse.example', sasl_init_hostname: 'warehouse.example',
        properties: { product: 'rhea-shop' }, reconnect: false, tcp_no_delay: true,
        max_frame_size: options['max-frame-size'] ? Number(options['max-frame-size']) : undefined,
    }, extra));
    connection.on('disconnected', (context) => fail(`disconnected: ${context.error}`));
    connection.on('connection_error', (context) => fail(`closed: ${context.connection.error}`));
    connection.connect();
    return connection;
}

// Resolves when the emitter says `event`, with its context.
function once(emitter, event) {
    return new Promise((resolve) => emitter.once(event, resolve));
}

// Resolves when the emitter has said `event` so many times, with all contexts.
function times(count, emitter, event) {
    return new Promise((resolve) => {
        const contexts = [];
        emitter.on(event, (context) => {
            contexts.push(context);
            if (contexts.length === count) resolve(contexts);
        });
    });
}

// Resolves when what was said before has been written. rhea 3.0.5 joins the dispositions of neighbouring
// deliveries that are settled in one go into one with the first one's outcome, even when theirs differ: so
// those are said one at a time.
function written() {
    return new Promise((resolve) => setImmediate(resolve));
}

// Detaches the links one after the other, then ends their sessions, then closes the connection.
async function finish(connection, ...links) {
    for (const link of links) {
        const closed = once(link, link.is_receiver() ? 'receiver_close' : 'sender_close');
        link.close();
        await closed;
    }
    for (const session of new Set(links.map((link) => link.session))) {
        const ended = once(session, 'session_close');
        session.close();
        await ended;
    }
    await close(connection);
}

async function close(connection) {
    connection.removeAllListeners('disconnected');
    const closed = once(connection, 'connection_close');
    connection.close();
    await closed;
}

function sender_to(connection, address, name, extra) {
    const sender = connection.open_sender(Object.assign(
        { name: name, target: address, source: { address: name } }, extra));
    return once(sender, 'sendable').then(() => sender);
}

async function receiver_of(connection, address, name, extra) {
    const receiver = connection.open_receiver(Object.assign(
        { name, source: address, target: { address: name }, credit_window: 0, autoaccept: false }, extra));
    await once(receiver, 'receiver_open');
    return receiver;
}

// The demo: a shop places five orders at a warehouse and reads the confirmations.
async function orders() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, 'orders', 'shop-orders');
    const confirmations = await receiver_of(connection, 'confirmations', 'shop-confirmations');
    confirmations.add_credit(2);
    const confirmed = new Promise((resolve) => {
        let count = 0;
        confirmations.on('message', (context) => {
            context.delivery.accept();
            if (++count === 2) confirmations.add_credit(2);
            if (count === 3) resolve();
        });
    });
    const wanted = [['tea', 12], ['cocoa', 2], ['umbrella', 1], ['tea', 8], ['cocoa', 5]];
    const judged = times(wanted.length, sender, 'settled');
    wanted.forEach(([article, quantity], index) => {
        sender.send({
            durable: true, message_id: `order-${index + 1}`, user_id: Buffer.from('shop'), subject: 'order',
            reply_to: 'confirmations', content_type: 'application/json', creation_time: MADE,
            application_properties: { article: article, quantity: types.wrap_int(quantity), gift: index === 1,
                                      discount: types.wrap_double(2.5 * index) },
            body: rhea.message.data_section(Buffer.from(JSON.stringify({ article, quantity }))),
        });
    });
    await Promise.all([judged, confirmed]);
    await finish(connection, sender, confirmations);
}

// Every outcome in both directions, settled-before-sending, credit in steps, and credit drained away.
async function outcomes() {
    const connection = connect();
    await once(connection, 'connection_open');
    const examined = await sender_to(connection, 'examine', 'examine-out');
    for (const subject of ['accept', 'reject', 'release', 'modify']) {
        const judged = once(examined, 'settled');
        examined.send({ message_id: `examine-${subject}`, subject: subject, body: subject });
        await judged;
    }

    const events = await sender_to(connection, 'events', 'events-out', { snd_settle_mode: 1 });
    for (let number = 1; number <= 4; number++) events.send({ message_id: `event-${number}`, body: number });

    let receiver = await receiver_of(connection, 'events', 'events-in');
    let received = times(2, receiver, 'message');
    receiver.add_credit(2);
    let contexts = await received;
    contexts[0].delivery.release();
    await written();
    contexts[1].delivery.modified({ delivery_failed: true, undeliverable_here: false,
                                    message_annotations: { 'x-opt-note': 'again' } });
    received = times(2, receiver, 'message');
    receiver.add_credit(1);
    receiver.add_credit(1);
    contexts = await received;
    contexts[0].delivery.reject({ condition: 'shop:unreadable', description: 'cannot be read' });
    await written();
    contexts[1].delivery.accept();
    const closed = once(receiver, 'receiver_close');
    receiver.close();
    await closed;

    // The two given back come again; the eight credits that are left over are drained.
    receiver = await receiver_of(connection, 'events', 'events-again');
    received = times(2, receiver, 'message');
    receiver.add_credit(10);
    contexts = await received;
    const drained = once(receiver, 'receiver_drained');
    receiver.drain_credit();
    await drained;
    receiver.drain = false;
    contexts.forEach((context) => context.delivery.accept());
    await finish(connection, examined, events, receiver);
}

// Values of every AMQP type, every section, every kind of body and message-id.
async function values() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, 'examine', 'examine-out');
    const uuid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
    const every = {
        'null': types.Null(), 'true': true, 'false': false, 'boolean': types.Boolean(1),
        'ubyte': types.wrap_ubyte(200), 'ushort': types.wrap_ushort(60000),
        'uint-0': types.wrap_uint(0), 'uint-small': types.wrap_uint(250), 'uint': types.wrap_uint(4000000000),
        'ulong-0': types.wrap_ulong(0), 'ulong-small': types.wrap_ulong(250),
        'ulong': types.wrap_ulong(Buffer.from('ffffffffffffffff', 'hex')),
        'byte': types.wrap_byte(-100), 'short': types.wrap_short(-30000),
        'int-small': types.wrap_int(-100), 'int': types.wrap_int(-2000000000),
        'long-small': types.wrap_long(-100), 'long': types.wrap_long(Buffer.from('8000000000000000', 'hex')),
        'float': types.wrap_float(0.5), 'double': types.wrap_double(-1.25e300),
        'not-a-number': types.wrap_double(NaN),
        'decimal32': types.Decimal32(Buffer.from('22500001', 'hex')),
        'decimal64': types.Decimal64(Buffer.from('2238000000000001', 'hex')),
        'decimal128': types.Decimal128(Buffer.from('22080000000000000000000000000001', 'hex')),
        'char': types.wrap_char(0x1f375),
        'timestamp': types.wrap_timestamp(MADE.getTime()), 'timestamp-before-1970': types.wrap_timestamp(-1),
        'uuid': types.wrap_uuid(uuid), 'binary': types.wrap_binary(Buffer.from([0, 1, 254, 255])),
        'string': 'Grüße, 茶', 'string-long': 'long '.repeat(60), 'string-hostile': '\u001b[31m<b>"&\u202e',
        'symbol': types.wrap_symbol('a-symbol'),
    };
    const many = [
        { message_id: 'all-sections',
          durable: true, priority: 9, ttl: 60000, first_acquirer: true, delivery_count: 2,
          delivery_annotations: { 'x-opt-delivery': 1 },
          message_annotations: { 'x-opt-list': [1, 'two', null], 'x-opt-map': { a: true } },
          user_id: Buffer.from('shop'), to: 'examine', subject: 'accept', reply_to: 'answers',
          correlation_id: 7,
          content_type: 'text/plain', content_encoding: 'identity',
          absolute_expiry_time: new Date(1800000000000), creation_time: MADE, group_id: 'group',
          group_sequence: 4294967295, reply_to_group_id: 'answers', application_properties: every,
          body: 'all sections', footer: { 'x-opt-checksum': types.wrap_ulong(12345) } },
        { message_id: 18,
          body: { list: [1, [2, [3]]], map: new Map([[types.wrap_uint(1), 'one'], ['two', 2]]),
                  nothing: null } },
        { message_id: types.wrap_uuid(uuid), body: types.wrap_array([1, 2, 3], 0x71) },
        { message_id: types.wrap_binary(Buffer.from('binary-id')),
          body: types.wrap_array(['a', 'bc'], 0xa3) },
        { message_id: 'described', body: types.wrap_described([51.5, -0.1], 'example:position:list') },
        { message_id: 'data', body: rhea.message.data_section(Buffer.from('one piece')) },
        { message_id: 'data-in-pieces',
          body: rhea.message.data_sections([Buffer.from('two '), Buffer.from('pieces')]) },
        { message_id: 'sequence', body: rhea.message.sequence_section([1, 'two', true]) },
        { message_id: 'sequences', body: rhea.message.sequence_sections([[1, 2], [], ['three']]) },
        { message_id: 'nothing', body: null },
    ];
    const judged = times(many.length, sender, 'settled');
    many.forEach((message) => sender.send(message));
    await judged;
    await finish(connection, sender);
}

// One message too large for a frame, there and back; the two peers accept frames of different sizes.
async function split() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, 'large', 'large-out');
    const settled = once(sender, 'settled');
    sender.send({ message_id: 'large-1', body: rhea.message.data_section(Buffer.alloc(4000, 'split ')) });
    await settled;
    const receiver = await receiver_of(connection, 'large', 'large-in');
    const received = once(receiver, 'message');
    receiver.add_credit(1);
    (await received).delivery.accept();
    await finish(connection, sender, receiver);
}

// No SASL layer; two sessions whose links have the same names, used in turn.
async function sessions() {
    const connection = connect({ username: undefined, channel_max: 7 });
    await once(connection, 'connection_open');
    const both = [connection.create_session(), connection.create_session()];
    both.forEach((session) => session.open());
    const senders = await Promise.all(
        both.map((session, index) => sender_to(session, `post-${index}`, 'post-out')));
    for (let number = 1; number <= 2; number++) {
        for (const sender of senders) {
            const settled = once(sender, 'settled');
            sender.send({ message_id: `post-${number}`, body: number });
            await settled;
        }
    }
    const receivers = await Promise.all(
        both.map((session, index) => receiver_of(session, `post-${index}`, 'post-in')));
    const received = receivers.map((receiver) => times(2, receiver, 'message'));
    receivers.forEach((receiver) => receiver.add_credit(5));
    (await Promise.all(received)).flat().forEach((context) => context.delivery.accept());
    await finish(connection, senders[0], receivers[0], senders[1], receivers[1]);
}

// A link to a node that is not there: attached and detached with an error, as the specification has it.
async function refused() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = connection.open_sender(
        { name: 'nowhere-out', target: 'nowhere', source: { address: 'nowhere-out' } });
    sender.on('sender_error', () => {});
    await once(sender, 'sender_close');
    const receiver = connection.open_receiver(
        { name: 'nowhere-in', source: 'nowhere', target: { address: 'nowhere-in' }, credit_window: 0 });
    receiver.on('receiver_error', () => {});
    await once(receiver, 'receiver_close');
    await close(connection);
}

// RabbitMQ: publish, receive, and give one message back, which then comes again.
async function rabbitmq() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, '/queue/captures', 'captures-out');
    const confirmed = times(3, sender, 'settled');
    for (let number = 1; number <= 3; number++) {
        sender.send({
            durable: true, priority: number, ttl: 60000, message_id: `parcel-${number}`, subject: 'parcel',
            content_type: 'text/plain', creation_time: MADE,
            application_properties: { weight: 1.5 * number, fragile: number === 2 },
            body: rhea.message.data_section(Buffer.from(`contents of parcel ${number}`)),
        });
    }
    await confirmed;
    const receiver = await receiver_of(connection, '/queue/captures', 'captures-in');
    for (let number = 1; number <= 4; number += 2) {
        const received = times(2, receiver, 'message');
        receiver.add_credit(2);
        const contexts = await received;
        contexts[0].delivery.accept();
        await written();
        if (number === 1) contexts[1].delivery.release();
        else contexts[1].delivery.accept();
        await written();
        receiver.removeAllListeners('message');
    }
    await finish(connection, sender, receiver);
}

// RabbitMQ 3.10: draining a classic queue's link ends the session with an internal error.
async function drain() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, '/queue/captures', 'captures-out');
    const settled = once(sender, 'settled');
    sender.send({ message_id: 'parcel-1', body: rhea.message.data_section(Buffer.from('contents')) });
    await settled;
    const receiver = await receiver_of(connection, '/queue/captures', 'captures-in');
    receiver.add_credit(5);
    (await once(receiver, 'message')).delivery.accept();
    const ended = Promise.race([once(connection, 'session_error'), once(receiver, 'receiver_drained')]);
    receiver.drain_credit();
    await ended;
    await close(connection);
}

// Many small messages there and back, accepted by the library; credit is topped up by it as it is used.
async function topped_up(address, count) {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, address, 'coins-out');
    const settled = times(count, sender, 'settled');
    for (let sent = 0; sent < count;) {
        while (sent < count && sender.sendable()) {
            sent++;
            sender.send({ message_id: sent, body: sent });
        }
        if (sent < count) await once(sender, 'sendable');
    }
    await settled;
    const receiver = connection.open_receiver(
        { name: 'coins-in', source: address, target: { address: 'coins-in' }, credit_window: 10 });
    await times(count, receiver, 'message');
    await written();
    await finish(connection, sender, receiver);
}

// The library used as its first example does: nothing given but an address, accepted and topped up by itself.
async function defaults() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = connection.open_sender('letters');
    await once(sender, 'sendable');
    const settled = times(3, sender, 'settled');
    for (let number = 1; number <= 3; number++) sender.send({ message_id: number, body: { page: number } });
    await settled;
    const receiver = connection.open_receiver('letters');
    await times(3, receiver, 'message');
    await written();
    await finish(connection, sender, receiver);
}

// A sender is closed with more messages than it has credit for: rhea sends the rest after its detach, when
// credit comes.
async function hasty() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, 'coins', 'coins-out');
    connection.removeAllListeners('connection_error');
    connection.removeAllListeners('disconnected');
    for (let number = 1; number <= 15; number++) sender.send({ message_id: number, body: number });
    sender.close();
    await once(connection, 'connection_close');
}

// The client announces an idle time-out of a second and is then silent for a while.
async function heartbeat() {
    const connection = connect({ idle_time_out: 1000 });
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, 'letters', 'letters-out');
    const settled = once(sender, 'settled');
    sender.send({ message_id: 'letter-1', body: 'dear reader' });
    await settled;
    await new Promise((resolve) => setTimeout(resolve, 3200));
    await finish(connection, sender);
}

// Messages settled when they are sent, and messages that the receiver settles second.
async function modes() {
    const connection = connect();
    await once(connection, 'connection_open');
    const sender = await sender_to(connection, 'notices', 'notices-out', { snd_settle_mode: 1 });
    for (let number = 1; number <= 4; number++) sender.send({ message_id: `notice-${number}`, body: number });
    const receiver = await receiver_of(connection, 'notices', 'notices-in',
                                       { snd_settle_mode: 0, rcv_settle_mode: 1, autosettle: false });
    for (let number = 1; number <= 4; number++) {
        const received = once(receiver, 'message');
        receiver.add_credit(1);
        const delivery = (await received).delivery;
        const settled = once(receiver, 'settled');
        const outcome = number === 3 ? rhea.message.rejected({}) : rhea.message.accepted({});
        delivery.update(false, outcome.described());
        await settled;
        delivery.settled = true;
    }
    await finish(connection, sender, receiver);
}

// A durable subscription: its link is detached without being closed, and attached again on a new connection.
async function durable() {
    const subscription = { address: 'gazette', durable: 2, expiry_policy: 'never' };
    for (let number = 1; number <= 3; number++) {
        const connection = connect();
        await once(connection, 'connection_open');
        if (number === 1) {
            const sender = await sender_to(connection, 'gazette', 'gazette-out');
            const settled = times(6, sender, 'settled');
            for (let issue = 1; issue <= 6; issue++) sender.send({ message_id: `issue-${issue}`, body: 'news' });
            await settled;
        }
        const receiver = await receiver_of(connection, subscription, 'gazette-in');
        const received = times(2, receiver, 'message');
        receiver.add_credit(2);
        for (const context of await received) context.delivery.accept();
        await written();
        if (number === 3) {
            await finish(connection, receiver);
        } else {
            // rhea's own server answers with a detach that closes.
            const detached = Promise.race(
                [once(receiver, 'receiver_detached'), once(receiver, 'receiver_close')]);
            receiver.detach();
            await detached;
            await close(connection);
        }
    }
}

// Requests to a sender without a target; the answers come to a node that the server made up.
async function prices() {
    const connection = connect();
    await once(connection, 'connection_open');
    const receiver = await receiver_of(connection, { dynamic: true }, 'answers-in');
    receiver.add_credit(5);
    const relay = connection.open_sender({ name: 'relay-out', source: { address: 'relay-out' }, target: {} });
    await once(relay, 'sendable');
    for (let number = 1; number <= 3; number++) {
        const answered = once(receiver, 'message');
        relay.send({ message_id: number, to: 'prices', reply_to: receiver.source.address,
                     body: ['tea', 'cocoa', 'umbrella'].slice(0, number) });
        (await answered).delivery.accept();
    }
    await written();
    await finish(connection, relay, receiver);
}

// RabbitMQ 3.10 has no nodes made up by the server, and no exchange of this name: each ends a session.
async function unknown() {
    const connection = connect();
    await once(connection, 'connection_open');
    for (const source of [{ dynamic: true }, '/exchange/nowhere/key', '/amq/queue/nowhere']) {
        const session = connection.create_session();
        session.open();
        await once(session, 'session_open');
        const receiver = session.open_receiver(
            { name: 'unknown-in', source: source, target: { address: 'unknown-in' }, credit_window: 0 });
        const ended = once(session, 'session_error');
        receiver.on('receiver_error', () => {});
        await ended;
    }
    await close(connection);
}

// A server that knows only AMQP 0-9-1 answers the protocol header with its own and hangs up.
async function other_protocol() {
    const connection = rhea.create_connection({
        host: options.connect, port: 5672, username: 'shop', password: 'made-up-for-captures',
        container_id: 'shop', hostname: 'warehouse.example', reconnect: false });
    const refused = new Promise((resolve) => {
        for (const event of ['protocol_error', 'connection_error', 'disconnected', 'error']) {
            connection.on(event, resolve);
        }
    });
    connection.connect();
    await refused;
    connection.close();
}

const SCENARIOS = {
    defaults, hasty, heartbeat, modes, durable, prices, unknown, 'topped-up': () => topped_up('coins', 90),
    'topped-up-rabbitmq': () => topped_up('/queue/coins', 60), orders, outcomes, types: values, split,
    sessions, refused, rabbitmq, drain,
    'other-protocol': other_protocol,
};
const scenario = SCENARIOS[positionals[0]];
if (!scenario) fail(`no such scenario; there are ${Object.keys(SCENARIOS).join(', ')}`);
scenario().catch(fail);
