import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { followKeySet, type KeySetTimes } from '#src/roles/api/auth/jwt-key-set.ts';
import { createJwtAuthenticator } from '#src/roles/api/auth/jwt.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { eventually } from '#test/support/service/service.ts';
import {
  AUDIENCE,
  goodClaims,
  ISSUER,
  newSigner,
  startKeySetServer,
} from '#test/support/servers/key-set-server.ts';

/** The issuer's key set: rotations, outages and wrong addresses. */

const LIMITS = { requestsPerMinute: 100, concurrentSessions: 5, credits: 600, queueWeight: 1 };
/** No fetch by the clock, and no cool-down. */
const TIMES = {
  fetchMs: 2_000,
  startMs: 0,
  refreshEveryMs: 600_000,
  retryEveryMs: 600_000,
  coolDownMs: 0,
};
const ALL = configured();

let issuer: Awaited<ReturnType<typeof startKeySetServer>>;
const opened: Disposable[] = [];
beforeEach(async () => {
  issuer = await startKeySetServer();
});
afterEach(async () => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
  await issuer[Symbol.asyncDispose]();
});

/** An authenticator that is configured with the issuer's address. */
async function open(more: Partial<KeySetTimes> = {}, algorithms = ALL) {
  const times = { ...TIMES, ...more };
  const log = pino({ level: 'silent' });
  const keys = await followKeySet({ url: issuer.url, algorithms, log, times });
  opened.push(keys);
  const limitsOf = () => LIMITS;
  const rules = { keys, issuer: ISSUER, audience: AUDIENCE, limitsOf, now: Date.now };
  const authenticate = createJwtAuthenticator(rules);
  return async (token: string) => ((await authenticate(token)) === null ? 'refused' : 'taken');
}

function configured(algorithms = ''): readonly string[] {
  const { jwt } = readConfig({
    JWT_JWKS_URL: 'https://login.example/keys',
    JWT_ISSUER: ISSUER,
    JWT_AUDIENCE: AUDIENCE,
    JWT_ALGORITHMS: algorithms,
  });
  return jwt !== null && 'algorithms' in jwt.signedBy ? jwt.signedBy.algorithms : [];
}

describe('a key of the set', () => {
  test.each(['RS256', 'PS384', 'ES256', 'ES384', 'EdDSA'])('signs by %s', async (alg) => {
    const signer = await newSigner(alg, 'one');
    issuer.state.keys = [signer.jwk];
    const ask = await open();
    expect(await ask(await signer.sign(goodClaims()))).toBe('taken');
    const otherSigner = await newSigner(alg, 'one');
    expect(await ask(await otherSigner.sign(goodClaims()))).toBe('refused');
  });

  it('without an algorithm is for the usual one of its type', async () => {
    const [usual, other] = [await newSigner('RS256', 'usual'), await newSigner('PS256', 'other')];
    issuer.state.keys = [usual.jwk, other.jwk].map((jwk) => structuredClone(jwk));
    for (const jwk of issuer.state.keys) delete jwk.alg;
    const ask = await open();
    expect(await ask(await usual.sign(goodClaims()))).toBe('taken');
    expect(await ask(await other.sign(goodClaims()))).toBe('refused');
  });

  it('is ignored if it is for encryption, secret, or not of a configured algorithm', async () => {
    const [rsa, ec] = [await newSigner('RS256', 'rsa'), await newSigner('ES256', 'ec')];
    issuer.state.keys = [rsa.jwk, ec.jwk];
    expect(await (await open({}, configured('ES256')))(await rsa.sign(goodClaims()))).toBe(
      'refused',
    );
    expect(await (await open({}, configured('ES256')))(await ec.sign(goodClaims()))).toBe('taken');
    issuer.state.keys = [
      { ...rsa.jwk, use: 'enc' },
      { kty: 'oct', kid: 'ec', k: 'c2VjcmV0' },
    ];
    const ask = await open();
    expect(await ask(await rsa.sign(goodClaims()))).toBe('refused');
    expect(await ask(await ec.sign(goodClaims()))).toBe('refused');
  });

  it('is fetched once, for any number of tokens', async () => {
    const signer = await newSigner('ES256', 'one');
    issuer.state.keys = [signer.jwk];
    const ask = await open();
    const tokens = await Promise.all(Array.from({ length: 50 }, () => signer.sign(goodClaims())));
    expect(new Set(await Promise.all(tokens.map(ask)))).toEqual(new Set(['taken']));
    expect(issuer.state.fetches).toBe(1);
  });
});

describe('a rotation', () => {
  it('takes effect at once, and a removed key is refused after the next fetch', async () => {
    const [before, after] = [await newSigner('ES256', 'a'), await newSigner('ES256', 'b')];
    issuer.state.keys = [before.jwk];
    const ask = await open();
    issuer.state.keys = [before.jwk, after.jwk];
    expect(await ask(await after.sign(goodClaims()))).toBe('taken');
    expect(await ask(await before.sign(goodClaims()))).toBe('taken');
    issuer.state.keys = [after.jwk];
    const unknown = await newSigner('ES256', 'c');
    expect(await ask(await unknown.sign(goodClaims()))).toBe('refused');
    expect(await ask(await before.sign(goodClaims()))).toBe('refused');
    expect(await ask(await after.sign(goodClaims()))).toBe('taken');
  });

  it('takes effect by the periodic fetch, without a token of the new key', async () => {
    const [before, after] = [await newSigner('ES256', 'a'), await newSigner('ES256', 'b')];
    issuer.state.keys = [before.jwk];
    const ask = await open({ refreshEveryMs: 20, coolDownMs: 600_000 });
    issuer.state.keys = [after.jwk];
    const token = await before.sign(goodClaims());
    await eventually(async () => (await ask(token)) === 'refused', 'the old key is refused');
    expect(await ask(await after.sign(goodClaims()))).toBe('taken');
  });

  it('causes one fetch per cool-down, for any number of tokens with unknown keys', async () => {
    const known = await newSigner('ES256', 'known');
    issuer.state.keys = [known.jwk];
    const ask = await open({ coolDownMs: 600_000 });
    const unknown = await newSigner('ES256', 'unknown');
    for (let round = 0; round < 5; round += 1) {
      const token = await unknown.sign(goodClaims(), { kid: `unknown-${round}` });
      expect(new Set(await Promise.all(Array(20).fill(token).map(ask)))).toEqual(
        new Set(['refused']),
      );
    }
    expect(issuer.state.fetches).toBe(2);
    expect(await ask(await known.sign(goodClaims()))).toBe('taken');
  });
});

it('the key set is fetched only from the configured address: redirects are not followed', async () => {
  const otherSigner = await newSigner('ES256', 'a');
  issuer.state.answer = (request, response) =>
    request.url === '/keys'
      ? response.writeHead(302, { location: '/elsewhere' }).end()
      : response.end(JSON.stringify({ keys: [otherSigner.jwk] }));
  await expect(open()).rejects.toThrow(/^JWT_JWKS_URL: no key set at .*redirect/);
});

type Row = [what: string, answer: NonNullable<typeof issuer.state.answer>];
/** Answers of a wrong address. */
const wrong: Row[] = [
  ['404 Not Found', (_, response) => response.writeHead(404).end('{"keys":[]}')],
  ['no JSON', (_, response) => response.end('<html>')],
  ['no key set', (_, response) => response.end('{"keys":{}}')],
  ['a redirect', (_, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
  [
    'more than the size limit',
    (_, response) => response.end(`{"keys":[],"x":"${'x'.repeat(300_000)}"}`),
  ],
];
/** Answers of an issuer that is temporarily down. */
const down: Row[] = [
  ['500 Internal Server Error', (_, response) => response.writeHead(500).end('{"keys":[]}')],
  ['429 Too Many Requests', (_, response) => response.writeHead(429).end()],
  ['by closing the connection', (request) => request.socket.destroy()],
  ['nothing, and keeps the connection open', () => undefined],
  ['a part, and keeps the connection open', (_, response) => void response.write('{"keys":[')],
];

describe.each([...wrong, ...down])('an address that answers %s', (_, answer) => {
  it('leaves known keys valid, and is used again once it serves the key set', async () => {
    const [known, later] = [await newSigner('ES256', 'a'), await newSigner('ES256', 'b')];
    issuer.state.keys = [known.jwk];
    const ask = await open();
    issuer.state.answer = answer;
    expect(await ask(await later.sign(goodClaims()))).toBe('refused');
    expect(issuer.state.fetches).toBeGreaterThan(1);
    expect(await ask(await known.sign(goodClaims()))).toBe('taken');
    issuer.state.answer = null;
    issuer.state.keys = [known.jwk, later.jwk];
    expect(await ask(await later.sign(goodClaims()))).toBe('taken');
  });
});

describe.each(down)('a start while the address answers %s', (_, answer) => {
  it('succeeds, and tokens are undecided', async () => {
    const signer = await newSigner('ES256', 'a');
    issuer.state.answer = answer;
    const ask = await open({ fetchMs: 200, retryEveryMs: 20 });
    const token = await signer.sign(goodClaims());
    await expect(ask(token)).rejects.toThrow(Unavailable);
    issuer.state.keys = [signer.jwk];
    issuer.state.answer = null;
    const taken = async () => (await ask(token).catch(() => null)) === 'taken';
    await eventually(taken, 'it is asked again');
  });
});

describe('a start is refused, with the variable and the reason, if the address', () => {
  test.each(wrong)('answers %s', async (_, answer) => {
    issuer.state.answer = answer;
    await expect(open()).rejects.toThrow(/^JWT_JWKS_URL: no key set at http:.*: ./);
  });

  it('has no server', async () => {
    const log = pino({ level: 'silent' });
    const [port] = await freePorts(1);
    const url = `http://127.0.0.1:${port}/keys?secret`;
    await expect(followKeySet({ url, algorithms: ALL, log, times: TIMES })).rejects.toThrow(
      /^JWT_JWKS_URL: no key set at http:[^?]*: .*ECONNREFUSED/,
    );
  });
});

test('a start waits for an issuer that is starting at the same time', async () => {
  const signer = await newSigner('ES256', 'a');
  issuer.state.keys = [signer.jwk];
  let asked = 0;
  issuer.state.answer = (_, response) => {
    asked += 1;
    if (asked === 3) issuer.state.answer = null;
    response.writeHead(404).end();
  };
  const ask = await open({ startMs: 60_000 });
  expect(await ask(await signer.sign(goodClaims()))).toBe('taken');
});
