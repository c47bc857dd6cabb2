import type { ComponentType } from 'preact';
import { setOperatorToken } from '../api/credential.ts';
import { Link } from '../shell/link.tsx';
import { moment } from '../shell/moment.ts';
import { query } from '../shell/router.ts';
import { AuditsPart } from './audits.tsx';
import { DeadLettersPart } from './dead-letters.tsx';
import { EventsPart } from './events.tsx';
import './operator.css';
import { OrganizationsPart } from './organizations.tsx';
import { ReadModelsPart } from './read-models.tsx';

type Part = { name: string; title: string; about: string; Component: ComponentType };

const ORGANIZATIONS: Part = {
  name: 'organizations',
  title: 'Organizations',
  about: 'Who uses this service: open sessions against the limit of the tier, credits, keys.',
  Component: OrganizationsPart,
};
const PARTS: readonly Part[] = [
  ORGANIZATIONS,
  {
    name: 'events',
    title: 'Events',
    about: 'What happened, of all organizations and of the fleet. Archived events are not here.',
    Component: EventsPart,
  },
  {
    name: 'read-models',
    title: 'Read models',
    about:
      'What the API answers is kept in Redis, folded from the event store. Here is how far each ' +
      'read model is; it can be folded anew from the first event.',
    Component: ReadModelsPart,
  },
  {
    name: 'dead-letters',
    title: 'Dead letters',
    about: 'Events and messages that could not be handled, and wait for your decision.',
    Component: DeadLettersPart,
  },
  {
    name: 'audits',
    title: 'Audits',
    about: 'Whether the books agree with the log, and whether the archived log is unaltered.',
    Component: AuditsPart,
  },
];

/** What operators see of all organizations; `?tab=` names the part that is shown. */
export function OperatorPage() {
  const wanted = query.value.get('tab');
  const shown = PARTS.find(({ name }) => name === wanted) ?? ORGANIZATIONS;
  return (
    <div class="page operator">
      <div class="title">
        <h1>Operator</h1>
        <button type="button" class="quiet leave" onClick={() => setOperatorToken(null)}>
          Forget the operator’s token
        </button>
      </div>
      <nav class="tabs" aria-label="Parts of this page">
        {PARTS.map(({ name, title }) => (
          <Tab key={name} name={name} title={title} isShown={name === shown.name} />
        ))}
      </nav>
      <h2 class="hidden">{shown.title}</h2>
      <p class="muted about">{shown.about}</p>
      {moment.value !== null && shown.Component !== EventsPart && (
        <p class="notice warn" role="status">
          This part shows now. What happened before is under Events.
        </p>
      )}
      <shown.Component key={shown.name} />
    </div>
  );
}

function Tab({ name, title, isShown }: { name: string; title: string; isShown: boolean }) {
  return (
    <span aria-current={isShown ? 'page' : undefined}>
      <Link to={`/operator?tab=${name}`}>{title}</Link>
    </span>
  );
}
