/**
 * Makes the certificates of a deployment, and renews them before they end. All are PEM files of the
 * secrets' folder:
 *
 *   inside-ca.key   the authority's key: no container has it
 *   inside-ca.pem   what all parts trust: the authority's certificate, and for a while the one before
 *   inside.pem/.key the certificate of NATS and Redis, signed by the authority
 *   edge.pem/.key   what clients see, signed by itself: to be replaced by one that clients know
 *   pending-*       what running parts have not been told of yet: up.sh removes it when they have
 */
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { access, chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Some clients refuse certificates that are valid for more than 398 days. */
const VALID_DAYS = 397;
/** Renewed when it ends within this. */
const RENEW_DAYS = 60;
const AUTHORITY_DAYS = 3650;
/** An authority outlives the certificates that it signs. */
const AUTHORITY_RENEW_DAYS = VALID_DAYS + RENEW_DAYS;
/** A certificate of an authority before is replaced at once if it ends within this. */
const LAST_DAYS = 2;
const INSIDE_STEPS = ['trust', 'inside'];
/** The organization in the certificates that sign themselves, by which they are known as ours. */
const MARK = 'browser-session-service';
/** Extended key usages, as X509Certificate names them. */
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
/** Clocks differ. */
const BEFORE_DAYS = 1;

/**
 * Keeps the authority and the certificate of NATS and Redis. A new authority is first trusted beside
 * the one before it. It signs only after `pending-trust` was removed: all parts have to be restarted
 * before. The one before is dropped only after `pending-inside` was removed.
 * @returns what is pending. `trust`: restart all parts, remove it, then run this again; `inside`: NATS
 *   and Redis have to read their new certificate
 */
export async function keepInside(folder, names, now = new Date()) {
  const trusted = await certificatesIn(folder, 'inside-ca.pem');
  const had = await authorityOf(folder, trusted, now);
  const server = await pairIn(folder, 'inside');
  // Before the files, so that a run that ends in between is made up for by the next.
  if (had === null && (server !== null || trusted.length > 0)) await remember(folder, 'trust');
  const authority = had ?? (await makeAuthority(folder, [...trusted, server?.cert], now));
  const isSigned =
    server !== null &&
    isIssuedBy(server.cert, authority.cert) &&
    names.every((name) => server.cert.checkHost(name) !== undefined);
  const pending = await pendingIn(folder, INSIDE_STEPS);
  if (isSigned && daysLeft(server.cert, now) > RENEW_DAYS) {
    // NATS and Redis have it: nothing else has to be trusted.
    if (pending.length === 0 && trusted.length > 1)
      await written(folder, 'inside-ca.pem', authority.cert.toString());
    return pending;
  }
  const isUsable = server !== null && daysLeft(server.cert, now) > LAST_DAYS;
  if (pending.includes('trust') && isUsable) return pending;
  await remember(folder, 'inside');
  await makePair(folder, 'inside', names, now, authority);
  return pendingIn(folder, INSIDE_STEPS);
}

/**
 * Keeps the certificate that clients see. What somebody else has put there is never touched.
 * @returns `edge`: what shows it has to read it again
 * @throws Error if the two files do not belong together, and one of them may be somebody else's
 */
export async function keepEdge(folder, name, now = new Date()) {
  if (await needsEdge(folder, now)) {
    await remember(folder, 'edge');
    await makePair(folder, 'edge', [name], now, null);
  }
  return pendingIn(folder, ['edge']);
}

/** Until up.sh removes the file, each run says so again. */
async function remember(folder, step) {
  await written(folder, `pending-${step}`, '');
}

/** The steps that are pending, in the order in which up.sh takes them. */
async function pendingIn(folder, steps) {
  const isPending = (step) =>
    access(join(folder, `pending-${step}`)).then(
      () => true,
      () => false,
    );
  const found = await Promise.all(steps.map(isPending));
  return steps.filter((_, at) => found[at]);
}

/** Whether the edge has no certificate, or has one of ours that ends. */
async function needsEdge(folder, now) {
  const paths = ['edge.pem', 'edge.key'].map((name) => join(folder, name));
  const [pem, key] = await Promise.all(paths.map(readIfThere));
  if (pem === null && key === null) return true;
  const cert = certificateOf(pem);
  const isOurs = cert !== null && isOwn(cert);
  if (isOurs && key === null) return true;
  if (cert === null || key === null || !isKeyOf(key, cert))
    throw new Error(
      `${paths.join(' and ')} are not a certificate and its key, both in PEM. They may be yours, ` +
        'so they are not overwritten: put the right ones there, or remove both to get new ones.',
    );
  return isOurs && daysLeft(cert, now) <= RENEW_DAYS;
}

/** null: there is no such file. */
async function readIfThere(path) {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

/** null: the text has none that can be read. */
function certificateOf(text) {
  try {
    return certificatesOf(text ?? '')[0] ?? null;
  } catch {
    return null;
  }
}

function isKeyOf(key, cert) {
  try {
    return cert.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

/** The authority to sign with; null: there is none, or it ends too early. */
async function authorityOf(folder, [cert], now) {
  const key = await readFile(join(folder, 'inside-ca.key'), 'utf8').catch(() => null);
  if (cert === undefined || key === null || !cert.checkPrivateKey(createPrivateKey(key)))
    return null;
  return daysLeft(cert, now) > AUTHORITY_RENEW_DAYS ? { cert, key } : null;
}

/** `before`: what parts trust until now; in folders of earlier versions the server's own. */
async function makeAuthority(folder, before, now) {
  // A client finds an authority by its name, so two of them need two names.
  const name = `inside authority ${now.toISOString().slice(0, 10)} ${randomBytes(4).toString('hex')}`;
  const made = await generate([{ name: 'commonName', value: name }], {
    ...common(now, AUTHORITY_DAYS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const older = before.filter((one) => one?.ca === true && daysLeft(one, now) > 0);
  await written(folder, 'inside-ca.key', made.private, 0o400);
  await written(folder, 'inside-ca.pem', [made.cert, ...older].join('\n'));
  return { cert: new X509Certificate(made.cert), key: made.private };
}

/** @param authority null: the certificate signs itself */
async function makePair(folder, name, names, now, authority) {
  const options = {
    ...common(now, VALID_DAYS),
    extensions: [
      { name: 'basicConstraints', cA: authority === null, critical: true },
      {
        name: 'keyUsage',
        digitalSignature: true,
        keyCertSign: authority === null,
        critical: true,
      },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      {
        name: 'subjectAltName',
        altNames: names.map((one) =>
          isAddress(one) ? { type: 7, ip: one } : { type: 2, value: one },
        ),
      },
    ],
    ...(authority === null ? {} : { ca: { key: authority.key, cert: authority.cert.toString() } }),
  };
  const subject = [{ name: 'commonName', value: names[0] }];
  if (authority === null) subject.push({ name: 'organizationName', value: MARK });
  const made = await generate(subject, options);
  await written(folder, `${name}.key`, made.private);
  await written(folder, `${name}.pem`, made.cert);
}

function common(now, days) {
  return {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(now.getTime() - BEFORE_DAYS * DAY_MS),
    notAfterDate: new Date(now.getTime() + days * DAY_MS),
  };
}

/** null: there is none, or key and certificate do not belong together. */
async function pairIn(folder, name) {
  const [cert] = await certificatesIn(folder, `${name}.pem`);
  const key = await readFile(join(folder, `${name}.key`), 'utf8').catch(() => null);
  const isPair = cert !== undefined && key !== null && cert.checkPrivateKey(createPrivateKey(key));
  return isPair ? { cert, key } : null;
}

async function certificatesIn(folder, name) {
  const text = await readFile(join(folder, name), 'utf8').catch(() => '');
  return certificatesOf(text);
}

function certificatesOf(text) {
  const found = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return found.map((pem) => new X509Certificate(pem));
}

function isIssuedBy(cert, authority) {
  return cert.checkIssued(authority) && cert.verify(authority.publicKey);
}

/**
 * Whether `makePair` made it as one that signs itself. Those of earlier versions have no mark: they
 * are known by a subject of a name alone, the time, and the usages.
 */
function isOwn(cert) {
  if (!isIssuedBy(cert, cert)) return false;
  if (cert.subject.split('\n').includes(`O=${MARK}`)) return true;
  const days = (cert.validToDate.getTime() - cert.validFromDate.getTime()) / DAY_MS;
  return (
    days === VALID_DAYS + BEFORE_DAYS &&
    /^CN=[^\n]+$/.test(cert.subject) &&
    cert.keyUsage?.join() === `${SERVER_AUTH},${CLIENT_AUTH}`
  );
}

function daysLeft(cert, now) {
  return (cert.validToDate.getTime() - now.getTime()) / DAY_MS;
}

function isAddress(name) {
  return /^[\d.]+$|:/.test(name);
}

/** In place: a running container has the file mounted. */
async function written(folder, name, text, mode = 0o444) {
  const path = join(folder, name);
  await chmod(path, 0o600).catch(() => undefined);
  await writeFile(path, `${text.trimEnd()}\n`, { mode: 0o600 });
  await chmod(path, mode);
}
