// The list of conversations beyond its beginning, which the server draws: fetched part by part where it is scrolled to,
// and taken out again far from what is seen. A part has its height without its rows, so nothing jumps.
import { request } from './request.js';
import { onChange, status } from './state.js';
import { say } from './words.js';

const NEAR = 900;   // pixels around what is seen in which the rows are there
const FAR = 2400;   // pixels from where on they are taken out
const ROW = 40;     // pixels, until rows were measured
const MOST = 20_000;  // conversations that one message to the server may name

let rest = null;      // what follows the beginning; it outlives the server's drawing
let parts = [];       // { after, end, rows, element, markup, asked }
let cut = '';         // the version of the list that they were cut from
let cutting = null;   // while they are being cut
let failed = '';      // the version of which nothing came
let list = null;      // the list, as it was seen last
let place = { top: 0, rows: [] };
let ids = { version: '', every: null };
let planned = false;

const find = () => document.querySelector('#history nav');
const nameOf = (link) => link.dataset.open ?? link.dataset.folder;
const linksIn = (element) => [...element.querySelectorAll('a[data-open], a[data-folder]')];
const told = (what, asked) => request(`./conversations/list/${what}?${new URLSearchParams({ ...asked, ...list.dataset.archived && { archived: 'on' } })}`, 'list_failed');

// ---- what is seen stays where it is

const offset = (link) => link.getBoundingClientRect().top - list.getBoundingClientRect().top;

function look() {
  if (!list?.isConnected) return;
  const height = list.clientHeight;
  const seen = linksIn(list).map((link) => [nameOf(link), offset(link)]).filter(([, top]) => top > -ROW && top < height);
  place = { top: list.scrollTop, rows: seen };
}

// The first row that was seen tells where the list is now, unless it alone went elsewhere; the very top stays the top.
function restore() {
  if (!place.top) return;
  if (list.scrollTop !== place.top) list.scrollTop = place.top;
  const was = new Map(place.rows);
  const moved = linksIn(list).filter((link) => was.has(nameOf(link))).map((link) => offset(link) - was.get(nameOf(link)));
  const by = moved.find((one, at) => at + 1 < moved.length && Math.abs(one - moved[at + 1]) < 3 * ROW) ?? moved[0] ?? 0;
  if (Math.abs(by) > 0.5) list.scrollTop += by;
  place.top = list.scrollTop;
}

// ---- parts

const isStale = () => cut !== list.dataset.version;

function rowHeight() {
  const full = parts.filter((part) => part.markup && part.rows && part.element.isConnected);
  const rows = full.reduce((sum, part) => sum + part.rows, 0);
  return rows ? full.reduce((sum, part) => sum + part.element.offsetHeight, 0) / rows : ROW;
}

function empty(part, height) {
  part.markup = null;
  part.element.style.height = `${height}px`;
  part.element.replaceChildren();
}

function fill(part, markup) {
  if (part.markup === markup) return;
  part.markup = markup;
  part.element.innerHTML = markup;  // the server's own, escaped there
  part.element.style.height = '';
}

async function fetchRows(part) {
  part.asked ??= told('rows', { after: part.after, to: part.end, here: status()?.conversation ?? '' });
  const answer = await part.asked;
  part.asked = null;
  return answer;
}

async function load(part) {
  if (part.markup !== null || part.asked) return void await part.asked;
  const answer = await fetchRows(part);
  if (!parts.includes(part)) return;
  if (answer.failed) return offerAgain(answer.failed);
  look();
  const atEnd = list.scrollTop + list.clientHeight > list.scrollHeight - 2;
  fill(part, answer.markup);
  restore();
  if (atEnd) list.scrollTop = list.scrollHeight;
}

// Where the list is cut. It is cut anew when anything of it changed: the rows around what is seen come first, and then
// the old parts are replaced at once.
function cutAgain(holding = '') {
  cutting ??= (async () => {
    const { version, end } = list.dataset;
    const seen = holding || linksIn(rest).map((link) => link).find((link) => offset(link) > -ROW)?.dataset.open || '';
    const answer = await told('parts', { after: end, ...seen && { holding: seen } });
    if (answer.failed) { failed = version; return offerAgain(answer.failed); }
    const height = rowHeight();
    const fresh = answer.parts.map(([to, rows], at) => {
      const part = { after: at ? answer.parts[at - 1][0] : end, end: to, rows, element: document.createElement('div'), markup: null, asked: null };
      part.element.className = 'p-part';
      empty(part, rows * height);
      return part;
    });
    const first = answer.at ?? (parts.some((part) => part.markup) || holding ? null : 0);
    const near = first === null ? fresh.slice(0, parts[0]?.markup ? 1 : 0) : fresh.slice(Math.max(0, first - 1), first + 2);
    const came = await Promise.all(near.map(fetchRows));
    if (!find()) return;
    look();
    came.forEach(({ markup }, at) => { if (markup !== undefined) fill(near[at], markup); });
    [parts, cut] = [fresh, version];
    rest.replaceChildren(...parts.map(({ element }) => element));
    restore();
    return answer.at;
  })().finally(() => { cutting = null; plan(); });
  return cutting;
}

function offerAgain(said) {
  const again = Object.assign(document.createElement('a'), { className: 'p-more p-do', href: '#do-older', title: said, textContent: say('older') });
  again.setAttribute('role', 'button');
  rest.querySelector('.p-more')?.remove();
  rest.append(again);
}

export function tryAgain() {
  failed = '';
  rest?.querySelector('.p-more')?.remove();
  work();
}

// ---- while it is scrolled

function away(element) {
  const [seen, box] = [list.getBoundingClientRect(), element.getBoundingClientRect()];
  return Math.max(seen.top - box.bottom, box.top - seen.bottom);
}

function work() {
  planned = false;
  if (!list?.isConnected || !rest?.isConnected || cutting || !list.clientHeight) return;
  if (isStale()) {
    if (failed !== list.dataset.version && away(rest) < NEAR) cutAgain();
    return;
  }
  const gaps = parts.map((part) => away(part.element));
  const heights = parts.map((part, at) => (part.markup !== null && gaps[at] > FAR && !part.element.contains(document.activeElement) ? part.element.offsetHeight : 0));
  parts.forEach((part, at) => {
    if (heights[at]) empty(part, heights[at]);
    else if (gaps[at] < NEAR) load(part);
  });
  look();
}

function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(work);
}

// The server drew the list: what follows its beginning is put below it again, before anybody sees it without.
function attach() {
  const now = find();
  if (!now || now === list && (!rest || rest.isConnected || !now.dataset.end)) return;
  const turned = list && (list.dataset.archived ?? '') !== (now.dataset.archived ?? '');
  list = now;
  if (turned) [place, parts, cut] = [{ top: 0, rows: [] }, [], ''];
  if (!now.dataset.end) {
    [rest, parts, cut] = [null, [], ''];
  } else {
    rest ??= Object.assign(document.createElement('div'), { className: 'p-rest' });
    if (turned) rest.replaceChildren();
    const archive = now.querySelector('.p-archive');
    if (archive) archive.before(rest);
    else now.append(rest);
  }
  restore();
  plan();
}

// The open one is marked at once; the server's mark comes with the next rows.
function markOpen() {
  const open = status()?.conversation;
  for (const link of rest ? rest.querySelectorAll('a[data-open]') : []) {
    const is = link.dataset.open === open;
    if (link.hasAttribute('aria-current') === is) continue;
    if (is) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    link.parentElement.classList.toggle('p-here', is);
  }
}

// ---- by keyboard, and for what is done with many

const stretches = () => [list, ...parts.map((part) => part.element)];
const linksOf = (stretch) => linksIn(stretch).filter((link) => stretch !== list || !rest?.contains(link));

async function ready() {
  attach();
  while (list?.dataset.end && isStale() && failed !== list.dataset.version) await cutAgain();
}

// The row before or after this one, fetched where it is not there; nothing where there is none. `kind` may ask for
// conversations alone.
export async function neighbour(link, step, kind = 'a') {
  const all = stretches();
  const at = all.findLastIndex((stretch) => stretch?.contains(link));
  const rows = at < 0 ? [] : linksOf(all[at]).filter((one) => one.matches(kind));
  const next = rows[rows.indexOf(link) + step];
  if (next && rows.includes(link) && rows.indexOf(link) + step >= 0) return next;
  if (step > 0 && at === 0 && list.dataset.end) await ready();
  const [now, part] = [stretches(), link.closest('.p-part')];
  for (let place = now.indexOf(part ?? list) + step; place >= 0 && place < now.length; place += step) {
    if (place > 0) await load(parts[place - 1]);
    const found = linksOf(now[place]).filter((one) => one.matches(kind));
    if (found.length) return found.at(step > 0 ? 0 : -1);
  }
  return undefined;
}

// The last row of all.
export async function lastRow() {
  await ready();
  for (const part of [...parts].reverse()) {
    await load(part);
    const rows = linksIn(part.element);
    if (rows.length) return rows.at(-1);
  }
  return linksIn(list).at(-1);
}

// The row of a conversation, wherever it stands; nothing where it is not in the list.
export async function rowOf(id) {
  const there = () => list?.querySelector(`a[data-open="${CSS.escape(id)}"]`);
  attach();
  if (!id || there() || !list?.dataset.end) return id ? there() : null;
  await cutting;
  await cutAgain(id);
  return there();
}

// Every conversation that is listed, in its order, with its folder; only the page's own where all of it is there.
export async function everyId() {
  attach();
  if (!list?.dataset.end) {
    return linksIn(list).filter((link) => link.dataset.open).map((link) => [link.dataset.open, folderOf(link.dataset.open)]);
  }
  const { version } = list.dataset;
  if (ids.version !== version) ids = { version, every: told('ids', {}) };
  const answer = await ids.every;
  if (answer.failed) ids.version = '';
  return (answer.ids ?? []).slice(0, MOST);
}

export const hasMore = () => Boolean(find()?.dataset.end);

// The folder that a conversation stands in, as its row says; '' for none.
export const folderOf = (id) => document.querySelector(`#history .p-menu[data-id="${CSS.escape(id)}"]`)?.dataset.in ?? '';

export const foldersThere = () => JSON.parse(find()?.dataset.folders ?? '[]').map(([id, name]) => ({ id, name }));

export function start() {
  let watched = null;
  onChange(() => {
    const history = document.getElementById('history');
    if (history && history !== watched) {
      watched = history;
      new MutationObserver(attach).observe(history, { subtree: true, childList: true });
    }
    attach();
    markOpen();
    plan();
  });
  document.addEventListener('scroll', ({ target }) => { if (target === list) { look(); plan(); } }, true);
  addEventListener('resize', plan);
}
