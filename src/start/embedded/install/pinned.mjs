/**
 * What is fetched by its address, with the SHA-256 of each file: a name and a platform, the version
 * and the checksum. Nothing is unpacked, and nothing is run, before its checksum is that of this table.
 *
 * Debian packages that apt installs are not here: apt verifies them by the archive's signature, whose
 * key the machine has. npm packages are not here either: package-lock.json has their checksums.
 * CONTRIBUTING.md says how an entry is renewed.
 */
import { createHash } from 'node:crypto';

export const PINNED = {
  /** The npm packages `node-<platform>`: a release of Node without npm. */
  node: {
    'linux-x64': {
      version: '24.22.3',
      sha256: '6d747cda21df616c78e9ed4f8a816cbacd25f24c1abb4d9aa26773d000e24bd9',
    },
    'linux-arm64': {
      version: '24.22.0',
      sha256: '548e22a342e634cd78f02a77da0fe2f49efce425a8aada185a2d4c669f152094',
    },
  },
  /** The npm package `npm`, as of Node 24. */
  npm: {
    any: {
      version: '11.21.2',
      sha256: '8ad8563b81e71b90ef405b140bccf3ba9b5e7884ab210bd49ee4e2f4bc6f61f5',
    },
  },
  /** The package `nats-server` of Debian forky, as its signed list of 2026-10-30 has it. */
  'nats-server.deb': {
    'linux-x64': {
      version: '2.15.1-1',
      sha256: '31ef4ceaa84e8248d449e508472e3770c17c3695cb5cb0ee96e03912724ea884',
    },
    'linux-arm64': {
      version: '2.15.1-1',
      sha256: '68923b614b6b5594bbd63ffdce7258c2155ec448fb4cb7efd099bf9273eca128',
    },
  },
  /** A release of NATS, with the checksums of nats-io/nats-docker, 2.14.x/alpine3.22/Dockerfile. */
  'nats-server.tar.gz': {
    'linux-x64': {
      version: '2.14.5',
      sha256: '5e3b603d47c447bda1f77f9ac16dbf91c90aac4ff3681f8fbbc7201e4ed99355',
    },
    'linux-arm64': {
      version: '2.14.5',
      sha256: '673a98d3faa79dde3f9ebf16d6dfac36a5f694e7ad2015e4954dd7939c85cd4c',
    },
  },
};

/** Its version and checksum for this platform. @throws Error where none is known */
export function pinnedFor(name, platform = `${process.platform}-${process.arch}`) {
  const found = PINNED[name].any ?? PINNED[name][platform];
  if (found === undefined)
    throw new Error(
      `${name} is fetched for Linux on x64 and arm64 alone: for ${platform} install it`,
    );
  return found;
}

/** @throws Error naming the file, where its bytes have another checksum */
export function verify(bytes, sha256, file) {
  const found = createHash('sha256').update(bytes).digest('hex');
  if (found !== sha256)
    throw new Error(`the checksum of ${file} is ${found}, and has to be ${sha256}`);
}
