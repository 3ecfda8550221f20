// Messages that wait for the end of a reply: taken back into the composer with their files, removed, sent by hand, and
// put into another order by their handles: with a mouse, a finger, or the arrow keys.
import { hand } from './attaching.js';
import { ask, put } from './bus.js';
import { keepFocus } from './focus.js';
import { hint } from './hint.js';
import { fileOf } from './pastes.js';
import { isNameOfPaste } from './pasting.js';
import { request } from './request.js';
import { status } from './state.js';

const area = () => document.querySelector('#composer textarea');

async function fetched({ name, address }) {
  const answer = await fetch(address, { credentials: 'same-origin' });
  if (answer.ok && isNameOfPaste(name)) return fileOf(await answer.text(), name);
  const bytes = await answer.blob();
  return answer.ok ? new File([bytes], name, { type: bytes.type }) : null;
}

// What stands in the composer already comes after it: nothing that was written is lost.
export async function takeBack(button) {
  const conversation = encodeURIComponent(status()?.conversation ?? '');
  button.disabled = true;
  const told = await request(`./conversations/${conversation}/queue/take`, 'queue_lost', { id: button.dataset.id });
  button.disabled = false;
  if (told.failed) return hint(told.failed);
  const field = area();
  put(field, [told.text, field.value].filter((text) => text.trim()).join('\n\n'));
  field.focus();
  field.setSelectionRange(told.text.length, told.text.length);
  if (told.files.length) hand((await Promise.all(told.files.map(fetched))).filter(Boolean));
}

export function removeQueued(button) {
  ask({ do: 'unqueue', id: button.dataset.id });
  area()?.focus();
}

export function sendQueued(button) {
  ask({ do: 'sendqueued', id: button.dataset.id });
  area()?.focus();
}

// ---- their order

const FAR = 4;  // pixels: less is a press, not a drag
const rows = () => [...document.querySelectorAll('#queue li[data-row]')];
const handleOf = (id) => `#queue .p-movequeued[data-id="${CSS.escape(id)}"]`;
const rowOf = (id) => rows().find((row) => row.dataset.row === id);
let drag = null;  // the row that is dragged, and what it would come before; `undefined` where it stays

function move(id, before) {
  const others = rows().map((row) => row.dataset.row).filter((one) => one !== id);
  const at = before ? others.indexOf(before) : others.length;
  const list = rows()[0].parentElement;  // in order at once: the next press counts from there
  list.insertBefore(rowOf(id), before ? rowOf(before) : null);
  ask({ do: 'movequeued', id, before });
  hint('queue_moved', { n: at + 1, total: others.length + 1 });
}

function step(event) {
  const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const { id } = event.target.closest?.('#queue .p-movequeued')?.dataset ?? {};
  if (!way || !id || event.isComposing) return;
  event.preventDefault();
  event.stopPropagation();
  const ids = rows().map((row) => row.dataset.row);
  const to = ids.indexOf(id) + way;
  if (to < 0 || to >= ids.length) return;
  move(id, way < 0 ? ids[to] : ids[to + 1] ?? '');
  keepFocus(handleOf(id));
}

function begin(event) {
  const { id } = event.target.closest?.('#queue .p-movequeued')?.dataset ?? {};
  if (!id || event.button !== 0 || !event.isPrimary) return;
  drag = { id, from: event.clientY, pointer: event.pointerId, begun: false, before: undefined };
}

function dragged(event) {
  if (!drag || event.pointerId !== drag.pointer) return;
  if (!drag.begun && Math.abs(event.clientY - drag.from) < FAR) return;
  const all = rows();
  if (!all.some((row) => row.dataset.row === drag.id)) return drop();  // it was sent meanwhile
  drag.begun = true;
  event.preventDefault();
  document.documentElement.dataset.dragging = '';
  roll(event.clientY);
  const over = all.findIndex((row) => { const box = row.getBoundingClientRect(); return event.clientY < box.top + box.height / 2; });
  const at = over < 0 ? all.length : over;
  const mine = all.findIndex((row) => row.dataset.row === drag.id);
  drag.before = at === mine || at === mine + 1 ? undefined : all[at]?.dataset.row ?? '';
  all.forEach((row, place) => {
    row.classList.toggle('p-dragged', place === mine);
    row.classList.toggle('p-before', drag.before !== undefined && place === at);
    row.classList.toggle('p-after', drag.before === '' && place === all.length - 1);
  });
}

// Rows that are out of sight come up where the pointer is at an edge of the list.
function roll(y) {
  const list = document.querySelector('#queue .p-queue');
  const box = list.getBoundingClientRect();
  if (y < box.top + 16) list.scrollTop -= 8;
  else if (y > box.bottom - 16) list.scrollTop += 8;
}

function drop(event) {
  if (!drag || event && event.pointerId !== drag.pointer) return;
  const { id, before, begun } = drag;
  drag = null;
  delete document.documentElement.dataset.dragging;
  for (const row of rows()) row.classList.remove('p-dragged', 'p-before', 'p-after');
  if (!begun || event?.type !== 'pointerup' || before === undefined) return;
  move(id, before);
  keepFocus(handleOf(id));
}

// Escape lets it go where it was, and stops no reply: it is heard here before it is heard elsewhere.
function letGo(event) {
  if (!drag?.begun || event.key !== 'Escape') return;
  event.preventDefault();
  event.stopImmediatePropagation();
  drop();
}

export function start() {
  addEventListener('pointerdown', begin);
  addEventListener('pointermove', dragged);
  addEventListener('pointerup', drop);
  addEventListener('pointercancel', drop);
  addEventListener('keydown', letGo, true);
  addEventListener('keydown', step, true);
}
