import type { Browsers } from '#src/browsers/browsers.ts';
import type { OpenEgress } from '#src/browsers/egress-endpoint.ts';
import type { ObserverPart } from '#src/browsers/observer/part.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { Config, RoleName } from '#src/kernel/config/config.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import type { OwnAddresses } from '#src/kernel/host/own-addresses.ts';
import type { ResolveName } from '#src/kernel/host/resolve-name.ts';
import type { RawRecords } from '#src/kernel/event-store/raw-records.ts';
import type { MasterKeys } from '#src/kernel/master-keys.ts';
import type { Answer, QuestionKind } from '#src/kernel/messaging/server-questions.ts';
import type { RetentionRule } from '#src/kernel/objects/sweep/sweep-objects.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import type { Addresses } from '#src/roles/api/schemas/present-session.ts';
import type { BrowserPart } from '#src/roles/provisioner/browser-part.ts';
import type { OpenProfiles } from '#src/roles/provisioner/profiles.ts';
import type { Dialect } from '#src/roles/api/http/dialect.ts';
import type { ApiServer } from '#src/roles/api/http/route.ts';

/**
 * An optional part of the service. The core imports nothing of it, and no other feature does. The
 * list is `all.ts`; what is not in it is neither loaded nor opened.
 */
export type Feature = {
  /** The name of its folder. */
  name: string;
  /** Loads what it adds to the API, in a process of the role api. */
  api?: () => Promise<FeatureApi>;
  /** Loads what it adds to a server of browsers, in a process of the role provisioner. */
  server?: () => Promise<FeatureServer>;
  /** How long what it stores is kept; what has no rule is kept for ever. */
  retention?: (process: RetentionProcess) => Promise<RetentionRule[]>;
  /** Loads and starts what runs with a role; null: its configuration asks for nothing. */
  starts?: Partial<Record<RoleName, (process: FeatureProcess) => Promise<AsyncDisposable | null>>>;
};

/** The operations of a feature; `Own` is what they need beside the core's dependencies. */
export type FeatureApi<Own = unknown> = {
  /**
   * What is async disposable is disposed while the API's open requests end, what is disposable
   * after it.
   */
  open(process: FeatureProcess): Own | Promise<Own>;
  /** The protocol of its own paths; left out: they speak the REST API's. */
  dialect?: Dialect;
  /** Registers them on a scope of their own: hooks, parsers and error handlers end with it. */
  routes(server: ApiServer, api: ApiDependencies, own: Own): void;
};

export type FeatureServer = (process: ServerProcess) => ServerAddition | Promise<ServerAddition>;

/** What a feature adds to a server of browsers. */
export type ServerAddition = {
  /** What it does while browsers serve their sessions. */
  part?: BrowserPart;
  /** What it does with each browser by CDP. */
  observer?: ObserverPart;
  openEgress?: OpenEgress;
  openProfiles?: OpenProfiles;
  /** Answers what other processes ask this server. */
  answers?: { [Kind in QuestionKind]?: Answer<Kind> };
  /** After the ends of all sessions. */
  [Symbol.asyncDispose]?(): Promise<void>;
};

/** What a server of browsers has opened before its features. */
export type ServerProcess = FeatureProcess & {
  browsers: Browsers;
  vncPasswordOf: (workloadId: string) => string;
};

export type RetentionProcess = Pick<FeatureProcess, 'config' | 'context'>;

/** What a process has opened before its features. */
export type FeatureProcess = {
  config: Config;
  connection: JetStreamConnection;
  context: CommandContext;
  masterKeys: MasterKeys;
  objects: ObjectStore;
  resolveName: ResolveName;
  /** What no connection that a caller asks for may lead to. */
  ownAddresses: OwnAddresses;
  /** The stored records of the log, archived ones included. */
  records: RawRecords;
  /** The key that signs audits; null: this process has none. */
  findSigner: () => Promise<Signer | null>;
  /** The addresses of sessions. */
  urls: Pick<Addresses, 'cdpUrl'>;
  /** Where a gateway takes the commands for a session's driver, of a caller that was checked. */
  driverUrl: (organizationId: string, sessionId: string, keyHash: string | null) => string;
  metrics: Metrics;
  log: Logger;
};

/** Signs texts; the fingerprint is the public key's, for people to compare. */
type Signer = { fingerprint: string; sign(text: string): Promise<string> };
