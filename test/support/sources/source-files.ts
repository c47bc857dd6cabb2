import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';

/** A TypeScript file of the project; `path` from its top folder, with `/`. */
export type SourceFile = {
  path: string;
  name: string;
  text: string;
  /** The text without its comments; line numbers are unchanged. */
  code: string;
  /**
   * Its imports: `src/commands/handle-command.ts` for a file of the project, `node:fs` for others.
   */
  imports: string[];
  /** Those that Node loads with the file: neither of types alone, nor written as calls. */
  loads: string[];
};

const top = new URL('../../../', import.meta.url).pathname;
const folders = ['events', 'src', 'projections', 'test'];
/** Folders of a checkout that are not part of the project: see .gitignore. */
const foreign = new Set(['node_modules', '.git', '.data', '.tools', 'coverage', 'dist']);

export function sourceFiles(): SourceFile[] {
  return folders
    .flatMap((folder) => walk(folder))
    .filter((path) => /\.tsx?$/.test(path))
    .map(readSource);
}

/** Every text file of the project, of any kind. */
export function textFiles(): { path: string; text: string }[] {
  return walk('.')
    .map((path) => ({ path, text: readFileSync(join(top, path), 'utf8') }))
    .filter(({ text }) => !text.includes('\0'));
}

export function readText(path: string): string {
  return readFileSync(join(top, path), 'utf8');
}

/** Lines that are neither blank nor comment. */
export function codeLines({ code }: SourceFile): number {
  return code.split('\n').filter((line) => line.trim() !== '').length;
}

function walk(folder: string): string[] {
  return readdirSync(join(top, folder), { withFileTypes: true })
    .filter(({ name }) => !foreign.has(name))
    .flatMap((entry) => {
      const path = folder === '.' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return walk(path);
      return entry.isFile() ? [path] : [];
    });
}

function readSource(path: string): SourceFile {
  const text = readText(path);
  const code = withoutComments(text);
  const [imports, loads] = [importsOf(path, code), loadsOf(path, code)];
  return { path, name: basename(path), text, code, imports, loads };
}

/** Only comments that begin a line: comments after code are rare and short. */
function withoutComments(text: string): string {
  return text
    .replaceAll(/^[ \t]*\/\*[\s\S]*?\*\//gm, (comment) => comment.replaceAll(/[^\n]/g, ''))
    .replaceAll(/^[ \t]*\/\/.*$/gm, '');
}

const STATIC = /^(?:import|export)\b[^;'"`]*?\bfrom\s+'([^']+)'|^import\s+'([^']+)'/gm;
const OF_TYPES = /^(?:import|export)\s+(?:type\b|\{(?:\s*type\s[^,}]+,?)*\s*\})/;
const DYNAMIC = /\bimport\(\s*'([^']+)'/g;

function importsOf(path: string, code: string): string[] {
  const found = [...code.matchAll(STATIC), ...code.matchAll(DYNAMIC)];
  return found.map(([, from, alone]) => resolve(path, from ?? alone ?? ''));
}

function loadsOf(path: string, code: string): string[] {
  return [...code.matchAll(STATIC)]
    .filter(([statement]) => !OF_TYPES.test(statement))
    .map(([, from, alone]) => resolve(path, from ?? alone ?? ''));
}

function resolve(importer: string, specifier: string): string {
  if (specifier.startsWith('#')) return specifier.slice(1);
  return specifier.startsWith('.') ? normalize(join(dirname(importer), specifier)) : specifier;
}
