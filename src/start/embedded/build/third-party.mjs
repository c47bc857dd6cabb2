/**
 * The licences of everything that is given on with the service: of each npm package in production,
 * and of those that the dashboard's scripts are built from. `dashboard-build.mjs` writes the text.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const LICENCE_FILE = /^(?:licen[cs]e|copying|notice|copyright|unlicense)(?:[-._].*)?$/i;
const AUTHORS_FILE = /^authors(?:\.\w+)?$/i;
/** Code that only has the name of such a file. */
const CODE = /\.(?:[cm]?[jt]sx?|json|map)$/i;

const HEAD = `Browser Session Service is distributed with the packages below, each under its own licence. This text is
made from the packages as they are installed. Their sources are those of the npm registry, at the version that
is named; none is changed but by bundling.

Programs of Debian in the images have their licences there, at /usr/share/doc/<package>/copyright.`;

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of
the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.`;

const ISC = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby
granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER
IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THIS SOFTWARE.`;

/** Texts for packages that come with none. Of other licences the text of a package is taken. */
const TEXTS = { MIT, ISC };

/**
 * The text for people: each licence once, below the packages that it is of.
 * @param bundled paths of packages, as package-lock.json has them, that are not in production but built
 *   into what is
 * @throws Error naming a package whose licence has no text
 */
export function thirdPartyText(root, bundled) {
  const byText = new Map();
  for (const { text, title } of entriesOf(root, bundled)) {
    byText.set(text, [...(byText.get(text) ?? []), title]);
  }
  const sections = [...byText].map(([text, titles]) => `${titles.join('\n')}\n\n${text}`);
  const own = readFileSync(join(root, 'LICENSE'), 'utf8').trim();
  return `${[HEAD, `Browser Session Service\n\n${own}`, ...sections].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/**
 * The packages of a lock file that this installation has in production. One that is optional may
 * not be there: it is for another platform, could not be built here, or was left out.
 */
export function productionPackages(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const isMissing = (path, { optional, devOptional }) =>
    (optional === true || devOptional === true) && !existsSync(join(root, path));
  return Object.entries(packages)
    .filter(([path, { dev, link }]) => path !== '' && dev !== true && link !== true)
    .filter(([path, entry]) => !isMissing(path, entry))
    .map(([path, { version, license }]) => ({ path, name: nameOf(path), version, license }));
}

function entriesOf(root, bundled) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const more = bundled.map((path) => ({ path, name: nameOf(path), ...packages[path] }));
  const all = new Map([...productionPackages(root), ...more].map((one) => [one.path, one]));
  const described = [...all.values()].map((one) => describe(root, one));
  return described
    .toSorted((left, right) => (left.title < right.title ? -1 : 1))
    .map((one) => ({ title: one.title, text: one.text ?? standardText(one, described) }));
}

function describe(root, { path, name, version, license: locked }) {
  const folder = join(root, path);
  const manifest = readManifest(folder);
  const licence = locked ?? manifest.license ?? manifest.licenses?.[0]?.type ?? 'unknown licence';
  const author = manifest.author?.name ?? manifest.author;
  const repository = manifest.repository?.url ?? manifest.repository;
  const from = typeof repository === 'string' ? `, ${repository.replace(/^git\+/, '')}` : '';
  const texts = licenceFiles(folder).map((file) => readFileSync(file, 'utf8').trim());
  const text = texts.length > 0 ? [...new Set(texts)].join('\n\n') : null;
  return { name, title: `${name} ${version} (${licence})${from}`, licence, author, text };
}

/** Of a package without a text: that of its licence, under its author's name. */
function standardText({ name, licence, author }, described) {
  const alike = described.filter((one) => one.licence === licence && one.text !== null);
  const standard = TEXTS[licence] ?? shortest(alike.map(({ text }) => text));
  if (standard === undefined) throw new Error(`${name}: no text of its licence ${licence}`);
  return `Copyright (c) ${author ?? `the authors of ${name}`}\n\n${standard}`;
}

/** The one with the least beside the licence itself. */
function shortest(texts) {
  // A text of a few lines only names the licence.
  const whole = texts.filter((text) => text.length > 5_000);
  return whole.toSorted((left, right) => left.length - right.length)[0];
}

function readManifest(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return {};
  }
}

/** Those of the package and of what it has taken in, such as noVNC's pako. */
function licenceFiles(folder) {
  const found = [];
  const entries = entriesIn(folder);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== 'node_modules') found.push(...licenceFiles(path));
    if (entry.isFile() && LICENCE_FILE.test(entry.name) && !CODE.test(entry.name)) found.push(path);
  }
  // A licence may name its authors by this file.
  const authors = entries.filter((entry) => entry.isFile() && AUTHORS_FILE.test(entry.name));
  if (found.length > 0) found.push(...authors.map((entry) => join(folder, entry.name)));
  return found;
}

function entriesIn(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function nameOf(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}
