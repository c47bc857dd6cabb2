import { Compile } from 'typebox/schema';
import { describe, expect, it, test } from 'vitest';
import type { DocumentOperation, DocumentSchema } from '#src/roles/api/docs/openapi-document.ts';
import { errorContexts } from '#src/roles/api/docs/error-contexts.ts';
import { errors, type ErrorName } from '#src/kernel/errors.ts';
import { readText } from '#test/support/sources/source-files.ts';
import { readOpenApi } from '#src/start/read-openapi.ts';

const document = await readOpenApi();
const { components, paths } = document;
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const named = operations.map((one) => [one.operation.operationId, one] as const);

describe('the document', () => {
  it('has every operation', () => {
    const documented = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(documented).toEqual([
      'POST /api/sessions',
      'GET /api/sessions',
      'GET /api/sessions/{id}',
      'PATCH /api/sessions/{id}',
      'DELETE /api/sessions/{id}',
      'GET /api/sessions/{id}/access',
      'POST /api/sessions/{id}/rotate-access',
      'POST /api/sessions/{id}/extend',
      'GET /api/sessions/{id}/history',
      'GET /api/sessions/{id}/why',
      'POST /api/sessions/stop',
      'GET /api/sessions/{id}/screenshot',
      'POST /api/sessions/{id}/debugger-address',
      'DELETE /api/sessions/{id}/debugger-address',
      'GET /api/sessions/{id}/thumbnail',
      'POST /api/screenshot',
      'POST /api/pdf',
      'POST /api/content',
      'GET /api/sessions/{id}/recording',
      'GET /api/sessions/{id}/recording/{segment}',
      'GET /api/sessions/{id}/files',
      'GET /api/sessions/{id}/files/{name}',
      'DELETE /api/sessions/{id}/files/{name}',
      'PUT /api/sessions/{id}/files/{name}',
      'GET /api/sessions/{id}/files.zip',
      'POST /api/sessions/{id}/handoffs',
      'GET /api/sessions/{id}/handoffs',
      'GET /api/handoffs',
      'GET /api/sessions/{id}/handoffs/{handoff_id}',
      'POST /api/sessions/{id}/handoffs/{handoff_id}/take',
      'POST /api/sessions/{id}/handoffs/{handoff_id}/complete',
      'POST /api/sessions/{id}/shares',
      'GET /api/sessions/{id}/shares',
      'DELETE /api/sessions/{id}/shares/{share_id}',
      'POST /api/profiles',
      'GET /api/profiles',
      'GET /api/profiles/{id}',
      'DELETE /api/profiles/{id}',
      'POST /api/sessions/{id}/profile/save',
      'GET /api/sessions/{id}/events',
      'GET /api/events',
      'POST /api/webhooks',
      'GET /api/webhooks',
      'GET /api/webhooks/{id}',
      'PATCH /api/webhooks/{id}',
      'DELETE /api/webhooks/{id}',
      'POST /api/webhooks/{id}/rotate-secret',
      'GET /api/webhooks/{id}/deliveries',
      'GET /api/webhooks/{id}/deliveries/{delivery}',
      'POST /api/webhooks/{id}/replay',
      'GET /api/extensions',
      'POST /api/extensions',
      'GET /api/extensions/{id}',
      'DELETE /api/extensions/{id}',
      'GET /api/organization',
      'PUT /api/organization/origins',
      'GET /api/keys',
      'POST /api/keys',
      'DELETE /api/keys/{key_id}',
      'GET /api/usage',
      'GET /api/pool',
      'GET /api/queue',
      'GET /api/audit/export',
      'GET /api/operator',
      'GET /api/operator/organizations',
      'GET /api/operator/servers',
      'POST /api/operator/servers/{id}/drain',
      'POST /api/operator/servers/{id}/undrain',
      'GET /api/operator/pool',
      'GET /api/operator/pool/decisions',
      'GET /api/operator/events',
      'GET /api/operator/queue',
      'GET /api/operator/read-models',
      'POST /api/operator/read-models/{name}/rebuild',
      'GET /api/operator/dead-letters',
      'POST /api/operator/dead-letters/{id}/retry',
      'POST /api/operator/dead-letters/{id}/skip',
      'GET /api/operator/audits',
      'POST /api/operator/audits',
      'GET /api/status',
      'GET /api/health',
      'GET /api/ready',
      'GET /metrics',
      'GET /api/openapi.json',
      'GET /api/asyncapi.json',
      'GET /docs',
      'GET /docs/events',
      'GET /licenses',
    ]);
  });

  it('gives each operation a unique name, and each tag a description', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z]+$/);
    const tags = new Set(operations.flatMap(({ operation }) => operation.tags));
    expect(document.tags.map(({ name }) => name)).toEqual([...tags]);
  });

  it('has no dangling reference, and no component without a reference', () => {
    const references = new Set(
      JSON.stringify(document)
        .matchAll(/"\$ref":"#\/components\/(\w+\/[\w-]+)"/g)
        .map(([, reference]) => reference),
    );
    const there = ['schemas', 'headers'].flatMap((kind) =>
      Object.keys(components[kind as 'schemas' | 'headers']).map((name) => `${kind}/${name}`),
    );
    expect(references).toEqual(new Set(there));
    expect(JSON.stringify(document).match(/"\$ref"/g)?.length).toBeGreaterThan(100);
  });

  it('names its licence by its SPDX identifier, as client generators expect', () => {
    expect(document.info.license).toEqual({ name: 'MIT', identifier: 'MIT' });
  });

  it('declares a nullable object as an anyOf, which client generators understand', () => {
    const found = schemasIn(document);
    const isNullable = ({ anyOf }: DocumentSchema) =>
      anyOf?.some(({ type }) => type === 'null') === true;
    const nullable = found.filter(isNullable);
    expect(nullable).toContainEqual(
      expect.objectContaining({
        anyOf: [expect.objectContaining({ type: 'object' }), { type: 'null' }],
      }),
    );
    for (const { type } of found) if (Array.isArray(type)) expect(type).not.toContain('object');
  });

  it('has no trace of its generation', () => {
    expect(JSON.stringify(document)).not.toMatch(/refusal|~kind|~optional|def-\d/);
  });
});

describe.each(named)('%s', (_, { path, operation }) => {
  it('has schemas that compile, and examples that fit them', () => {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)].flatMap((one) =>
      Object.values(one?.content ?? {}),
    );
    for (const { schema, ...shown } of bodies) {
      const validator = compile(schema);
      for (const example of examplesOf(shown)) {
        const [isValid, flaws] = [validator.Check(example), validator.Errors(example)[1]];
        expect([isValid, flaws]).toEqual([true, []]);
      }
    }
    for (const { schema } of operation.parameters) compile(schema);
  });

  it('declares the parameters of its path', () => {
    const inPath = operation.parameters.filter((one) => one.in === 'path');
    expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
    for (const { required } of inPath) expect(required).toBe(true);
  });

  it('carries the three headers on every answer', () => {
    for (const { headers } of Object.values(operation.responses))
      for (const name of ['Limit', 'Remaining', 'Reset'])
        expect(headers[`X-RateLimit-${name}`]).toEqual({
          $ref: `#/components/headers/X-RateLimit-${name}`,
        });
  });

  it('names its errors under their status, each with an example', () => {
    for (const [status, answer] of Object.entries(operation.responses)) {
      if (Number(status) < 400) continue;
      const { examples = {} } = answer.content?.['application/json'] ?? {};
      const names = Object.keys(examples) as ErrorName[];
      expect(names.length).toBeGreaterThan(0);
      for (const name of names) {
        expect(errors[name].status).toBe(Number(status));
        expect(examples[name]?.value).toMatchObject({ error: name, code: Number(status) });
      }
    }
  });
});

describe('access', () => {
  const find = (id: string) => new Map(named).get(id)?.operation as DocumentOperation;
  const namesOf = ({ responses }: DocumentOperation) =>
    Object.values(responses).flatMap(({ content }) =>
      Object.keys(content?.['application/json']?.examples ?? {}),
    );

  it('requires the bearer scheme, except on public routes', () => {
    const open = operations.filter(({ operation }) => operation.security.length === 0);
    expect(open.map(({ path }) => path)).toEqual([
      '/api/health',
      '/api/ready',
      '/metrics',
      '/api/openapi.json',
      '/api/asyncapi.json',
      '/docs',
      '/docs/events',
      '/licenses',
    ]);
    // The token of the metrics is not a credential of the API.
    for (const { operation } of open.filter(({ path }) => path !== '/metrics'))
      expect(namesOf(operation)).not.toEqual(expect.arrayContaining(['UNAUTHORIZED']));
    expect(components.securitySchemes['bearer']).toMatchObject({ type: 'http', scheme: 'bearer' });
    expect(find('getStatus').security).toEqual([{ bearer: [] }]);
    expect(components.securitySchemes['operator']).toMatchObject({ scheme: 'bearer' });
    for (const { path, operation } of operations.filter(({ path }) => /operator/.test(path)))
      expect([path, operation.security, operation['x-roles']]).toEqual([
        path,
        [{ operator: [] }],
        undefined,
      ]);
  });

  it('names the permitted roles, and FORBIDDEN if there are other roles', () => {
    expect(find('createSession')['x-roles']).toEqual(['owner', 'admin', 'member']);
    expect(namesOf(find('createSession'))).toContain('FORBIDDEN');
    expect(find('listSessions')['x-roles']).toContain('viewer');
    expect(namesOf(find('listSessions'))).not.toContain('FORBIDDEN');
  });

  it('names the errors of the specification on the specified operations', () => {
    const specified = [
      'INVALID_DURATION',
      'UNAUTHORIZED',
      'INSUFFICIENT_CREDITS',
      'SESSION_LIMIT_EXCEEDED',
      'NO_SERVERS_AVAILABLE',
    ];
    expect(namesOf(find('createSession'))).toEqual(expect.arrayContaining(specified));
    for (const id of ['getSession', 'getSessionAccess', 'extendSession', 'stopSession'])
      expect(namesOf(find(id))).toContain('SESSION_NOT_FOUND');
  });
});

test('a duration is documented as a pattern, though the handler validates any value', () => {
  const schema = components.schemas['Duration'] as DocumentSchema;
  const validator = compile(schema);
  for (const good of ['30m', '1h', '1h30m']) expect(validator.Check(good)).toBe(true);
  for (const bad of ['', 'h', '1H', '30m1h', 30, null]) expect(validator.Check(bad)).toBe(false);
});

test('the example contexts are those of the table of errors', () => {
  const rows = readText('src/roles/api/README.md').matchAll(
    /^\| \d+ \| (\w+) \|[^|]*\|([^|]*)\|$/gm,
  );
  for (const [, name = '', context = ''] of rows) {
    const documented = [...context.matchAll(/`(\w+)`/g)].map(([, field]) => field);
    const shown = Object.keys(errorContexts[name as ErrorName]);
    expect([name, ...shown]).toEqual(expect.arrayContaining([name, ...documented]));
  }
});

/** All parts of the value that have the form of a schema. */
function schemasIn(value: unknown): DocumentSchema[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(schemasIn);
  return 'type' in value || 'anyOf' in value ? [value as DocumentSchema, ...inner] : inner;
}

function compile(schema: DocumentSchema) {
  return Compile({ components, ...schema });
}

function examplesOf(shown: { example?: unknown; examples?: Record<string, { value: unknown }> }) {
  const more = Object.values(shown.examples ?? {}).map(({ value }) => value);
  return shown.example === undefined ? more : [shown.example, ...more];
}
