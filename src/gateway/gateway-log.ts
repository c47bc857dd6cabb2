/**
 * The logger's part that is used; a pino logger fits. No ticket, path or password is ever given.
 */
export type GatewayLog = {
  debug(fact: object, message: string): void;
  warn(fact: object, message: string): void;
  error(fact: object, message: string): void;
};
