import { Type } from 'typebox';
import { Timestamp } from '#src/roles/api/schemas/fields.ts';

const SESSION = 'ses_J5mYt3QKX2m0bq1uHcR8Vw';

export const DebuggerAddress = Type.Object(
  {
    session_id: Type.String({ examples: [SESSION] }),
    debugger_address: Type.String({ examples: ['127.0.0.1:9300'] }),
    expires_at: Timestamp('2026-11-20T10:00:00.000Z'),
  },
  { title: 'DebuggerAddress' },
);

export const DebuggerAddressClosed = Type.Object(
  {
    session_id: Type.String({ examples: [SESSION] }),
    closed: Type.Integer({ minimum: 0, examples: [1] }),
  },
  { title: 'DebuggerAddressClosed' },
);
