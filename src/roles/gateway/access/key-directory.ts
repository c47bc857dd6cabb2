/** Port: which API keys are live. The gateway asks at every connect with the ticket of a key. */
export type KeyDirectory = {
  /**
   * Whether the organization has a live key that tickets name so. Rejects if the event store has to
   * be asked and is unavailable.
   */
  isLive(organizationId: string, holder: string): boolean | Promise<boolean>;
};
