import { Type, type Static } from 'typebox';
import { Nullable, Words } from '#src/roles/api/schemas/fields.ts';
import { CreateSessionBody, LINE } from '#src/roles/api/schemas/requests.ts';

/** Schemas of one-call requests: a page's picture, its PDF, its content. */

const TIMEOUT_DEFAULT_MS = 30_000;
/** The session has two minutes, and is billed for one. */
export const TIMEOUT_MAX_MS = 60_000;
const MILLIMETRES_DEFAULT = 10;

/** Of a create's fields those that one call has itself are left out, and those that it decides. */
const {
  duration: _duration,
  idle_timeout: _idleTimeout,
  viewport: _viewport,
  description: _description,
  labels,
  ...sessionOptions
} = CreateSessionBody.properties;

/** One place of the 16 labels is the call's own. */
const LABELS_MAX = 15;

const SessionOptions = Type.Object(
  { ...sessionOptions, labels: Type.Optional(Type.Unsafe<Record<string, string>>(fewer(labels))) },
  {
    title: 'OneCallSession',
    additionalProperties: false,
    description:
      'options of its session, as at create. Without those that launch a browser the page is ' +
      'opened in one that waits',
  },
);

function fewer(schema: object): object {
  return { ...schema, maxProperties: LABELS_MAX };
}

const Selector = Type.String({ minLength: 1, maxLength: 1024, pattern: `^${LINE}+$` });

const ofEveryKind = {
  url: Type.String({
    minLength: 1,
    maxLength: 16_384,
    description: 'an http:, https: or data: address',
    examples: ['https://example.com/'],
  }),
  wait_until: Type.Optional(
    Words(['load', 'domcontentloaded', 'networkidle'], {
      description:
        'what the page has to reach: `networkidle` is half a second without a request of it and ' +
        'its frames. Default `load`',
    }),
  ),
  wait_for: Type.Optional({
    ...Selector,
    description: 'a CSS selector; after `wait_until` an element of it has to be there',
  }),
  delay_ms: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 30_000, description: 'a pause after that. Default 0' }),
  ),
  timeout_ms: Type.Optional(
    Type.Integer({
      minimum: 1_000,
      maximum: TIMEOUT_MAX_MS,
      description: `for everything, the wait for a browser too. Default ${TIMEOUT_DEFAULT_MS}`,
    }),
  ),
  viewport: Type.Optional(
    Type.Object(
      {
        width: Type.Integer({ minimum: 16, maximum: 3840 }),
        height: Type.Integer({ minimum: 16, maximum: 4320 }),
        scale: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 3,
            description: 'pixels of the picture to a pixel of the page. Default 1',
          }),
        ),
      },
      {
        additionalProperties: false,
        description:
          'size of the page, exactly; default 1280 x 800. Width x height x scale x scale is ' +
          '64 Mi at most. It needs no other browser',
      },
    ),
  ),
  session: Type.Optional(SessionOptions),
};

export const ScreenshotBody = Type.Object(
  {
    ...ofEveryKind,
    format: Type.Optional(
      Words(['png', 'jpeg', 'webp'], { description: 'of the picture. Default `png`' }),
    ),
    quality: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'of a JPEG or WebP. Default 80' }),
    ),
    full_page: Type.Optional(
      Type.Boolean({
        description: 'true: the page in its whole length, at most 16,384 pixels. Default false',
      }),
    ),
    selector: Type.Optional({
      ...Selector,
      description: 'a CSS selector: the picture is of its first element, once it has a size',
    }),
  },
  {
    title: 'ScreenshotOfPage',
    additionalProperties: false,
    examples: [{ url: 'https://example.com/', full_page: true }],
  },
);

const Margin = Type.Optional(Type.Number({ minimum: 0, maximum: 200 }));

export const PdfBody = Type.Object(
  {
    ...ofEveryKind,
    format: Type.Optional(
      Words(['a3', 'a4', 'a5', 'letter', 'legal', 'tabloid'], {
        description: 'of the paper. Default `a4`',
      }),
    ),
    landscape: Type.Optional(Type.Boolean({ description: 'Default false' })),
    margins_mm: Type.Optional(
      Type.Object(
        { top: Margin, right: Margin, bottom: Margin, left: Margin },
        {
          additionalProperties: false,
          description: `millimetres; what is left out is ${MILLIMETRES_DEFAULT}`,
        },
      ),
    ),
    print_background: Type.Optional(
      Type.Boolean({ description: 'true: with colours and pictures behind text. Default false' }),
    ),
    scale: Type.Optional(Type.Number({ minimum: 0.1, maximum: 2, description: 'Default 1' })),
    page_ranges: Type.Optional(
      Type.String({
        maxLength: 128,
        pattern: '^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?(,[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?)*$',
        description: 'as `1-3,5`. Default: all pages',
      }),
    ),
  },
  {
    title: 'PdfOfPage',
    additionalProperties: false,
    examples: [{ url: 'https://example.com/', format: 'a4', print_background: true }],
  },
);

export const ContentBody = Type.Object(ofEveryKind, {
  title: 'ContentOfPage',
  additionalProperties: false,
  examples: [{ url: 'https://example.com/', wait_until: 'networkidle' }],
});

export const PageContent = Type.Object(
  {
    session_id: Type.String({ examples: ['ses_J5mYt3QKX2m0bq1uHcR8Vw'] }),
    url: Type.String({
      description: 'of the document, where its redirects ended',
      examples: ['https://example.com/'],
    }),
    status: Nullable(Type.Integer({ examples: [200] }), {
      description: 'HTTP status of the document; null: it did not come by HTTP',
    }),
    title: Type.String({ examples: ['Example Domain'] }),
    html: Type.String({
      description: 'the document as it is, after its scripts ran',
      examples: ['<!DOCTYPE html><html><head>…'],
    }),
  },
  { title: 'PageContent' },
);

export type ScreenshotAsked = Static<typeof ScreenshotBody>;
export type PdfAsked = Static<typeof PdfBody>;
export type ContentAsked = Static<typeof ContentBody>;
/** What is asked of each kind of call. */
export type PageAsked =
  | { kind: 'screenshot'; body: ScreenshotAsked }
  | { kind: 'pdf'; body: PdfAsked }
  | { kind: 'content'; body: ContentAsked };

export const timeoutOf = ({ timeout_ms }: ContentAsked): number => timeout_ms ?? TIMEOUT_DEFAULT_MS;

const inches = (side?: number): number => (side ?? MILLIMETRES_DEFAULT) / 25.4;

/** The margins in inches, as CDP has them. */
export function marginsOf({ margins_mm = {} }: PdfAsked) {
  return {
    marginTop: inches(margins_mm.top),
    marginRight: inches(margins_mm.right),
    marginBottom: inches(margins_mm.bottom),
    marginLeft: inches(margins_mm.left),
  };
}
