// A long paste becomes a file of the question, which opens where it stands: the question itself stays readable.
import { hand } from './attaching.js';
import { fileOf } from './pastes.js';
import { lang, say } from './words.js';

const LINES = 40;
const LETTERS = 3000;

function pasted(event) {
  const data = event.clipboardData;
  if (!event.target.matches?.('#composer textarea') || !data || data.files.length) return;
  const text = data.getData('text/plain');
  const n = text.trimEnd().split(/\r\n?|\n/).length;
  if (n <= LINES && text.length <= LETTERS) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  hand([fileOf(text, nameOf(text, n))]);
}

// What says how long it is: few lines may be very long ones.
function nameOf(text, lines) {
  const pairs = text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0;
  const [key, n] = lines > LINES ? ['pasted', lines] : ['pasted_letters', text.length - pairs];
  return `${say(key, { n: n.toLocaleString(lang()) })}.txt`;
}

// Whether a file is called as this page calls pastes.
export function isNameOfPaste(name) {
  return ['pasted', 'pasted_letters'].some((key) => {
    const [before, after] = `${say(key, { n: '\n' })}.txt`.split('\n');
    return name.startsWith(before) && name.endsWith(after);
  });
}

// The text as it was pasted, below its chip; once more folds it.
export async function showPasted(id, link) {
  const files = link.closest('.p-files');
  const there = files.querySelector(`[data-pasted="${CSS.escape(id)}"]`);
  link.setAttribute('aria-expanded', String(!there));
  if (there) return there.remove();
  const place = Object.assign(document.createElement('pre'), { className: 'p-pasted-text', tabIndex: 0 });
  place.dataset.pasted = id;
  place.setAttribute('aria-label', link.textContent);
  files.append(place);
  try {
    const answer = await fetch(`./files/${encodeURIComponent(id)}`, { credentials: 'same-origin' });
    place.textContent = answer.ok ? await answer.text() : say('pasted_gone');
  } catch {
    place.textContent = say('lost');
  }
}

export function start() { addEventListener('paste', pasted, true); }
