// What a reader chose in this browser: light or dark, the size of text, what Enter does, notices. Kept by the browser alone.
import { onChange } from './state.js';
import { local } from './storage.js';

const NAMES = { theme: 'p-theme', size: 'p-size', enter: 'p-enter', notices: 'p-notices' };
const root = document.documentElement;
const system = matchMedia('(prefers-color-scheme: dark)');

const here = {};  // what was chosen since the page was opened: a browser may keep nothing

export const chosen = (name) => here[name] ?? local.get(NAMES[name]) ?? '';

// The page around the frame says which of the two it is.
const surrounding = () => (root.dataset.outer ? root.dataset.outer === 'dark' : system.matches);

export const isDark = () => ({ dark: true, light: false })[chosen('theme')] ?? surrounding();

function paint() {
  // The whole canvas: what lies around and beneath the page, and the browser's own scrollbars.
  for (const one of [root, document.body]) if (one.classList.contains('dark') !== isDark()) one.classList.toggle('dark', isDark());
  if (chosen('size') !== (root.dataset.size ?? '')) {
    if (chosen('size')) root.dataset.size = chosen('size');
    else delete root.dataset.size;
  }
}

export function choose(name, value) {
  here[name] = value;
  if (value) local.set(NAMES[name], value);
  else local.remove(NAMES[name]);
  paint();
}

export function toggleTheme() {
  const next = isDark() ? 'light' : 'dark';
  choose('theme', (next === 'dark') === surrounding() ? '' : next);
}

const field = (event) => event.key === 'Enter' && event.target.matches?.('#composer textarea');

// While a character is composed, Enter belongs to the input method; one that Safari reports late has the code alone.
const composes = (event) => event.isComposing || event.keyCode === 229;

// Whether a key sends what is written in a field other than the composer.
export function sends(event) {
  if (event.key !== 'Enter' || event.altKey || composes(event)) return false;
  return event.ctrlKey || event.metaKey || (!event.shiftKey && chosen('enter') !== 'line');
}

// Where Enter starts a new line, it is the browser's own key: nobody else hears of it. Ctrl Enter sends.
function enter(event) {
  if (chosen('enter') !== 'line' || !field(event) || composes(event)) return;
  if (!event.ctrlKey && !event.metaKey) return event.stopImmediatePropagation();
  if (event.type !== 'keydown' || event.shiftKey || event.altKey) return;
  const send = document.querySelector('#composer .submit-button');
  if (!send?.checkVisibility()) return;  // a reply is being written: the key means another thing
  event.preventDefault();
  event.stopImmediatePropagation();
  send.click();
}

export function start() {
  paint();
  system.addEventListener('change', paint);
  addEventListener('storage', ({ key }) => {  // chosen in another tab
    for (const [name, kept] of Object.entries(NAMES)) if (key === kept) delete here[name];
    paint();
  });
  new MutationObserver(paint).observe(document.body, { attributes: true, attributeFilter: ['class'] });
  for (const kind of ['keydown', 'keypress', 'keyup']) addEventListener(kind, enter, true);
  onChange(paint);
}
