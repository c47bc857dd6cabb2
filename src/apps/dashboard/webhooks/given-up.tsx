import { may } from '../api/caller.ts';
import { useResource } from '../api/use-resource.ts';
import { Link } from '../shell/link.tsx';
import { givenUp, shownUrl, type WebhookList } from './webhook.ts';

const AGAIN_MS = 60_000;

/** A line at the top of every page for webhooks that were given up. Admins alone see it. */
export function GivenUpWebhooks() {
  const { data } = useResource<WebhookList>(may('admin') ? '/api/webhooks' : null, {
    everyMs: AGAIN_MS,
  });
  const [first, ...others] = data === null ? [] : givenUp(data);
  if (first === undefined) return null;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return (
    <p class="notice warn" role="status">
      The webhook to {shownUrl(first.url)}
      {more} gets no events any more: it was disabled. <Link to="/webhooks">Webhooks</Link>
    </p>
  );
}
