// Each row's own language, and words for what Gradio leaves unsaid to a screen reader.
import { onChange } from './state.js';
import { takeSources } from './source.js';

const lengths = new WeakMap();

function speakRow(row) {
  const text = row.textContent.slice(0, 600);
  if (lengths.get(row) === text.length) return;
  lengths.set(row, text.length);
  const han = (text.match(/\p{Script=Han}/gu) ?? []).length;
  const letters = (text.match(/\p{L}/gu) ?? []).length;
  if (!letters) return;
  const lang = han / letters > 0.2 ? 'zh-CN' : 'en';
  if (row.lang !== lang) row.lang = lang;
}

function describe(title) {
  const expanded = String(title.classList.contains('expanded'));
  if (title.getAttribute('aria-expanded') !== expanded) title.setAttribute('aria-expanded', expanded);
  const inner = title.querySelector('.arrow > button:not([tabindex])');
  if (inner) { inner.tabIndex = -1; inner.setAttribute('aria-hidden', 'true'); }
}

export function start() {
  onChange(() => {
    takeSources();
    document.querySelectorAll('#chat .message-row').forEach(speakRow);
    document.querySelectorAll('#chat .thought-group > .title').forEach(describe);
  });
}
