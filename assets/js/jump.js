// To a message that was looked for, its words marked for a while; and from words to a new conversation.
import { attached } from './attaching.js';
import { put } from './bus.js';
import { openConversation } from './places.js';
import { bring } from './scroll.js';
import { onChange, status, touched } from './state.js';

const SEEN = 2000;    // milliseconds in which the message stays marked
const READ = 20000;   // and its words: in a long message they are looked for first
const LATE = 2500;    // and after which a message without a line of its own is looked for by its words
const PATIENCE = 8000;

let wanted = null;    // { conversation, message, words, since }
let asked = null;     // { text, from, until }: what a new conversation begins with
let draft = null;     // { text, until }: what stood in the composer before
let marked = 0;
let told = 0;

const area = () => document.querySelector('#composer textarea');
const log = () => document.querySelector('#chat [role="log"]');
const letter = /[\p{L}\p{N}]/u;
const unspaced = /[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u31ff\u3400-\u9fff\uac00-\ud7af\ud800-\udfff\uf900-\ufaff\uff66-\uff9f]/;

// Small letters without accents, one for one.
const plain = (text) => text.replace(/[^\x00-\x7f]/g, (one) => {
  const base = one.normalize('NFKD')[0].toLowerCase();
  return base.length === 1 ? base : one;
}).toLowerCase();

export const wordsOf = (text) => [...new Set(plain(text).split(/\s+/).filter((word) => letter.test(word)))];

function rowOf(message) {
  const id = CSS.escape(message);
  const line = document.querySelector(`#chat a.p-do:is([href="#do-edit-${id}"], [href="#do-copy-${id}"]), #chat .p-v-${id}`);
  return line?.closest('.message-row');
}

// Where these words stand in what is seen of an element.
function ranges(element, words) {
  const found = [];
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.parentElement.closest('.p-acts, .p-sr') || !(node.parentElement.checkVisibility?.() ?? true)) continue;
    const text = plain(node.data);
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        if (at && letter.test(text[at - 1]) && !unspaced.test(word[0])) continue;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        found.push(range);
      }
    }
  }
  return found.sort((one, other) => one.compareBoundaryPoints(Range.START_TO_START, other));
}

function mark(row, found) {
  clearTimeout(marked);
  clearTimeout(told);
  document.querySelector('#chat .p-sought')?.classList.remove('p-sought');
  if (window.Highlight && CSS.highlights) CSS.highlights.set('p-sought', new Highlight(...found));
  row.classList.add('p-sought');
  marked = setTimeout(() => row.classList.remove('p-sought'), SEEN);
  told = setTimeout(() => CSS.highlights?.delete('p-sought'), READ);
}

function land() {
  if (!wanted || status()?.conversation !== wanted.conversation) return;
  const waited = Date.now() - wanted.since;
  const row = rowOf(wanted.message) ?? (waited > LATE ? log() : null);
  if (!row) return;
  const found = ranges(row, wanted.words);
  wanted = null;
  bring(() => (found[0]?.startContainer.isConnected ? found[0] : row));
  mark(row, found);
}

// Opens a conversation at a message of it, or as it is where there is none.
export function openAt(conversation, message, words) {
  openConversation(conversation, message);
  if (!touched()) area()?.focus({ preventScroll: true });
  if (!message) return;
  wanted = { conversation, message, words: wordsOf(words), since: Date.now() };
  setTimeout(land, LATE + 100);
  setTimeout(() => { if (wanted && Date.now() - wanted.since >= PATIENCE) wanted = null; }, PATIENCE);
}

function send() {
  if (!asked || status()?.conversation === asked.from && asked.from) return;
  const { text, until } = asked;
  asked = null;
  const field = area();
  if (!field || Date.now() > until) return;
  const alone = !attached().length;  // files that wait in the composer belong to another question
  if (field.value.trim() && alone) draft = { text: field.value, until: Date.now() + PATIENCE };
  put(field, text);
  if (alone) setTimeout(() => document.querySelector('#composer .submit-button')?.click(), 60);
  else field.focus();
}

// A new conversation that begins with these words.
export function askAnew(text) {
  const from = status()?.conversation ?? '';
  asked = { text, from, until: Date.now() + PATIENCE };
  if (from) openConversation('');
  else send();
}

// What somebody was writing meanwhile stands in the composer again when the words have left it.
function giveBack() {
  if (!draft || area()?.value) return;
  if (Date.now() < draft.until) put(area(), draft.text);
  draft = null;
}

export function start() { onChange(() => { land(); send(); giveBack(); }); }
