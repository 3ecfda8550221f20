// A question is changed where it stands, and so is the text of a reply. The old one stays: the change becomes a version
// beside it.
import { ask } from './bus.js';
import { sends } from './choices.js';
import { keepFocus } from './focus.js';
import { hint } from './hint.js';
import { request } from './request.js';
import { questionText } from './source.js';
import { onChange, status } from './state.js';
import { session } from './storage.js';
import { say } from './words.js';

const QUESTION = { act: 'edit', rows: '#chat .user-row', done: 'send', becomes: 'version_becomes' };
const REPLY = { act: 'rewrite', rows: '#chat .bot-row', done: 'rewrite_save', becomes: 'rewrite_becomes' };
let open = null;  // the kind, the message, its place among its kind, the sheet, and the text that was sent
let left = null;  // the last one that was left for another conversation, half written
const KEPT = 'p-edit:';  // what is half written in a conversation, by its name: it outlives a reload as the text of a draft does

const rows = (kind) => [...document.querySelectorAll(kind.rows)];
const linkOf = ({ kind, id }) => `#chat a.p-${kind.act}[href="#do-${kind.act}-${CSS.escape(id)}"]`;
const sending = () => open?.sent !== undefined;
const becomes = (kind, row) => say(kind.becomes, { n: Number(/(\d+)\D*$/.exec(row.querySelector('.p-number')?.textContent ?? '')?.[1] ?? 1) + 1 });

function make(tag, given, ...children) {
  const element = Object.assign(document.createElement(tag), given);
  element.append(...children);
  return element;
}

export function editInPlace(id, link) { begin(QUESTION, id, link, questionText(link.closest('.message-row'))); }

export async function rewriteInPlace(id, link) {
  const conversation = status()?.conversation;
  const told = await request(`./conversations/${encodeURIComponent(conversation)}/answers/${encodeURIComponent(id)}`, 'rewrite_failed');
  if (told.failed) return hint('rewrite_failed');
  if (link.isConnected && status()?.conversation === conversation) begin(REPLY, id, link, told.text);
}

function begin(kind, id, link, text) {
  if (open?.id === id) return open.area.focus();
  closeEdit();
  lay(kind, id, link.closest('.message-row'), text, text);
  open.area.focus();
  open.area.setSelectionRange(text.length, text.length);
}

// The sheet, with what is written on it and what stood there before.
function lay(kind, id, row, text, former) {
  const area = make('textarea', { value: text });
  area.setAttribute('aria-label', say(kind.act));
  const no = make('button', { type: 'button', className: 'p-plain', textContent: say('cancel') });
  const yes = make('button', { type: 'button', className: 'p-button p-main', textContent: say(kind.done) });
  const note = make('span', { className: 'p-becomes', textContent: becomes(kind, row) });
  const sheet = make('div', { className: 'p-editing' }, area, make('div', { className: 'p-row' }, note, no, yes));
  open = { kind, id, place: rows(kind).indexOf(row), conversation: status()?.conversation, sheet, area, note, former };
  left = null;
  no.addEventListener('click', () => closeEdit());
  yes.addEventListener('click', send);
  area.addEventListener('input', keep);
  area.addEventListener('keydown', (event) => {
    // A reply's text has many lines, and nothing is sent: there Enter is a new line, whatever it does for questions.
    if (!sends(event) || (kind === REPLY && !event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    send();
  });
  stand();
}

function send() {
  if (sending() || !open.area.value.trim()) return;
  if (['running', 'stopping'].includes(status()?.state)) return hint('edit_wait');
  open.sent = open.area.value;
  open.area.readOnly = true;
  ask({ do: open.kind.act, id: open.id, text: open.sent });
}

function keep() {
  const { kind, id, conversation, area, former } = open;
  if (area.value === former) session.remove(KEPT + conversation);
  else session.set(KEPT + conversation, JSON.stringify({ act: kind.act, id, text: area.value, former }));
}

function kept(conversation) {
  try { return JSON.parse(session.get(KEPT + conversation) ?? 'null'); } catch { return null; }
}

export function closeEdit({ keeps = false } = {}) {
  if (!open) return false;
  const { kind, sheet, conversation } = open;
  if (!keeps) session.remove(KEPT + conversation);
  const link = linkOf(open);
  open = null;
  sheet.remove();
  for (const row of rows(kind)) row.classList.remove('p-edits');
  for (const one of document.querySelectorAll('#chat .p-rewritten')) one.classList.remove('p-rewritten');
  keepFocus(link, '#composer textarea');
  return true;
}

// The version is there: its message has another name. Whether a question's is, its text says; another tab may have made one.
function isThere(row) {
  if (row.querySelector(linkOf(open))) return false;
  return open.kind === REPLY || questionText(row).trim() === open.sent.trim();
}

// Rows are drawn anew while the sheet is open: another tab may have made a version of the same message.
function stand() {
  if (!open) return void comeBack();
  if (status()?.conversation !== open.conversation) return void leave();
  const row = document.querySelector(linkOf(open))?.closest('.message-row') ?? rows(open.kind)[open.place];
  if (!row) return void closeEdit({ keeps: true });
  if (sending() && isThere(row)) return void closeEdit();
  if (sending() && document.querySelector('[data-testid="toast-body"]')) {  // refused, and the notice says why
    open.sent = undefined;
    open.area.readOnly = false;
  }
  const note = becomes(open.kind, row);
  if (open.note.textContent !== note) open.note.textContent = note;
  const place = open.kind === REPLY ? footOf(row) : row.querySelector('.message') ?? row;
  for (const one of rows(open.kind)) one.classList.toggle('p-edits', one === row);
  if (open.sheet.parentElement === place) return;
  const had = document.activeElement === open.area || document.activeElement === document.body;
  place.append(open.sheet);
  if (had) open.area.focus({ preventScroll: true });
}

function leave() {
  const { kind, id, conversation, area, former } = open;
  const half = !sending() && area.value !== former;
  closeEdit({ keeps: true });
  if (half) left = { act: kind.act, id, conversation, text: area.value, former };
}

// What was half written is there again with its conversation, also when the page was loaded anew; the keyboard stays where
// it is. What was sent meanwhile stands in the conversation already.
function comeBack() {
  const now = status()?.conversation;
  const half = !now ? null : left?.conversation === now ? left : kept(now);
  if (!half) return;
  const kind = half.act === REPLY.act ? REPLY : QUESTION;
  const row = document.querySelector(linkOf({ kind, id: half.id }))?.closest('.message-row');
  if (row) lay(kind, half.id, row, half.text, half.former);
  else if (kind === QUESTION && rows(kind).some((one) => questionText(one).trim() === half.text.trim())) session.remove(KEPT + now);
}

// The sheet stands in the last line of the reply, in place of the text above that.
function footOf(row) {
  const messages = [...row.querySelectorAll('.message')];
  const foot = messages.findLast((one) => one.querySelector('.p-acts')) ?? row;
  const answer = messages[messages.indexOf(foot) - 1];
  if (answer?.querySelector('.prose') && !answer.querySelector('.thought-group')) answer.classList.add('p-rewritten');
  return foot;
}

export function start() { onChange(stand); }
