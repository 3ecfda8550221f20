// Tables of a reply: taken along as CSV, and scrolled with the keyboard where they are wider than the page.
import { onChange, status } from './state.js';
import { say } from './words.js';

const WIDE = '#chat .prose :is(table, pre, .katex-display)';
const NUMBER = /^[+-]?[\d.,\s%]+$/;

// What a spreadsheet would take for a formula is text here.
const harmless = (text) => (/^[=@+\-\t]/.test(text) && !NUMBER.test(text) ? `'${text}` : text);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function words(cell) {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll('sup:has(> .cite, > .p-claim), .katex-mathml annotation, .katex-html').forEach((one) => one.remove());
  return copy.textContent.replace(/[\u2060\u200b]/g, '').replace(/\s+/g, ' ').trim();
}

export function csv(table) {
  return [...table.rows].map((row) => [...row.cells].map((cell) => quoted(harmless(words(cell)))).join(',')).join('\r\n');
}

function offer(table) {
  if (table.nextElementSibling?.matches('.p-csv')) return;
  const label = say('copy_csv');
  const button = Object.assign(document.createElement('button'), { type: 'button', className: 'p-csv', textContent: label });
  button.dataset.do = 'csv';
  table.after(button);
}

// Whatever scrolls can be reached with the keyboard; what fits needs no stop on its way.
function reach(element) {
  const scrolls = element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1;
  if (scrolls === (element.getAttribute('tabindex') === '0')) return;
  if (scrolls) element.tabIndex = 0;
  else element.removeAttribute('tabindex');
}

function look() {
  const running = status()?.state === 'running';
  const last = running ? document.querySelector('#chat .message-row:last-of-type') : null;
  // Gradio writes another reply into the same place, and knows nothing of a button that is not its own.
  for (const one of document.querySelectorAll('#chat .p-csv')) if (!one.previousElementSibling?.matches('table')) one.remove();
  for (const table of document.querySelectorAll('#chat .bot-row .prose table')) if (!last?.contains(table)) offer(table);
  for (const element of document.querySelectorAll(WIDE)) if (!last?.contains(element)) reach(element);
}

export function start() {
  onChange(look);
  addEventListener('resize', look);
}
