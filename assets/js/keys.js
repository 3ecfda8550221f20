// Keys that work anywhere on the page, the list of them all, and the way past the conversations to the composer.
import { chosen } from './choices.js';
import { neighbour, rowOf } from './list.js';
import { make } from './models_form.js';
import { openPalette } from './palette.js';
import { openConversation } from './places.js';
import { onChange, status } from './state.js';
import { say } from './words.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const CTRL = MAC ? '⌘' : 'Ctrl';
const KEYS = {
  anywhere: [['find', CTRL, 'K'], ['find_too', '/'], ['new', CTRL, MAC ? '⇧' : 'Shift', 'O'], ['walk_talks', 'Alt', '↑ ↓'], ['list', '?'], ['list_too', CTRL, '/'], ['favourite', 'Alt', '1–9'], ['escape', 'Esc']],
  writing: [['send', 'Enter'], ['line', MAC ? '⇧' : 'Shift', 'Enter'], ['now', CTRL, 'Enter'], ['edit_last', '↑'], ['again', 'Enter']],
  conversations: [['walk', '↑', '↓'], ['ends', 'Home', 'End'], ['open', 'Enter'], ['menu', '→'], ['rename', 'F2'], ['select', 'X'], ['archive', 'E'], ['delete', 'Del']],
};
const WHERE_ENTER_IS_A_LINE = { send: [CTRL, 'Enter'], line: ['Enter'], again: [CTRL, 'Enter'] };
const ALTERNATIVES = new Set(['walk', 'ends']);  // either key, not both at once

const composer = () => document.querySelector('#composer textarea');

function combination(name, keys) {
  const shown = keys.map((key) => make('kbd', { textContent: key }));
  return shown.flatMap((key, place) => (place && !ALTERNATIVES.has(name) && !MAC ? ['+', key] : [key]));
}

// What a key does as the reader chose it.
const chosenFor = (what, shown) => (chosen('enter') === 'line' && WHERE_ENTER_IS_A_LINE[what]) || shown;

function part(name, keys) {
  const lines = keys.map(([what, ...shown]) => make('div', {},
    make('dt', {}, ...combination(what, chosenFor(what, shown))), make('dd', { textContent: say(`keys_${what}`) })));
  return make('section', {}, make('h3', { textContent: say(`keys_in_${name}`) }), make('dl', {}, ...lines));
}

// All keys, by where they work.
export const keyParts = () => Object.entries(KEYS).map(([name, keys]) => part(name, keys));

export function openKeys() {
  if (document.querySelector('dialog[open]')) return;
  const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'aria-label': say('close') } });
  const parts = make('div', { className: 'p-parts' }, ...keyParts());
  const element = make('dialog', { className: 'p-dialog p-keys', attributes: { 'aria-labelledby': 'p-keys-title' } },
    make('header', {}, make('h2', { id: 'p-keys-title', textContent: say('keys_title') }), close), parts);
  close.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', () => element.remove());
  document.body.append(element);
  element.showModal();
}

const types = (element) => element.isContentEditable || element.matches?.('textarea, select, input:not([type=checkbox], [type=radio], [type=file])');

// Up and down through the conversations, as the list has them.
async function walk(step) {
  const rows = document.querySelectorAll('#history nav a[data-open]');
  const here = await rowOf(status()?.conversation);
  const next = here ? await neighbour(here, step, 'a[data-open]') : rows[step > 0 ? 0 : rows.length - 1];
  if (!next) return;
  openConversation(next.dataset.open);
  next.scrollIntoView({ block: 'nearest' });
}

// In the empty field, ↑ changes what was asked last.
function editLast(event) {
  if (event.key !== 'ArrowUp' || event.target !== composer() || event.target.value) return false;
  const last = [...document.querySelectorAll('#chat a.p-do[href^="#do-edit-"]')].at(-1);
  last?.click();
  return Boolean(last);
}

function withAlt(event) {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.shiftKey) return false;
  walk(step);
  return true;
}

function pressed(event) {
  if (event.isComposing || event.defaultPrevented || document.querySelector('dialog[open]')) return;
  const bare = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (event.altKey ? withAlt(event) : bare && editLast(event)) return event.preventDefault();
  if (event.altKey) return;
  const key = event.key.toLowerCase();
  const held = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  const plain = !types(event.target) && { '?': openKeys, '？': openKeys, '/': openPalette }[key];
  const act = !event.ctrlKey && !event.metaKey ? plain
    : held && { k: !event.shiftKey && openPalette, '/': openKeys, o: event.shiftKey && begin }[key];
  if (!act) return;
  event.preventDefault();
  act();
}

function begin() { openConversation(''); composer()?.focus(); }

function label(skip) {
  if (skip.textContent !== say('keys_skip')) skip.textContent = say('keys_skip');
  const hint = document.querySelector('#p-find kbd');
  if (hint && !hint.textContent) hint.textContent = MAC ? '⌘K' : 'Ctrl K';
  const find = document.getElementById('p-find');
  if (find && !find.hasAttribute('aria-keyshortcuts')) find.setAttribute('aria-keyshortcuts', MAC ? 'Meta+K /' : 'Control+K /');
}

export function start() {
  const skip = make('a', { className: 'p-skip', href: '#composer' });
  skip.addEventListener('click', (event) => { event.preventDefault(); composer()?.focus(); });
  document.body.prepend(skip);
  addEventListener('keydown', pressed);
  onChange(() => label(skip));
}
