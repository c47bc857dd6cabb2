import { useEffect, useState } from 'preact/hooks';
import { caller } from '../api/caller.ts';
import { answerOffer, offered } from '../api/credential.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { Confirm } from './confirm.tsx';

const NOT_KNOWN = 'an organization that the service does not have';

/** Asks whether the key of the address is to replace the one that the tab has. */
export function OfferedKey() {
  const key = offered.value?.key ?? null;
  const [owner, setOwner] = useState(NOT_KNOWN);
  useEffect(() => {
    const show = async () => setOwner((key === null ? null : await nameOf(key)) ?? NOT_KNOWN);
    void show();
  }, [key]);
  if (offered.value === null) return null;
  const ours = caller.value?.name ?? 'another organization';
  return (
    <Confirm question="Use the key of this link?" verb="Use it" onAnswer={answerOffer}>
      {key === null ? (
        <p>The link has another operator token than this tab.</p>
      ) : (
        <p>
          This tab is signed in to <b>{ours}</b>. The link has a key of <b>{owner}</b>: with it what
          you do and upload here belongs to them. Use it only if you know who made the link.
        </p>
      )}
    </Confirm>
  );
}

/** Whose key it is; null: the service does not know it, or does not answer. */
async function nameOf(key: string): Promise<string | null> {
  try {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await fetch(`${SERVICE_URL}/api/organization`, { headers });
    return answer.ok ? ((await answer.json()) as { name: string }).name : null;
  } catch {
    return null;
  }
}
