// What is copied: a message as it was written, a reply without the signs of Markdown, code.
import { plainText } from './plain_text.js';
import { questionText, replyText } from './source.js';
import { say } from './words.js';

const AS_TEXT = 6000;  // milliseconds

const textOf = (row) => (row.classList.contains('user-row') ? questionText(row) : replyText(row));

// A reply is copied as its model wrote it; beside the button stands for a moment the way to have it without the signs.
export function copyMessage(link) {
  const row = link.closest('.message-row');
  copy(textOf(row), link);
  if (row.classList.contains('user-row')) return;
  document.querySelector('#chat .p-as-text')?.remove();
  const other = Object.assign(document.createElement('button'), { type: 'button', className: 'p-as-text', textContent: say('copy_text') });
  const away = setTimeout(() => { if (document.activeElement !== other) other.remove(); }, AS_TEXT);
  other.addEventListener('blur', () => setTimeout(() => other.remove(), 200));
  other.addEventListener('keydown', (event) => { if (event.key === 'Escape') { event.stopPropagation(); other.remove(); link.focus(); } });
  other.addEventListener('click', () => { clearTimeout(away); copy(plainText(row), link); other.remove(); link.focus(); });
  link.after(other);
  other.parentElement.classList.add('p-as-text-here');  // its place is told from there
  other.style.left = `${Math.max(0, Math.min(link.offsetLeft, other.parentElement.clientWidth - other.offsetWidth))}px`;
  other.style.top = `${link.offsetTop}px`;
}

export async function copy(text, link, label = 'copy') {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement('textarea'), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  done(link, label);
}

export function done(element, label = 'copy') {
  element.classList.add('p-done');
  element.setAttribute('aria-label', say('copied'));
  setTimeout(() => { element.classList.remove('p-done'); element.setAttribute('aria-label', say(label)); }, 1600);
}
