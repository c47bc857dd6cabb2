/** What is asked of an installation. Each part either answers or says why it did not. */
export type Facts = {
  config: ConfigFacts;
  host: HostFacts;
  log: LogFacts | Trouble;
  readModel: ReadModelFacts | Trouble;
  /** null: browsers are none of this process's, or no Docker ones. */
  engine: EngineFacts | Trouble | null;
};

/** `isBad`: nothing can serve like that; else it only could not be asked now. */
export type Trouble = { trouble: string; advice: string; isBad: boolean };

/** Of the configuration, what its values alone tell. */
export type ConfigFacts = {
  /** Every role in one process, with a log of its own. */
  isEmbedded: boolean;
  isProduction: boolean;
  browsers: 'docker' | 'process' | 'simulated';
  hasProvisioner: boolean;
  /** Secrets that were given, by variable. */
  secrets: ReadonlyMap<string, string>;
  /** Connections that leave this machine: whether they have credentials, and TLS. */
  links: readonly { variable: string; hasCredentials: boolean; isEncrypted: boolean }[];
};

export type HostFacts = {
  node: string;
  dataDir: string;
  /** null: it cannot be written, and why. */
  unwritable: string | null;
  freeBytes: number;
  totalBytes: number;
  /** Secrets in the data folder that others may read, by name. */
  openSecrets: readonly string[];
  openFilesMax: number | null;
  ports: readonly { variable: string; port: number; use: 'ours' | 'free' | 'taken' }[];
};

export type LogFacts = {
  version: string;
  isClustered: boolean;
  /** Servers that told of themselves; empty: this user may not ask them. */
  servers: readonly LogServerFacts[];
  /** The log's clock less this process's; null: it was not told. */
  skewMs: number | null;
  streams: readonly StreamFacts[];
  storage: { usedBytes: number; maxBytes: number | null };
  /** Whether this user may publish anything at all. */
  mayPublishAll: boolean;
};

export type LogServerFacts = {
  name: string;
  version: string;
  /** Whether what it has acknowledged is on its disk. */
  syncsAlways: boolean;
};

export type StreamFacts = {
  name: string;
  isThere: boolean;
  replicas: number;
  /** Which server has the last word on it; null outside of a cluster. */
  leader: string | null;
  /** Settings that a start puts right. */
  differs: readonly string[];
  /** Settings that nothing can put right. */
  unfit: readonly string[];
  /** Members of its group that are away or behind. */
  behind: readonly string[];
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

export type EngineFacts = {
  version: string;
  hasSeccomp: boolean;
  /** Whether packets between containers pass the host's rules. */
  filtersBridges: boolean;
  hasImage: boolean;
  /** null: there is no network yet; else what a session could reach, empty: nothing it may not. */
  reachable: string | null;
  hasNetwork: boolean;
  /** What a browser's own sandbox was told: empty where it can be made. null: not tried. */
  sandboxRefusal: string | null;
};
