// Each row's own language and direction, and words for what Gradio leaves unsaid to a screen reader.
import { onChange } from './state.js';
import { takeSources } from './source.js';
import { say } from './words.js';

const lengths = new WeakMap();
const OTHERS = [['zh-CN', /\p{Script=Han}/gu, 0.2], ['ar', /\p{Script=Arabic}/gu, 0.5], ['he', /\p{Script=Hebrew}/gu, 0.5]];

function speakRow(row) {
  // What it says, without the names of what can be done with it: those are the page's own words.
  const asked = row.querySelector('.p-asked')?.textContent.slice(0, 600);
  const text = asked || [...row.querySelectorAll('[data-testid="user"], [data-testid="bot"]')].filter((one) => !one.querySelector('.p-acts'))
    .map((one) => one.textContent).join(' ').slice(0, 600) || row.textContent.slice(0, 600);
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
  // A button within a button: the outer one does it all, and what lies over the inert one is clicked instead of it.
  const inner = title.querySelector('.arrow > button');
  if (inner && !inner.inert) inner.inert = true;
}

// The page's own heading is the first; a reply's begin below it and leave out no level, whatever the model wrote.
function outline(row) {
  const above = [];
  for (const heading of row.querySelectorAll('.prose :is(h1, h2, h3, h4, h5, h6)')) {
    const own = Number(heading.localName[1]);
    while (above.at(-1) >= own) above.pop();
    above.push(own);
    const level = String(above.length + 1);
    if (heading.getAttribute('aria-level') !== level) heading.setAttribute('aria-level', level);
  }
}

function name(button) {
  const said = say('copy');
  if (button.getAttribute('aria-label') === said) return;
  button.setAttribute('aria-label', said);
  button.title = said;
}

// With each frame Gradio tells each message its direction, and a browser lays them all out anew, changed or not.
function tellDirectionOnce() {
  const dir = Object.getOwnPropertyDescriptor(HTMLElement.prototype, 'dir');
  Object.defineProperty(HTMLElement.prototype, 'dir', {
    ...dir,
    set(value) { if (this.getAttribute('dir') !== value) dir.set.call(this, value); },
  });
}

export function start() {
  tellDirectionOnce();
  onChange(() => {
    takeSources();
    document.querySelectorAll('#chat .message-row').forEach(speakRow);
    document.querySelectorAll('#chat .bot-row').forEach(outline);
    document.querySelectorAll('#chat .thought-group > .title').forEach(describe);
    document.querySelectorAll('#chat .copy_code_button').forEach(name);
    // Where a list has its marks, a table its first column: on the side from which its words run.
    document.querySelectorAll('#chat .prose :is(ul, ol, blockquote, table):not([dir])').forEach((one) => { one.dir = 'auto'; });
  });
}
