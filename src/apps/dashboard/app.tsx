import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { followInbox } from './handoffs/inbox.ts';
import { followOrganization } from './live/organization-events.ts';
import { componentOf, loadPage } from './page-components.ts';
import {
  PAGES,
  type PageName,
  type PageProps,
  type Place,
} from '../../roles/api/dashboard/pages.ts';
import { sentenceOf } from './api/api-client.ts';
import { SERVICE_URL } from './api/service-url.ts';
import { caller, may, type Caller } from './api/caller.ts';
import { CommandPalette } from './shell/command-palette.tsx';
import { credential } from './api/credential.ts';
import { Link } from './shell/link.tsx';
import { ServiceHealth } from './live/service-health.tsx';
import { GivenUpWebhooks } from './webhooks/given-up.tsx';
import { OperatorSignIn } from './shell/operator-sign-in.tsx';
import { OfferedKey } from './shell/offered-key.tsx';
import { place } from './shell/router.ts';
import { SignIn } from './shell/sign-in.tsx';
import { Empty, Failure, Loading } from './shell/states.tsx';
import { TopBar } from './shell/top-bar.tsx';
import { useResource } from './api/use-resource.ts';

/** Without a credential the sign-in, else the page that the address names. */
export function App() {
  const key = credential.value;
  return key === null ? <SignIn /> : <SignedIn key={key} />;
}

function SignedIn() {
  // Before the first frame: what the page shows takes the stream and then the list.
  useLayoutEffect(() => followOrganization(), []);
  useEffect(() => followInbox(), []);
  const { data } = useResource<Caller>('/api/organization');
  useEffect(() => {
    caller.value = data;
  }, [data]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <TopBar />
      <main id="main" tabIndex={-1}>
        <ServiceHealth />
        <GivenUpWebhooks />
        <Shown at={place.value} />
      </main>
      <footer class="foot">
        <a href={`${SERVICE_URL}/licenses`}>Licences</a>
      </footer>
      <CommandPalette />
      <OfferedKey />
    </>
  );
}

function Shown({ at }: { at: Place | null }) {
  const title = at === null ? 'No such page' : PAGES[at.name].title;
  useEffect(() => {
    document.title = `${title} – Browser Session Service`;
  }, [title]);
  if (at === null)
    return (
      <Empty title="There is no page here">
        <Link to="/">All sessions</Link>
      </Empty>
    );
  const { needs } = PAGES[at.name];
  if (needs === 'operator' && !may(needs)) return <OperatorSignIn />;
  if (caller.value !== null && !may(needs))
    return (
      <Empty title={`${title}: for the role ${needs} and above`}>
        <p class="muted">
          Your key has the role {caller.value.organization_role}. An owner can issue another:
          <code> ./bss keys issue --role {needs}</code>
        </p>
      </Empty>
    );
  return <LoadedPage key={at.name} name={at.name} parameters={at.parameters} />;
}

const RELOAD_MS = 3_000;
/** In the tab's storage from a reload until a page has loaded, so that a failure has one reload. */
const RELOADED = 'reloaded';

/**
 * Reloads the tab once the service answers. Only a reload helps: the browser keeps a failed import
 * as failed, and a script of a former version no longer exists.
 */
function reloadOnceServed(): (() => void) | undefined {
  if (sessionStorage.getItem(RELOADED) !== null) return undefined;
  const left = new AbortController();
  const timer = setInterval(() => void reloadIfServed(left.signal), RELOAD_MS);
  return () => {
    clearInterval(timer);
    left.abort();
  };
}

async function reloadIfServed(signal: AbortSignal) {
  const answer = await fetch(location.href, { method: 'HEAD', signal }).catch(() => null);
  if (answer?.ok !== true) return;
  sessionStorage.setItem(RELOADED, 'yes');
  location.reload();
}

function LoadedPage({ name, parameters }: PageProps & { name: PageName }) {
  const [, setLoaded] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const Component = componentOf(name);
  useEffect(() => {
    if (Component !== null) return;
    loadPage(name).then(
      () => setLoaded(true),
      (error: unknown) => setFailure(sentenceOf(error)),
    );
  }, [name]);
  useEffect(() => (failure === null ? undefined : reloadOnceServed()), [failure]);
  useEffect(() => {
    if (Component !== null) sessionStorage.removeItem(RELOADED);
  }, [Component]);
  if (Component !== null) return <Component parameters={parameters} />;
  if (failure === null) return <Loading what={PAGES[name].title.toLowerCase()} />;
  return (
    <Failure
      what="The page could not be loaded"
      failure={failure}
      retry={() => location.reload()}
    />
  );
}
