// The conversations by keyboard: one stop for Tab, and arrows within.
import { ask } from './bus.js';
import { openMenu, remove, rename } from './dialogs.js';
import { archive, fold } from './keeping.js';
import { lastRow, neighbour } from './list.js';
import { onChange } from './state.js';

let at = '';         // the conversation whose row Tab leads to; '' is that of the open one
let held = null;     // the row that the keyboard is on, to find it again when the list is drawn anew

const list = () => document.querySelector('#history nav');
const rows = () => [...list()?.querySelectorAll('a') ?? []];
const nameOf = (link) => link.dataset.open ?? link.dataset.folder ?? 'older';
const rowWith = (element) => element.closest('li')?.querySelector('a') ?? element.closest('a');
const menuOf = (link) => link?.parentElement.querySelector('.p-menu');

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
  (held.menu ? menuOf(link) : link)?.focus({ preventScroll: true });
}

function go(link) { link?.focus(); link?.scrollIntoView({ block: 'nearest' }); }

// What a key does on this row; nothing where it is not one of the list's.
function onRow({ key, target }) {
  const [shown, link] = [rows(), rowWith(target)];
  const step = async (by) => { const next = await neighbour(link, by); go(next); return next; };
  const menu = menuOf(link);
  const { id, title, marks = '' } = menu?.dataset ?? {};
  const isOpen = link?.getAttribute('aria-expanded');
  return {
    ArrowDown: () => step(1),
    ArrowUp: async () => { if (!await step(-1)) document.getElementById('p-find')?.focus(); },
    Home: () => go(shown[0]),
    End: async () => go(await lastRow()),
    ArrowRight: () => { if (isOpen === 'false') fold(link); else if (menu) openMenu(menu); },
    ArrowLeft: () => { if (isOpen === 'true' && target === link) fold(link); else go(link); },
    F2: () => { if (id) rename(id, title); },
    e: () => { if (id) archive(id, title, !marks.includes('archived')); },
    Delete: () => { if (id) remove(id, title); },
  }[key];
}

function pressed(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const act = list()?.contains(event.target) ? onRow(event) : null;
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
  onChange(() => { arrange(); keep(); });
}
