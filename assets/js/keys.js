// Keys that work anywhere on the page, the list of them all, and the way past the conversations to the composer.
import { make } from './models_form.js';
import { openPalette } from './palette.js';
import { openConversation } from './places.js';
import { onChange } from './state.js';
import { say } from './words.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const CTRL = MAC ? '⌘' : 'Ctrl';
const KEYS = {
  anywhere: [['find', CTRL, 'K'], ['find_too', '/'], ['new', CTRL, MAC ? '⇧' : 'Shift', 'O'], ['list', '?'], ['list_too', CTRL, '/'], ['favourite', 'Alt', '1–9'], ['escape', 'Esc']],
  writing: [['send', 'Enter'], ['line', MAC ? '⇧' : 'Shift', 'Enter'], ['now', CTRL, 'Enter'], ['again', CTRL, 'Enter']],
  conversations: [['walk', '↑', '↓'], ['ends', 'Home', 'End'], ['open', 'Enter'], ['menu', '→'], ['rename', 'F2'], ['archive', 'E'], ['delete', 'Del']],
};
const ALTERNATIVES = new Set(['walk', 'ends']);  // either key, not both at once

const composer = () => document.querySelector('#composer textarea');

function combination(name, keys) {
  const shown = keys.map((key) => make('kbd', { textContent: key }));
  return shown.flatMap((key, place) => (place && !ALTERNATIVES.has(name) && !MAC ? ['+', key] : [key]));
}

function part(name, keys) {
  const lines = keys.map(([what, ...shown]) => make('div', {},
    make('dt', {}, ...combination(what, shown)), make('dd', { textContent: say(`keys_${what}`) })));
  return make('section', {}, make('h3', { textContent: say(`keys_in_${name}`) }), make('dl', {}, ...lines));
}

export function openKeys() {
  if (document.querySelector('dialog[open]')) return;
  const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'aria-label': say('close') } });
  const parts = make('div', { className: 'p-parts' }, ...Object.entries(KEYS).map(([name, keys]) => part(name, keys)));
  const element = make('dialog', { className: 'p-dialog p-keys', attributes: { 'aria-labelledby': 'p-keys-title' } },
    make('header', {}, make('h2', { id: 'p-keys-title', textContent: say('keys_title') }), close), parts);
  close.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', () => element.remove());
  document.body.append(element);
  element.showModal();
}

const types = (element) => element.isContentEditable || element.matches?.('textarea, select, input:not([type=checkbox], [type=radio], [type=file])');

function pressed(event) {
  if (event.isComposing || event.altKey || event.defaultPrevented || document.querySelector('dialog[open]')) return;
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
  document.getElementById('p-find')?.setAttribute('aria-keyshortcuts', MAC ? 'Meta+K /' : 'Control+K /');
}

export function start() {
  const skip = make('a', { className: 'p-skip', href: '#composer' });
  skip.addEventListener('click', (event) => { event.preventDefault(); composer()?.focus(); });
  document.body.prepend(skip);
  addEventListener('keydown', pressed);
  onChange(() => label(skip));
}
