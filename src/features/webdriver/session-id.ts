import { isId } from '#events/subjects.ts';

/**
 * The id of a session of WebDriver: that of its session here, a dot, and the driver's own. Each
 * process can pass its commands on without having begun it.
 */
export type WebDriverSession = { sessionId: string; driverId: string };

const FORM = /^([A-Za-z0-9_-]{1,64})\.([0-9a-f]{32})$/;

export function webDriverId({ sessionId, driverId }: WebDriverSession): string {
  return `${sessionId}.${driverId}`;
}

/** Null: not the id of a session of WebDriver. */
export function parseWebDriverId(id: string): WebDriverSession | null {
  const [, sessionId = '', driverId = ''] = FORM.exec(id) ?? [];
  return isId(sessionId) ? { sessionId, driverId } : null;
}
