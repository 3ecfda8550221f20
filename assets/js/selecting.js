// Several conversations at once: chosen by X, by Ctrl or Shift and a click, or by a long press; moved, archived, deleted.
// What is chosen can also be dragged onto a folder.
import { closeMenu, openForms, openPlaces } from './dialogs.js';
import { keepFocus } from './focus.js';
import { archiveAll, deleteAll, moveAll } from './keeping.js';
import { make } from './models_form.js';
import { onChange } from './state.js';
import { say } from './words.js';

const HELD = 500;  // milliseconds of a finger on a row
const KIND = 'text/x-parlour';
const chosen = new Set();
let last = '';     // the row that a range begins at
let head = null;
let bar = null;
let pressing = 0;
let held = '';     // the row on which a long press ended: its click is no click

const links = () => [...document.querySelectorAll('#history nav a[data-open]')].filter((link) => !link.closest('[hidden]'));
const linkTo = (id) => links().find((link) => link.dataset.open === id);
const isArchive = () => Boolean(document.querySelector('#history .p-back'));

export const isChoosing = () => chosen.size > 0;

function draw() {
  const there = new Set([...document.querySelectorAll('#history nav a[data-open]')].map((link) => link.dataset.open));
  for (const id of chosen) if (there.size && !there.has(id)) chosen.delete(id);
  const { dataset } = document.documentElement;
  if (isChoosing()) dataset.choosing = '';
  else delete dataset.choosing;
  for (const link of document.querySelectorAll('#history nav a[data-open]')) {
    const row = link.closest('li');
    const is = chosen.has(link.dataset.open);
    if (row.classList.contains('p-chosen') !== is) row.classList.toggle('p-chosen', is);
    if (isChoosing()) {
      if (link.getAttribute('aria-checked') !== String(is)) { link.setAttribute('role', 'checkbox'); link.setAttribute('aria-checked', String(is)); }
    } else if (link.hasAttribute('aria-checked')) { link.removeAttribute('role'); link.removeAttribute('aria-checked'); }
    link.draggable = true;
  }
  if (!head) build();
  if (!head) return;  // the page is not drawn yet
  head.hidden = bar.hidden = !isChoosing();
  if (!isChoosing()) return;
  text(head.querySelector('.p-said'), say('chosen', { n: chosen.size }));
  text(head.querySelector('[data-choose="all"]'), say('chosen_all', { n: links().length }));
  text(bar.querySelector('[data-choose="archive"]'), say(isArchive() ? 'unarchive' : 'archive'));
  bar.querySelector('[data-choose="move"]').hidden = isArchive();
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
  if (on) chosen.add(id);
  else chosen.delete(id);
  last = id;
  draw();
}

function upTo(id) {
  const ids = links().map((link) => link.dataset.open);
  const [from, to] = [ids.indexOf(last), ids.indexOf(id)];
  if (from < 0) return toggle(id, true);
  for (const one of ids.slice(Math.min(from, to), Math.max(from, to) + 1)) chosen.add(one);
  draw();
}

const ACTS = {
  none: () => { const id = last; none(); linkTo(id)?.focus(); },
  all: () => { for (const link of links()) chosen.add(link.dataset.open); draw(); },
  move: (button) => openPlaces(button, (folder, name) => done((ids) => moveAll(ids, folder, name))),
  archive: () => done((ids) => archiveAll(ids, !isArchive())),
  export: (button) => openForms(button, [...chosen]),
  delete: () => done(deleteAll),
};

function done(act) {
  const ids = [...chosen];
  none();
  act(ids);
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
  const ids = chosen.has(link.dataset.open) ? [...chosen] : [link.dataset.open];
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
  none();
  moveAll(ids, folder.querySelector('a[data-folder]').dataset.folder);
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
