// One draft for each conversation, and one for a new one: its text and its files stay where they were written, and stand
// there again. The text outlives a reload as well. To the draft of a new one belongs what is chosen for it, such as that it
// is temporary: the server tells it, forgets it as its reader turns away, and is told it again with the draft.
import { filesBelongTo, hasFiles, showFilesOf } from './attaching.js';
import { ask, put } from './bus.js';
import { move } from './pastes.js';
import { isOnTheWay, onLeave } from './places.js';
import { isLeaving, sentTo } from './sending.js';
import { onChange, settle as lookAgain, status } from './state.js';
import { session } from './storage.js';

const DRAFT = 'p-draft:';
const CHOSEN = 'p-chosen';
const PATIENCE = 5000;  // milliseconds until what was chosen is told once more
let place = null;    // the conversation whose draft is in sight, '' a new one; `null` while none is known
let told = { of: '', until: 0 };
let gone = '';      // the name of what was chosen for the new conversation that is none any more, which a frame may still show
let begins = false;  // whether the new conversation was begun, and will have a name
let leaving = null;  // { at }: whose draft was sent, until the composer is emptied of it
let early = null;    // { at, before, text }: what is typed while no place is known, and the draft that the address has
let composing = false;

const named = () => new URLSearchParams(location.search).get('c') ?? '';
const area = () => document.querySelector('#composer textarea');
const read = (id) => session.get(DRAFT + id) ?? '';

function write(id, text) {
  if (text) session.set(DRAFT + id, text);
  else session.remove(DRAFT + id);
}

function chosen() {
  try { return JSON.parse(session.get(CHOSEN) ?? '{}'); } catch { return {}; }
}

const isChosen = (what) => Object.keys(what).some((name) => name !== 'of');

function forgetChosen() {
  gone = JSON.parse(status()?.chosen ?? '{}').of ?? gone;
  session.remove(CHOSEN);
}

// A new conversation was begun: the next one has no draft, and nothing is chosen for it.
function forget() {
  write('', '');
  forgetChosen();
}

// What was chosen for a new conversation whose draft is there; without one, the next new one is as any other.
function chosenAgain() {
  const kept = chosen();
  if (read('') || hasFiles('') || kept.change?.instructions && !begins) return isChosen(kept) ? { chosen: kept } : {};
  forgetChosen();
  return {};
}

// The tab of the server may be another one than before, which knows of nothing: it is told first, for what it says would
// take the place of what is kept.
function keepChosen() {
  const now = status();
  if (place !== '' || !now?.chosen) return;
  const kept = chosen();
  const { of } = JSON.parse(now.chosen);
  if (of === gone) return;
  if (of === kept.of || !isChosen(kept)) return session.set(CHOSEN, now.chosen);
  if (told.of === kept.of && Date.now() < told.until) return;
  told = { of: kept.of, until: Date.now() + PATIENCE };
  ask({ do: 'chosen', chosen: kept });
}

const joined = (before, text) => [before, text].filter(Boolean).join('\n');

// What is typed before the page knows where it is belongs to the place that its address names, after the draft that
// this place has: that one has not come back yet.
function keepEarly() {
  const text = area()?.value ?? '';
  if (!early && !text) return;
  early ??= { at: named(), before: read(named()) };
  early.text = text;
  write(early.at, joined(early.before, text));
}

function keepDraft() {
  if (place === null) keepEarly();
  else write(place, area()?.value ?? '');
}

// An empty composer tells that a draft was sent or emptied only where this was seen: Gradio may empty it for reasons of
// its own, late as the page begins, and may have taken it out of the page.
function keepAsLeft() {
  if (area()?.value) keepDraft();
  else if (place !== null && leaving?.at === place) write(place, '');
}

// The server empties the composer of what it has kept, and no event says so: the draft goes then, for what is done as a
// page is left may be lost. What else empties it without an event takes no draft away.
function settle() {
  const field = area();
  if (place === null || !field || field.value) return;
  const sent = leaving?.at === place;
  if (!sent) return read(place) ? put(field, read(place)) : undefined;
  leaving = null;
  write(place, '');
}

// The draft of the conversation that the page begins with; nothing while it is not known, or a character is being chosen
// for what is typed. What began the conversation was kept before it had a name.
export function firstDraft(id) {
  if (composing && document.activeElement === area()) return null;
  const typed = early?.text ?? '';
  if (early) write(early.at, early.before);
  if (sentTo(id) && !read(id)) {
    write(id, read(''));
    forget();
    move(id, { from: '' });
  }
  if (leaving) leaving.at = id;
  [place, early] = [id, null];
  filesBelongTo(id);
  keepChosen();  // before its text stands in the composer, and could be sent
  return { kept: read(id), typed };
}

function compose({ target, type }) {
  if (target !== area()) return;
  composing = type === 'compositionstart';
  if (!composing && place === null) setTimeout(lookAgain, 0);
}

// Both stand there, and the cursor stays where it was.
export function bringBack(kept, typed) {
  const field = area();
  const text = joined(kept, typed);
  const at = [field.selectionStart, field.selectionEnd].map((one) => one + text.length - typed.length);
  if (field.value !== text) put(field, text);
  else keepDraft();
  if (typed) field.setSelectionRange(...at);
}

// A question was sent, or a beginning chosen; `text` is what the composer will be emptied of.
export function noteSent(text = '') {
  begins = place === '';
  if (text) leaving = { at: place };
}

// What was sent and still stands there is no draft of any conversation.
function goTo(id) {
  const field = area();
  if (place === null || !field || id === place && id) return {};
  if (isLeaving()) {
    write(place, '');
    if (place === '') forgetChosen();
    filesBelongTo(id);
  } else {
    keepAsLeft();
  }
  const again = id === '' || place === '' ? chosenAgain() : {};
  if (id === place) return again;
  place = id;
  begins = false;
  const text = read(id);
  if (field.value !== text) put(field, text);
  showFilesOf(id);
  return id === '' ? again : {};
}

// The conversation was deleted in another window: what is written for it begins the new one.
function comeAlong() {
  const text = joined(read(''), area().value);
  write(place, '');
  place = '';
  filesBelongTo('', { waiting: true });
  put(area(), text);  // kept as the new one's draft, as what is typed is
}

// The server shows another conversation by itself: one that was just begun, which is the same place, or one in the place
// of what was deleted or branched off.
function follow() {
  const now = status()?.conversation;
  if (place === null || now === undefined || now === place || isOnTheWay()) return;
  if (!begins) return now === '' && area()?.value && leaving?.at !== place ? comeAlong() : goTo(now);
  forget();
  if (leaving?.at === place) leaving.at = now;
  place = now;
  begins = false;
  filesBelongTo(now, { waiting: true });
  keepDraft();
}

export function start() {
  keepEarly();
  addEventListener('input', (event) => { if (event.target === area()) keepDraft(); }, true);
  for (const kind of ['compositionstart', 'compositionend']) addEventListener(kind, compose, true);
  addEventListener('pagehide', keepAsLeft);
  onLeave(goTo);
  onChange(() => { follow(); keepChosen(); settle(); });
}
