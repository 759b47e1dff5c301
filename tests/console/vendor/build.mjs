// Bundles what the console takes from others into dotr/serve/console/vendor, with licences and hashes.
//
//   node tests/console/vendor/build.mjs            writes the bundles
//   node tests/console/vendor/build.mjs --check    says whether they are what they would be (exit code 1: no)
//
// The same versions give the same bytes: package.json names all of them exactly, those that packages need
// themselves included; one that npm would add is an error.
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, '../../../dotr/serve/console/vendor');
const wanted = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')).dependencies;
const tools = ['esbuild'];

function manifest(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

function installed(modules) {
  const names = readdirSync(modules).filter((name) => !name.startsWith('.') && name !== '@esbuild');
  return names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((one) => `${name}/${one}`) : [name]);
}

function licence(folder) {
  const name = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  return name ? readFileSync(join(folder, name), 'utf8').trim() : '';
}

const work = mkdtempSync(join(tmpdir(), 'dotr-vendor-'));
try {
  for (const name of ['package.json', 'preact.js', 'codemirror.js']) cpSync(join(here, name), join(work, name));
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'],
    { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
  const modules = join(work, 'node_modules');
  for (const name of installed(modules)) {
    const { version } = manifest(join(modules, name));
    if (wanted[name] !== version) throw new Error(`${name} ${version} is not the one of package.json`);
  }
  const { build } = createRequire(join(work, 'package.json'))('esbuild');
  const files = {};
  const licences = [];
  for (const bundle of ['preact', 'codemirror']) {
    const made = await build({
      entryPoints: [join(work, `${bundle}.js`)], absWorkingDir: work, bundle: true, minify: true,
      format: 'esm', target: 'es2022', legalComments: 'none', write: false, metafile: true,
    });
    const inputs = Object.keys(made.metafile.inputs).filter((path) => path.startsWith('node_modules/'));
    const names = [...new Set(inputs.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)[1]))].sort();
    const content = Buffer.from(made.outputFiles[0].contents);
    files[`${bundle}.js`] = {
      sha256: createHash('sha256').update(content).digest('hex'),
      bytes: content.length,
      packages: names.map((name) => {
        const { version, license } = manifest(join(modules, name));
        const text = licence(join(modules, name));
        licences.push(`${name} ${version} (${license})\n\n${text}\n`);
        return { name, version, licence: license };
      }),
    };
    files[`${bundle}.js`].content = content;
  }
  const contents = Object.fromEntries(Object.entries(files).map(([name, one]) => [name, one.content]));
  for (const one of Object.values(files)) delete one.content;
  const text = Buffer.from(`${[...new Set(licences)].join(`\n${'-'.repeat(72)}\n\n`)}`);
  contents['LICENSES.txt'] = text;
  files['LICENSES.txt'] = { sha256: createHash('sha256').update(text).digest('hex'), bytes: text.length };
  const built = Object.fromEntries(tools.map((name) => [name, wanted[name]]));
  contents['VENDORED.json'] = Buffer.from(`${JSON.stringify({ tools: built, files }, null, 1)}\n`);
  let same = true;
  for (const [name, content] of Object.entries(contents)) {
    const path = join(target, name);
    if (process.argv.includes('--check')) {
      if (!existsSync(path) || !readFileSync(path).equals(content)) {
        console.error(`${name} is not what it would be`);
        same = false;
      }
    } else writeFileSync(path, content);
  }
  process.exitCode = same ? 0 : 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
