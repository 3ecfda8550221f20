// A question is changed where it stands. The old reply stays readable below, and the change becomes a version beside it.
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { hint } from './hint.js';
import { questionText } from './source.js';
import { onChange, status } from './state.js';
import { say } from './words.js';

let open = null;  // the message, its place among the questions, the sheet, and the text that was sent

const rows = () => [...document.querySelectorAll('#chat .user-row')];
const linkOf = (id) => `#chat a.p-edit[href="#do-edit-${CSS.escape(id)}"]`;
const sending = () => open?.sent !== undefined;

function make(tag, given, ...children) {
  const element = Object.assign(document.createElement(tag), given);
  element.append(...children);
  return element;
}

export function editInPlace(id, link) {
  if (open?.id === id) return open.area.focus();
  closeEdit();
  const row = link.closest('.message-row');
  const text = questionText(row);
  const versions = Number(/(\d+)\D*$/.exec(row.querySelector('.p-number')?.textContent ?? '')?.[1] ?? 1);
  const area = make('textarea', { value: text });
  area.setAttribute('aria-label', say('edit'));
  const no = make('button', { type: 'button', className: 'p-plain', textContent: say('cancel') });
  const yes = make('button', { type: 'button', className: 'p-button p-main', textContent: say('send') });
  const note = make('span', { className: 'p-becomes', textContent: say('version_becomes', { n: versions + 1 }) });
  const sheet = make('div', { className: 'p-editing' }, area, make('div', { className: 'p-row' }, note, no, yes));
  open = { id, place: rows().indexOf(row), conversation: status()?.conversation, sheet, area };
  no.addEventListener('click', closeEdit);
  yes.addEventListener('click', send);
  area.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    event.stopPropagation();
    send();
  });
  stand();
  area.focus();
  area.setSelectionRange(text.length, text.length);
}

function send() {
  if (sending() || !open.area.value.trim()) return;
  if (['running', 'stopping'].includes(status()?.state)) return hint('edit_wait');
  open.sent = open.area.value;
  open.area.readOnly = true;
  ask({ do: 'edit', id: open.id, text: open.sent });
}

export function closeEdit() {
  if (!open) return false;
  const { id, sheet } = open;
  open = null;
  sheet.remove();
  for (const row of rows()) row.classList.remove('p-edits');
  keepFocus(linkOf(id), '#composer textarea');
  return true;
}

// Rows are drawn anew while the sheet is open: another tab may have made a version of the same question.
function stand() {
  if (!open) return;
  if (status()?.conversation !== open.conversation) return void closeEdit();
  const row = document.querySelector(linkOf(open.id))?.closest('.message-row') ?? rows()[open.place];
  if (!row) return void closeEdit();
  if (sending() && questionText(row).trim() === open.sent.trim() && !row.querySelector(linkOf(open.id))) return void closeEdit();
  if (sending() && document.querySelector('[data-testid="toast-body"]')) {  // refused, and the notice says why
    open.sent = undefined;
    open.area.readOnly = false;
  }
  const place = row.querySelector('.message') ?? row;
  for (const one of rows()) one.classList.toggle('p-edits', one === row);
  if (open.sheet.parentElement === place) return;
  const had = document.activeElement === open.area || document.activeElement === document.body;
  place.append(open.sheet);
  if (had) open.area.focus({ preventScroll: true });
}

export function start() { onChange(stand); }
