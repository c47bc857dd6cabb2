import { costsOf, type HistoryEvent } from './history.ts';
import { anchorOf } from './timeline.tsx';

type CostProps = { events: readonly HistoryEvent[]; open: (sequence: number) => void };

/** What the session cost, each line with the event that made it. */
export function Cost({ events, open }: CostProps) {
  const lines = costsOf(events);
  const used = lines.find(({ what }) => what.startsWith('Used'));
  return (
    <section aria-labelledby="cost">
      <h2 id="cost">Cost</h2>
      <div class="card">
        <p>
          {used === undefined
            ? 'It has not ended: its credits are reserved, and used at its end.'
            : `It used ${count(used.credits)}; what it did not use was returned.`}{' '}
          <span class="muted">One credit is one minute with a browser.</span>
        </p>
        <ul class="costs">
          {lines.map(({ sequence, what, credits }) => (
            <li key={`${sequence} ${what}`}>
              <a href={`#${anchorOf(sequence)}`} onClick={() => open(sequence)}>
                {what}
              </a>
              <span>{count(credits)}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

const count = (credits: number) => (credits === 1 ? '1 credit' : `${credits} credits`);
