// The history's column: drawn wider or narrower, folded to a rail of signs; remembered by the browser.
import { make } from './models_form.js';
import { onChange } from './state.js';
import { local } from './storage.js';
import { say } from './words.js';

const WIDTH = 'p-side';
const RAIL = 'p-rail';
const [LEAST, USUAL, MOST] = [220, 272, 440];
const NARROWER = 150;  // drawn narrower than this, it folds
const TALK = 560;      // as does it by itself where a wide page at the right leaves the conversation less
const root = document.documentElement;
const wide = matchMedia('(min-width: 840px)');
const three = matchMedia('(min-width: 1200px)');

let fold = null;
let handle = null;
let unfold = null;
let kept = false;  // somebody unfolded it beside a wide page, and while that is there it stays so

const width = () => Math.min(MOST, Math.max(LEAST, Number(local.get(WIDTH)) || USUAL));

// It is back by itself when the page is gone.
function crowded() {
  if (!three.matches || !('fine' in root.dataset) || 'settings' in root.dataset) kept = false;
  else return !kept && innerWidth - width() - document.getElementById('evidence').offsetWidth < TALK;
  return false;
}

function paint() {
  const close = crowded();
  const rail = wide.matches && (close || local.get(RAIL) === 'on');
  if (rail !== ('rail' in root.dataset)) root.toggleAttribute('data-rail', rail);
  const wanted = local.get(WIDTH) ? `${width()}px` : '';
  if (root.style.getPropertyValue('--p-side') !== wanted) root.style.setProperty('--p-side', wanted);
  if (!fold) return;
  const said = say(rail ? 'side_unfold' : 'side_fold');
  if (fold.title !== said) { fold.title = said; fold.setAttribute('aria-label', said); }
  const now = String(rail ? 56 : width());
  if (fold.getAttribute('aria-expanded') !== String(!rail)) fold.setAttribute('aria-expanded', String(!rail));
  if (handle.getAttribute('aria-valuenow') !== now) handle.setAttribute('aria-valuenow', now);
  // What has no words on the rail is told by its name.
  for (const one of document.querySelectorAll('#house .p-new, #p-find, #history .p-shelf')) {
    const name = rail ? one.textContent.trim() : '';
    if (one.title !== name) one.title = name;
  }
  mark(rail);
}

// The most urgent of the states in the list, on the sign of the history.
function mark(rail) {
  const { state = '', said = '' } = rail ? document.querySelector('#history nav')?.dataset ?? {} : {};
  const wanted = `${state}|${said}`;
  if (unfold.dataset.state === wanted) return;
  unfold.dataset.state = wanted;
  const sign = make('span', { className: `p-st ${state}`, attributes: { role: 'img', 'aria-label': said } });
  unfold.replaceChildren(...state ? [sign] : []);
  unfold.setAttribute('aria-label', [say('menu'), said].filter(Boolean).join(', '));
}

function setRail(on) {
  kept = !on;
  if (on) local.set(RAIL, 'on');
  else local.remove(RAIL);
  paint();
}

function setWidth(to) {
  if (to < NARROWER) return setRail(true);
  local.remove(RAIL);
  kept = true;
  const drawn = Math.round(Math.min(MOST, Math.max(LEAST, to)));
  if (drawn === USUAL) local.remove(WIDTH);
  else local.set(WIDTH, String(drawn));
  paint();
}

function drag(event) {
  if (event.button) return;
  event.preventDefault();
  handle.setPointerCapture(event.pointerId);
  root.dataset.drawing = '';
  const move = ({ clientX }) => setWidth(clientX);
  const end = () => {
    delete root.dataset.drawing;
    handle.removeEventListener('pointermove', move);
  };
  handle.addEventListener('pointermove', move);
  handle.addEventListener('pointerup', end, { once: true });
  handle.addEventListener('pointercancel', end, { once: true });
}

function pressed(event) {
  const rail = 'rail' in root.dataset;
  const to = { ArrowLeft: rail ? 0 : width() === LEAST ? 0 : width() - 32, ArrowRight: rail ? width() : width() + 32, Home: 0, End: MOST }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  setWidth(to);
}

function build() {
  const side = document.getElementById('side');
  if (fold || !side) return;
  fold = make('button', { type: 'button', className: 'p-icon p-fold-side' });
  unfold = make('button', { type: 'button', className: 'p-icon p-unfold-side', title: say('menu') });
  handle = make('div', { className: 'p-handle', tabIndex: 0, attributes: { role: 'separator', 'aria-orientation': 'vertical', 'aria-controls': 'side',
    'aria-label': say('side_width'), 'aria-valuemin': '56', 'aria-valuemax': String(MOST) } });
  fold.addEventListener('click', () => setRail(!('rail' in root.dataset)));
  unfold.addEventListener('click', () => { setRail(false); document.querySelector('#history nav a[tabindex="0"]')?.focus(); });
  handle.addEventListener('pointerdown', drag);
  handle.addEventListener('keydown', pressed);
  handle.addEventListener('dblclick', () => setWidth(USUAL));
  side.append(fold, unfold, handle);
  paint();
}

export function start() {
  paint();
  addEventListener('resize', paint);
  onChange(() => { build(); if (fold) paint(); });
}
