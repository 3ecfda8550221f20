// Words that are selected in a reply can be quoted in the next question, copied, or gone on from elsewhere.
import { copy } from './copying.js';
import { put } from './bus.js';
import { say } from './words.js';

const GAP = 8;  // pixels above the words
// Two presses in quick succession select a word, also where they were meant for what is pressed.
const PRESSED = 'button, summary, [role="button"], a.cite';
let bar = null;
let begunOn = null;  // what of that the first of them was for

const rowOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest('#chat .bot-row');

function selected() {
  const selection = document.getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const row = rowOf(range.startContainer);
  const text = selection.toString().trim();
  return row && row === rowOf(range.endContainer) && text ? { row, range, text } : null;
}

function quote(text) {
  const field = document.querySelector('#composer textarea');
  const said = text.split('\n').map((line) => `> ${line}`).join('\n');
  put(field, `${[field.value.trimEnd(), said].filter(Boolean).join('\n\n')}\n\n`);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

function button(key, act) {
  const element = Object.assign(document.createElement('button'), { type: 'button', className: `p-do-${key}`, textContent: say(`selected_${key}`) });
  element.addEventListener('click', () => { act(element); if (key !== 'copy') close(); });
  return element;
}

function close() {
  bar?.remove();
  bar = null;
}

function show() {
  const found = selected();
  close();
  if (!found) return;
  const { row, range, text } = found;
  const fork = row.querySelector('a.p-fork');
  bar = Object.assign(document.createElement('div'), { className: 'p-selected' });
  bar.setAttribute('role', 'toolbar');
  bar.setAttribute('aria-label', say('selected'));
  bar.append(button('quote', () => quote(text)), ...(fork ? [button('fork', () => fork.click())] : []), button('copy', (it) => copy(text, it, 'selected_copy')));
  bar.addEventListener('pointerdown', (event) => event.preventDefault());  // the words stay selected
  (document.querySelector('main') ?? document.body).append(bar);
  const place = range.getBoundingClientRect();
  const left = place.left + (place.width - bar.offsetWidth) / 2;
  bar.style.left = `${Math.max(GAP, Math.min(left, innerWidth - bar.offsetWidth - GAP))}px`;
  bar.style.top = `${Math.max(GAP, place.top - bar.offsetHeight - GAP)}px`;
}

function down(event) {
  if (event.detail < 2) begunOn = event.target.closest?.(PRESSED);
  else if (begunOn) event.preventDefault();
}

export function start() {
  addEventListener('mousedown', down, true);
  addEventListener('pointerup', (event) => { if (!bar?.contains(event.target)) setTimeout(show, 0); });
  addEventListener('keyup', (event) => { if (event.shiftKey || event.key === 'Shift') show(); });
  addEventListener('scroll', close, true);
  document.addEventListener('selectionchange', () => { if (bar && !selected()) close(); });
  addEventListener('keydown', (event) => { if (event.key === 'Escape' && bar) { close(); event.stopPropagation(); } }, true);
}
