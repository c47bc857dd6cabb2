import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { vncAuthResponse } from '../rfb.ts';

/**
 * One RFB 3.8 server for all simulated browsers. RFB has no name for a screen, so the password
 * selects it: all viewers get the same challenge, so that each browser's right response is known in
 * advance.
 */
export type SimulatedScreens = {
  readonly port: number;
  /** @param screen its size is changed when a viewer resizes it */
  add(workloadId: string, password: string, screen: Screen): void;
  /** Disconnects the viewers of a screen and forgets it. */
  remove(workloadId: string): void;
} & AsyncDisposable;

type Screen = { width: number; height: number };
type Shown = { screen: Screen; answer: string; viewers: Set<Socket> };
/** An authenticated viewer, and whether it requests updates of the screen's layout. */
type Viewer = { socket: Socket; screen: Screen; wantsLayout: boolean };

/** Red, green and blue of every pixel. */
const COLOUR = [0x33, 0x66, 0x99] as const;
const BUFFERED_BYTES_MAX = 64 * 1024;
const VNC_AUTH = 2;
const EXTENDED_DESKTOP_SIZE = -308;

/** Listens on a free loopback port. */
export async function openSimulatedScreens(): Promise<SimulatedScreens> {
  const challenge = randomBytes(16);
  const byWorkload = new Map<string, Shown>();
  const byAnswer = new Map<string, Shown>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    converse(socket, challenge, byAnswer);
  });
  await listen(server);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  return {
    port: address.port,
    add: (workloadId, password, screen) => {
      const answer = vncAuthResponse(password, challenge).toString('hex');
      const shown = { screen, answer, viewers: new Set<Socket>() };
      byWorkload.set(workloadId, shown);
      byAnswer.set(answer, shown);
    },
    remove: (workloadId) => {
      const shown = byWorkload.get(workloadId);
      if (shown === undefined) return;
      byWorkload.delete(workloadId);
      byAnswer.delete(shown.answer);
      for (const viewer of shown.viewers) viewer.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function listen(server: Server): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
}

/** What a connection waits for: `length` bytes, which `take` handles and returns the next step. */
type Step = { length: number; take: (bytes: Buffer) => Step };

/** Performs the handshake, then answers each update request with the requested area. */
function converse(socket: Socket, challenge: Buffer, byAnswer: Map<string, Shown>): void {
  let step = versionStep(socket, challenge, byAnswer);
  let buffered = Buffer.alloc(0);
  socket.write('RFB 003.008\n');
  socket.on('data', (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= step.length && !socket.destroyed) {
      const bytes = buffered.subarray(0, step.length);
      buffered = buffered.subarray(step.length);
      step = step.take(bytes);
    }
    if (buffered.length > BUFFERED_BYTES_MAX) socket.destroy();
  });
}

function versionStep(socket: Socket, challenge: Buffer, byAnswer: Map<string, Shown>): Step {
  const finish: Step = {
    length: 16,
    take: (answer) => {
      const shown = byAnswer.get(answer.toString('hex'));
      if (shown === undefined) return refuse(socket);
      shown.viewers.add(socket);
      socket.on('close', () => shown.viewers.delete(socket));
      socket.write(Buffer.alloc(4));
      return { length: 1, take: () => showStep(socket, shown.screen) };
    },
  };
  const choose: Step = {
    length: 1,
    take: (type) => {
      if (type[0] !== VNC_AUTH) return refuse(socket);
      socket.write(challenge);
      return finish;
    },
  };
  return {
    length: 12,
    take: () => {
      socket.write(Buffer.from([1, VNC_AUTH]));
      return choose;
    },
  };
}

function refuse(socket: Socket): Step {
  const reason = Buffer.from('Authentication failed');
  const head = Buffer.alloc(8);
  head.writeUInt32BE(1, 0);
  head.writeUInt32BE(reason.length, 4);
  socket.end(Buffer.concat([head, reason]));
  return skip(Infinity, () => refuse(socket));
}

function showStep(socket: Socket, screen: Screen): Step {
  const name = Buffer.from('simulated');
  const init = Buffer.alloc(24);
  init.writeUInt16BE(screen.width, 0);
  init.writeUInt16BE(screen.height, 2);
  init.set(pixelFormat, 4);
  init.writeUInt32BE(name.length, 20);
  socket.write(Buffer.concat([init, name]));
  return messageStep({ socket, screen, wantsLayout: false });
}

/** 32 bits little-endian, red in the lowest byte; SetPixelFormat is ignored. */
const pixelFormat = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]);

/**
 * The messages of RFC 6143, 7.5, and SetDesktopSize. SetEncodings, update requests and
 * SetDesktopSize are handled, all others are read and ignored.
 */
function messageStep(viewer: Viewer): Step {
  const { socket } = viewer;
  const next = (): Step => messageStep(viewer);
  const take = (type: Buffer): Step => {
    if (type[0] === 0) return skip(19, next);
    if (type[0] === 2) return encodingsStep(viewer, next);
    if (type[0] === 4) return skip(7, next);
    if (type[0] === 5) return skip(5, next);
    if (type[0] === 6) return counted(7, (head) => head.readUInt32BE(3), next);
    if (type[0] === 251) return resizeStep(viewer, next);
    if (type[0] !== 3) return refuse(socket);
    return { length: 9, take: (request) => showScreen(viewer, request, next) };
  };
  return { length: 1, take };
}

/** Sends the requested area; an incremental request gets no answer, since nothing changes. */
function showScreen(viewer: Viewer, request: Buffer, next: () => Step): Step {
  const { socket, screen, wantsLayout } = viewer;
  // A viewer that does not read has at most one update pending.
  if (request[0] !== 0 || socket.writableNeedDrain) return next();
  const [x, y, width, height] = [1, 3, 5, 7].map((at) => request.readUInt16BE(at)) as Area;
  const right = Math.min(x + width, screen.width);
  const bottom = Math.min(y + height, screen.height);
  const pixels = pixelsOf([x, y, Math.max(0, right - x), Math.max(0, bottom - y)]);
  socket.write(update(wantsLayout ? [layoutOf(screen, 0), pixels] : [pixels]));
  return next();
}

function encodingsStep(viewer: Viewer, next: () => Step): Step {
  const body = (head: Buffer): Step => ({
    length: head.readUInt16BE(1) * 4,
    take: (encodings) => {
      const at = Array.from({ length: encodings.length / 4 }, (_, index) => index * 4);
      viewer.wantsLayout = at.some((one) => encodings.readInt32BE(one) === EXTENDED_DESKTOP_SIZE);
      return next();
    },
  });
  return { length: 3, take: body };
}

/** Handles SetDesktopSize; the screens of its layout count as one. */
function resizeStep({ socket, screen, wantsLayout }: Viewer, next: () => Step): Step {
  const resize = (head: Buffer): Step =>
    skip(head.readUInt8(5) * 16, () => {
      screen.width = head.readUInt16BE(1);
      screen.height = head.readUInt16BE(3);
      if (wantsLayout) socket.write(update([layoutOf(screen, 1)]));
      return next();
    });
  return { length: 7, take: resize };
}

type Area = [x: number, y: number, width: number, height: number];

function update(rectangles: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0, 0, 0, rectangles.length]), ...rectangles]);
}

function rectangle(area: Area, encoding: number, body: Buffer): Buffer {
  const head = Buffer.alloc(12);
  for (const [index, value] of area.entries()) head.writeUInt16BE(value, 2 * index);
  head.writeInt32BE(encoding, 8);
  return Buffer.concat([head, body]);
}

function pixelsOf(area: Area): Buffer {
  return rectangle(area, 0, Buffer.alloc(area[2] * area[3] * 4, Buffer.from([...COLOUR, 0])));
}

/** @param reason 1: this viewer has requested the layout */
function layoutOf({ width, height }: Screen, reason: 0 | 1): Buffer {
  const screens = Buffer.alloc(20);
  screens.writeUInt8(1, 0);
  screens.writeUInt16BE(width, 12);
  screens.writeUInt16BE(height, 14);
  return rectangle([reason, 0, width, height], EXTENDED_DESKTOP_SIZE, screens);
}

function skip(length: number, next: () => Step): Step {
  return { length, take: next };
}

function counted(headLength: number, count: (head: Buffer) => number, next: () => Step): Step {
  return { length: headLength, take: (head) => skip(count(head), next) };
}
