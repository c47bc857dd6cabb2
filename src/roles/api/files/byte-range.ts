/** What a request asks of a file of so many bytes. */
export type AskedRange =
  | { kind: 'all' }
  /** Both inclusive. */
  | { kind: 'part'; start: number; end: number }
  | { kind: 'unsatisfiable' };

/**
 * Reads a `Range` header (RFC 9110, 14.2). One range is served; several, or what is none, count as
 * no range, which a server may do. `If-Range` with another etag asks for all.
 */
export function askedRange(
  bytes: number,
  etag: string,
  { range, 'if-range': ifRange }: { range?: string | undefined; 'if-range'?: unknown },
): AskedRange {
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return { kind: 'all' };
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim()) ?? [];
  if (first === '' && last === '') return { kind: 'all' };
  if (first === '') {
    const start = Math.max(0, bytes - Number(last));
    return start >= bytes ? { kind: 'unsatisfiable' } : { kind: 'part', start, end: bytes - 1 };
  }
  const start = Number(first);
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (last !== '' && Number(last) < start) return { kind: 'all' };
  return start >= bytes ? { kind: 'unsatisfiable' } : { kind: 'part', start, end };
}

/** Whether `If-None-Match` names the etag. */
export function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}

/** `Content-Disposition` of a download: the name for old clients, and in UTF-8 (RFC 6266). */
export function asAttachment(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
