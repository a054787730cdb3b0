// Command lines that submit a job, with curl and with rooflinectl. A request with a field that no option of rooflinectl can
// express is piped to `rooflinectl run -`.

const SAFE_WORD = /^[A-Za-z0-9_@%+=:,./-]+$/;
/** Quotes a word for a POSIX shell. */
export const quote = (word) => (SAFE_WORD.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

const isScalar = (value) => ['string', 'number', 'boolean'].includes(typeof value);
const isListItem = (value) => isScalar(value) && !String(value).includes(',') && String(value) !== '';
const FIELDS_WITH_JSON_OPTION = ['variants', 'expected'];
// rooflinectl has options for these fields, but they take a file, or another notation than JSON.
const FIELDS_NOT_EXPRESSIBLE_AS_OPTION = ['code', 'binary', 'arguments'];

/** Returns the value of an option of `rooflinectl run`; undefined if no option can express the field. */
function optionValue(field, value) {
  if (FIELDS_NOT_EXPRESSIBLE_AS_OPTION.includes(field)) return undefined;
  if (FIELDS_WITH_JSON_OPTION.includes(field)) return JSON.stringify(value);
  if (isScalar(value)) return String(value);
  const items = Array.isArray(value) ? value
    : Object.entries(value).map(([name, member]) => (isScalar(member) ? `${name}=${member}` : null));
  return items.length > 0 && items.every(isListItem) ? items.join() : undefined;
}

const optionName = (field) => `--${field.replace(/^deadline_s$/, 'deadline').replaceAll('_', '-')}`;

const isDefaultServer = (origin) => origin === 'http://127.0.0.1:8731';
const clientCommand = (origin) => (isDefaultServer(origin) ? 'rooflinectl' : `rooflinectl --url ${quote(origin)}`);

export function curlLine(origin, request) {
  return `curl -sS ${quote(`${origin}/jobs`)} -H 'content-type: application/json' \\\n  -d ${quote(JSON.stringify(request))}`;
}

export function rooflinectlLine(origin, request) {
  const options = Object.entries(request).filter(([field, value]) => field !== 'kind' || value !== 'train')
    .map(([field, value]) => [optionName(field), optionValue(field, value)]);
  if (options.some(([, value]) => value === undefined)) {
    return `printf %s ${quote(JSON.stringify(request))} |\n  ${clientCommand(origin)} run -`;
  }
  return [clientCommand(origin), 'run', ...options.flatMap(([name, value]) => [name, quote(value)])].join(' ');
}

/** Returns the path of POST /imports with the fields as its query. */
export const importPath = (fields) => ['/imports', String(new URLSearchParams(Object.entries(fields)))].filter(Boolean).join('?');

export const curlImportLine = (origin, fields) => `curl -sS ${quote(origin + importPath(fields))} \\
  -H 'content-type: application/octet-stream' --data-binary ${quote(`@${fields.file_name ?? 'FILE'}`)}`;

export const rooflinectlImportLine = (origin, { file_name: file = 'FILE', format }) =>
  [clientCommand(origin), 'import', quote(file), ...(format ? ['--format', format] : [])].join(' ');
