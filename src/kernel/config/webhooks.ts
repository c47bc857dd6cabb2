import { oneOf, type Read } from './parse.ts';

export type WebhooksConfig = {
  /** Whether webhooks may lead to addresses inside, and be plain http. */
  allowsPrivate: boolean;
};

export const webhooksVariables = {
  WEBHOOKS_ALLOW_PRIVATE: {
    fallback: 'no',
    meaning:
      'yes: webhooks may be http and lead to private, loopback and link-local addresses; ' +
      'for development or trusted organizations alone',
  },
} as const;

export function readWebhooks(read: Read<keyof typeof webhooksVariables>): WebhooksConfig {
  return { allowsPrivate: oneOf('WEBHOOKS_ALLOW_PRIVATE', read, ['yes', 'no']) === 'yes' };
}
