/** What `goog:chromeOptions` asks of a session; a refusal says what cannot be had here. */
export type ChromeOptions = {
  /** Fields of the body of a create. */
  session: Record<string, unknown>;
  isInsecure: boolean;
};

/** Of no effect here: what they ask for holds anyway, or is the business of the service. */
const WITHOUT_EFFECT = new Set([
  'disable-background-networking',
  'disable-dev-shm-usage',
  'disable-extensions',
  'disable-gpu',
  'disable-infobars',
  'disable-popup-blocking',
  'disable-search-engine-choice-screen',
  'disable-setuid-sandbox',
  'disable-software-rasterizer',
  'incognito',
  'no-default-browser-check',
  'no-first-run',
  'no-sandbox',
  'remote-allow-origins',
  'remote-debugging-pipe',
  'remote-debugging-port',
  'start-fullscreen',
  'start-maximized',
]);
/** They name arguments that a driver would leave out, or are settings of a driver's own launch. */
const IGNORED = new Set(['detach', 'excludeSwitches', 'useAutomationExtension', 'w3c']);
/** How else it can be had. */
const INSTEAD: Readonly<Record<string, string>> = {
  'proxy-server': 'use egress in bss:options',
  'user-data-dir': 'use profile in bss:options',
  'load-extension': 'use extensions in bss:options',
  extensions: 'use extensions in bss:options',
};

/** @returns a text that says what is refused and why */
export function readChromeOptions(asked: unknown): ChromeOptions | string {
  const options: ChromeOptions = { session: {}, isInsecure: false };
  if (asked === undefined) return options;
  if (!isRecord(asked)) return 'goog:chromeOptions is no object';
  for (const [name, value] of Object.entries(asked)) {
    if (name === 'args' || IGNORED.has(name) || isEmpty(value)) continue;
    return refusal(`goog:chromeOptions.${name}`, name);
  }
  const { args = [] } = asked;
  if (!Array.isArray(args)) return 'goog:chromeOptions.args is no list';
  for (const argument of args as unknown[]) {
    const refused = take(String(argument), options);
    if (refused !== null) return refused;
  }
  return options;
}

/** @returns why it is refused; null: it is taken */
function take(argument: string, options: ChromeOptions): string | null {
  const [name, value] = splitAtFirst(argument.replace(/^-{1,2}/, ''));
  const { session } = options;
  if (WITHOUT_EFFECT.has(name)) return null;
  switch (name) {
    case 'headless':
      session['headless'] = true;
      return null;
    case 'ignore-certificate-errors':
      options.isInsecure = true;
      return null;
    case 'lang':
      session['locale'] = value;
      return null;
    case 'user-agent':
      session['user_agent'] = value;
      return null;
    case 'window-size': {
      const [width, height] = value.split(/[,x]/).map(Number);
      session['viewport'] = { width, height };
      return null;
    }
    default:
      return refusal(`the argument --${name} of goog:chromeOptions`, name);
  }
}

function refusal(what: string, name: string): string {
  const instead = INSTEAD[name];
  return `${what} is not possible here${instead === undefined ? '' : `: ${instead}`}`;
}

function splitAtFirst(text: string): [string, string] {
  const at = text.indexOf('=');
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
