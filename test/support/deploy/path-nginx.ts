import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { scratchDir } from '#test/support/scratch.ts';
import { startServer } from '#test/support/servers/real-server.ts';

const README = new URL('../../../deploy/README.md', import.meta.url);

/** A real nginx on loopback with the locations of deploy/README.md, for a service below a path. */
export async function startPathNginx(options: {
  program: string;
  port: number;
  api: number;
  gateway: number;
}): Promise<AsyncDisposable> {
  const { program, port, api, gateway } = options;
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await scratchDir());
  const [, locations = ''] = /```nginx\n([^`]+)```/.exec(await readFile(README, 'utf8')) ?? [];
  const own = locations
    .replace('http://127.0.0.1:8080/', `http://127.0.0.1:${api}/`)
    .replace('http://127.0.0.1:8081/', `http://127.0.0.1:${gateway}/`);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder.path}/${name};`)
    .join(' ');
  const text = `daemon off; master_process off; pid ${folder.path}/pid; error_log stderr;
    events {}
    http { access_log off; ${temporary}
      server { listen 127.0.0.1:${port}; ${own} } }`;
  const config = join(folder.path, 'nginx.conf');
  await writeFile(config, text);
  const args = ['-p', folder.path, '-c', config, '-e', 'stderr'];
  stack.use(await startServer({ program, args, answers: () => accepts(port) }));
  return stack.move();
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
