/**
 * Builds a wheel of the Python client: calls and models that openapi-python-client makes from the
 * OpenAPI document, and `service.py` beside them. `npm run pack:python-client [folder]` writes the
 * wheel to the folder (default: dist) and prints its path. It needs Python 3.11 or later with its
 * venv module, and PyPI once: the tools stay in `.tools`.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readOpenApi } from '../../../start/read-openapi.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const PACKAGE = 'browser_session_service';
/** Exact versions: what they make does not change from one day to the next. */
const TOOLS = ['openapi-python-client==0.29.1', 'setuptools==84.2.1'];
const NDJSON = 'application/x-ndjson';
/** For what hangs. */
const WITHIN_MS = 600_000;

const destination = resolve(process.argv[2] ?? join(ROOT, 'dist'));
const work = join(ROOT, 'dist', 'python');
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
mkdirSync(destination, { recursive: true });
const bin = installTools();
const document = join(work, 'openapi.json');
const config = join(work, 'generator.yml');
const shortened = forPython(await readOpenApi());
writeFileSync(document, JSON.stringify(shortened));
writeFileSync(config, configOf(shortened));
generate();
cpSync(join(HERE, 'service.py'), join(work, PACKAGE, 'service.py'));
cpSync(join(HERE, 'README.md'), join(work, 'README.md'));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const project = readFileSync(join(HERE, 'pyproject.toml'), 'utf8');
writeFileSync(
  join(work, 'pyproject.toml'),
  project.replace('version = "0"', `version = "${version}"`),
);
const pip = ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps'];
run(join(bin, 'python'), [...pip, '--no-build-isolation', '--wheel-dir', destination, work]);
const wheel = `${PACKAGE}-${version}-py3-none-any.whl`;
process.stdout.write(`${join(destination, wheel)}\n`);

/** The environment with the tools, made once for their versions. @returns its folder of programs */
function installTools() {
  const name = TOOLS.map((tool) => tool.replaceAll('==', '-')).join('+');
  const environment = join(ROOT, '.tools', `python-${name}`);
  const marker = join(environment, 'complete');
  if (existsSync(marker)) return join(environment, 'bin');
  rmSync(environment, { recursive: true, force: true });
  run('python3', ['-m', 'venv', environment]);
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  run(join(environment, 'bin', 'python'), [...install, ...TOOLS]);
  writeFileSync(marker, '');
  return join(environment, 'bin');
}

/**
 * The document without what is of no use in Python: a model for each status of each operation
 * (`Problem` has the same fields), and calls that would read a stream of events to its end; what is
 * no text is binary.
 */
function forPython(whole) {
  for (const methods of Object.values(whole.paths))
    for (const [method, { responses }] of Object.entries(methods)) {
      const media = Object.values(responses).map(({ content = {} }) => content);
      if (media.some((content) => 'text/event-stream' in content)) delete methods[method];
      for (const [type, one] of media.flatMap((content) => Object.entries(content)))
        if (isBytes(type)) one.schema = { type: 'string', format: 'binary' };
        else if (one.schema.allOf?.[0]?.$ref?.endsWith('/Problem'))
          one.schema = one.schema.allOf[0];
    }
  return whole;
}

/** Whether an answer of that media type is a file to Python, and neither text nor a model. */
function isBytes(type) {
  return type === NDJSON || !/^text\/|json$/.test(type);
}

/** The generator's settings: media types that it does not read are bytes, as they are. */
function configOf({ paths }) {
  const answers = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ responses }) => Object.values(responses)),
  );
  const types = new Set(answers.flatMap(({ content = {} }) => Object.keys(content)));
  const overrides = [...types]
    .filter(isBytes)
    .map((type) => `  ${type}: application/octet-stream\n`);
  const settings = readFileSync(join(HERE, 'generator.yml'), 'utf8');
  return `${settings}content_type_overrides:\n${overrides.join('')}`;
}

/** @throws Error if the generator leaves out an operation or an answer */
function generate() {
  const said = run(
    join(bin, 'openapi-python-client'),
    ['generate', '--path', document, '--config', config].concat([
      '--meta',
      'none',
      '--output-path',
      join(work, PACKAGE),
      '--fail-on-warning',
    ]),
    // Its own formatter, where it is there, is found by PATH.
    { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
  );
  if (/WARNING/.test(said)) throw new Error(`${basename(document)}: ${said}`);
}

/** @returns stdout @throws Error if the command fails */
function run(command, args, env = process.env) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: work,
    encoding: 'utf8',
    env,
    timeout: WITHIN_MS,
  });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} failed: ${error ?? ''}${stdout}${stderr}`);
}
