// An AMQP 1.0 client on @sap/xb-msg-amqp-v100: eight messages to a node and back, one of them refused by its
// receiver, one in several transfers. Ends by itself, or fails after LIFETIME milliseconds.
'use strict';

const { Client } = require('@sap/xb-msg-amqp-v100');
const { parseArgs } = require('node:util');

const LIFETIME = 20000;
const COUNT = 8;

const { values: options } = parseArgs({ options: {
    'connect': { type: 'string' }, 'user': { type: 'string' }, 'password': { type: 'string' },
} });
setTimeout(() => process.exit(3), LIFETIME).unref();

const client = new Client({
    net: { host: options.connect, port: 5672 },
    sasl: { mechanism: 'PLAIN', user: options.user, password: options.password },
});
const outgoing = client.sender('parcels-out').attach('parcels');
const incoming = client.receiver('parcels-in').attach('parcels');
let received = 0;

client.on('error', (error) => { console.error(error.message); process.exit(1); });
client.on('disconnected', () => process.exit(received === COUNT ? 0 : 1));
outgoing.on('ready', () => {
    for (let number = 0; number < COUNT; number++) {
        outgoing.write({
            payload: Buffer.alloc(number === 5 ? 2000 : 40, 'tea '),
            done: () => undefined, failed: () => undefined,
        });
    }
});
incoming.on('data', (message) => {
    received++;
    if (received === 3) message.failed(new Error('no such article'));
    else message.done();
    if (received === COUNT) setTimeout(() => client.disconnect(), 200);
});
client.connect();
