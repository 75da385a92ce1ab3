// AMQP 0-9-1 clients on amqplib, one function a scenario. Each ends by itself, or fails after LIFETIME
// milliseconds.
'use strict';

const amqplib = require('amqplib');
const { execFileSync } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { parseArgs } = require('node:util');

const LIFETIME = 28000;
const GOODS = ['tea', 'cocoa', 'umbrella', 'raincoat', 'lantern', 'map', 'compass', 'rope'];

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: {
    'connect': { type: 'string' }, 'user': { type: 'string' }, 'password': { type: 'string' },
} });
setTimeout(() => fail('not done in time'), LIFETIME).unref();

function fail(problem) {
    console.error(problem);
    process.exit(3);
}

function check(truth, what) {
    if (!truth) throw new Error(`not so: ${what}`);
}

async function connect(extra) {
    const connection = await amqplib.connect(Object.assign({
        hostname: options.connect, port: 5672, username: options.user || 'shop',
        password: options.password || 'made-up-for-captures', heartbeat: 60,
    }, extra), { clientProperties: { connection_name: 'shop' }, noDelay: true });
    connection.on('error', () => {});   // a scenario that expects one waits for `close`
    return connection;
}

function once(emitter, event) {
    return new Promise((resolve) => emitter.once(event, resolve));
}

function wait(milliseconds) {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

// Resolves when what channels were told before has been written.
async function flushed() {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

// Consumes from `queue`; what comes is in `messages`, and `fill(count)` waits until so many have come.
async function consumer(channel, queue, extra) {
    const messages = [];
    let changed = () => {};
    const { consumerTag } = await channel.consume(queue, (message) => {
        messages.push(message);
        changed();
    }, extra);
    const fill = async (count) => {
        while (messages.length < count) await new Promise((resolve) => { changed = resolve; });
        return messages;
    };
    return { messages, fill, tag: consumerTag };
}

async function stock(channel, queue, goods = GOODS, extra = {}) {
    await channel.assertQueue(queue, { durable: false, ...extra });
    for (const name of goods) channel.sendToQueue(queue, Buffer.from(name));
}

// Publishes without waiting: the server confirms several with one ack, and refuses what the queue cannot take.
async function confirm() {
    const connection = await connect();
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue('invoices', { durable: true });
    for (let burst = 0; burst < 3; burst++) {
        for (const name of GOODS) channel.sendToQueue('invoices', Buffer.from(name), { persistent: true });
        await channel.waitForConfirms();
    }
    await channel.assertQueue('shelf', { durable: false, arguments: {
        'x-max-length': 2, 'x-overflow': 'reject-publish' } });
    const refused = [];
    for (const name of GOODS) {
        channel.sendToQueue('shelf', Buffer.from(name), {}, (error) => error && refused.push(name));
    }
    await channel.waitForConfirms().catch(() => {});
    check(refused.length === 6, 'six are too many');
    const returned = once(channel, 'return');
    channel.publish('', 'nowhere', Buffer.from('come back'), { mandatory: true, messageId: 'invoice-1' });
    await channel.waitForConfirms();
    check((await returned).properties.messageId === 'invoice-1', 'returned');
    await channel.deleteQueue('invoices');
    await channel.deleteQueue('shelf', { ifEmpty: false });
    await channel.close();
    await connection.close();
}

// Prefetch of each consumer, then of the channel; every way to settle, of one and of many.
async function settle() {
    const connection = await connect();
    const channel = await connection.createChannel();
    await stock(channel, 'parcels');
    await channel.prefetch(3);
    const first = await consumer(channel, 'parcels', { consumerTag: 'first' });
    const messages = await first.fill(3);
    channel.ack(messages[1], true);
    await first.fill(5);
    channel.nack(messages[3], true, true);   // two come again: 3 was in hand, too
    await first.fill(7);
    check(messages[6].fields.redelivered, 'came before');
    channel.reject(messages[4], true);
    channel.nackAll(false);
    await first.fill(8);
    channel.ackAll();
    await channel.cancel('first');
    await channel.recover();
    await channel.prefetch(4, true);
    const others = [await consumer(channel, 'parcels'), await consumer(channel, 'parcels')];
    for (const name of GOODS) channel.sendToQueue('parcels', Buffer.from(name));
    await wait(300);
    check(others[0].messages.length + others[1].messages.length <= 4, 'four in all');
    channel.ackAll();
    await wait(300);
    for (const other of others) await channel.cancel(other.tag);
    channel.nackAll(true);
    const { messageCount } = await channel.purgeQueue('parcels');
    check(messageCount > 0, 'some are left');
    check(await channel.get('parcels') === false, 'none is left');
    await channel.deleteQueue('parcels');
    await channel.close();
    await connection.close();
}

// No acknowledgements, exclusive queues and consumers, names made up by the server, get.
async function no_ack() {
    const connection = await connect();
    const [ours, other] = [await connection.createChannel(), await connection.createChannel()];
    const { queue } = await ours.assertQueue('', { exclusive: true });
    await ours.bindQueue(queue, 'amq.topic', 'news.#');
    const listener = await consumer(ours, queue, { noAck: true, exclusive: true });
    for (const name of GOODS) other.publish('amq.topic', `news.${name}`, Buffer.from(name));
    await listener.fill(8);
    const failed = once(other, 'error');
    await other.consume(queue, () => {}).catch(() => {});
    check((await failed).code === 403, 'one consumer only');
    await ours.cancel(listener.tag);
    ours.sendToQueue(queue, Buffer.from('late news'), { deliveryMode: 1, CC: ['amq.nowhere'], BCC: [queue] });
    await ours.checkQueue(queue);
    check((await ours.get(queue, { noAck: true })).fields.messageCount === 0, 'one at a time, one each queue');
    check(await ours.get(queue, { noAck: true }) === false, 'none left');
    await ours.unbindQueue(queue, 'amq.topic', 'news.#');
    await connection.close();   // with a channel open
}

// Every type of value that amqplib can be told to write in a table, and every property.
async function types() {
    const connection = await connect();
    const channel = await connection.createChannel();
    const typed = (type, value) => ({ '!': type, value });
    const table = {
        'a_boolean': true, 'text': 'Grüße', 'nothing': null, 'octets': Buffer.from([0, 255, 27]),
        'int8': typed('int8', -8), 'uint8': typed('uint8', 200), 'int16': typed('int16', -1600),
        'uint16': typed('uint16', 65535), 'int32': typed('int32', -32), 'uint32': typed('uint32', 4294967295),
        'int64': typed('int64', -64), 'float': typed('float', 0.5), 'double': typed('double', -2.25),
        'a_time': typed('timestamp', 1700000000), 'a_decimal': typed('decimal', { digits: 1234, places: 2 }),
        'small': 7, 'middle': -300, 'large': 70000, 'larger': 2 ** 40, 'broken': 1.5,
        'a_table': { 'inside': { 'deeper': 1 }, 'empty': {} },
        'an_array': [1, 'two', null, [false], { three: 3 }],
    };
    await channel.assertQueue('samples', { durable: false, expires: 600000, arguments: table });
    channel.sendToQueue('samples', Buffer.from('all properties'), {
        contentType: 'text/plain', contentEncoding: 'utf-8', headers: table, persistent: true, priority: 255,
        correlationId: 'correlation-7', replyTo: 'samples', expiration: '60000', messageId: 'sample-1',
        timestamp: 1700000000, type: 'sample', userId: 'shop', appId: 'warehouse',
    });
    channel.sendToQueue('samples', Buffer.alloc(0));
    const back = await channel.get('samples', { noAck: true });
    check(back.properties.headers['uint16'] === 65535, 'the same');
    check((await channel.get('samples', { noAck: true })).content.length === 0, 'empty');
    await channel.deleteQueue('samples');
    await channel.close();
    await connection.close();
}

// Exchanges of every type, bound to each other; an alternate one for what is not routed.
async function routing() {
    const connection = await connect();
    const channel = await connection.createChannel();
    await channel.assertExchange('unrouted', 'fanout', { durable: false, autoDelete: true });
    await channel.assertExchange('orders', 'topic', { durable: false, alternateExchange: 'unrouted' });
    await channel.assertExchange('by-shelf', 'headers', { durable: false, internal: true });
    await channel.assertExchange('urgent', 'direct', { durable: true });
    await channel.bindExchange('by-shelf', 'orders', 'shelf.*', { reason: 'stock-taking' });
    await channel.bindExchange('urgent', 'orders', '*.now');
    await channel.assertQueue('shelf-7', { durable: false });
    await channel.bindQueue('shelf-7', 'by-shelf', '', { 'x-match': 'all', 'shelf': 7, 'empty': false });
    await channel.assertQueue('lost', { durable: false });
    await channel.bindQueue('lost', 'unrouted', '');
    const shelf = await consumer(channel, 'shelf-7', { noAck: true });
    const lost = await consumer(channel, 'lost', { noAck: true });
    channel.publish('orders', 'shelf.tea', Buffer.from('tea'), { headers: { shelf: 7, empty: false } });
    channel.publish('orders', 'nowhere', Buffer.from('cocoa'),
                    { CC: ['shelf.cocoa'], headers: { shelf: 7, empty: false } });
    channel.publish('orders', 'attic', Buffer.from('lantern'));
    await shelf.fill(2);
    await lost.fill(1);
    await channel.unbindExchange('urgent', 'orders', '*.now');
    await channel.unbindExchange('by-shelf', 'orders', 'shelf.*', { reason: 'stock-taking' });
    await channel.checkExchange('by-shelf');
    await channel.unbindQueue('lost', 'unrouted', '');   // the last one: deletes the exchange
    for (const exchange of ['orders', 'by-shelf', 'urgent']) await channel.deleteExchange(exchange);
    for (const queue of ['shelf-7', 'lost']) await channel.deleteQueue(queue);
    await channel.close();
    await connection.close();
}

// A new password is told on a connection that lives on.
async function secret() {
    const connection = await connect();
    const channel = await connection.createChannel();
    await connection.updateSecret(Buffer.from('made-up-again'), 'the old one expires');
    await stock(channel, 'orders', ['tea'], { exclusive: true });
    check((await channel.get('orders')).content.toString() === 'tea', 'goes on');
    await connection.close();
}

// Heartbeats of both sides in silence.
async function heartbeat() {
    const connection = await connect({ heartbeat: 1 });
    await wait(3200);
    await connection.close();
}

// The operator closes all connections while messages flow.
async function forced() {
    const connection = await connect();
    const channel = await connection.createChannel();
    await stock(channel, 'orders', ['tea']);
    const clerk = await consumer(channel, 'orders');
    await clerk.fill(1);
    const closed = once(connection, 'close');
    execFileSync('./control', ['close_all_connections', 'stock-taking']);
    check((await closed).code === 320, 'forced');
}

// Consumers of a queue that is deleted get null; the one of the higher priority had got all messages.
async function cancelled() {
    const connection = await connect();
    const [channel, other] = [await connection.createChannel(), await connection.createChannel()];
    await channel.assertQueue('orders', { durable: false });
    const clerk = await consumer(channel, 'orders');
    const cashier = await consumer(channel, 'orders', { priority: 5 });
    for (const name of ['tea', 'cocoa']) channel.sendToQueue('orders', Buffer.from(name));
    await cashier.fill(2);
    await other.deleteQueue('orders');
    await clerk.fill(1);
    await cashier.fill(3);
    check(clerk.messages[0] === null && cashier.messages[2] === null, 'cancelled');
    channel.ack(cashier.messages[1], true);
    await channel.close();
    await connection.close();
}

// Each kind of channel error by what an application does wrong, on channels of one connection.
async function channel_errors() {
    const connection = await connect();
    const fault = async (code, act) => {
        const channel = await connection.createChannel();
        const failed = once(channel, 'error');
        await Promise.resolve(act(channel)).catch(() => {});
        check((await failed).code === code, `error ${code}`);
    };
    const keeper = await connection.createChannel();
    await keeper.assertQueue('kept', { durable: true });
    await fault(404, (channel) => channel.checkExchange('missing'));
    await fault(406, (channel) => channel.assertQueue('kept', { durable: true, messageTtl: 1000 }));
    await fault(406, (channel) => channel.assertExchange('amq.topic', 'direct'));
    await fault(403, (channel) => channel.assertExchange('amq.mine', 'direct'));
    await fault(403, (channel) => channel.deleteExchange('amq.topic'));
    await fault(404, (channel) => channel.bindQueue('kept', 'missing', 'key'));
    await fault(406, async (channel) => {   // acknowledged twice, and more in flight behind it
        channel.sendToQueue('kept', Buffer.from('tea'));
        const clerk = await consumer(channel, 'kept');
        const [message] = await clerk.fill(1);
        channel.ack(message);
        channel.ack(message);
        channel.sendToQueue('kept', Buffer.from('cocoa'));
        channel.ack(message);
        channel.sendToQueue('kept', Buffer.from('umbrella'));
    });
    for (const wrong of [{ userId: 'somebody' }, { expiration: 'soon' }]) {
        await fault(406, (channel) => channel.sendToQueue('kept', Buffer.from('tea'), wrong));
    }
    await keeper.deleteQueue('kept');
    await connection.close();
}

// A queue kept by quorum and a stream: their own arguments and headers, what they refuse.
async function quorum() {
    const connection = await connect();
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue('ledger', { arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': 2 } });
    for (const name of GOODS) channel.sendToQueue('ledger', Buffer.from(name));
    await channel.waitForConfirms();
    const clerk = await consumer(channel, 'ledger');
    const messages = await clerk.fill(8);
    channel.nack(messages[0]);
    const again = (await clerk.fill(9))[8];
    check(again.properties.headers['x-delivery-count'] === 1, 'counted');
    channel.ack(again, true);
    await channel.assertQueue('journal', { arguments: { 'x-queue-type': 'stream' } });
    for (const name of GOODS) channel.sendToQueue('journal', Buffer.from(name));
    await channel.waitForConfirms();
    await channel.prefetch(10);
    const reader = await consumer(channel, 'journal', { arguments: { 'x-stream-offset': 'first' } });
    const read = await reader.fill(8);
    channel.ack(read[7], true);
    await channel.cancel(reader.tag);
    await channel.deleteQueue('ledger');
    await channel.deleteQueue('journal');
    const refused = await connection.createChannel();
    await refused.prefetch(5, true);
    await refused.assertQueue('ledger', { arguments: { 'x-queue-type': 'quorum' } });
    const closed = once(connection, 'close');
    await refused.consume('ledger', () => {}).catch(() => {});
    check((await closed).code === 540, 'no prefetch of the whole channel');
}

// Both ends close at the same moment, first a channel, then the connection: each answers the other's close.
async function crossing() {
    const connection = await connect();
    const channel = await connection.createChannel();
    channel.publish('nowhere', 'key', Buffer.from('lost'));
    await channel.close();
    const other = await connection.createChannel();
    const closed = once(connection, 'close');
    other.assertExchange('odd', 'roundabout').catch(() => {});
    await flushed();
    connection.close().catch(() => {});
    await closed;
}

// Publishes and closes in one breath: amqplib writes the close of the connection first.
async function hasty() {
    const connection = await connect();
    const channel = await connection.createChannel();
    await channel.assertQueue('invoices', { durable: true });
    for (const name of GOODS.slice(0, 3)) channel.sendToQueue('invoices', Buffer.from(name));
    await connection.close();
}

// Publishes that are never confirmed: the process ends before. What arrived is in the queue all the same.
async function unconfirmed() {
    const connection = await connect();
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue('invoices', { durable: true });
    channel.sendToQueue('invoices', Buffer.from('tea'), { persistent: true });
    await channel.waitForConfirms();
    for (const name of GOODS) channel.sendToQueue('invoices', Buffer.from(name), { persistent: true });
    await flushed();
    process.exit(0);
}

// The server's host stands still: no heartbeat comes, and the client gives up.
async function stalled() {
    const connection = await connect({ heartbeat: 1 });
    const channel = await connection.createChannel();
    await channel.assertQueue('orders', { durable: false });
    const number = Number(readFileSync('pid', 'utf8'));
    const failed = once(connection, 'error');
    process.kill(number, 'SIGSTOP');
    try {
        check(/[Hh]eartbeat/.test((await failed).message), 'a heartbeat is missed');
        await wait(500);
    } finally {
        process.kill(number, 'SIGCONT');
    }
}

const SCENARIOS = {
    confirm, settle, 'no-ack': no_ack, types, routing, secret, heartbeat, forced, cancelled,
    'channel-errors': channel_errors, quorum, crossing, hasty, unconfirmed, stalled,
};
const scenario = SCENARIOS[positionals[0]];
if (!scenario) fail(`no such scenario; there are ${Object.keys(SCENARIOS).join(', ')}`);
scenario().catch(fail);
