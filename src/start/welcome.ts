import type { Config } from '#src/kernel/config/config.ts';
import type { Service } from './compose.ts';

const BROWSERS: Record<Config['browsers']['kind'], string> = {
  docker: 'Browsers run in containers, isolated from each other, the machine and private networks.',
  kubernetes: 'Browsers run in Pods of a Kubernetes cluster.',
  process: 'Browsers run as processes of this machine without isolation: for development only.',
  simulated: 'Browsers are SIMULATED: for load tests and demonstrations only.',
};

/**
 * The text printed once the service is ready: its address, the key and three commands to try; or,
 * without a key, the command that issues one. Null where no key was to be issued.
 * @param madeToken the operator's token if this installation made it; null: OPERATOR_TOKEN is set
 */
export function welcomeText(
  config: Config,
  { apiUrl, developmentAccess: access }: Pick<Service, 'apiUrl' | 'developmentAccess'>,
  madeToken: string | null,
): string | null {
  if (access === null) return null;
  const lines = [
    '',
    `  Browser Session Service is ready:  ${apiUrl}   (documentation: ${apiUrl}/docs)`,
    ...('apiKey' in access ? credentials(apiUrl, access.apiKey, madeToken) : []),
    `  ${BROWSERS[config.browsers.kind]}`,
    '',
    ...('apiKey' in access ? commandsToTry(apiUrl, access.apiKey) : howToIssueKey(access.refusal)),
    '  Ctrl-C ends the service; sessions and keys are kept.',
    '',
  ];
  return lines.join('\n');
}

/** A token that the operator has set is not repeated: who set it has it, and logs are kept. */
function credentials(apiUrl: string | null, apiKey: string, madeToken: string | null): string[] {
  const key = `key=${encodeURIComponent(apiKey)}`;
  const dashboard = [
    `  Dashboard, signed in:              ${apiUrl}/#${key}`,
    `  API key of the organization "dev": ${apiKey}`,
  ];
  if (madeToken === null)
    return [...dashboard, `  For operators (OPERATOR_TOKEN):    ${apiUrl}/operator#${key}`];
  const token = `operator=${encodeURIComponent(madeToken)}`;
  return [
    ...dashboard,
    `  For operators, signed in:          ${apiUrl}/operator#${key}&${token}`,
    `  Token of operators:                ${madeToken}`,
    '  The key opens one organization, the token the whole service: keep both to yourself.',
  ];
}

function commandsToTry(apiUrl: string | null, apiKey: string): string[] {
  const create = `curl -s -X POST ${apiUrl}/api/sessions -H "Authorization: Bearer ${apiKey}"`;
  return [
    '  Try it, from another terminal in this folder:',
    '',
    `    ${create} -o session.json`,
    '    npm run -s drive -- session.json',
    '    npm run -s watch -- session.json',
    '',
    '  They create a session, drive its browser with Puppeteer, and print where to watch it.',
  ];
}

function howToIssueKey(refusal: string): string[] {
  return [
    `  ${refusal}`,
    '  Issue another key, from another terminal in this folder:',
    '',
    '    ./bss keys issue --org dev --role owner --user dev',
    '',
  ];
}
