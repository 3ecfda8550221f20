// What Enter does: it sends, or lets the message wait for the end of the reply. What it does not do: send twice, send
// before the files are there, or send the letters that a Chinese keyboard is still choosing from.
import { allSent, put } from './bus.js';
import { hint } from './hint.js';
import { nameAhead } from './places.js';
import { toEnd } from './scroll.js';
import { questionText } from './source.js';
import { onChange, status } from './state.js';
import { begins } from './stopping.js';
import { session } from './storage.js';

const SENT = 'p-sent';
const TWICE = 1000;  // milliseconds
const ON_ITS_WAY = 3000;
const CHOSEN = 30;  // some keyboards end the choice of a character first, and then say which key has ended it
const CUT = 300;  // letters of a message that its row in the queue shows
const NOTHING = { what: '', at: 0 };
let last = NOTHING;
let room = '';   // the conversation that the page shows
let sent = '';   // the text that was let through
let until = 0;   // while it is on its way to the server
let typed = '';  // what stands in the composer by the reader's own hand
let leaving = null;  // the text that was let through, until its request leaves the page
let hurried = false;  // whether the reply is stopped for it
let chosen = -CHOSEN;  // when a character was chosen, if its key is still to come
let keyed = false;  // whether the key came before

// `waits` tells whether files are still on their way; it says so, too.
function held(text, files, waits, now) {
  const state = status()?.state;
  if (['running', 'stopping'].includes(state) && !text.trim() && !files.length) return true;
  if (onItsWay() && text !== sent) return hint('busy'), true;
  if (waits()) return true;
  const what = JSON.stringify([text, files]);
  if (text.trim() && what === last.what && (onItsWay() || performance.now() - last.at < TWICE)) return true;
  last = { what, at: performance.now() };
  [sent, typed, until, leaving] = [text, text, text.trim() ? last.at + ON_ITS_WAY : 0, text];
  hurried = state === 'stopping' || state === 'running' && now;
  if (!text.trim() && !files.length) return false;
  if (state !== 'running') begins();
  const name = nameAhead();
  session.set(SENT, JSON.stringify([name || status()?.conversation, text, name ? -1 : timesShown(text)]));
  return false;
}

// How often the conversation has this text as a question, asked or waiting.
function timesShown(text) {
  const said = text.trim();
  const asked = [...document.querySelectorAll('#chat .user-row')].map((row) => questionText(row).trim());
  const waiting = [...document.querySelectorAll('#queue .p-said')].map((row) => row.textContent);
  const cut = [...said].slice(0, CUT).join('');
  return asked.filter((one) => one === said).length + waiting.filter((one) => one === cut).length;
}

const lastSent = () => JSON.parse(session.get(SENT) ?? '[]');

// Whether something was sent to a conversation of this name as the page was left, however far it came.
export const sentTo = (name) => lastSent()[0] === name;

// Whether this text was sent as the page was left, and arrived: a new conversation is there because of it, and another
// one shows it once more than before.
export function wasSent(text) {
  const [name, said, before] = lastSent();
  return said === text && name === status()?.conversation && timesShown(text) > before;
}

// Kept, it is taken out of the composer; refused, a notice says why.
function onItsWay() { return performance.now() < until && !document.querySelector('[data-testid="toast-body"]'); }

// The composer is emptied when the question is kept, a moment later: what was typed in that moment is put back.
function putBack(field) {
  if (!field || field.value) return;
  if (sent) session.remove(SENT);  // by this page, which saw it arrive: the same may be written again
  until = 0;
  const mine = typed.startsWith(sent) ? typed.slice(sent.length) : typed;
  typed = '';
  if (mine.trim()) put(field, mine);
}

// Whether what stands in the composer has been sent, and is only not taken out of it yet.
export const isLeaving = () => onItsWay() && document.querySelector('#composer textarea')?.value === sent;

// Gradio reads the composer some turns after Enter; the question is what stood there at Enter.
function asItStood(options) {
  if (leaving === null || typeof options?.body !== 'string') return options;
  let call;
  try { call = JSON.parse(options.body); } catch { return options; }
  const [draft] = call?.data ?? [];
  if (typeof draft?.text !== 'string' || !Array.isArray(draft.files)) return options;
  draft.text = leaving;
  leaving = null;
  const headers = new Headers(options.headers);
  if (hurried) headers.set('x-parlour-send', 'now');
  return { ...options, headers, body: JSON.stringify(call) };
}

function guardRequests() {
  const send = window.fetch;
  window.fetch = async (to, options) => {
    const mine = asItStood(options);
    if (mine !== options) await allSent();  // what was chosen before Enter reaches the server first
    return send(to, mine);
  };
}

const composing = (event) => event.isComposing || event.keyCode === 229;
const ended = (event) => event.timeStamp - chosen < CHOSEN;

export function start(area, files, waits, sends) {
  guardRequests();
  let stopped = false;  // a key that was held back stays so from its first event to its last
  const stop = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };
  // Who lets a message wait reads on where they are.
  const go = () => { sends(); if (status()?.state !== 'running' || hurried) toEnd(); };
  let now = false;
  addEventListener('compositionend', (event) => {
    if (event.target === area()) [chosen, keyed] = [keyed ? -CHOSEN : event.timeStamp, false];
  }, true);
  addEventListener('input', (event) => { if (event.target === area()) typed = area().value; }, true);
  onChange(() => {
    putBack(area());
    if (status()?.conversation === room) return;
    room = status()?.conversation;
    last = NOTHING;  // elsewhere the same may be asked again
  });
  addEventListener('keydown', (event) => {
    if (event.target !== area() || event.key !== 'Enter') return;
    // The key that ends the choice of a Chinese character is not the key that sends.
    if (composing(event)) return void ([keyed, chosen] = [event.isComposing, -CHOSEN], event.stopImmediatePropagation());
    if (ended(event)) return void ([stopped, chosen] = [true, -CHOSEN], stop(event));
    if (event.shiftKey) return;
    if (event.ctrlKey || event.metaKey) {  // not every system types Enter then: its button is pressed instead
      stop(event);
      now = true;
      document.querySelector('#composer .submit-button')?.click();
      now = false;
      return;
    }
    stopped = held(area().value, files(), waits);
    if (stopped) stop(event);
    else go();
  }, true);
  addEventListener('keypress', (event) => {
    if (event.target !== area() || event.key !== 'Enter') return;
    if (composing(event)) event.stopImmediatePropagation();
    else if (!event.shiftKey && stopped) stop(event);
  }, true);
  addEventListener('click', (event) => {
    if (!event.target.closest?.('#composer .submit-button')) return;
    if (held(area()?.value ?? '', files(), waits, now)) stop(event);
    else go();
  }, true);
}
