import { describe, expect, test } from 'vitest';
import { readConfig, type VariableName } from '#src/kernel/config/config.ts';

/** Texts that are malformed; `wrong-configuration.test.ts` has those that contradict others. */

const ports = ['0', '65536', '-1', '80a', '1.5', '1e3', '0x50', 'http', '８０'];
const durations = ['15', '15 s', '1.5s', '-1s', '1w', 's', '1h30m', '1H', '9999999999s', 'soon'];
/** Words that are no value of the variable, beside the ways in which a good one can be wrong. */
const malformed: Partial<Record<VariableName, string[]>> = {
  PORT: ports,
  GATEWAY_PORT: ports,
  GATEWAY_TLS_PORT: ports,
  PUBLIC_GATEWAY_WS_URL: ['http://h', 'wss://', 'h:80', 'ws://', 'ws://h/?a=b', 'ws://h/#a'],
  PUBLIC_GATEWAY_WSS_URL: ['https://h', 'ws://h', 'h', 'wss://', 'wss://h?a', 'wss://h#a'],
  NATS_URL: ['127.0.0.1:4222', 'http://h:4222', 'nats://', 'nats//h', 'nats://h:port'],
  REDIS_URL: ['127.0.0.1:6379', 'http://h:6379', 'redis://', 'redis:/h', 'redis://h:99999'],
  ROLES: ['none', 'api,', 'api;gateway', 'All', 'api,sweeper'],
  BROWSERS: ['real', 'dockers', 'Process', 'process,simulated'],
  SIMULATED_LAUNCH_MS: ['fast', '-20', '1.5', '20 ms', '1w', '2147483648ms'],
  SIMULATED_FAIL_RATE: ['-0.1', '1.1', '50%', 'half', '0x1', 'NaN', '1e-1'],
  POOL_MIN_IDLE: ['-1', '1.5', 'one', '5'],
  POOL_MAX: ['0', '-1', '1.5', 'many', '1000001'],
  CREATE_WAIT: [...durations, '597h'],
  QUEUE_AFTER: durations,
  QUEUE_TIMEOUT: durations,
  QUEUE_MAX: ['-1', '1.5', 'some', '1000001'],
  QUEUE_MAX_PER_ORGANIZATION: ['-1', '1.5', 'some', '1000001'],
  MAX_LIFETIME: durations,
  TIERS: [
    ...['{', '[]', 'null', '7', '"max"', '{"huge":{}}', '{"max":[]}', '{"max":{"sessions":1}}'],
    ...['-1', '1.5', '"1"', 'null', '1e400'].map((credits) => `{"max":{"credits":${credits}}}`),
  ],
  NATS_PORT: ports,
  PUBLIC_NATS_URL: ['127.0.0.1:4222', 'http://h:4222', 'nats://', 'nats://h/?a=b'],
  NATS_ISSUER_SEED: ['SA', `SU${'A'.repeat(56)}`, `SA${'a'.repeat(56)}`, 'A'.repeat(58)],
  POOL_MAX_IDLE: ['-1', '1.5', 'some', '5'],
  EVENT_STREAMS_MAX: ['0', '-1', '1.5', 'many', '100001'],
  EVENT_STREAMS_PER_ORGANIZATION: ['0', '-1', '1.5', 'many', '100001'],
  DOCKER_HOST: ['docker', 'unix://', 'unix:relative', 'ftp://h:1', 'tcp://'],
  DOCKER_NETWORK: ['-a', 'a b', 'a/b', 'x'.repeat(64)],
  DOCKER_PUBLISH: ['host', '0.0.0.0', '::', '10.0.0'],
  DOCKER_DNS: ['dns', '10.0.0', '10.0.0.1,', '::1'],
  DOCKER_ISOLATION: ['none', 'Required'],
  DOCKER_ON_SHUTDOWN: ['keep', 'Leave'],
  BROWSER_MEMORY_MB: ['191', '-1', '1.5', 'much', '1048577'],
  BROWSER_CPUS: ['0', '0.09', '-1', '1025', 'two'],
  BROWSER_PIDS: ['63', '-1', '1.5', '100001'],
  DEV_API_KEY: ['short', 'has a space in the middle', 'ключ-ключ-ключ-ключ', 'x'.repeat(513)],
  JWT_SECRET: ['x'.repeat(31), `${'x'.repeat(31)} x`, 'x'.repeat(513)],
  JWT_JWKS_URL: ['login.example', 'ftp://h/keys', 'https://', 'https://user:word@h/keys'],
  JWT_ALGORITHMS: ['RS256', 'HS256', 'none'],
  JWT_ISSUER: ['https://login.example'],
  JWT_AUDIENCE: ['browser-sessions'],
  MASTER_KEY: ['x'.repeat(31), `${'x'.repeat(31)} x`, 'x'.repeat(513)],
  METRICS_PORT: ports,
  METRICS_TOKEN: ['short', 'has a space in the middle', 'x'.repeat(513)],
  OPERATOR_TOKEN: ['short', 'has a space in the middle', 'x'.repeat(513)],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['collector:4318', 'grpc://h:4317', 'http://', 'http://h/?a=b'],
  LOG_LEVEL: ['verbose', 'INFO', '30'],
};

describe.each(Object.entries(malformed))('%s', (variable, values) => {
  test.each(values)('is not %j', (value) => {
    // What is Docker's alone is read where Docker is asked for.
    const docker = /^(DOCKER|BROWSER)_/.test(variable) ? { BROWSERS: 'docker' } : {};
    expect(() => readConfig({ ...docker, [variable]: value })).toThrow(
      expect.objectContaining({
        name: 'BadConfig',
        message: expect.stringMatching(`^${variable}: `),
      }),
    );
  });
});
