// What the reader opened in a reply belongs to that reply. Gradio keeps it with the place in the list: another
// conversation, or another version, would stand there open.
import { onChange, status } from './state.js';

const TITLE = '#chat .bot-row .thought-group > .title';
const opened = new Map();       // whether a fold of a reply is open by the reader's hand, by the reply and the way down to it
const standsFor = new WeakMap();  // of each title, what it is a fold of

// A reply that is being written has no name on the page yet.
function replyOf(row) {
  const link = row.querySelector('a.p-do[href^="#do-copy-"]')?.getAttribute('href').slice('#do-copy-'.length);
  return { name: link ?? '', conversation: status()?.conversation ?? '' };
}

function isSame(before, now) {
  if (before.name && now.name) return before.name === now.name;
  return !before.name && before.conversation === now.conversation;
}

const isOpen = (title) => title.classList.contains('expanded');
const keyOf = ({ name, conversation }, path) => `${name || `${conversation} now`} ${path}`;

// All folds within, each by its way down: those inside of one are there only while it is open.
function* foldsOf(scope, above = null, way = '') {
  let at = 0;
  for (const group of scope.querySelectorAll('.thought-group')) {
    if (group.parentElement.closest('.thought-group') !== above) continue;
    const path = `${way}/${at++}`;
    const title = group.querySelector(':scope > .title');
    if (title) yield { title, path };
    yield* foldsOf(group, group, path);
  }
}

function follow() {
  for (const row of status() ? document.querySelectorAll('#chat .bot-row') : []) {
    const reply = replyOf(row);
    for (const { title, path } of [...foldsOf(row)]) settle(title, reply, path);
  }
}

function settle(title, reply, path) {
  const before = standsFor.get(title);
  standsFor.set(title, { reply, path });
  const wished = opened.get(keyOf(reply, path));
  if (before && isSame(before.reply, reply)) {
    if (reply.name && !before.reply.name && opened.has(keyOf(before.reply, path))) opened.set(keyOf(reply, path), isOpen(title));
  } else if (before ? reply.name && Boolean(wished) !== isOpen(title) : wished && !isOpen(title)) {
    title.click();
  }
}

function pressed(event) {
  if (!event.isTrusted) return;
  const title = event.target.closest?.(TITLE);
  if (!title) return;
  setTimeout(() => {
    const { reply, path } = standsFor.get(title) ?? {};
    if (reply) opened.set(keyOf(reply, path), isOpen(title));
  }, 0);
}

export function start() {
  addEventListener('click', pressed, true);
  onChange(follow);
}
