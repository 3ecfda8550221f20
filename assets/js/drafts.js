// One draft for each conversation, and one for a new one: its text and its files stay where they were written, and stand
// there again. The text outlives a reload as well.
import { filesBelongTo, showFilesOf } from './attaching.js';
import { put } from './bus.js';
import { isOnTheWay, onLeave } from './places.js';
import { isLeaving, sentTo } from './sending.js';
import { onChange, status } from './state.js';
import { session } from './storage.js';

const DRAFT = 'p-draft:';
let place = null;    // the conversation whose draft is in sight, '' a new one; `null` while none is known
let begins = false;  // whether the new conversation was begun, and will have a name

const area = () => document.querySelector('#composer textarea');
const read = (id) => session.get(DRAFT + id) ?? '';

function write(id, text) {
  if (text) session.set(DRAFT + id, text);
  else session.remove(DRAFT + id);
}

// A page that is left before its draft came back must not take it away.
export function keepDraft() { if (place !== null) write(place, area()?.value ?? ''); }

// The server empties the composer of what it has kept, and no event says so: the draft goes then, for what is done as a
// page is left may be lost.
function settle() { if (place !== null && area()?.value === '' && read(place)) write(place, ''); }

// The draft of the conversation that the page begins with. What began it was kept before it had a name.
export function firstDraft(id) {
  if (sentTo(id) && !read(id)) {
    write(id, read(''));
    write('', '');
  }
  place = id;
  filesBelongTo(id);
  return read(id);
}

export function noteSent() { begins = place === ''; }

// What was sent and still stands there is no draft of any conversation.
function goTo(id) {
  const field = area();
  if (place === null || !field || id === place) return;
  if (isLeaving()) {
    write(place, '');
    filesBelongTo(id);
  } else {
    keepDraft();
  }
  place = id;
  begins = false;
  const text = read(id);
  if (field.value !== text) put(field, text);
  showFilesOf(id);
}

// The server shows another conversation by itself: one that was just begun, which is the same place, or one in the place
// of what was deleted or branched off.
function follow() {
  const now = status()?.conversation;
  if (place === null || now === undefined || now === place || isOnTheWay()) return;
  if (!begins) return goTo(now);
  write('', '');
  place = now;
  begins = false;
  filesBelongTo(now);
  keepDraft();
}

export function start() {
  addEventListener('input', (event) => { if (event.target === area()) keepDraft(); }, true);
  addEventListener('pagehide', keepDraft);
  onLeave(goTo);
  onChange(() => { follow(); settle(); });
}
