// What is done with conversations of the list, and the line that takes it back.
import { refuse } from './attaching.js';
import { allSent, ask, put } from './bus.js';
import { keepFocus } from './focus.js';
import { folderOf } from './list.js';
import { onLeave, openConversation } from './places.js';
import { onChange, status } from './state.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

const STAYS = 10_000;  // milliseconds in which an act can be taken back

let line = null;
let over = 0;
let shown = '';       // the conversation that the server shows here
let turned = false;  // whether its reader turned away from it, or deleted it here

const foot = () => document.querySelector('#history .p-side-foot');

// Asks for something that the lists of other tabs show too, and maybe the conversation that one of them shows.
function wish(message) {
  ask(message);
  allSent().then(tellOthers);
}

function away() {
  clearTimeout(over);
  line?.replaceChildren();
  line?.classList.remove('p-there');
}

// Says what was done, with the way back: acts, or functions that do more. It is there before it speaks, or no screen reader would hear it.
export function tell(text, back, home = '#history nav a[tabindex="0"]') {
  const undo = Object.assign(document.createElement('button'), { type: 'button', textContent: say('undo') });
  undo.addEventListener('click', () => { away(); for (const one of back) typeof one === 'function' ? one() : wish(one); keepFocus(home); });
  line.replaceChildren(Object.assign(document.createElement('span'), { textContent: text }), undo);
  line.style.bottom = `${innerHeight - (foot()?.getBoundingClientRect().top ?? innerHeight) + 8}px`;
  line.classList.add('p-there');
  clearTimeout(over);
  over = setTimeout(away, STAYS);
}

// What stands in the composer belongs to the conversation that the page shows: it goes with it, and comes back with it.
function withDraft(ids) {
  const shown = status()?.conversation;
  if (!shown || !ids.includes(shown)) return [];
  const area = () => document.querySelector('#composer textarea');
  const draft = area()?.value;
  if (draft) put(area(), '');
  return [() => {
    openConversation(shown);
    if (draft && !area().value) put(area(), draft);
  }];
}

export function deleteOne(id, title) {
  const back = [{ do: 'keep', ids: [id] }, ...withDraft([id])];
  willGo([id]);
  wish({ do: 'delete', id });
  tell(say('deleted', { title }), back);
}

export function pin(id, on) { wish({ do: 'pin', ids: [id], on }); }

export function archive(id, title, on = true) {
  wish({ do: 'archive', ids: [id], on });
  tell(say(on ? 'archived' : 'unarchived', { title }), [{ do: 'archive', ids: [id], on: !on }]);
}

export function move(id, title, folder) {
  const before = folderOf(id);
  wish({ do: 'move', ids: [id], folder });
  tell(say('moved', { title }), [{ do: 'move', ids: [id], folder: before }]);
}

// ---- several at once

const many = (key, ids) => (ids.length === 1 ? say(`${key}_one`) : say(key, { n: ids.length }));

export function archiveAll(ids, on) {
  wish({ do: 'archive', ids, on });
  tell(many(on ? 'all_archived' : 'all_unarchived', ids), [{ do: 'archive', ids, on: !on }]);
}

// `from` tells the folder of each, where its row may not be there.
export function moveAll(ids, folder, { name = '', from = folderOf } = {}) {
  const before = new Map();
  for (const id of ids) {
    if (before.has(from(id))) before.get(from(id)).push(id);
    else before.set(from(id), [id]);
  }
  wish({ do: 'move', ids, folder, ...name && { name } });
  tell(many('all_moved', ids), [...before].map(([from, moved]) => ({ do: 'move', ids: moved, folder: from })));
}

export function deleteAll(ids) {
  const back = [{ do: 'keep', ids }, ...withDraft(ids)];
  willGo(ids);
  wish({ do: 'delete_all', ids });
  tell(many('all_deleted', ids), back);
}

// Who deletes here knows why the page turns to a new conversation.
export function willGo(ids = [shown]) { turned ||= ids.includes(shown); }

// Who deleted in another window may not know it here: what is typed next begins a new conversation.
function sayGone() {
  const now = status();
  if (!now || now.conversation === shown) return;
  if (shown && !turned && !now.conversation && !now.demo) refuse(say('deleted_elsewhere'), { calm: true });
  shown = now.conversation;
  turned = false;
}

export function fold(link) { ask({ do: 'fold', id: link.dataset.folder, on: link.getAttribute('aria-expanded') !== 'true' }); }

export function start() {
  line = Object.assign(document.createElement('div'), { className: 'p-undo' });
  line.setAttribute('role', 'status');
  document.body.append(line);
  onLeave((id) => { turned = id !== shown; });
  onChange(sayGone);
}
