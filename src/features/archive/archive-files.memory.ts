import { FileMissing, type ArchiveFiles } from './archive-files.ts';

export function createMemoryFiles(): ArchiveFiles {
  const files = new Map<string, Buffer>();

  function get(name: string): Buffer {
    const data = files.get(name);
    if (data === undefined) throw new FileMissing(name);
    return data;
  }
  async function read(name: string, range?: { offset: number; length: number }): Promise<Buffer> {
    const { offset, length } = range ?? { offset: 0, length: get(name).length };
    // A copy: callers may write to what they have read.
    return Buffer.from(get(name).subarray(offset, offset + length));
  }
  return {
    list: async () => [...files.keys()].toSorted(),
    size: async (name) => get(name).length,
    read,
    async *stream(name) {
      yield await read(name);
    },
    async write(name, data) {
      const chunks = Buffer.isBuffer(data) ? [data] : await Array.fromAsync(data);
      files.set(name, Buffer.concat(chunks));
    },
    async writeNew(name, data) {
      if (files.has(name)) return false;
      files.set(name, Buffer.from(data));
      return true;
    },
    remove: async (name) => void files.delete(name),
  };
}
