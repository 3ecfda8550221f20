// How long a reply has been waiting for its first word: seconds, once a second. A clock that is wrong tells no hours.
// While Parlour is away it rests: nobody knows whether anything is waited for.
import { onChange } from './state.js';
import { say } from './words.js';

const LONGEST = 900_000; // milliseconds: what seems to have begun earlier was begun by another clock
const begun = new Map();
const known = new WeakMap();
let ticking = 0;

function began(element) {
  if (known.has(element)) return known.get(element);
  const at = Date.parse(element.title);
  const passed = Date.now() - at;
  if (!begun.has(at)) begun.set(at, passed >= 0 && passed < LONGEST ? at : Date.now());
  element.removeAttribute('title');
  known.set(element, begun.get(at));
  return begun.get(at);
}

function tick() {
  ticking = 0;
  const waiting = document.querySelectorAll('#chat .p-since');
  const rests = document.documentElement.dataset.connection === 'lost';
  for (const element of rests ? [] : waiting) {
    const seconds = Math.floor((Date.now() - began(element)) / 1000);
    const text = seconds > 1 ? say('since', { n: seconds }) : '';
    if (element.textContent !== text) element.textContent = text;
  }
  if (waiting.length) ticking = setTimeout(tick, 1000);
  else begun.clear();
}

export function start() {
  onChange(() => { if (!ticking && document.querySelector('#chat .p-since')) tick(); });
}
