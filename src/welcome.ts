import type { Config } from './config.ts';
import type { Service } from './compose.ts';

const BROWSERS: Record<Config['browsers']['kind'], string> = {
  docker: 'Browsers run in containers: apart from each other, the machine and private networks.',
  process: 'Browsers run as plain processes of this machine, not isolated: for development only.',
  simulated: 'Browsers are SIMULATED: for load tests and demonstrations only.',
};

/**
 * What the terminal shows once the service is ready: where it is, the key, and three commands to
 * try.
 */
export function welcomeText(config: Config, { apiUrl }: Service, apiKey: string): string {
  const create = `curl -s -X POST ${apiUrl}/api/sessions -H "Authorization: Bearer ${apiKey}"`;
  const lines = [
    '',
    `  Browser Session Service is ready:  ${apiUrl}   (documentation: ${apiUrl}/docs)`,
    `  API key of the organization "dev": ${apiKey}`,
    `  ${BROWSERS[config.browsers.kind]}`,
    '',
    '  Try it, from another terminal in this folder:',
    '',
    `    ${create} -o session.json`,
    '    npm run -s drive -- session.json',
    '    npm run -s watch -- session.json',
    '',
    '  They create a session, drive its browser with Puppeteer, and print where to watch it.',
    '  Ctrl-C ends the service; sessions and keys are kept.',
    '',
  ];
  return lines.join('\n');
}
