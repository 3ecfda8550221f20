// Several conversations at once: chosen by X, by Ctrl or Shift and a click, or by a long press; moved, archived, deleted.
// What is chosen can also be dragged onto a folder.
import { closeMenu, openForms, openPlaces } from './dialogs.js';
import { keepFocus } from './focus.js';
import { archiveAll, deleteAll, moveAll } from './keeping.js';
import { everyId, folderOf, hasMore } from './list.js';
import { make } from './models_form.js';
import { onChange } from './state.js';
import { say } from './words.js';

const HELD = 500;  // milliseconds of a finger on a row
const KIND = 'text/x-parlour';
const MOST_NAMED = 1000;  // by the address of an export
const chosen = new Map();  // each with the folder that it is in
let all = 0;       // how many there are, where some are not on the page
let last = '';     // the row that a range begins at
let head = null;
let bar = null;
let pressing = 0;
let held = '';     // the row on which a long press ended: its click is no click

const links = () => [...document.querySelectorAll('#history nav a[data-open]')];
const linkTo = (id) => links().find((link) => link.dataset.open === id);
const isArchive = () => Boolean(document.querySelector('#history .p-back'));

export const isChoosing = () => chosen.size > 0;

function draw() {
  const there = new Set(links().map((link) => link.dataset.open));
  if (!hasMore()) for (const id of chosen.keys()) if (there.size && !there.has(id)) chosen.delete(id);
  const { dataset } = document.documentElement;
  if (isChoosing()) dataset.choosing = '';
  else delete dataset.choosing;
  for (const link of links()) {
    const row = link.closest('li');
    const is = chosen.has(link.dataset.open);
    if (row.classList.contains('p-chosen') !== is) row.classList.toggle('p-chosen', is);
    if (isChoosing()) {
      if (link.getAttribute('aria-checked') !== String(is)) { link.setAttribute('role', 'checkbox'); link.setAttribute('aria-checked', String(is)); }
    } else if (link.hasAttribute('aria-checked')) { link.removeAttribute('role'); link.removeAttribute('aria-checked'); }
    if (!link.hasAttribute('draggable')) link.draggable = true;
  }
  if (!head) build();
  if (!head) return;  // the page is not drawn yet
  if (head.hidden === isChoosing()) head.hidden = bar.hidden = !isChoosing();
  if (!isChoosing()) return;
  text(head.querySelector('.p-said'), say('chosen', { n: chosen.size }));
  text(head.querySelector('[data-choose="all"]'), say('chosen_all', { n: hasMore() ? all || undefined : links().length }));
  text(bar.querySelector('[data-choose="archive"]'), say(isArchive() ? 'unarchive' : 'archive'));
  bar.querySelector('[data-choose="move"]').hidden = isArchive();
  bar.querySelector('[data-choose="export"]').hidden = chosen.size > MOST_NAMED;
}

function text(element, said) { if (element.textContent !== said) element.textContent = said; }

function build() {
  const side = document.getElementById('side');
  if (!side) return;
  const act = (what, said, kind = '') => make('button', { type: 'button', className: kind, textContent: said, attributes: { 'data-choose': what } });
  const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'data-choose': 'none', 'aria-label': say('close') } });
  head = make('div', { className: 'p-chosen-head' }, make('span', { className: 'p-said', attributes: { role: 'status' } }), act('all', ''), close);
  bar = make('div', { className: 'p-chosen-bar', attributes: { role: 'group', 'aria-label': say('chosen_acts') } },
    act('move', say('move')), act('archive', say('archive')), act('export', say('export')), act('delete', say('delete'), 'p-danger'));
  side.append(head, bar);
}

function none() {
  chosen.clear();
  last = '';
  draw();
}

export function toggle(id, on = !chosen.has(id)) {
  if (on && !isChoosing()) count();
  if (on) chosen.set(id, folderOf(id));
  else chosen.delete(id);
  last = id;
  draw();
}

async function count() {
  if (!hasMore()) return;
  all = (await everyId()).length;
  draw();
}

async function upTo(id) {
  const every = await everyId();
  const ids = every.map(([one]) => one);
  const [from, to] = [ids.indexOf(last), ids.indexOf(id)];
  if (from < 0 || to < 0) return toggle(id, true);
  for (const [one, folder] of every.slice(Math.min(from, to), Math.max(from, to) + 1)) chosen.set(one, folder);
  draw();
}

const ACTS = {
  none: () => { const id = last; none(); linkTo(id)?.focus(); },
  all: async () => { for (const [id, folder] of await everyId()) chosen.set(id, folder); draw(); },
  move: (button) => openPlaces(button, (folder, name) => done((ids, from) => moveAll(ids, folder, { name, from }))),
  archive: () => done((ids) => archiveAll(ids, !isArchive())),
  export: (button) => openForms(button, [...chosen.keys()]),
  delete: () => done(deleteAll),
};

function done(act) {
  const before = new Map(chosen);
  none();
  act([...before.keys()], (id) => before.get(id));
  keepFocus('.p-undo button', '#house .p-new');
}

function clicked(event) {
  const act = event.target.closest?.('[data-choose]');
  if (act) {
    event.stopImmediatePropagation();
    if (!['move', 'export'].includes(act.dataset.choose)) closeMenu();
    return ACTS[act.dataset.choose](act);
  }
  const link = event.target.closest?.('#history nav a[data-open]');
  if (!link || event.button) return;
  const id = link.dataset.open;
  const ranges = event.shiftKey;
  const picks = event.ctrlKey || event.metaKey || isChoosing() || held === id;
  if (!ranges && !picks) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (held === id) return void (held = '');
  if (ranges) upTo(id);
  else toggle(id);
}

function pressed(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open], .p-float')) return;
  const link = event.target.closest?.('#history nav li')?.querySelector(':scope > a[data-open]');
  const stop = () => { event.preventDefault(); event.stopImmediatePropagation(); };
  if (link && event.key.toLowerCase() === 'x') { stop(); return event.shiftKey ? upTo(link.dataset.open) : toggle(link.dataset.open); }
  if (!isChoosing()) return;
  if (link && event.key === ' ') { stop(); return toggle(link.dataset.open); }
  const act = event.target.closest?.('#history nav') && { e: 'archive', Delete: 'delete' }[event.key] || event.key === 'Escape' && 'none';
  if (act) { stop(); ACTS[act](); }
}

// ---- a finger that stays on a row

function touched(event) {
  clearTimeout(pressing);
  held = '';
  const link = event.pointerType === 'touch' && event.target.closest?.('#history nav a[data-open]');
  if (!link) return;
  pressing = setTimeout(() => { held = link.dataset.open; toggle(held, true); }, HELD);
}

// ---- dragged onto a folder

const folderAt = (event) => (event.dataTransfer?.types.includes(KIND) ? event.target.closest?.('#history .p-folder') : null);

function over(folder) {
  for (const one of document.querySelectorAll('#history .p-folder.p-over')) if (one !== folder) one.classList.remove('p-over');
  folder?.classList.add('p-over');
}

function dragged(event) {
  const link = event.target.closest?.('#history nav a[data-open]');
  if (!link) return;
  const ids = chosen.has(link.dataset.open) ? [...chosen.keys()] : [link.dataset.open];
  event.dataTransfer.setData(KIND, JSON.stringify(ids));
  event.dataTransfer.effectAllowed = 'move';
}

function dropped(event) {
  const folder = folderAt(event);
  over(null);
  if (!folder) return;
  event.preventDefault();
  event.stopPropagation();
  const ids = JSON.parse(event.dataTransfer.getData(KIND));
  const before = new Map(chosen);
  none();
  moveAll(ids, folder.dataset.in, { from: (id) => before.get(id) ?? folderOf(id) });
}

export function start() {
  addEventListener('click', clicked, true);
  addEventListener('keydown', pressed, true);
  addEventListener('pointerdown', touched, true);
  for (const kind of ['pointerup', 'pointercancel', 'pointermove']) {
    addEventListener(kind, (event) => { if (kind !== 'pointermove' || Math.hypot(event.movementX, event.movementY) > 6) clearTimeout(pressing); }, true);
  }
  addEventListener('p-select', ({ detail }) => { toggle(detail, true); linkTo(detail)?.focus(); });
  addEventListener('dragstart', dragged);
  addEventListener('dragover', (event) => { const folder = folderAt(event); over(folder); if (folder) event.preventDefault(); });
  addEventListener('dragend', () => over(null));
  addEventListener('drop', dropped, true);
  onChange(draw);
}
