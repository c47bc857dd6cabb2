import { yesOrNo, type Values, variable } from './parse.ts';

export type WebhooksConfig = {
  /** Whether webhooks may lead to addresses inside, and be plain http. */
  allowsPrivate: boolean;
};

export const webhooksVariables = {
  WEBHOOKS_ALLOW_PRIVATE: variable(
    yesOrNo,
    'no',
    'yes: webhooks may be http and lead to private, loopback and link-local addresses; ' +
      'for development or trusted organizations alone',
  ),
} as const;

export function readWebhooks(values: Values<typeof webhooksVariables>): WebhooksConfig {
  return { allowsPrivate: values.WEBHOOKS_ALLOW_PRIVATE };
}
