import { Type, type Static } from 'typebox';
import { Moment } from '../fields.ts';

/**
 * What a session's browser told before its end, in the event of that end; masked, and of bounded
 * size. Events alone have it, no state.
 */

/** What is kept is cut to a quarter of it; this refuses what was not cut at all. */
const Text = (description: string) => Type.String({ maxLength: 2_048, description });
const Address = Text('address of a page or resource, without query, fragment and user');
/** Of each kind the last ones are kept. */
export const blackBoxEntriesMax = 20;

const Said = Type.Object({
  at: Moment,
  text: Text('what was said, masked and cut'),
  address: Type.Optional(Address),
});
const listOf = <Item extends typeof Said | typeof Dialog>(item: Item, description: string) =>
  Type.Optional(Type.Array(item, { maxItems: blackBoxEntriesMax, description }));

const Dialog = Type.Object({
  at: Moment,
  kind: Type.String({ maxLength: 32, description: 'alert, confirm, prompt or beforeunload' }),
  text: Text('what it said, masked and cut; never what was typed'),
  address: Type.Optional(Address),
  accepted: Type.Optional(
    Type.Boolean({ description: 'how it was answered; absent: it was open at the end' }),
  ),
});

export const BlackBox = Type.Object(
  {
    address: Type.Optional(Address),
    consoleErrors: listOf(Said, 'the last errors that pages wrote to the console'),
    failedRequests: listOf(Said, 'the last requests of pages that failed'),
    exceptions: listOf(Said, 'the last exceptions of pages that nothing caught'),
    dialogs: listOf(Dialog, 'the last dialogs of pages'),
    pageCrashes: Type.Optional(
      Type.Integer({ minimum: 1, description: 'pages that crashed while the browser went on' }),
    ),
    exitCode: Type.Optional(Type.Integer({ description: 'of the browser’s process' })),
    signal: Type.Optional(
      Type.String({ maxLength: 32, description: 'the signal that ended it, as `SIGKILL`' }),
    ),
    memoryPeakBytes: Type.Optional(
      Type.Integer({ minimum: 0, description: 'the most memory that was seen in use' }),
    ),
    outOfMemory: Type.Optional(
      Type.Literal(true, { description: 'the kernel ended it, or a page, for want of memory' }),
    ),
    dropped: Type.Optional(
      Type.Integer({ minimum: 1, description: 'entries beside those that were kept' }),
    ),
    thumbnailBytes: Type.Optional(
      Type.Integer({ minimum: 1, description: 'size of the last picture, kept for a while' }),
    ),
  },
  { description: 'what the browser told before the end; absent: nothing, or it was not wanted' },
);
export type BlackBox = Static<typeof BlackBox>;
export type BlackBoxEntry = Static<typeof Said>;
export type BlackBoxDialog = Static<typeof Dialog>;
