// Prompts: / at the start of the composer offers them, and their fields are filled before the question goes.
import { hint } from './hint.js';
import { fitting, lookAgain, offerAt, write } from './mentions.js';
import { request } from './request.js';

const FIELD = /\{\{\s*([^{}\n]{1,60}?)\s*\}\}/;
const area = () => document.querySelector('#composer textarea');
let known = null;    // the prompts, from when the / was typed
let asked = false;
let put = false;     // one was put into the composer, and its fields are to be filled

function wanted(field) {
  const begun = /^\/([^\n/]*)$/.exec(field.value.slice(0, field.selectionStart));
  if (!begun || field.selectionStart !== field.selectionEnd) { asked = false; return null; }
  if (!asked) look();
  const found = fitting((known ?? []).map((one) => ({ ...one, row: rowOf(one) })), begun[1].toLocaleLowerCase());
  return found.length ? { at: 0, found, label: 'prompt_list', take: choose } : null;
}

async function look() {
  asked = true;
  const answer = await request('./steering/prompts', 'lost');
  known = answer.prompts ?? [];
  lookAgain();
}

function rowOf({ name, text }) {
  const row = document.createElement('li');
  const parts = [['p-name', `/${name}`], ['p-about', text.length > 80 ? `${text.slice(0, 79)}…` : text]];
  row.append(...parts.map(([className, textContent]) => Object.assign(document.createElement('span'), { className, textContent })));
  return row;
}

function choose({ text }) {
  const rest = area().value.slice(area().selectionStart);
  put = FIELD.test(text);
  write(text + rest, text.length, text.length);
  if (put) next(text + rest);
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
  addEventListener('keydown', pressed, true);
  addEventListener('click', clicked, true);
  addEventListener('input', (event) => { if (event.target === area() && !area().value) put = false; }, true);
}
