// Steering: the panel's fields are kept as one types, the chips of the composer switch at once.
import { ask } from './bus.js';
import { item, openSteering, toggleMenu } from './dialogs.js';
import { keepFocus } from './focus.js';
import { hint, tell as remark } from './hint.js';
import { tell } from './keeping.js';
import { openLibraries } from './libraries.js';
import { write } from './mentions.js';
import { request } from './request.js';
import { onChange, status } from './state.js';
import { say } from './words.js';

const LARGEST = 1024 * 1024;  // bytes of an agent's file
const PAUSE = 500;  // milliseconds without a key, after which a text is kept
const panel = () => document.querySelector('#page .p-steer');
const about = (element) => ({ folder: element.closest('[data-folder]')?.dataset.folder ?? '' });
const change = (what, more = {}) => ask({ do: 'steer', change: what, ...more });
let waiting = 0;
let unsaved = null;  // what was typed and is not kept yet
let place = { of: null, top: 0 };
const missed = {};   // what was said of a persona and of libraries that are not shared any more, by their chips
let behind = false;  // it is to be drawn anew once nothing is half typed
let first = false;   // a first persona is to be written, once the panel is there

function keep({ quiet = true } = {}) {
  clearTimeout(waiting);
  if (!unsaved) return;
  const { field, text } = unsaved;
  unsaved = null;
  change({ instructions: text }, { quiet, ...about(field) });
  if (quiet) recount(field, text);
}

// What the instructions take in each message, once they rest; of those of a folder nothing is said.
async function recount(field, text) {
  const head = field.closest('section').querySelector('h3 small');
  const sum = panel()?.querySelector('.p-sum output');
  const { conversation, service, model, chosen } = status() ?? {};
  if (!head || !sum || field.dataset.folder) return;
  const { folder = '' } = chosen ? JSON.parse(chosen) : {};
  const { tokens } = await request('./steering/tokens', 'steer_uncounted', { conversation, folder, model: { service, model }, text });
  if (tokens === undefined || field.value !== text || !field.isConnected) return;
  head.textContent = say('steer_tokens', { n: tokens.toLocaleString('en') });
  sum.dataset.told = tokens;
  count();
}

// The field that one writes in, and a form that has something typed into it and is not sent: drawn anew, the keyboard
// or that would be gone.
const isHalfTyped = () => Boolean(document.activeElement?.closest('#page .p-told')) || [...panel().querySelectorAll('form :is(input, textarea)')].some((one) => one.form.offsetParent && one.value !== one.defaultValue);

// Where it was changed elsewhere: its switches by the meter, a persona by whom it is shared with.
export function drawAnew() {
  if (!panel()) return;
  behind = isHalfTyped();
  if (behind) return;
  keep();
  change({});
}

function left({ relatedTarget }) {
  if (behind && !relatedTarget?.closest('#page .p-steer')) setTimeout(drawAnew);  // once the keyboard is elsewhere
}

// A slider's value as it is kept: the longest reply goes in powers of two.
const valueOf = (field) => (field.closest('.p-param').dataset.name === 'max_tokens' ? 2 ** Number(field.value) : Number(field.value));

function moved(field) {
  const row = field.closest('.p-param');
  const said = valueOf(field).toLocaleString('en');
  row.dataset.moved = 'true';
  row.querySelector('output').textContent = said;
  field.setAttribute('aria-valuetext', said);
}

function typed({ target }) {
  if (!target.closest?.('#page .p-steer')) return;
  if (target.matches('.p-told')) {
    unsaved = { field: target, text: target.value };
    clearTimeout(waiting);
    waiting = setTimeout(keep, PAUSE);
  } else if (target.type === 'range') moved(target);
}

function settled({ target }) {
  if (!target.closest?.('#page .p-steer')) return;
  const { tools, library, shelve } = target.dataset;
  if (target.matches('.p-told')) keep();
  else if (target.matches('.p-import')) take(target);
  else if (target.matches('.p-persona')) { ask({ do: 'persona', id: target.value }); keepFocus('#page .p-persona'); }
  else if (tools !== undefined) flip(target, tools.split(' '));
  else if (library) { ask({ do: 'use', id: library, on: target.checked }); keepFocus(`#page [data-library="${CSS.escape(library)}"]`); }
  else if (shelve) { ask({ do: 'shelve', library: shelve, on: target.checked, ...about(target) }); keepFocus(`#page [data-shelve="${CSS.escape(shelve)}"]`); }
  else if (target.type === 'range') change({ parameters: { [target.closest('.p-param').dataset.name]: valueOf(target) } }, { quiet: true });
  else if (target.type === 'number') setSeed(target);
}

function setSeed(field) {
  const seed = field.value.trim();
  if (seed && !field.checkValidity()) return field.reportValidity();
  field.closest('.p-param').dataset.moved = String(Boolean(seed));
  change({ parameters: { seed: seed ? Number(seed) : null } }, { quiet: true });
}

// A server's switch carries its tools along.
function flip(box, names) {
  const inner = box.hasAttribute('data-whole') ? [...box.closest('li').querySelectorAll('ul input')] : [];
  for (const one of inner) one.checked = box.checked;
  const whole = box.closest('details')?.closest('li').querySelector('[data-whole]');
  if (whole) whole.checked = [...box.closest('ul').querySelectorAll('input')].some((one) => one.checked);
  const tools = Object.fromEntries(names.map((name) => [name, box.checked]));
  for (const one of inner) tools[one.dataset.tools] = null;  // as the whole
  change({ tools }, { quiet: true });
  count();
}

// The sum at the foot counts along while switching.
function count() {
  const sum = panel()?.querySelector('.p-sum output');
  if (!sum) return;
  const costs = [...panel().querySelectorAll('.p-cost')].filter((cost) => cost.closest('.p-flip').querySelector('input').checked);
  const total = costs.reduce((all, cost) => all + Number(cost.dataset.tokens), Number(sum.dataset.told));
  sum.textContent = say('steer_tokens', { n: total.toLocaleString('en') });
}

export function backToService(button) {
  const row = button.closest('.p-param');
  change({ parameters: { [row.dataset.name]: null } });
  keepFocus(`#page .p-param[data-name="${row.dataset.name}"] :is(input, button)`);
}

export function reset() {
  ask({ do: 'persona', id: panel().querySelector('.p-persona').value });
  keepFocus('#page [data-do="steer-reset"]');
}

// The name is asked for in the footer itself.
export function namePersona(button) {
  const form = button.parentElement.querySelector('.p-name-form');
  form.hidden = false;
  button.hidden = true;
  form.querySelector('input').select();
}

export function forgetPersona(button) {
  const { id } = button.dataset;
  ask({ do: 'persona-delete', id });
  tell(say('persona_deleted'), [{ do: 'persona-restore', id }], '#page .p-persona');
  keepFocus('#page .p-persona');
}

// Taken back, it is there again as it was kept, whatever was typed over it.
export function forgetPrompt(button) {
  const [name, text] = ['input', 'textarea'].map((one) => button.form.querySelector(one).defaultValue);
  ask({ do: 'prompt-delete', id: button.dataset.id });
  tell(say('prompt_deleted', { name }), [{ do: 'prompt-save', id: '', name, text }], '#page .p-prompts summary');
  keepFocus('#page .p-prompts summary');
}

// An agent's file becomes a persona.
async function take(field) {
  const [file] = field.files;
  if (!file) return;
  if (file.size > LARGEST) return hint('steer_large');
  ask({ do: 'persona-import', name: file.name, text: await file.text() });
  keepFocus('#page .p-persona');
}

function named(event) {
  if (event.target.matches?.('#page .p-prompt')) return prompted(event);
  if (!event.target.matches?.('#page .p-name-form')) return;
  event.preventDefault();
  const name = event.target.querySelector('input').value.trim();
  if (!name) return hint('persona_unnamed');
  ask({ do: 'persona-save', name });
  keepFocus('#page .p-persona');
}

function prompted(event) {
  event.preventDefault();
  if (event.target.matches('.p-about-persona')) return changePersona(event.target);
  const [name, text] = ['input', 'textarea'].map((one) => event.target.querySelector(one).value.trim());
  if (!name || !text) return void event.target.querySelector(name ? 'textarea' : 'input').focus();
  ask({ do: 'prompt-save', id: event.target.dataset.id, name, text });
  keepFocus('#page .p-prompts summary');
}

function changePersona(form) {
  ask({ do: 'persona-change', id: form.dataset.id, sign: form.querySelector('input').value, starters: form.querySelector('textarea').value, model: form.querySelector('select').value && JSON.parse(form.querySelector('select').value) });
  keepFocus('#page .p-persona');
}

// A persona's question goes into the composer, where it can still be changed.
export function beginWith(button) { write(button.dataset.text, button.dataset.text.length, button.dataset.text.length); }

function effort(event) {
  const button = event.target.closest?.('#page [data-effort]');
  if (!button) return;
  for (const one of button.parentElement.children) one.setAttribute('aria-pressed', String(one === button));
  button.closest('.p-param').dataset.moved = 'true';
  change({ parameters: { effort: button.dataset.effort } }, { quiet: true });
}

// The documents of a folder are those of a library of its name, which its conversations use from now on. The files are
// chosen first: who chooses none has made no library.
export function folderDocuments({ dataset: { folder, name, library } }) {
  const field = Object.assign(document.createElement('input'), { type: 'file', multiple: true, hidden: true });
  field.addEventListener('cancel', () => field.remove());
  field.addEventListener('change', async () => {
    const files = [...field.files];
    field.remove();
    const answer = library ? {} : await request('./libraries/create', 'libraries_failed', { name });
    if (answer.failed) return remark(answer.failed);
    const id = library || answer.opened.id;
    ask({ do: 'shelve', library: id, on: true, folder });
    openLibraries(id, files);
  });
  document.body.append(field);
  field.click();
}

// ---- the chips

export function press(chip) {
  const on = chip.getAttribute('aria-pressed') !== 'true';
  chip.setAttribute('aria-pressed', String(on));  // the next frame says the same
  ask({ do: 'switch', what: chip.dataset.do.slice(4), on });
}

function menuOf(chip, list, act, ...more) {
  const rows = [...document.querySelectorAll(`#${list} > li`)].map((row) => {
    const on = row.dataset.on === 'true';
    const one = item(row.textContent, on ? 'p-chosen' : '', () => act(row.dataset.id, !on));
    one.setAttribute('role', 'menuitemcheckbox');
    one.setAttribute('aria-checked', String(on));
    return one;
  });
  toggleMenu(chip, [...rows, ...more], { label: chip.title, back: `#toolbar [data-do="${chip.dataset.do}"]` });
}

export function libraryMenu(chip) {
  const all = item(say('palette_libraries'), 'p-last', () => document.querySelector('#history [data-do="libraries"]')?.click());
  menuOf(chip, 'p-bar-libraries', (id, on) => ask({ do: 'use', id, on }), all);
}

export function personaMenu(chip) {
  const some = document.querySelector('#p-bar-personas > li');
  menuOf(chip, 'p-bar-personas', (id, on) => ask({ do: 'persona', id: on ? id : '' }), some ? item(say('steer_open'), 'p-last', () => openSteering()) : none());
}

// Where there is no persona yet: how one is made, and the way there.
function none() {
  const row = item(say('persona_first'), 'p-explained', () => {
    first = true;
    if (!begin()) openSteering();
  });
  row.append(Object.assign(document.createElement('span'), { className: 'p-about', textContent: say('persona_first_about') }));
  return row;
}

function begin() {
  const field = first && panel()?.querySelector('.p-told');
  if (!field) return false;
  first = false;
  field.focus();
  return true;
}

// Drawn anew, the panel stays scrolled where it was.
function stay() {
  const body = document.querySelector('#page .p-steer-body');
  if (body && body !== place.of && place.of) body.scrollTop = place.top;
  place = { of: body, top: body?.scrollTop ?? 0 };
  const button = document.querySelector('#top .p-open-steer');
  const open = String(Boolean(body));
  if (button && button.getAttribute('aria-expanded') !== open) button.setAttribute('aria-expanded', open);
}

// What was taken back says so where it is noticed, once for a conversation, and an open panel shows it no longer.
function miss() {
  const said = ['persona', 'libraries'].map(missing).filter(Boolean);
  if (!said.length) return;
  remark(said.join(' '));
  drawAnew();
}

function missing(which) {
  const chip = document.querySelector(`#toolbar .p-tap-${which}`);
  const gone = chip?.dataset.gone ?? '';
  const here = gone && `${status()?.conversation} ${gone}`;
  if (!chip || here === missed[which]) return '';
  missed[which] = here;
  return gone;
}

export function start() {
  addEventListener('input', typed, true);
  addEventListener('change', settled, true);
  addEventListener('focusout', left);
  addEventListener('submit', named, true);
  addEventListener('click', effort, true);
  addEventListener('pagehide', () => keep());
  document.addEventListener('scroll', ({ target }) => { if (target === place.of) place.top = target.scrollTop; }, true);
  onChange(stay);
  onChange(begin);
  onChange(miss);
}
