// A demonstration in the place of a conversation. The server plays it; here are its buttons, and its address: `?demo=`.
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { onChange, status } from './state.js';

const still = matchMedia('(prefers-reduced-motion: reduce)');
const wanted = () => new URLSearchParams(location.search).get('demo') ?? '';
let asked = '';    // the one that was asked for and has not come yet
let until = 0;
let began = '';    // the one that plays, or was told to
let taken = 0;     // when taking over was asked for last

export function watch(name) {
  if (wanted() !== name) history.pushState({}, '', `./?demo=${encodeURIComponent(name)}`);
  asked = began = name;
  until = Date.now() + 15_000;
  ask({ do: 'watch', name, play: !still.matches });
}

const move = (message, ...focus) => { ask(message); keepFocus(...focus); };

export const play = () => move({ do: 'demoplay', on: true }, '#demo .p-demo-still', '#demo .p-demo-play');
export const stand = () => move({ do: 'demoplay', on: false }, '#demo .p-demo-play');
export const back = () => move({ do: 'demostep', to: 'back' }, '#demo .p-demo-back');
export const forward = () => move({ do: 'demostep', to: 'on' }, '#demo .p-demo-on');
export const stepTo = (n) => move({ do: 'demostep', to: n }, `#demo .p-marks [data-n="${n}"]`);
export const faster = () => move({ do: 'demospeed' }, '#demo .p-demo-speed');

export function takeOver() {
  if (Date.now() - taken < 1000) return;  // the second press of a double click
  taken = Date.now();
  move({ do: 'demotake' }, '#composer textarea');
}

function follow() {
  const now = status();
  if (!now) return;
  if (now.demo) document.documentElement.dataset.demo = now.demo;
  else delete document.documentElement.dataset.demo;
  if (now.demo && now.demo === wanted()) {
    asked = '';
    if (began !== now.demo) {  // its address was opened
      began = now.demo;
      if (!still.matches) ask({ do: 'demoplay', on: true });
    }
    return;
  }
  if (asked && Date.now() < until) return;
  asked = '';
  if (!now.demo) began = '';
  if (now.demo) history.pushState({}, '', `./?demo=${encodeURIComponent(now.demo)}`);
  else if (wanted()) history.replaceState({}, '', now.conversation ? `./?c=${encodeURIComponent(now.conversation)}` : './');
}

function turned() {
  const name = wanted();
  if (!status() || name === status().demo) return;
  if (name) watch(name);
  else if (!status().conversation && !new URLSearchParams(location.search).has('c')) ask({ do: 'new' });
}

export function start() {
  addEventListener('popstate', turned);
  onChange(follow);
}
