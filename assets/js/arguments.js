// Arguments of a call in fields: text as it is, all else as JSON of the kind that stood there.
import { say } from './words.js';

const KINDS = {
  number: [(value) => typeof value === 'number', 'ask_number'],
  truth: [(value) => typeof value === 'boolean', 'ask_truth'],
  list: [Array.isArray, 'ask_list'],
  object: [(value) => typeof value === 'object' && value !== null && !Array.isArray(value), 'ask_object'],
};

// What stands in a field, as text: of boxes to tick, a JSON list of those that are ticked.
export const FIELD = ':is(textarea, select, .p-many)';
const boxes = (field) => [...field.querySelectorAll('input')];
const isMany = (field) => field.classList.contains('p-many');

export function textIn(field) {
  if (!isMany(field)) return field.value;
  return JSON.stringify(boxes(field).filter((one) => one.checked).map((one) => one.value));
}

export function write(field, text) {
  if (isMany(field)) {
    const ticked = JSON.parse(text);
    for (const one of boxes(field)) one.checked = ticked.includes(one.value);
  } else if (field.value !== text) {
    field.value = text;
  }
}

// What has the keyboard in a field: boxes are many.
export const partOf = (field, at = 0) => (isMany(field) ? boxes(field)[at] ?? boxes(field)[0] : field);
export const placeIn = (field, part) => (isMany(field) ? boxes(field).indexOf(part) : 0);

// What is wrong with a text in a field, in words; nothing where it is right.
export function wrong(kind, text) {
  if (kind === 'text') return '';
  const [fits, said] = KINDS[kind] ?? [() => true, ''];
  try {
    return fits(JSON.parse(text)) ? '' : say(said);
  } catch (error) {
    return kind === 'number' || kind === 'truth' ? say(said) : say('ask_json', { why: error.message });
  }
}

// A field of a form may stay empty unless it is needed; that of an argument holds what its kind says.
function wrongIn(area) {
  // Parlour has held it against what the tool takes.
  if (area.dataset.unfit && area.value === area.dataset.refused) return area.dataset.unfit;
  if (isMany(area)) return wrongMany(area);
  if (!area.closest('.p-form') || area.value.trim()) return wrong(area.dataset.kind, area.value);
  return 'needed' in area.dataset ? say('ask_needed') : '';
}

function wrongMany(field) {
  const { least, most } = field.dataset;
  const ticked = boxes(field).filter((one) => one.checked).length;
  if (!ticked && !('needed' in field.dataset)) return '';
  if (ticked < Number(least ?? 0)) return say('ask_too_few', { n: least });
  return ticked > Number(most ?? Infinity) ? say('ask_too_many', { n: most }) : '';
}

// Say in its place what is wrong with a field; true where nothing is.
export function check(area) {
  const said = wrongIn(area);
  const place = document.getElementById(area.getAttribute('aria-describedby').split(' ')[0]);
  if (place && place.textContent !== said) place.textContent = said;
  if (said) area.setAttribute('aria-invalid', 'true');
  else area.removeAttribute('aria-invalid');
  return !said;
}

// Check all; the first that is wrong is gone to.
export function checkAll(areas) {
  const bad = areas.filter((area) => !check(area));
  if (bad.length) partOf(bad[0]).focus();
  return !bad.length;
}
