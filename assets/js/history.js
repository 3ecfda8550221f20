// The conversations by keyboard: one stop for Tab, arrows within, and a field that looks for titles.
import { ask } from './bus.js';
import { openMenu, remove, rename } from './dialogs.js';
import { archive, fold } from './keeping.js';
import { drawer, escape, openConversation } from './places.js';
import { onChange } from './state.js';
import { say } from './words.js';

let at = '';         // the conversation whose row Tab leads to; '' is that of the open one
let held = null;     // the row that the keyboard is on, to find it again when the list is drawn anew
let sifted = null;   // what was looked for, in which list
let before = null;   // where the keyboard was when the search began

const list = () => document.querySelector('#history nav');
const field = () => document.getElementById('p-find');
const rows = () => [...list()?.querySelectorAll('a') ?? []].filter((link) => !link.closest('[hidden]'));
const nameOf = (link) => link.dataset.open ?? link.dataset.folder ?? 'older';
const rowWith = (element) => element.closest('li')?.querySelector('a') ?? element.closest('a');
const menuOf = (link) => link?.parentElement.querySelector('.p-menu');
const plain = (text) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();

// ---- one stop for Tab

function arrange() {
  const shown = rows();
  const stop = shown.find((link) => nameOf(link) === at) ?? shown.find((link) => link.hasAttribute('aria-current')) ?? shown[0];
  for (const one of list()?.querySelectorAll('a, button') ?? []) {
    const index = one === stop ? 0 : -1;
    if (one.tabIndex !== index) one.tabIndex = index;
  }
}

function hold({ target }) {
  const link = list()?.contains(target) ? rowWith(target) : null;
  held = link && { name: nameOf(link), menu: target.matches('.p-menu') };
  at = held?.name ?? '';
  arrange();
}

// The list came again from the server while the keyboard was in it.
function keep() {
  if (!held || document.activeElement !== document.body || document.querySelector('dialog[open], .p-float')) return;
  const link = rows().find((one) => nameOf(one) === held.name);
  (held.menu ? menuOf(link) : link)?.focus();
}

function go(link) { link?.focus(); link?.scrollIntoView({ block: 'nearest' }); }

// What a key does on this row; nothing where it is not one of the list's.
function onRow({ key, target }) {
  const [shown, link] = [rows(), rowWith(target)];
  const place = shown.indexOf(link);
  const menu = menuOf(link);
  const { id, title, marks = '' } = menu?.dataset ?? {};
  const isOpen = link?.getAttribute('aria-expanded');
  return {
    ArrowDown: () => go(shown[place + 1]),
    ArrowUp: () => (place ? go(shown[place - 1]) : field()?.focus()),
    Home: () => go(shown[0]),
    End: () => go(shown.at(-1)),
    ArrowRight: () => { if (isOpen === 'false') fold(link); else if (menu) openMenu(menu); },
    ArrowLeft: () => { if (isOpen === 'true' && target === link) fold(link); else go(link); },
    F2: () => { if (id) rename(id, title); },
    e: () => { if (id) archive(id, title, !marks.includes('archived')); },
    Delete: () => { if (id) remove(id, title); },
  }[key];
}

// ---- by title

function sift() {
  const text = plain(field()?.value.trim() ?? '');
  const top = list()?.firstElementChild;
  if (!top || !field() || (sifted?.text === text && sifted.top === top)) return;
  if (!text && !sifted?.text) { sifted = { text, top }; return; }
  sifted = { text, top };
  const words = text.split(/\s+/);
  const fits = (row) => words.every((word) => plain(row.querySelector('a')?.textContent ?? '').includes(word));
  const left = (group) => group.querySelectorAll(':scope > li:not([hidden])').length;
  let found = 0;
  for (const group of list().querySelectorAll('ul:not(.p-folders)')) {
    for (const row of group.children) row.hidden = !fits(row);
    const here = left(group);
    found += here;
    const folder = group.closest('.p-folder');
    if (!folder) { group.hidden = group.previousElementSibling.hidden = !here; continue; }
    group.hidden = text ? !here : 'closed' in group.dataset;
    folder.hidden = Boolean(text) && !here && !fits(folder);
  }
  const folders = list().querySelector('.p-folders');
  if (folders) folders.hidden = folders.previousElementSibling.hidden = !left(folders);
  const told = document.querySelector('#house .p-found');
  told.textContent = text ? say(found ? 'find_some' : 'find_none', { n: found }) : '';
  told.classList.toggle('p-sr', found > 0);
  arrange();
}

function clear() {
  if (!field()?.value) return;
  field().value = '';
  sift();
}

export function find() {
  if (document.querySelector('dialog[open]')) return;
  if (document.activeElement !== field()) before = document.activeElement;
  if (document.getElementById('side').inert) escape();  // what lies over the list
  drawer(true);
  field()?.focus();
  field()?.select();
}

function back() {
  clear();
  const to = before?.isConnected && before !== document.body ? before : document.querySelector('#composer textarea');
  before = null;
  if (document.documentElement.dataset.drawer === 'open') drawer(false);
  else to?.focus();
}

function inField(event) {
  return {
    ArrowDown: () => go(rows()[0]),
    Enter: () => {
      const [first] = rows();
      if (!field().value.trim() || !first?.dataset.open) return;
      openConversation(first.dataset.open);
      clear();
      document.querySelector('#composer textarea')?.focus();
    },
    Escape: back,
  }[event.key];
}

function pressed(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const inList = list()?.contains(event.target);
  const act = event.target === field() ? inField(event)
    : inList ? (event.key === 'Escape' && field()?.value ? back : onRow(event)) : null;
  if (!act) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  act();
}

export function start() {
  addEventListener('focusin', hold);
  addEventListener('pointerdown', () => { held = null; }, true);
  addEventListener('keydown', pressed, true);
  addEventListener('click', ({ target }) => {
    const button = target.closest?.('#history [data-do="archived"]');
    if (button) ask({ do: 'archived', on: Boolean(button.dataset.on) });
  });
  addEventListener('input', (event) => { if (event.target === field()) sift(); });
  // Whoever opens one that was looked for sees the others again.
  addEventListener('click', (event) => { if (event.target.closest?.('#history a[data-open]')) clear(); });
  onChange(() => { sift(); arrange(); keep(); });
}
