// The page a claim came from: where it is scrolled to, how large it is shown, what is unfolded.
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { onChange } from './state.js';

const root = document.documentElement;
const wide = matchMedia('(min-width: 1200px)');
const ZOOMS = ['1', '1.5', '2', '3'];
const MARKS = ['.p-strong', '.p-m3', '.p-hl.p-on', '.p-m2'];
const AGAIN = 1500;  // milliseconds
const SELDOM = 15000;
const PASSAGE = '.p-hl.p-on';
let shown = { place: '', kind: '', desk: null, at: null, put: '', mark: '' };
let listed = '';
let stayed = 0;
let keyed = false;  // whether what opens was asked for with a key

// Of the marks of a reply that say the same, which one this is: each may stand behind another sentence. Those inside
// of bubbles, of passages and of agents that were asked, stand behind none of the reply's own.
export function occurrence(link) {
  if (!link.closest('#chat')) return 0;
  const same = document.querySelectorAll(`#chat a.cite[href="${CSS.escape(link.getAttribute('href'))}"]`);
  return Math.max(0, [...same].filter((one) => !one.closest('.thought-group')).indexOf(link));
}

export function whole() {
  root.dataset.page = root.dataset.page === 'whole' ? 'text' : 'whole';
  zoomTo('1');
}

export function larger(steps) {
  const at = ZOOMS.indexOf(root.dataset.zoom ?? '1') + steps;
  zoomTo(ZOOMS[Math.max(0, Math.min(ZOOMS.length - 1, at))]);
}

// A page that is shown large gets a finer picture, once that has come.
function sharpen() {
  const picture = document.querySelector('#page .p-sheet img');
  if (!picture || Number(root.dataset.zoom ?? 1) < 2 || picture.src.includes('?')) return;
  const finer = new Image();
  finer.addEventListener('load', () => { picture.src = finer.src; });
  finer.src = `${picture.src}?zoom=4`;
}

function zoomTo(zoom) {
  root.dataset.zoom = zoom;
  sharpen();
  toMark(document.querySelector('#page .p-evidence'));
}

// What is marked is marked once its picture is there.
function arrived(picture) {
  if (picture.complete && picture.naturalWidth) picture.closest('#page .p-sheet')?.classList.add('p-there');
}

export function unfold(button) {
  const open = button.closest('li').classList.toggle('p-whole-quote');
  button.setAttribute('aria-expanded', String(open));
}

const strongest = (desk) => MARKS.find((one) => desk?.querySelector(one)) ?? '';

const placeOf = (desk) => [desk.scrollLeft, desk.scrollTop];

function toMark(page) {
  shown.at = null;
  const desk = page?.querySelector('.p-desk');
  const kind = strongest(desk);
  shown.mark = kind;
  if (!kind) return;
  const here = desk.getBoundingClientRect();
  const leftOf = (selector) => Math.min(...[...desk.querySelectorAll(selector)].map((one) => one.getBoundingClientRect().left - here.left));
  const down = desk.querySelector(kind).getBoundingClientRect().top - here.top;
  if (down < 24 || down > desk.clientHeight - 60) desk.scrollTop += down - desk.clientHeight / 3;
  // Lines are read from their beginning: a sentence that starts further right must not push it out of sight.
  const [mark, passage] = [leftOf(kind), leftOf(`${kind}, ${PASSAGE}`)];
  const left = mark - passage > desk.clientWidth - 92 ? mark : passage;
  if (left < 0 || mark > desk.clientWidth - 60) desk.scrollLeft += left - 32;
  shown.put = placeOf(desk).join();
}

// The list of all passages comes into sight when it is unfolded or turned; else what is open in it, or above it.
function toListed(page) {
  const list = page?.querySelector('.p-chunks');
  const now = list?.dataset.start ?? '';
  const turned = now && now !== listed;
  listed = now;
  const chosen = page?.querySelector('.p-chunks .p-here');
  if (turned && !chosen) page.querySelector('.p-all').scrollIntoView({ block: 'start' });
  return chosen ?? page?.querySelector('.p-quotes .p-here');
}

// What another kind of panel came over is scrolled, when it is back, to where it was.
const ROLLS = '#page :is(.p-desk, .p-behind, .p-steer-body)';
const kindOf = (page) => ['p-steer', 'p-inspect'].find((kind) => page.classList.contains(kind)) ?? 'p-page';
const nameOf = (page) => `${kindOf(page)} ${page.dataset.open ?? ''} ${page.dataset.place ?? ''}`;
const left = new Map();  // by its name
let rolled = { name: '', at: null };

function comeBack() {
  const page = document.querySelector('#page .p-evidence');
  const name = page ? nameOf(page) : '';
  if (name === rolled.name) return;
  const [was, now] = [rolled.name, name].map((one) => one.split(' ')[0]);
  if (was && now && was !== now) left.set(rolled.name, rolled.at);
  if (!page) left.clear();
  rolled = { name, at: left.get(name) ?? null };
  left.delete(name);
  if (rolled.at) document.querySelector(ROLLS)?.scrollTo(...rolled.at);
}

// What ran when stays unfolded while the calls of the same reply are opened and closed.
let unfolded = '';

function keepTrace() {
  const trace = document.querySelector('#page .p-trace');
  if (trace && unfolded === trace.closest('.p-inspect').dataset.open && !trace.open) trace.open = true;
}

function toggled({ target }) {
  if (target.matches?.('#page .p-trace')) unfolded = target.open ? target.closest('.p-inspect').dataset.open : '';
}

// A page that is still being read is asked for, more and more seldom, until it is there or something else stands there.
let asking = 0;
let pause = AGAIN;

function awaitPage() {
  const isUnread = () => document.querySelector('#page [data-unread]');
  if (!isUnread()) pause = AGAIN;
  else if (!asking) asking = setTimeout(() => {
    asking = 0;
    if (isUnread() && !document.hidden) ask({ do: 'again' });
    pause = Math.min(pause * 1.5, SELDOM);
    awaitPage();
  }, pause);
}

function showMark() {
  const page = document.querySelector('#page .p-evidence');
  const desk = page?.querySelector('.p-desk') ?? null;
  const now = page ? page.dataset.open + page.dataset.place : '';
  if (now === shown.place && desk === shown.desk) return;
  const isSame = now === shown.place;
  const [before, kind] = [shown.kind, page ? kindOf(page) : ''];
  shown = { ...shown, place: now, kind, desk };
  if (!page) return;
  page.querySelectorAll('.p-sheet img').forEach(arrived);
  sharpen();
  const isPut = !shown.at || shown.at.join() === shown.put;  // nobody has scrolled it since
  const isFound = isPut && strongest(desk) !== shown.mark;  // what is cited is known now that the page was read
  if (isSame && shown.at && !isFound) desk?.scrollTo(...shown.at);  // drawn anew because a list was unfolded, say
  else toMark(page);
  toListed(page)?.scrollIntoView({ block: 'nearest' });
  // Beside the conversation one goes on from mark to mark, or elsewhere; what a key opens there is gone into.
  const isBeside = wide.matches && !(keyed && kind !== before && kind !== 'p-page');
  if (isSame || isBeside || root.dataset.evidence !== 'open' || Date.now() - stayed < 3000) return;
  page.querySelector('.p-close')?.focus({ preventScroll: true });
}

function scrolled({ target }) {
  if (target.matches?.(ROLLS) && rolled.name) rolled.at = [target.scrollLeft, target.scrollTop];
  if (target === shown.desk) shown.at = placeOf(target);
}

// A button that was pressed is drawn anew with its page: the keyboard stays on it.
export function stay(button) {
  stayed = Date.now();
  if (button.dataset.do === 'chunk') return keepFocus('#page .p-chunks .p-here button');
  const name = ['p-before', 'p-after', 'p-unfold', 'p-rows'].find((one) => button.classList.contains(one));
  if (name) keepFocus(`#page .${button.parentElement.classList[0]} .${name}:not([disabled])`, '#page .p-desk');
}

function pressed(event) {
  if (!event.target.closest?.('#page') || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = { '+': () => larger(1), '=': () => larger(1), '-': () => larger(-1), 0: whole }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

export function start() {
  onChange(() => { showMark(); keepTrace(); comeBack(); awaitPage(); });
  addEventListener('toggle', toggled, true);
  addEventListener('keydown', pressed);
  addEventListener('keydown', () => { keyed = true; }, true);
  addEventListener('pointerdown', () => { keyed = false; }, true);
  addEventListener('scroll', scrolled, true);
  document.addEventListener('load', ({ target }) => { if (target instanceof HTMLImageElement) arrived(target); }, true);  // it never reaches the window
}
