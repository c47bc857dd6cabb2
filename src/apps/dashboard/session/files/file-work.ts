import { useEffect, useState } from 'preact/hooks';
import { remove, send, sentenceOf } from '../../api/api-client.ts';
import { listen, sessionOf } from '../../live/organization-events.ts';

/** Long enough for the browser to begin to save. */
const REVOKE_MS = 60_000;

/** How often something happened to the session's files, as far as this page knows. */
export function useFileEvents(id: string): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const happened = () => setCount((before) => before + 1);
    let isFirst = true;
    return listen({
      onOpen: () => {
        if (!isFirst) happened();
        isFirst = false;
      },
      onEvent: (event) => {
        if (sessionOf(event) === id && event.type.startsWith('session.file-')) happened();
      },
    });
  }, [id]);
  return count;
}

/** What is done with files: each takes a while, and the page says how it ends. */
export type FileWork = {
  told: string | null;
  refusal: string | null;
  /** @param path of the session's files */
  upload: (path: string, files: readonly File[]) => void;
  save: (name: string, path: string) => void;
  remove: (name: string, path: string) => void;
};

/** @param done called after each */
export function useWork(done: () => void): FileWork {
  const [told, setTold] = useState<string | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  async function run(what: string, act: () => Promise<string | null>) {
    setTold(`${what}…`);
    setRefusal(null);
    try {
      setTold(await act());
    } catch (error) {
      setTold(null);
      setRefusal(sentenceOf(error));
    }
    done();
  }
  return {
    told,
    refusal,
    upload: (path, files) =>
      void run(`Uploading ${nameAll(files)}`, async () => {
        const paths: string[] = [];
        for (const file of files)
          paths.push(await put(`${path}/${encodeURIComponent(file.name)}`, file));
        return `In the browser: ${paths.join(', ')}`;
      }),
    save: (name, path) =>
      void run(`Downloading ${name}`, async () => {
        await saveAs(path, name);
        return null;
      }),
    remove: (name, path) =>
      void run(`Removing ${name}`, async () => {
        await remove(path);
        return null;
      }),
  };
}

/** @returns its path in the browser */
async function put(path: string, body: File): Promise<string> {
  const headers = { 'content-type': 'application/octet-stream' };
  const answer = await send(path, { method: 'PUT', headers, body });
  return ((await answer.json()) as { path: string }).path;
}

/** Has the tab's browser save it: a link could not send the key. */
async function saveAs(path: string, name: string): Promise<void> {
  const answer = await send(path);
  const url = URL.createObjectURL(await answer.blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
}

function nameAll(files: readonly File[]): string {
  const [first] = files;
  return files.length === 1 && first !== undefined ? first.name : `${files.length} files`;
}
