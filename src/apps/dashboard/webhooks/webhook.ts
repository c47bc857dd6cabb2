/** A webhook as the API gives it; what this page shows of it. */
export type Webhook = {
  id: string;
  url: string;
  types: string[];
  disabled: { reason: 'asked' | 'failing' | 'gone'; detail: string; at: string } | null;
  failing_since: string | null;
  last_delivery: {
    at: string;
    outcome: 'delivered' | 'failed' | 'gone' | 'lost';
    status: number | null;
  } | null;
  waiting: number;
};

export type WebhookList = { webhooks: Webhook[] };

const REASONS = {
  asked: 'Disabled',
  failing: 'Disabled after three days of failures',
  gone: 'Disabled: its URL is gone',
} as const;

/** What becomes of the webhook's events, as a sentence without a time. */
export function stateOf({ disabled, failing_since: since }: Webhook): string {
  if (disabled !== null) return `${REASONS[disabled.reason]} (${disabled.detail})`;
  return since === null ? 'Sends' : 'Fails, and is tried again';
}

/** Those that the service has disabled of its own accord. */
export function givenUp({ webhooks }: WebhookList): Webhook[] {
  return webhooks.filter(({ disabled }) => disabled !== null && disabled.reason !== 'asked');
}

/** Scheme and host of a URL, which may hold credentials. */
export function shownUrl(url: string): string {
  return URL.parse(url)?.origin ?? '';
}
