// The colours of runs and levels, which charts show side by side, are distinguishable for colour-blind readers and contrast with
// each background, in both themes. Needs no browser: the test reads the tokens from the style sheet.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const SERIES = ['--run-0', '--run-1', '--run-2', '--run-3'];
const MIN_DISTANCE = 0.09; // in Oklab, where 0.02 is a just noticeable difference of adjacent patches
const MIN_CONTRAST = 3; // WCAG 2.2, 1.4.11: graphical objects

// Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.0;
// the matrices apply to linear sRGB.
const VISIONS = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
// Oklab: https://bottosson.github.io/posts/oklab/
const LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
  [0.0883024619, 0.2817188376, 0.6299787005]];
const LAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
  [0.0259040371, 0.7827717662, -0.808675766]];

const multiply = (matrix, vector) => matrix.map((row) => row.reduce((sum, factor, index) => sum + factor * vector[index], 0));
const linearPart = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const linear = (hex) => [1, 3, 5].map((at) => linearPart(parseInt(hex.slice(at, at + 2), 16) / 255));
const clamp = (vector) => vector.map((value) => Math.min(1, Math.max(0, value)));
const oklab = (rgb) => multiply(LAB, multiply(LMS, rgb).map(Math.cbrt));
const distance = (a, b, vision) =>
  Math.hypot(...oklab(clamp(multiply(vision, a))).map((value, index) => value - oklab(clamp(multiply(vision, b)))[index]));
const luminance = ([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;
function contrast(a, b) {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

const sheet = readFileSync(path.join(process.env.ROOFLINED_SOURCE, 'web/style.css'), 'utf8');
/** Returns the tokens of the rule with this selector: name -> linear RGB. */
function tokensOf(selector) {
  const start = sheet.indexOf(`\n${selector} {`);
  assert.ok(start >= 0, selector);
  const rule = sheet.slice(start, sheet.indexOf('\n}', start));
  return Object.fromEntries([...rule.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map(([, name, hex]) => [name, linear(hex)]));
}

for (const selector of [':root', ':root[data-theme="dark"]']) {
  const tokens = tokensOf(selector);
  for (const [vision, matrix] of Object.entries(VISIONS)) {
    test(`${selector}: two series are distinguishable with ${vision}`, () => {
      for (const [index, name] of SERIES.entries()) {
        for (const other of SERIES.slice(index + 1)) {
          const between = distance(tokens[name], tokens[other], matrix);
          assert.ok(between >= MIN_DISTANCE, `${name} and ${other}: ${between.toFixed(3)}`);
        }
      }
    });
  }
  test(`${selector}: series and text contrast with their backgrounds`, () => {
    for (const background of ['--panel', '--wash']) {
      for (const name of SERIES) {
        const ratio = contrast(tokens[name], tokens[background]);
        assert.ok(ratio >= MIN_CONTRAST, `${name} on ${background}: ${ratio.toFixed(2)}`);
      }
      for (const name of ['--ink', '--quiet', '--link', '--bad']) {
        const ratio = contrast(tokens[name], tokens[background]);
        assert.ok(ratio >= 4.5, `${name} on ${background}: ${ratio.toFixed(2)}`);
      }
    }
  });
}

test('colours that differ for normal vision alone are refused', () => {
  const [red, green] = ['#b03a2e', '#5a7d1e'].map(linear);
  assert.ok(distance(red, green, VISIONS.normal) >= MIN_DISTANCE);
  assert.ok(distance(red, green, VISIONS.deuteranopia) < MIN_DISTANCE);
});
