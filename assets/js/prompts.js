// Prompts: / at the start of the composer offers them, and their fields are filled before the question goes.
import { openSteering } from './dialogs.js';
import { hint } from './hint.js';
import { fitting, lookAgain, offerAt, write } from './mentions.js';
import { request } from './request.js';
import { onChange } from './state.js';
import { say } from './words.js';

const FIELD = /\{\{\s*([^{}\n]{1,60}?)\s*\}\}/;
const area = () => document.querySelector('#composer textarea');
let known = null;    // the prompts, from when the / was typed
let asked = false;
let first = false;   // the first one is to be written, once the panel is there
let put = false;     // one was put into the composer, and its fields are to be filled

function wanted(field) {
  const begun = /^\/([^\n/]*)$/.exec(field.value.slice(0, field.selectionStart));
  if (!begun || field.selectionStart !== field.selectionEnd) { asked = false; return null; }
  if (!asked) look();
  const found = fitting((known ?? []).map((one) => ({ ...one, row: rowOf(one) })), begun[1].toLocaleLowerCase());
  if (!found.length && known?.length === 0 && field.value === '/') found.push({ name: say('prompt_first'), row: offer(), none: true });
  return found.length ? { at: 0, found, label: 'prompt_list', take: choose } : null;
}

async function look() {
  asked = true;
  const answer = await request('./steering/prompts', 'lost');
  known = answer.prompts ?? [];
  lookAgain();
}

const rowOf = ({ name, text }) => rowWith(`/${name}`, text.length > 80 ? `${text.slice(0, 79)}…` : text);
const offer = () => rowWith(say('prompt_first'), say('prompt_first_about'));

function rowWith(name, about) {
  const row = document.createElement('li');
  const parts = [['p-name', name], ['p-about', about]];
  row.append(...parts.map(([className, textContent]) => Object.assign(document.createElement('span'), { className, textContent })));
  return row;
}

function choose({ text, none }) {
  if (none) return begin();
  const rest = area().value.slice(area().selectionStart);
  put = FIELD.test(text);
  write(text + rest, text.length, text.length);
  if (put) next(text + rest);
}

// The panel opens where a prompt is written.
function begin() {
  write('', 0, 0);
  first = true;
  if (!unfold()) openSteering();
}

function unfold() {
  const form = first && document.querySelector('#page .p-steer .p-prompts details:last-of-type');
  if (!form) return false;
  first = false;
  form.open = true;
  form.scrollIntoView({ block: 'nearest' });
  form.querySelector('input').focus();
  return true;
}

// Selects the next field, so that what is typed stands in its place.
function next(text, from = 0) {
  const found = FIELD.exec(text.slice(from)) ?? FIELD.exec(text);
  if (!found) return false;
  const at = text.indexOf(found[0], from) >= 0 ? text.indexOf(found[0], from) : text.indexOf(found[0]);
  write(text, at, at + found[0].length);
  return found[1];
}

function pressed(event) {
  if (!put || event.target !== area() || event.isComposing || event.keyCode === 229) return;
  if (event.key === 'Tab' && !event.shiftKey && FIELD.test(area().value)) {
    next(area().value, area().selectionEnd);
  } else if (event.key === 'Enter' && !event.shiftKey && FIELD.test(area().value)) {
    hint('prompt_fields', { name: next(area().value) });
  } else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

// The button sends as Enter does.
function clicked(event) {
  if (!put || !event.target.closest?.('#composer .submit-button') || !FIELD.test(area()?.value ?? '')) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  hint('prompt_fields', { name: next(area().value) });
}

export function start() {
  offerAt(wanted);
  onChange(unfold);
  addEventListener('keydown', pressed, true);
  addEventListener('click', clicked, true);
  addEventListener('input', (event) => { if (event.target === area() && !area().value) put = false; }, true);
}
