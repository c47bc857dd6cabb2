import { textOf } from '#src/kernel/foreign/foreign-json.ts';
import type { PageCdp, PageEvent, PausedResponse } from './page-events.ts';

export const PDF = 'application/pdf';

const PDF_BEGIN = Buffer.from('%PDF-');
/** With these, as without a type, the browser looks at the bytes. */
const UNKNOWN_TYPES = ['application/unknown', 'unknown/unknown', '*/*'];

type Paused = Extract<PageEvent, { method: 'Fetch.requestPaused' }>;

/** Lets each request go on, and knows how the page's own document was answered. */
export class DocumentResponses {
  readonly #cdp: PageCdp;
  readonly #mainFrame: string;
  readonly #keepsPdf: boolean;
  #last: PausedResponse | null = null;
  #pdf: { url: string; bytes: Buffer } | null = null;

  /** @param keepsPdf whether the bytes of a PDF are kept: the page that shows it has none */
  constructor(cdp: PageCdp, { mainFrame, keepsPdf }: { mainFrame: string; keepsPdf: boolean }) {
    this.#cdp = cdp;
    this.#mainFrame = mainFrame;
    this.#keepsPdf = keepsPdf;
  }

  /** Never rejects: where the connection has ended, all that wait for it know. */
  async take({ requestId, response }: Paused): Promise<void> {
    try {
      if (response?.frameId === this.#mainFrame) await this.#note(requestId, response);
    } catch {
      // The document is shown without them.
    }
    await this.#cdp.send('Fetch.continueRequest', { requestId }).catch(() => undefined);
  }

  async #note(requestId: string, response: PausedResponse): Promise<void> {
    this.#last = response;
    const type = typeOf(response);
    if (!this.#keepsPdf || (type !== PDF && !isUnknown(type))) return;
    const { body, base64Encoded } = await this.#cdp.send('Fetch.getResponseBody', { requestId });
    const bytes = Buffer.from(textOf(body), base64Encoded === true ? 'base64' : 'utf8');
    if (type !== PDF && !bytes.subarray(0, PDF_BEGIN.length).equals(PDF_BEGIN)) return;
    this.#pdf = { url: response.url, bytes };
  }

  /** The last answer to the page's navigation; null: none was made by HTTP, or it is not known. */
  get last(): PausedResponse | null {
    return this.#last;
  }

  /** The bytes of the document at that address; null: it is none that was kept. */
  pdfOf(url: string): Buffer | null {
    return this.#pdf?.url === url.replace(/#.*$/s, '') ? this.#pdf.bytes : null;
  }
}

/** The type of an answer, as `text/html`; empty: it names none. */
export function typeOf({ headers }: PausedResponse): string {
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  return type.trim().toLowerCase();
}

function isUnknown(type: string): boolean {
  return !type.includes('/') || UNKNOWN_TYPES.includes(type);
}
