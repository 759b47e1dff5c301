// Owns a browser for tests: reads {"code": "…"} a line, runs it with `page`, `context`, `browser` and `notes`,
// and writes {"value": …} or {"error": "…"}. What pages log, request and violate is noted.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [, , folder, executablePath] = process.argv;
const require = createRequire(`${folder}/package.json`);
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const AsyncFunction = (async () => undefined).constructor;

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const notes = { console: [], errors: [], requests: [], sizes: {} };
let context;
let page;

async function open(options) {
  await context?.close();
  for (const name of ['console', 'errors', 'requests']) notes[name].length = 0;
  context = await browser.newContext(options);
  page = await context.newPage();
  page.on('console', (one) => { if (['error', 'warning'].includes(one.type())) notes.console.push(one.text()); });
  page.on('pageerror', (error) => notes.errors.push(String(error.stack ?? error)));
  page.on('request', (one) => notes.requests.push(one.url()));
}

/** What axe-core finds wrong in the page: [{id, help, nodes}]. */
async function violations() {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map((one) => `${one.html.slice(0, 200)} ${one.failureSummary}`) }));
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const run = new AsyncFunction('page', 'context', 'browser', 'notes', 'open', 'violations', JSON.parse(line).code);
    answer = { value: (await run(page, context, browser, notes, open, violations)) ?? null };
  } catch (error) {
    answer = { error: String(error.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
