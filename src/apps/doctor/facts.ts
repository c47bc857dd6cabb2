/** The state of an installation. A part that did not answer is a `ProbeFailure`. */
export type InstallationFacts = {
  config: ConfigFacts;
  host: HostFacts;
  log: EventStoreFacts | ProbeFailure;
  readModel: ReadModelFacts | ProbeFailure;
  /** Ends of the certificates in use, in ms since the epoch; null: it cannot be read. */
  certificates: Readonly<Record<string, number | null>>;
  /** null: this process runs no browsers, or none in Docker. */
  engine: EngineFacts | ProbeFailure | null;
  /** null: this process runs no browsers, or none in Kubernetes. */
  cluster: ClusterFacts | ProbeFailure | null;
};

/** Why a part could not be examined. `isBad`: the service cannot run like that. */
export type ProbeFailure = { failure: string; advice: string; isBad: boolean };

/** Facts from the configuration alone. */
export type ConfigFacts = {
  /** Whether the process runs its own nats-server. */
  isEmbedded: boolean;
  isProduction: boolean;
  /** As in the configuration; null: no browsers that are not isolated. */
  unisolated: 'development' | 'allowed' | 'refused' | null;
  browsers: 'docker' | 'kubernetes' | 'process' | 'simulated';
  hasProvisioner: boolean;
  /** The secrets that are set, by variable. */
  secrets: ReadonlyMap<string, string>;
  /** Connections that leave this machine: whether they have credentials, and TLS. */
  links: readonly { variable: string; hasCredentials: boolean; isEncrypted: boolean }[];
};

export type HostFacts = {
  node: string;
  dataDir: string;
  /** Why the folder cannot be written; null: it can. */
  unwritable: string | null;
  freeBytes: number;
  totalBytes: number;
  /** Names of the secrets in the data folder that other users may read. */
  openSecrets: readonly string[];
  openFilesMax: number | null;
  ports: readonly { variable: string; port: number; use: 'ours' | 'free' | 'taken' }[];
  /** Null: this process runs no browsers, or none as processes of this machine. */
  browserPrograms: { chromium: ProgramFacts; chromedriver: ProgramFacts } | null;
};

/** A program of a browser: its path, and its version as `150.0.7871.100`. */
export type ProgramFacts =
  | { path: string; version: string | null }
  /** Why there is none. */
  | { missing: string };

export type EventStoreFacts = {
  version: string;
  isClustered: boolean;
  /** Empty: this user may not read the servers' settings. */
  servers: readonly NatsServerFacts[];
  /** The event store's clock minus this process's, in ms; null: not known. */
  skewMs: number | null;
  streams: readonly StreamFacts[];
  storage: { usedBytes: number; maxBytes: number | null };
  /** Whether this user may publish to every subject. */
  mayPublishAll: boolean;
};

export type NatsServerFacts = {
  name: string;
  version: string;
  /** Whether acknowledged messages are on its disk. */
  syncsAlways: boolean;
};

export type StreamFacts = {
  name: string;
  isThere: boolean;
  replicas: number;
  /** The leader's server name; null outside a cluster. */
  leader: string | null;
  /** Settings that a start corrects. */
  differs: readonly string[];
  /** Settings that cannot be changed in place. */
  unfit: readonly string[];
  /** Replicas that are unavailable or behind. */
  behind: readonly string[];
  bytes: number;
  /** null: no limit of its own. */
  maxBytes: number | null;
};

export type ReadModelFacts = {
  version: string;
  skewMs: number;
  evictionPolicy: string;
  isCluster: boolean;
  isReplica: boolean;
  usedBytes: number;
  /** null: no limit. */
  maxBytes: number | null;
};

export type ImageFacts = {
  version: string;
  /** Since its packages were installed. */
  ageMs: number;
  /** Whether the operator has named it (BROWSER_IMAGE). */
  isGiven: boolean;
};

export type EngineFacts = {
  version: string;
  hasSeccomp: boolean;
  /** Whether packets between containers pass the host's rules. */
  filtersBridges: boolean;
  /** The image of the browsers; null: not built yet. */
  image: ImageFacts | null;
  /** What a session can reach but must not; empty: nothing; null: not probed. */
  reachable: string | null;
  hasNetwork: boolean;
  /** Why Chromium cannot create its sandbox; empty: it can; null: not probed. */
  sandboxRefusal: string | null;
};

export type ClusterFacts = {
  /** As the API server tells it, `v1.35.4`. */
  version: string;
  namespace: string;
  /** The one that is configured; null: the cluster's own. */
  runtimeClass: string | null;
  /** Permissions that this process does not have, as `create pods/exec`. */
  missing: readonly string[];
  /** Null: this user may not read them. */
  quotas: readonly QuotaFacts[] | null;
  /** Null: no Pod of it has run. */
  image: ImageFacts | null;
  /** Why no Pod of a browser runs; null: one has, or none was tried. */
  noPod: string | null;
  /** Null: not probed. */
  network: {
    /** What a session can reach but must not; empty: nothing. */
    reachable: string;
    /** Whether a session can be left without a way out. */
    isClosable: boolean;
  } | null;
};

/** One resource of a quota; amounts as Kubernetes writes them. */
export type QuotaFacts = { quota: string; resource: string; hard: string; used: string };
