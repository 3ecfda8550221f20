// What is offered while one types in the composer: @ offers agents, documents and libraries, and others offer theirs.
import { ask, put } from './bus.js';
import { onChange } from './state.js';
import { say } from './words.js';

const LETTER = /[A-Za-z0-9_\u00c0-\u024f]/;  // before an @, one of these makes it part of an address
const fold = (text) => text.toLocaleLowerCase();

const sources = [wanted];
let open = null;       // { at, found, chosen, label, take }: where the sign stands, the names that fit, which is marked
let dismissed = -1;    // the sign whose list was closed by hand
let typing = false;    // a Chinese character is being chosen

const area = () => document.querySelector('#composer textarea');
const offered = () => [...document.querySelectorAll('#p-mentions > li, #p-bar-documents > li, #p-bar-libraries > li')];
const list = () => document.getElementById('p-mention');

// Another sign: `source` is given the field, and gives `{ at, found, label, take }` or null.
export function offerAt(source) { sources.push(source); }

// Looks again, where what is offered has come meanwhile.
export const lookAgain = () => refresh();

// Those whose name begins with `begun`, and after them those in which another word does.
export function fitting(all, begun) {
  const starts = all.filter(({ name }) => fold(name).startsWith(begun));
  const within = all.filter(({ name }) => begun && !starts.some((one) => one.name === name) && fold(name).split(/[\s_-]+/).some((word) => word.startsWith(begun)));
  return [...starts, ...within];
}

// The @ before the caret, and what was typed behind it, as long as it may become a name.
function wanted(field) {
  if (field.selectionStart !== field.selectionEnd) return null;
  const before = field.value.slice(0, field.selectionStart);
  const at = Math.max(before.lastIndexOf('@'), before.lastIndexOf('＠'));
  if (at < 0 || (at > 0 && LETTER.test(before[at - 1]))) return null;
  const begun = fold(before.slice(at + 1));
  if (begun.includes('\n')) return null;
  const found = fitting(offered().map((row) => ({ row, name: row.dataset.name ?? row.textContent })), begun);
  // Written out, it needs no help: Enter sends.
  return found.length && !(found.length === 1 && fold(found[0].name) === begun) ? { at, found, label: 'mention', take: insert } : null;
}

function refresh() {
  const field = area();
  if (!field || typing) return;
  const now = document.activeElement === field ? sources.map((source) => source(field)).find(Boolean) : null;
  if (!'@＠/'.includes(field.value[dismissed] ?? ' ')) dismissed = -1;  // it is gone: another one may take its place
  if (!now) return close();
  if (now.at === dismissed) return;
  dismissed = -1;
  const names = now.found.map(({ name }) => name).join('\n');
  if (open?.at === now.at && open.names === names) return;
  open = { ...now, names, chosen: 0 };
  draw(field);
}

function draw(field) {
  const box = list() ?? make();
  box.setAttribute('aria-label', say(open.label));
  box.replaceChildren(...open.found.map(({ row }, index) => {
    const option = document.createElement('li');
    option.id = `p-mention-${index}`;
    option.setAttribute('role', 'option');
    option.append(...[...row.childNodes].map((node) => node.cloneNode(true)));
    return option;
  }));
  field.setAttribute('aria-autocomplete', 'list');
  field.setAttribute('aria-haspopup', 'listbox');
  field.setAttribute('aria-controls', box.id);
  const n = open.found.length;
  heard().textContent = say(n === 1 ? 'mention_found_one' : 'mention_found', { n });
  mark(0);
}

function make() {
  const box = Object.assign(document.createElement('ul'), { id: 'p-mention' });
  box.setAttribute('role', 'listbox');
  box.addEventListener('pointerdown', (event) => event.preventDefault());  // the keyboard stays where it is
  box.addEventListener('click', (event) => {
    const index = [...box.children].indexOf(event.target.closest('li'));
    if (index >= 0) take(index);
  });
  document.getElementById('composer').append(box);
  return box;
}

function heard() {
  const known = document.getElementById('p-mention-heard');
  if (known) return known;
  const line = Object.assign(document.createElement('span'), { id: 'p-mention-heard', className: 'p-sr' });
  line.setAttribute('role', 'status');
  document.body.append(line);
  return line;
}

function mark(index) {
  open.chosen = index;
  [...list().children].forEach((option, at) => option.setAttribute('aria-selected', String(at === index)));
  area().setAttribute('aria-activedescendant', `p-mention-${index}`);
  list().children[index].scrollIntoView({ block: 'nearest' });
}

function close() {
  if (!open) return;
  open = null;
  list()?.remove();
  heard().textContent = '';
  for (const name of ['aria-activedescendant', 'aria-controls']) area()?.removeAttribute(name);
}

function take(index) {
  const { found, take: act } = open;
  act(found[index]);
}

function insert({ name, row }) {
  const field = area();
  const { at } = open;
  const end = field.selectionStart;
  const after = field.value.slice(end);
  const said = name + (/^\s/.test(after) ? '' : ' ');
  const caret = at + 1 + said.length + (/^\s/.test(after) ? 1 : 0);
  if (row.closest('#p-bar-libraries') && row.dataset.on !== 'true') ask({ do: 'use', id: row.dataset.id, on: true });
  write(field.value.slice(0, at + 1) + said + after, caret, caret);
}

// Puts a text into the composer and selects a part of it.
export function write(text, from, to) {
  const field = area();
  close();
  put(field, text);
  field.focus();
  field.setSelectionRange(from, to);
  // The page's framework writes the text once more.
  requestAnimationFrame(() => { if (document.activeElement === field) field.setSelectionRange(from, to); });
}

function pressed(event) {
  if (!open || event.target !== area() || event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const n = open.found.length;
  const act = {
    ArrowDown: () => mark((open.chosen + 1) % n),
    ArrowUp: () => mark((open.chosen + n - 1) % n),
    Enter: () => take(open.chosen),
    Tab: () => take(open.chosen),
    Escape: () => { dismissed = open.at; close(); },
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  act();
}

export function start() {
  addEventListener('keydown', pressed, true);
  addEventListener('compositionstart', (event) => { if (event.target === area()) { typing = true; close(); } }, true);
  addEventListener('compositionend', (event) => { if (event.target === area()) { typing = false; setTimeout(refresh, 0); } }, true);
  addEventListener('input', (event) => { if (event.target === area()) refresh(); });
  document.addEventListener('selectionchange', () => { if (document.activeElement === area()) refresh(); });
  addEventListener('focusout', (event) => { if (event.target === area()) close(); });
  onChange(() => { if (open?.label === 'mention' && !offered().length) close(); });
}
