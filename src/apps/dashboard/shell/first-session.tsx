import { SERVICE_URL } from '../api/service-url.ts';
import { CopyBlock } from './copy-block.tsx';

/** The call that makes a first session, for pages that are empty without one. */
export function FirstSession() {
  const create = [
    `curl -X POST ${SERVICE_URL}/api/sessions \\`,
    '  -H "Authorization: Bearer $API_KEY" \\',
    `  -H 'Content-Type: application/json' \\`,
    `  -d '{"session_name": "my-first-session"}'`,
  ].join('\n');
  return <CopyBlock title="Create a session" text={create} />;
}
