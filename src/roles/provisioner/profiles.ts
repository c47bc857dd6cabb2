import type { EventMetadata } from '#events/envelope.ts';
import type { AskedProfile } from '#events/profile.ts';
import type { Browsers, BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import type { ServedBrowser } from '#src/browsers/served-browsers.ts';
import type { Reporter } from '#src/commands/reporter.ts';

/** The profile that a session's browser begins with, and saves if it was asked to. */
export type ProfileOfSession = AskedProfile & { organizationId: string; sessionId: string };

/** A browser whose profile may be saved. */
export type SavedBrowser = ServedBrowser & {
  options: { profile?: ProfileOfSession };
  /** Resolves when a save that was asked for has been reported. */
  saving: Promise<void>;
};

/** Port: the profiles of one server's browsers. */
export type Profiles = {
  /**
   * Launches a browser for a session with a profile.
   * @throws LaunchFailed also where the profile's version cannot be read
   */
  launch(spec: BrowserSpec, profile: ProfileOfSession): Promise<RunningBrowser>;
  /**
   * Saves the profile of a session that ends, if it was asked to: closes the browser, stores what
   * it has left, and records that. A profile that cannot be saved is reported as such. Never
   * rejects.
   * @param isClosed whether its user has closed the browser
   */
  saveAtEnd(
    browser: SavedBrowser,
    how: { isClosed: boolean },
    metadata: EventMetadata,
  ): Promise<void>;
  /** Saves the profile of a session that goes on, because a client asks for it. Never rejects. */
  saveNow(browser: SavedBrowser, metadata: EventMetadata): Promise<void>;
};

/** Opens the profiles of a server. */
export type OpenProfiles = (server: {
  browsers: Pick<Browsers, 'launch' | 'stop' | 'build' | 'close' | 'readProfile'>;
  reporter: Pick<Reporter, 'profile' | 'session'>;
}) => Profiles;

/** A server without profiles: a session that asks for one gets no browser. */
export const noProfiles: OpenProfiles = () => ({
  launch: () => Promise.reject(new Error('this server has no profiles')),
  saveAtEnd: () => Promise.resolve(),
  saveNow: () => Promise.resolve(),
});
