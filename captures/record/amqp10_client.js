// The npm library amqp10 against a plain server: five messages to a queue and back, each accepted.
'use strict';

const amqp10 = require('amqp10');
const { parseArgs } = require('node:util');

const LIFETIME = 25000;
const COUNT = 5;

const { values: options } = parseArgs({ options: {
    'connect': { type: 'string' }, 'user': { type: 'string' }, 'password': { type: 'string' },
} });
setTimeout(() => fail('not done in time'), LIFETIME).unref();

function fail(problem) {
    console.error(problem);
    process.exit(3);
}

async function main() {
    const client = new amqp10.Client(amqp10.Policy.merge({
        reconnect: { retries: 0 },
        connect: { options: { containerId: 'shop', hostname: 'warehouse.example' } },
        senderLink: { attach: { name: 'letters-out' } },
        receiverLink: {
            attach: { name: 'letters-in' }, credit: amqp10.Policy.Utils.CreditPolicies.RefreshAtHalf,
            creditQuantum: 4,
        },
    }, amqp10.Policy.Default));
    const user = encodeURIComponent(options.user);
    await client.connect(`amqp://${user}:${options.password}@${options.connect}:5672`);
    const sender = await client.createSender('letters');
    for (let number = 1; number <= COUNT; number++) {
        await sender.send({ properties: { messageId: `letter-${number}`, subject: 'letter' },
                            applicationProperties: { page: number }, body: `dear reader ${number}` });
    }
    const receiver = await client.createReceiver('letters');
    await new Promise((resolve, reject) => {
        let count = 0;
        receiver.on('errorReceived', reject);
        receiver.on('message', () => {
            if (++count === COUNT) setImmediate(resolve);
        });
    });
    await sender.detach();
    await receiver.detach();
    await client.disconnect();
}

main().then(() => process.exit(0), fail);
