import { useState } from 'preact/hooks';
import { HeldScreen, take, type Taken } from '../handoffs/held-screen.tsx';
import { isOwn, type Handoff } from '../handoffs/handoff.ts';
import { TimeLeft } from '../handoffs/time-left.tsx';
import { sentenceOf } from '../api/api-client.ts';
import { may } from '../api/caller.ts';
import { Failure } from '../shell/states.tsx';
import '../handoffs/handoffs.css';

/** Says that a person is asked for, or has the browser, and lets the user take it. */
export function HandoffBanner({ handoff }: { handoff: Handoff | null }) {
  const [taken, setTaken] = useState<Taken | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  if (taken !== null) return <HeldScreen taken={taken} close={() => setTaken(null)} />;
  if (handoff?.status !== 'requested' && handoff?.status !== 'taken') return null;
  const isWaiting = handoff.status === 'requested';
  async function takeIt(wanted: Handoff) {
    try {
      setTaken(await take(wanted));
      setFailure(null);
    } catch (error) {
      setFailure(sentenceOf(error));
    }
  }
  return (
    <section class="notice warn handoff" aria-label="Hand-off">
      <div>
        <p>
          <strong role="status">{headline(handoff)}</strong>{' '}
          <span class="small">
            <TimeLeft until={handoff.expires_at} /> left
          </span>
        </p>
        <p class="instructions">{handoff.instructions}</p>
      </div>
      {may('member') && (isWaiting || isOwn(handoff)) && (
        <button type="button" class="primary" onClick={() => void takeIt(handoff)}>
          {isWaiting ? 'Take' : 'Open'}
        </button>
      )}
      <Failure what="It was not taken" failure={failure} />
    </section>
  );
}

function headline(handoff: Handoff): string {
  const { status, requested_by: asker, taken_by: holder } = handoff;
  if (status === 'requested') return `${asker} asks for a person.`;
  if (isOwn(handoff)) return 'You have this browser; its automation waits.';
  return `${holder ?? 'A person'} has this browser; its automation waits.`;
}
