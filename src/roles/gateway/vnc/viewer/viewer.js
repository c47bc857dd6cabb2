/**
 * The viewer page. One attempt at a time: ask the gateway for the session's state, connect, show
 * the screen, and show why it ended. The states are those of `data-state`: connecting, password,
 * connected, ended.
 */
import './without-video-decoder.js';
import { ends, sentences, textBytesMax } from './close-codes.js';
import RFB from './novnc/core/rfb.js';

const RETRIES_MAX = 8;
const RETRY_MS_MAX = 8000;
/** Characters of an offered text that its button shows. */
const OFFER_SHOWN_MAX = 200;
/** How long a text that was copied in the session may be on its way. */
const COPIED_MS = 5000;

const part = Object.fromEntries(
  [...document.querySelectorAll('[id]')].map((element) => [element.id, element]),
);
let rfb = null;
let retries = 0;
let password = takePassword();
/** The text that was copied in the session last, until the person takes it; null: none. */
let offered = null;
/** Why the gateway closes a viewer that may connect again. */
const MAY_CONNECT_AGAIN = [
  'slow_client',
  'connection_idle',
  'client_gone',
  'not_understood',
  'text_too_long',
];
/** Says that a text does not come that was copied in the session. */
let missing = 0;
/** The connection on which the session's browser may request this person's text; null: none. */
let announcedOn = null;

part.again.addEventListener('click', () => {
  retries = 0;
  void attempt();
});
part.login.addEventListener('submit', (event) => {
  event.preventDefault();
  keepPassword(part.password.value);
  part.password.value = '';
  show('connecting', 'Connecting');
  if (rfb === null) void attempt();
  else rfb.sendCredentials({ password });
});
part['view-only'].addEventListener('click', ({ currentTarget }) => {
  currentTarget.setAttribute('aria-pressed', String(!isViewOnly()));
  takeBackText();
  if (rfb !== null) rfb.viewOnly = isViewOnly();
  showOffer();
});
part['full-screen'].addEventListener('click', () => {
  if (document.fullscreenElement === null) void document.documentElement.requestFullscreen();
  else void document.exitFullscreen();
});
part.paste.hidden = navigator.clipboard?.readText === undefined;
part.paste.addEventListener('click', () => void sendClipboard());
part.copy.addEventListener('click', () => void takeClipboard());

const { extendedClipboardNotify, extendedClipboardRequest } = RFB.messages;
RFB.messages.extendedClipboardNotify = (connection, formats) => {
  announcedOn = connection;
  extendedClipboardNotify(connection, formats);
};
/** noVNC requests each text that was copied in the session, and is told of none that is too long. */
RFB.messages.extendedClipboardRequest = (...asked) => {
  extendedClipboardRequest(...asked);
  offer('');
  missing = setTimeout(() => {
    part.status.textContent = `What was copied in the browser does not come; ${megabytes(textBytesMax)} is the most`;
  }, COPIED_MS);
};

void attempt();

/** A WebSocket does not expose why it was refused, so the page asks the gateway first. */
async function attempt() {
  show('connecting', 'Connecting');
  let answer;
  try {
    answer = await fetch('state', { cache: 'no-store', signal: AbortSignal.timeout(10_000) });
  } catch {
    retry('The service is not reachable.');
    return;
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) open(body.mode);
  else if (answer.status === 409) wait('Starting', 'The session has no browser yet.', 1000);
  else if (body.error === 'SHARE_ENDED') end('This link is no longer valid', body.message);
  else if (answer.status === 410)
    end('The session has ended', sentences[body.context?.ended_reason]);
  else if (answer.status === 404) end('Nothing here', 'This link is not, or no longer, valid.');
  else if (answer.status === 429) end('Not now', body.message, true);
  else retry(body.message);
}

/** With a share of mode `view` the gateway drops what would touch the browser. */
function open(mode) {
  if (mode === 'view') {
    part['view-only'].setAttribute('aria-pressed', 'true');
    part['view-only'].hidden = part.paste.hidden = true;
  }
  const url = new URL('websockify', location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.hash = '';
  const socket = new WebSocket(url, ['binary']);
  let failure = null;
  socket.addEventListener('close', (event) => onClose(event.code, failure));
  rfb = new RFB(part.screen, socket, { credentials: password === null ? {} : { password } });
  rfb.scaleViewport = true;
  rfb.viewOnly = isViewOnly();
  rfb.background = 'transparent';
  rfb.addEventListener('connect', () => {
    retries = 0;
    show('connected', 'Connected');
    rfb.focus();
  });
  rfb.addEventListener('credentialsrequired', askPassword);
  rfb.addEventListener('securityfailure', () => {
    failure = 'password';
  });
  announcedOn = null;
  rfb.addEventListener('clipboard', (event) => {
    if (document.body.dataset.state === 'connected') part.status.textContent = 'Connected';
    offer(event.detail.text);
  });
}

function isViewOnly() {
  return part['view-only'].getAttribute('aria-pressed') === 'true';
}

/**
 * A page in the session may copy what it likes, so the text reaches the person's clipboard only by a
 * click, and not while they only watch.
 */
function offer(text) {
  clearTimeout(missing);
  offered = text === '' ? null : text;
  showOffer();
}

function showOffer() {
  const isPossible = navigator.clipboard?.writeText !== undefined;
  part.copy.hidden = offered === null || isViewOnly() || !isPossible;
  part.copy.title = offered === null ? '' : offered.slice(0, OFFER_SHOWN_MAX);
}

async function takeClipboard() {
  const text = offered;
  if (text === null || isViewOnly()) return;
  try {
    await navigator.clipboard.writeText(text);
    if (offered === text) offer('');
  } catch {
    part.status.textContent = 'Your browser did not let this page write the clipboard';
  }
  rfb?.focus();
}

async function sendClipboard() {
  let text;
  try {
    text = await navigator.clipboard.readText();
  } catch {
    part.status.textContent = 'Your browser did not let this page read the clipboard';
    return;
  }
  const bytes = bytesOf(text);
  if (bytes > textBytesMax) {
    const sizes = `it has ${megabytes(bytes)}, and ${megabytes(textBytesMax)} is the most`;
    part.status.textContent = `Your clipboard’s text is too long to send: ${sizes}`;
    return;
  }
  if (rfb === null) return;
  part.status.textContent = 'Connected';
  rfb.clipboardPasteFrom(text);
  rfb.focus();
}

/** What noVNC sends of a text: UTF-8 with the ends of lines of the protocol, and a NUL. */
function bytesOf(text) {
  return new TextEncoder().encode(text.replace(/\r\n|\r|\n/g, '\r\n')).length + 1;
}

function megabytes(bytes) {
  return `${Math.ceil((bytes / 1024 ** 2) * 10) / 10} MB`;
}

/**
 * In view only noVNC answers no request: the session's browser would wait for a text that was
 * announced before, and do nothing else.
 */
function takeBackText() {
  if (announcedOn !== null && rfb !== null) extendedClipboardNotify(announcedOn, []);
  announcedOn = null;
}

function onClose(code, failure) {
  clearTimeout(missing);
  rfb = null;
  const why = ends[code];
  // noVNC sees the failure first and may close before the gateway does.
  if (failure === 'password' || why?.reason === 'wrong_password') {
    keepPassword(null);
    askPassword(sentences.wrong_password);
    return;
  }
  if (why === undefined) retry('The connection was lost.');
  else if (why.reason === 'gateway_closing') retry(why.sentence);
  else if (why.reason === 'browser_gone') void explain(why.sentence);
  else if (MAY_CONNECT_AGAIN.includes(why.reason)) end('Disconnected', why.sentence, true);
  else if (['access_rotated', 'key_revoked', 'share_ended', 'handoff_ended'].includes(why.reason))
    end('This link is no longer valid', why.sentence);
  else end('The session has ended', why.sentence);
}

/** The screen may close a moment before the session's end is known: ask a few times. */
async function explain(sentence) {
  show('connecting', 'Disconnected', sentence);
  for (let asked = 0; asked < 5; asked += 1) {
    const answer = await fetch('state', { cache: 'no-store' }).catch(() => null);
    if (answer?.status === 410) {
      const body = await answer.json().catch(() => ({}));
      if (body.error === 'SHARE_ENDED') return end('This link is no longer valid', body.message);
      end('The session has ended', sentences[body.context?.ended_reason]);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 600));
  }
  end('Disconnected', sentence, true);
}

function retry(sentence = 'The service did not answer.') {
  retries += 1;
  if (retries > RETRIES_MAX) end('Disconnected', sentence, true);
  else wait('Connecting again', sentence, Math.min(RETRY_MS_MAX, 500 * 2 ** (retries - 1)));
}

function wait(title, sentence, ms) {
  show('connecting', title, sentence);
  setTimeout(() => void attempt(), ms);
}

function end(title, sentence = '', mayConnect = false) {
  show('ended', title, sentence);
  part.again.hidden = !mayConnect;
}

function askPassword(sentence) {
  show('password', 'Password needed', typeof sentence === 'string' ? sentence : '');
  part.login.hidden = false;
  part.password.focus();
}

function show(state, title, sentence = '') {
  document.body.dataset.state = state;
  part.status.textContent = title;
  part.title.textContent = title;
  part.text.textContent = sentence;
  part.login.hidden = true;
  part.again.hidden = true;
}

/** Moves the password from the fragment, which no server sees, to the history for a reload. */
function takePassword() {
  const given = new URLSearchParams(location.hash.slice(1)).get('password');
  if (given === null) return history.state?.password ?? null;
  keep({ password: given });
  return given;
}

function keepPassword(given) {
  password = given;
  keep(given === null ? null : { password: given });
}

/** The address is whole, as a path with two slashes at its begin would name another host. */
function keep(state) {
  history.replaceState(state, '', location.origin + location.pathname);
}
