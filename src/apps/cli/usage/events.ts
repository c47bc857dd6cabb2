import type { KnownCommand } from '../command.ts';
import { SQL_ROWS } from '../limits.ts';

/** All events: as they happen, queried, audited. */
export const eventCommands: readonly KnownCommand[] = [
  {
    name: 'events tail',
    summary: 'Print events as they happen, one per line, until Ctrl-C',
    options: {
      org: { value: 'ID', meaning: "only this organization's events" },
      type: { value: 'TYPE', meaning: 'only events of this type, as session.activated' },
      from: {
        value: 'SEQ',
        meaning: 'sequence of the first event, or start for the oldest; default: new events',
      },
      limit: { value: 'N', meaning: 'end after N events' },
    },
    load: async () => (await import('../commands/events.ts')).tailEvents,
  },
  {
    name: 'events show',
    summary: 'Show one event in full',
    operands: ['SEQ'],
    options: {},
    load: async () => (await import('../commands/events.ts')).showEvent,
  },
  {
    name: 'sql',
    summary: 'Answer one SQL query over all stored events: tables events, sessions and ledger',
    operands: ['QUERY'],
    options: {
      from: {
        value: 'TIME',
        meaning: 'load events from then on, RFC 3339 or a date; default: all',
      },
      to: { value: 'TIME', meaning: 'load events before then; default: now' },
      limit: { value: 'N', meaning: `print at most N rows; default ${SQL_ROWS}` },
    },
    load: async () => (await import('../commands/sql.ts')).queryEvents,
  },
  {
    name: 'audit ledger',
    summary: 'Compare slots and credits in the ledgers with the sessions; exit 1 if they differ',
    options: { org: { value: 'ID', meaning: 'only this organization; default: all' } },
    load: async () => (await import('../commands/audit/ledger.ts')).auditLedger,
  },
  {
    name: 'audit export',
    summary: 'Write stored records to a file whose lines are chained and whose head is signed',
    options: {
      from: {
        value: 'TIME',
        meaning: 'begin, RFC 3339 or a date in UTC; default: the first event',
      },
      to: { value: 'TIME', meaning: 'end, not included; default: now' },
      org: { value: 'ID', meaning: 'only this organization; default: everything' },
      out: { value: 'FILE', meaning: 'output file; an existing file is replaced' },
    },
    load: async () => (await import('../commands/audit/export.ts')).exportAudit,
  },
  {
    name: 'audit verify',
    summary: 'Verify that an exported file is complete and unaltered; exit 1 if it is not',
    operands: ['FILE'],
    options: {
      key: {
        value: 'FINGERPRINT',
        meaning: 'key that must have signed it; default: the key in DATA_DIR',
      },
      'against-log': {
        meaning: 'also compare each record with the event store; needs the service',
      },
    },
    load: async () => (await import('../commands/audit/verify.ts')).verifyAudit,
  },
  {
    name: 'audit key',
    summary: 'Show the public key that signs audits, and its fingerprint',
    options: {},
    load: async () => (await import('../commands/audit/key.ts')).showAuditKey,
  },
];
