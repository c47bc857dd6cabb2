import { fromBufferPromise } from 'yauzl';

/** The names and texts of the files in a zip that is given in base64. */
export async function unzipped(base64: string): Promise<[name: string, text: string][]> {
  const zip = await fromBufferPromise(Buffer.from(base64, 'base64'));
  const files: [string, string][] = [];
  for await (const entry of zip.eachEntry()) {
    const stream = await zip.openReadStreamPromise(entry);
    files.push([entry.fileName, Buffer.concat(await stream.toArray()).toString()]);
  }
  zip.close();
  return files;
}
