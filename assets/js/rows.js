// Each row's own language and direction, and words for what Gradio leaves unsaid to a screen reader.
import { onChange } from './state.js';
import { takeSources } from './source.js';
import { say } from './words.js';

const lengths = new WeakMap();
const OTHERS = [['zh-CN', /\p{Script=Han}/gu, 0.2], ['ar', /\p{Script=Arabic}/gu, 0.5], ['he', /\p{Script=Hebrew}/gu, 0.5]];

function speakRow(row) {
  const text = row.textContent.slice(0, 600);
  if (lengths.get(row) === text.length) return;
  lengths.set(row, text.length);
  const letters = (text.match(/\p{L}/gu) ?? []).length;
  if (!letters) return;
  const lang = OTHERS.find(([, script, share]) => (text.match(script) ?? []).length / letters > share)?.[0] ?? 'en';
  if (row.lang !== lang) row.lang = lang;
}

function describe(title) {
  const expanded = String(title.classList.contains('expanded'));
  if (title.getAttribute('aria-expanded') !== expanded) title.setAttribute('aria-expanded', expanded);
  const inner = title.querySelector('.arrow > button:not([tabindex])');
  if (inner) { inner.tabIndex = -1; inner.setAttribute('aria-hidden', 'true'); }
}

function name(button) {
  const said = say('copy');
  if (button.getAttribute('aria-label') === said) return;
  button.setAttribute('aria-label', said);
  button.title = said;
}

export function start() {
  onChange(() => {
    takeSources();
    document.querySelectorAll('#chat .message-row').forEach(speakRow);
    document.querySelectorAll('#chat .thought-group > .title').forEach(describe);
    document.querySelectorAll('#chat .copy_code_button').forEach(name);
    // Where a list has its marks, a table its first column: on the side from which its words run.
    document.querySelectorAll('#chat .prose :is(ul, ol, blockquote, table):not([dir])').forEach((one) => { one.dir = 'auto'; });
  });
}
