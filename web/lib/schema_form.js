// Builds the fields of a form from a JSON Schema, and reads the entered value. Each field has its JSON pointer, without the first
// slash, in data-field, so that submit.js can show a problem at its field.
import { createElement } from '/lib/dom.js';

const LABELS = { dtype: 'Type', set: 'Counter set', max_images: 'Max images (0 = all)', deadline_s: 'Deadline, s',
  ffn: 'FFN outputs', grid: 'Grid (x, y, z)', block: 'Block (x, y, z)' };
const TEXT_AREA_LENGTH = 100000; // strings that may be longer than this are edited in a text area
const labelOf = (name) => LABELS[name] ?? (name[0].toUpperCase() + name.slice(1)).replaceAll('_', ' ');
let lastId = 0;

/** Returns the default that a field's description states ("…; default 64"), converted to the field's type; undefined if there is
 * none. */
export function defaultOf({ type, description = '', enum: choices, items }) {
  const [, text] = /\bdefault:? ([^:;]+)/.exec(description) ?? [];
  if (text === undefined) return undefined;
  const [word] = text.split(' ');
  if (type === 'integer' || type === 'number') {
    const number = Number(word.replace(/[.,]$/, ''));
    return Number.isNaN(number) ? undefined : number;
  }
  if (type === 'boolean') return { true: true, false: false }[word];
  if (type === 'array' && items?.enum) {
    const words = text.split(/[ ,]+/).filter((one) => items.enum.includes(one));
    return words.length > 0 ? words : undefined;
  }
  const name = word.replace(/[.,]$/, '');
  return choices?.includes(name) ? name : undefined;
}

/** Returns the description as the help of a field, or null. */
function helpOf(schema) {
  if (!schema.description) return null;
  return createElement('span', { class: 'help', id: `help-${lastId += 1}` }, schema.description);
}

function labelled(label, pointer, control, help, isWide = false) {
  if (help) control.setAttribute('aria-describedby', help.id);
  return createElement('div', { class: isWide ? 'field wide' : 'field', 'data-field': pointer },
    createElement('label', {}, createElement('span', {}, label), control), help);
}

function fieldGroup(label, pointer, help, ...children) {
  return createElement('fieldset', { class: 'field', 'data-field': pointer, 'aria-describedby': help?.id },
    createElement('legend', {}, label), ...children, help);
}

/* --- one builder for each type: ({label, name, schema, pointer, initial, isRequired}) => {element, read} --------
   read() returns the entered value; undefined: the request leaves the member out. */

function choiceField({ label, schema, pointer, initial, isRequired }) {
  const defaultValue = defaultOf(schema);
  const emptyLabel = schema.emptyLabel ?? (defaultValue ? `${defaultValue} (default)` : 'Auto');
  const select = createElement('select', { name: pointer },
    ...(isRequired ? [] : [createElement('option', { value: '' }, emptyLabel)]),
    ...schema.enum.filter((value) => isRequired || value !== defaultValue)
      .map((value) => createElement('option', { value }, schema.labels?.[value] ?? value)));
  select.value = initial ?? (isRequired ? schema.enum[0] : '');
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  return { element: labelled(label, pointer, select, helpOf(schema)), read: () => select.value || undefined };
}

function numberField({ label, schema, pointer, initial }) {
  const input = createElement('input', { type: 'number', name: pointer, min: schema.minimum, max: schema.maximum,
    step: schema.type === 'integer' ? 1 : 'any', value: initial, placeholder: defaultOf(schema) });
  const read = () => (input.value !== '' ? Number(input.value) : input.validity.badInput ? input.value : undefined);
  return { element: labelled(label, pointer, input, helpOf(schema)), read };
}

function textField({ label, name, schema, pointer, initial }) {
  const isLong = schema.maxLength >= TEXT_AREA_LENGTH && name === 'code';
  const input = isLong ? createElement('textarea', { name: pointer, rows: 10, spellcheck: 'false', class: 'mono' })
    : createElement('input', { type: 'text', name: pointer, maxlength: schema.maxLength, autocomplete: 'off' });
  input.value = initial ?? '';
  return { element: labelled(label, pointer, input, helpOf(schema), isLong), read: () => input.value || undefined };
}

function booleanField({ label, schema, pointer, initial, isRequired }) {
  const defaultValue = defaultOf(schema) ?? false;
  const box = createElement('input', { type: 'checkbox', name: pointer });
  box.checked = initial ?? defaultValue;
  const element = labelled(label, pointer, box, helpOf(schema));
  element.classList.add('boolean');
  return { element, read: () => (isRequired || box.checked !== defaultValue ? box.checked : undefined) };
}

/** Builds check boxes for an array of distinct choices. The request leaves the member out while exactly its default choices are
 * checked. */
function choicesField({ label, schema, pointer, initial }) {
  const defaultValues = defaultOf(schema) ?? [];
  const boxes = schema.items.enum.map((value) => {
    const box = createElement('input', { type: 'checkbox', name: pointer, value });
    box.checked = (initial ?? defaultValues).includes(value);
    return box;
  });
  const element = fieldGroup(label, pointer, helpOf(schema),
    ...boxes.map((box) => createElement('label', {}, box, ` ${box.value}`)));
  const read = () => {
    const checked = boxes.filter((box) => box.checked).map((box) => box.value);
    return checked.join() === defaultValues.join() ? undefined : checked;
  };
  return { element, read };
}

/** Builds one text field for an array of numbers or texts, separated by commas. */
function listField({ label, schema, pointer, initial }) {
  const isNumeric = schema.items.type !== 'string';
  const input = createElement('input', { type: 'text', name: pointer, autocomplete: 'off', value: initial?.join(', '),
    placeholder: isNumeric ? null : 'separated by commas', inputmode: isNumeric ? 'numeric' : null });
  const valueOf = (text) => (isNumeric && !Number.isNaN(Number(text)) ? Number(text) : text);
  const read = () => {
    const texts = input.value.split(',').map((text) => text.trim()).filter(Boolean);
    return texts.length > 0 ? texts.map(valueOf) : undefined;
  };
  return { element: labelled(label, pointer, input, helpOf(schema)), read };
}

/** Builds groups of fields for an array of objects, with buttons that add and remove a group. */
function itemsField({ label, schema, pointer, initial, isRequired }, context) {
  const list = createElement('ol', { class: 'items' });
  let items = [];
  const draw = (values) => {
    items = values.map((value, index) => context.item(schema.items, `${pointer}/${index}`, value));
    list.replaceChildren(...items.map((item, index) => createElement('li', { class: 'form' }, item.element,
      createElement('button', { type: 'button', class: 'plain', 'aria-label': `Remove ${label} ${index + 1}`,
        click: () => { draw(read().filter((_, other) => other !== index)); context.changed(); } }, 'Remove'))));
  };
  const read = () => items.map((item) => item.read() ?? {});
  draw(initial ?? []);
  const add = createElement('button', { type: 'button', class: 'plain', 'aria-label': `Add to ${label}`,
    click: () => { draw([...read(), undefined]); context.changed(); } }, 'Add');
  return { element: fieldGroup(label, pointer, helpOf(schema), list, add),
    read: () => (items.length > 0 || isRequired ? read() : undefined) };
}

const isObjectOfObjects = ({ properties, required = [] }) =>
  required.length === 0 && Object.values(properties).every(({ type }) => type === 'object');

/** Builds a choice for an object that has exactly one of several properties. An argument is either a buffer or a scalar. */
function oneOfField(schema, pointer, initial, context) {
  const names = Object.keys(schema.properties);
  let chosen;
  const holder = createElement('div', { class: 'form' });
  const select = createElement('select', { change: () => { draw(select.value); context.changed(); } },
    ...names.map((name) => createElement('option', {}, name)));
  const draw = (name, value) => {
    select.value = name;
    chosen = { name, ...objectFields(schema.properties[name], `${pointer}/${name}`, value, context) };
    holder.replaceChildren(labelled('Kind', `${pointer}/kind`, select, null), ...chosen.elements);
  };
  const [first] = Object.entries(initial ?? {});
  draw(first?.[0] ?? names[0], first?.[1]);
  return { element: holder, read: () => ({ [chosen.name]: chosen.read() ?? {} }) };
}

function objectField({ label, schema, pointer, initial, isRequired }, context) {
  if (!schema.properties) return { element: createElement('span'), read: () => undefined };
  const { elements, read } = objectFields(schema, pointer, initial, context);
  const help = schema.hidesDescription ? null : helpOf(schema);
  const element = fieldGroup(label, pointer, help, createElement('div', { class: 'form' }, ...elements));
  return { element, read: () => read() ?? (isRequired ? {} : undefined) };
}

function builderOf(schema) {
  if (schema.enum) return choiceField;
  if (schema.type === 'integer' || schema.type === 'number') return numberField;
  if (schema.type === 'boolean') return booleanField;
  if (schema.type === 'object') return objectField;
  if (schema.type !== 'array') return textField;
  if (schema.items.enum) return choicesField;
  return schema.items.type === 'object' ? itemsField : listField;
}

/** Builds the fields of an object's properties. Returns {fields: [{name, element}], elements, read}. read() returns the entered
 * members; undefined if there are none. context: {item, changed}; item(schema, pointer, initial) builds an item of an array, and
 * changed() is called after an item was added, removed or replaced. */
export function objectFields(schema, pointer, initial, context) {
  const fields = Object.entries(schema.properties).map(([name, property]) => {
    const field = { label: schema.keepsNames ? name : labelOf(name), name, schema: property,
      pointer: pointer ? `${pointer}/${name}` : name, initial: initial?.[name],
      isRequired: schema.required?.includes(name) ?? false };
    return { name, ...builderOf(property)(field, context) };
  });
  const read = () => {
    const entries = fields.map((field) => [field.name, field.read()]).filter(([, value]) => value !== undefined);
    return entries.length > 0 ? Object.fromEntries(entries) : undefined;
  };
  return { fields, elements: fields.map(({ element }) => element), read };
}

/** Builds an item of an array of objects. */
export function itemField(schema, pointer, initial, context) {
  if (isObjectOfObjects(schema)) return oneOfField(schema, pointer, initial, context);
  const { elements, read } = objectFields(schema, pointer, initial, context);
  return { element: createElement('div', { class: 'form' }, ...elements), read };
}
