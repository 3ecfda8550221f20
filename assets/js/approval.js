// The question before a tool acts. What is typed into its fields outlives every frame; nothing is agreed to by accident.
import { check, checkAll, FIELD, partOf, placeIn, textIn, write } from './arguments.js';
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { onChange } from './state.js';
import { locale, say } from './words.js';

const TOO_SOON = 500;  // milliseconds: what was meant for the question before must not answer this one
let decided = -TOO_SOON;  // when a question was answered last
const typed = new Map();  // what stands in the fields that were touched, by question and name
let shown = { which: '', at: 0 };
let place = null;  // where the keyboard is among the fields
let watched = null;
let told = '';  // what was told last of a text that does not fit: the keyboard goes to its field once

const card = () => document.querySelector('#ask .p-asks');
const NO = ['refuse', 'decline'];
const fields = (within) => [...within.querySelectorAll(`.p-args ${FIELD}`)];
// Calls of two chats may have the same id, so that alone names no question.
const named = ({ dataset }) => `${dataset.call} ${dataset.asked}`;
const mine = (within) => typed.get(named(within)) ?? new Map();

export function decide(button) {
  const within = button.closest('.p-asks');
  const { call, asked } = within?.dataset ?? {};
  if (!call || within.dataset.decided) return;
  const act = button.dataset.do;
  // A refusal counts at once, unless it may be the second click on the question before.
  if ('fresh' in within.dataset && !(NO.includes(act) && shown.at - decided >= TOO_SOON)) return;
  if (!NO.includes(act) && !checkAll(fields(within))) return;
  within.dataset.decided = act;
  decided = performance.now();
  const edits = mine(within);
  const message = { do: act === 'always' ? 'allow' : act, call, asked };
  if (act === 'answer') message.arguments = Object.fromEntries(fields(within).map((one) => [one.dataset.name, textIn(one)]));
  else if (!NO.includes(act) && edits.size) message.arguments = Object.fromEntries(edits);
  if (act === 'always') message.always = true;
  ask(message);
  place = null;
  button.blur();
  keepFocus('#composer textarea');
  setTimeout(() => { if (within.isConnected) delete within.dataset.decided; }, 4000);  // it did not get there
}

function until(within) {
  const line = within.querySelector('.p-until');
  if (!line || line.textContent) return;
  const time = new Date(Number(line.dataset.until) * 1000).toLocaleTimeString(locale(), { timeStyle: 'short' });
  line.textContent = say('ask_until', { time });
}

// A question that just came takes no answer yet.
function fresh(within) {
  const left = TOO_SOON - (performance.now() - shown.at);
  if (left <= 0) return;
  within.dataset.fresh = '';
  setTimeout(() => { delete within.dataset.fresh; }, left);
}

function drawn() {
  const within = card();
  if (!within) { shown = { which: '', at: 0 }; place = null; return; }
  const which = named(within);
  if (which !== shown.which) {
    if (shown.which) decided = performance.now();  // here or elsewhere, or it was too late
    shown = { which, at: performance.now() };
    place = null;
  }
  fresh(within);
  until(within);
  const edits = mine(within);
  for (const area of fields(within)) {
    const text = edits.get(area.dataset.name);
    if (text === undefined) continue;
    write(area, text);
    mark(area);
    if (!area.dataset.unfit || told === area.dataset.unfit + text) continue;
    told = area.dataset.unfit + text;
    delete within.dataset.decided;
    checkAll([area]);
  }
  if (place?.which !== which || within.contains(document.activeElement)) return;
  const area = fields(within).find((one) => one.dataset.name === place.name);
  if (!area || (document.activeElement && document.activeElement !== document.body)) return;
  partOf(area, place.at).focus({ preventScroll: true });
  area.setSelectionRange?.(place.start, place.end);
}

function mark(area) {
  area.closest('.p-arg').classList.toggle('p-edited', area.tagName === 'TEXTAREA' && area.value !== area.defaultValue);
  if (area.dataset.unfit || area.hasAttribute('aria-invalid')) check(area);
}

function noted({ target }) {
  const within = target.closest?.('#ask .p-asks');
  const field = target.closest?.(FIELD);
  if (!within || !field) return;
  const which = named(within);
  if (!typed.has(which)) typed.set(which, new Map());
  typed.get(which).set(field.dataset.name, textIn(field));
  mark(field);
  remember(field, target);
}

// In a field that expects one line Enter does nothing; a text that needs another line gets it by Shift and Enter.
function entered(event) {
  if (event.key !== 'Enter' || event.isComposing || !event.target.matches?.('#ask .p-asks textarea[data-one-line]')) return;
  if (!event.shiftKey || event.target.dataset.kind !== 'text') event.preventDefault();
}

function remember(area, part = area) {
  const within = area.closest('.p-asks');
  place = { which: within && named(within), name: area.dataset.name, at: placeIn(area, part), start: area.selectionStart, end: area.selectionEnd };
}

function watch() {
  const panel = document.getElementById('ask');
  if (!panel || panel === watched) return;
  watched = panel;
  // Before the browser paints: what was typed is never seen to go.
  new MutationObserver(drawn).observe(panel, { subtree: true, childList: true });
  drawn();
}

export function start() {
  onChange(watch);
  addEventListener('input', noted, true);
  addEventListener('keydown', entered);
  document.addEventListener('selectionchange', () => {
    const area = document.activeElement;
    if (area?.tagName === 'TEXTAREA' && area.closest('#ask .p-asks')) remember(area);
  });
  addEventListener('focusout', ({ target, relatedTarget }) => {
    if (relatedTarget && target.closest?.('#ask') && !relatedTarget.closest('#ask')) place = null;
  });
  addEventListener('pointerdown', ({ target }) => { if (!target.closest?.(`#ask ${FIELD}`)) place = null; }, true);
}
