// Prints where the session in the given file can be watched: node watch.mjs session.json
import { readFile } from 'node:fs/promises';

const session = JSON.parse(await readFile(process.argv[2], 'utf8'));
console.log(`Open in a browser:  ${session.viewer_url}`);
console.log(`Or any noVNC client: ${session.vnc_url}  (password ${session.vnc_password})`);
