import { useEffect, useRef, useState } from 'preact/hooks';
import { LiveScreen } from '../session/live-screen.tsx';
import { post, sentenceOf } from '../api/api-client.ts';
import { fieldOf } from '../shell/form-field.ts';
import { Failure } from '../shell/states.tsx';
import { useResource } from '../api/use-resource.ts';
import { handoffPath, type Handoff } from './handoff.ts';
import { inbox, readInbox } from './inbox.ts';
import { TimeLeft } from './time-left.tsx';

/** What taking a hand-off answers: the screen that its person alone steers. */
export type Taken = Handoff & { viewer_url: string; vnc_password: string };

export const take = (handoff: Handoff) => post<Taken>(`${handoffPath(handoff)}/take`, {});

type HeldProps = { taken: Taken; close: () => void };

/** The screen of a hand-off that this user has, what was asked, and the form to give it back. */
export function HeldScreen({ taken, close }: HeldProps) {
  // It may end elsewhere: by its time, by its session, or in another tab.
  const { data } = useResource<Handoff>(handoffPath(taken), { again: inbox.value });
  const heading = useRef<HTMLHeadingElement>(null);
  // The button that took it is gone, and the panel may be out of view.
  useEffect(() => heading.current?.focus(), []);
  if (data?.status === 'completed' || data?.status === 'expired')
    return <Over handoff={data} close={close} />;
  return (
    <section class="held card" aria-label="The hand-off that you have">
      <div>
        <h2 ref={heading} tabIndex={-1}>
          What you are asked to do
        </h2>
        <p class="instructions">{taken.instructions}</p>
        <p class="muted">
          You alone steer this browser, for <TimeLeft until={taken.expires_at} /> at most. Its
          automation waits, and goes on when you give it back.
        </p>
      </div>
      <LiveScreen viewerUrl={taken.viewer_url} password={taken.vnc_password} close={close} />
      <GiveBack handoff={taken} onDone={close} />
    </section>
  );
}

function Over({ handoff, close }: { handoff: Handoff; close: () => void }) {
  const { status, success, note, instructions } = handoff;
  return (
    <section class="card" aria-label="The hand-off that you had">
      <h2>{status === 'expired' ? 'It is over' : 'It was given back'}</h2>
      <p class="instructions">{instructions}</p>
      <p role="status">
        {status === 'expired'
          ? 'Its time, or its session, ended before you gave it back.'
          : `It was given back elsewhere, as ${success === true ? 'done' : 'not done'}.`}
        {note !== null && note !== '' && <> The note: {note}</>}
      </p>
      <button type="button" onClick={close}>
        Close
      </button>
    </section>
  );
}

function GiveBack({ handoff, onDone }: { handoff: Handoff; onDone: () => void }) {
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const note = fieldOf(form, 'note');
    const body = { success: fieldOf(form, 'success') === 'yes', ...(note !== '' && { note }) };
    setBusy(true);
    try {
      await post(`${handoffPath(handoff)}/complete`, body);
      onDone();
      void readInbox();
    } catch (error) {
      setFailure(sentenceOf(error));
      setBusy(false);
    }
  }
  return (
    <form class="give-back" onSubmit={(event) => void submit(event)}>
      <fieldset>
        <legend>Is it done?</legend>
        <label>
          <input type="radio" name="success" value="yes" required /> Yes
        </label>
        <label>
          <input type="radio" name="success" value="no" /> No
        </label>
      </fieldset>
      <label>
        Note for the automation
        <textarea name="note" rows={3} maxLength={2048} />
      </label>
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? 'Giving back…' : 'Give it back'}
      </button>
      <Failure what="It was not given back" failure={failure} />
    </form>
  );
}
