import { describe, expect, it } from 'vitest';
import { welcomeText } from '#src/start/welcome.ts';
import { readConfig } from '#src/kernel/config/config.ts';

const config = readConfig({ BROWSERS: 'simulated' });
const service = { apiUrl: 'http://127.0.0.1:8080', developmentAccess: { apiKey: 'bss_dev_key' } };

describe('the welcome text', () => {
  it('has an address that opens the operator’s pages, and the token that was made', () => {
    const text = welcomeText(config, service, 'made+token=');
    expect(text).toContain('http://127.0.0.1:8080/#key=bss_dev_key\n');
    expect(text).toContain(
      'http://127.0.0.1:8080/operator#key=bss_dev_key&operator=made%2Btoken%3D\n',
    );
    expect(text).toMatch(/Token of operators: +made\+token=\n/);
    expect(text).toContain('the token the whole service');
  });

  it('has the address alone where OPERATOR_TOKEN is set', () => {
    const text = welcomeText(config, service, null);
    expect(text).toMatch(/OPERATOR_TOKEN.*http:\/\/127.0.0.1:8080\/operator#key=bss_dev_key\n/);
    expect(text).not.toMatch(/operator=|Token of operators/);
  });

  it('has neither without a key to sign in with', () => {
    const refused = { ...service, developmentAccess: { refusal: 'The key was revoked.' } };
    const text = welcomeText(config, refused, 'made');
    expect(text).toContain('The key was revoked.');
    expect(text).not.toContain('made');
    expect(welcomeText(config, { ...service, developmentAccess: null }, 'made')).toBe(null);
  });
});
