export type PinnedName = 'node' | 'npm' | 'nats-server.deb' | 'nats-server.tar.gz';
export type Pinned = { version: string; sha256: string };
export declare const PINNED: Record<PinnedName, Record<string, Pinned>>;
export declare function pinnedFor(name: PinnedName, platform?: string): Pinned;
export declare function verify(bytes: Uint8Array, sha256: string, file: string): void;
