// The form on the main page imports a trace file as a job. The job's page explains the trace.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { readFileSync } from 'node:fs';
import { daemon, fitsWidth, ignoreBrowserErrors, openJobForm, openPage, takeScreenshot, waitForEnd } from './harness.mjs';

const traces = path.join(process.env.ROOFLINED_SOURCE, 'tests/fuzz');

async function importFile(page, file) {
  await page.locator('[name="job-kind"][value="import"]').check({ force: true });
  if (file) await page.locator('[name="trace"]').setInputFiles(path.join(traces, file));
  await page.getByRole('button', { name: 'Import trace' }).click();
}

for (const [file, format] of [['kineto/steps.json.gz', 'kineto'], ['nsys/steps.sqlite', 'nsys']]) {
  test(`a ${format} trace is imported and explained`, async () => {
    const page = await openJobForm(daemon.url);
    await importFile(page, file);
    await page.waitForURL(/job\.html\?id=\d+/);
    await page.locator('body[data-loaded="completed"]').waitFor();
    const name = path.basename(file);
    assert.match(await page.locator('#job-properties').innerText(), new RegExp(`trace ${name} \\(${format}, `));
    assert.match(await page.locator('#import-notes').innerText(), /written by .* · 16 events imported/);
    assert.equal(await page.locator('#again').isVisible(), false);
    await page.locator('tr', { hasText: 'Idle: the host works between launches' }).first().waitFor();
    await takeScreenshot(page, `import-${format}`);
    await page.close();
  });
}

test('the report of a trace of PyTorch has findings, and no part that needs counters', async () => {
  const body = readFileSync(path.join(process.env.ROOFLINED_SOURCE, 'tests/data/traces/training.json.gz'));
  const { id } = await (await fetch(`${daemon.url}/imports?file_name=training.json.gz`, { method: 'POST', body })).json();
  const job = await waitForEnd(id);
  for (const width of [1440, 390]) {
    const page = await openPage(`${daemon.url}/report.html?run=${job.runs[0].id}`, { viewport: { width, height: 900 } });
    await page.locator('body[data-loaded]').waitFor();
    assert.equal(await page.locator('#verdict').innerText(), 'No verdict: an imported trace has no hardware counters.');
    assert.equal(await page.locator('#verdict-advice').innerText(), '');
    assert.ok(await page.locator('#run-finding-list > li').count() >= 4);
    for (const part of ['#kernels', '#roofline']) assert.equal(await page.locator(part).isVisible(), false, part);
    assert.ok(await fitsWidth(page), `scrolls horizontally at ${width} pixels`);
    await page.close();
  }
  const page = await openPage(`${daemon.url}/job.html?id=${id}`, { viewport: { width: 320, height: 900 } });
  await page.locator('#timeline-findings > li').first().waitFor();
  assert.ok(await fitsWidth(page), 'the job scrolls horizontally at 320 pixels');
  await page.close();
});

test('the form shows an error if no file is chosen or the file cannot be imported', async () => {
  const page = await openJobForm(daemon.url);
  await importFile(page, null);
  assert.match(await page.locator('[data-field="file"] .problem-line').innerText(), /Choose a file/);
  await page.locator('[name="trace"]').setInputFiles({ name: 'a.nsys-rep', mimeType: '', buffer: Buffer.from('nsys') });
  await page.getByRole('button', { name: 'Import trace' }).click();
  await page.locator('#job-form .problem-line', { hasText: 'nsys export' }).waitFor();
  ignoreBrowserErrors('415');
  await page.close();
});
