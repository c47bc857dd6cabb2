import { expect, it } from 'vitest';
import { readReply } from '#src/kernel/event-store/jetstream/jetstream-reply.ts';

const facts = {
  deliveries: 2,
  sequence: 13_000_060,
  consumerSequence: 7,
  storedNanos: '1780000000708849705',
  pending: 41,
};
const DELIVERY = '2.13000060.7.1780000000708849705.41';

it.each([
  ['a server without a domain', `$JS.ACK.EVENTS.follow_1.${DELIVERY}`],
  ['a domain and an account', `$JS.ACK.hub.ACCOUNT.EVENTS.follow_1.${DELIVERY}`],
  ['the same with a random token', `$JS.ACK.hub.ACCOUNT.EVENTS.follow_1.${DELIVERY}.x7Yz`],
])('the facts of a delivery are read from the reply subject of %s', (_, reply) => {
  expect(readReply(reply)).toEqual(facts);
});

it.each(['', 'no.delivery', '$JS.ACK.EVENTS.follow_1'])(
  'a reply subject of no delivery, “%s”, continues no consumer’s sequence',
  (reply) => {
    expect(readReply(reply).consumerSequence).toBeLessThan(1);
  },
);
