// Files of a question: asked about before they are sent, shown as chips, refused in a line that stops nothing.
import { allCame, letWait, waitNoMore, waits } from './arriving.js';
import { ask } from './bus.js';
import { chooseFolder, dropOf, within } from './folders.js';
import { hint } from './hint.js';
import { DOWN, inOurWords } from './in_front.js';
import { drop, isKept, isPasted, keep, keptBefore, move } from './pastes.js';
import { request } from './request.js';
import { status } from './state.js';
import { session } from './storage.js';
import { listed, say } from './words.js';

const HEAD = 64 * 1024;  // bytes of a file that tell its kind
const MOST = 40;         // files at once
const LONGEST = 80;      // letters of the name of one that is left out
const KEPT = 500;        // of their names
const LEFT = 'p-left-files';
const MANY = 'p-many-files';  // { at, said }: that more was dropped than can be added, and for which draft
const INPUT = '#composer input[type="file"]';
const checked = new WeakSet();  // events of files that may go on to Gradio
const chosen = new WeakSet();   // files that have a name of their own; a recording has none
const wasCalled = new WeakMap();  // what a file was called that goes by another name
const owner = new WeakMap();    // whose draft they are of, by the file
const handed = [];              // files that Gradio was given, and does not send up yet
const aside = new Map();        // files of drafts that are out of sight, by conversation
let names = [];   // { name, file, at }: the files that are there, in Gradio's order
let coming = [];  // { name, file, at }: those on their way up
let at = '';      // the conversation whose draft is in sight
let checking = 0; // choices of files that are asked about
let tiled = 0;    // how many of them Gradio has drawn
let drawn = '';
const back = new WeakSet();  // pastes that came back with their draft
const lost = new Map();  // { name, pasted } of files that were not sent yet when the page was left, by conversation
let saying = [];       // those of them that a line says

const mine = (list) => list.filter((one) => one.at === at);

export const attached = () => mine(names).map(({ name }) => name);

function listOf(files) {
  const data = new DataTransfer();
  for (const file of files) data.items.add(file);
  return data.files;
}

function inBase64(blob) {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => done(String(reader.result).split(',', 2)[1] ?? ''));
    reader.addEventListener('error', () => done(''));
    reader.readAsDataURL(blob);
  });
}

// Asks about files, then hands on those that are taken; a question waits for them meanwhile.
async function offer(drop, input) {
  checking += 1;
  const from = at;
  try {
    const { files, hidden, isCut } = await within(drop);
    const there = isThere();
    const fresh = files.filter((file) => !there.has(sign(file)));
    const { some, unread, rest } = await readable(fresh);
    const none = fresh.length || hidden ? '' : say(files.length ? 'attach_known' : 'attach_empty');
    const many = leftOut(rest, isCut);
    const good = await taken(some, unread, many, hidden ? say('attach_hidden') : none);
    if (from === at) {
      if (many) session.set(MANY, JSON.stringify({ at, said: many }));
      noteUntaken(rest);
      handAside();  // what nobody took before goes up with them
      hand(good, input);
    }
    else for (const file of good) setAside({ file, at: from });
  } finally {
    setTimeout(() => { checking -= 1; draw(); }, 0);  // Gradio begins to send them in between
  }
}

// Who chooses a folder of very many files once more means the next of them, not the same ones twice.
const sign = (file) => JSON.stringify([wasCalled.get(file) ?? file.name, file.size, file.lastModified]);

function isThere() {
  const arriving = handed.filter((file) => owner.get(file) === at);
  return new Set([...mine([...names, ...coming]).map(({ file }) => file), ...arriving].map(sign));
}

// The model that the question will be sent to.
function answering() {
  const now = status();
  return now && { service: now.service, model: now.model };
}

// Where nobody answers, the upload itself tells what is wrong.
async function judged(files, more) {
  const heads = await Promise.all(files.map((file) => inBase64(file.slice(0, HEAD))));
  const told = files.map((file, index) => ({ name: file.name, size: file.size, head: heads[index] }));
  const answer = await request('./uploads/check', 'lost', { files: told, model: answering(), ...more });
  return { said: '', why: [], refused: [], renamed: {}, noted: '', ...answer };
}

// As many of `files` as may be added at once. What cannot be read anyway takes no other's place: `unread` says why.
async function readable(files) {
  if (files.length <= MOST) return { some: files, unread: [], rest: [] };
  const good = [];
  const unread = [];
  let next = 0;
  for (; next < files.length && good.length < MOST; next += MOST) {
    const some = files.slice(next, next + MOST);
    const { refused, why } = await judged(some, { alone: true });
    unread.push(...why);
    good.push(...some.filter((_, index) => !refused.includes(index)));
  }
  return { some: good.slice(0, MOST), unread, rest: [...good.slice(MOST), ...files.slice(next)] };
}

// Those of `files` that are taken; a line above the composer says why the others are not, that there were too `many`,
// and what is to be `told` besides.
async function taken(files, unread, many, told) {
  const { said, later, refused, renamed, noted } = await judged(files, { also: unread });
  const unsent = said && waitNoMore() ? say('attach_unsent') : '';
  const out = [said, many, unsent].filter(Boolean);
  refuse([...out, noted, told].filter(Boolean).join('\n'), { calm: !out.length, later });
  noteNames(files, renamed);
  return files.map((file, index) => called(file, renamed[index])).filter((_, index) => !refused.includes(index));
}

// That more was dropped than can be added, with the number of the rest and its names, or the first of them.
function leftOut(rest, isCut) {
  if (!rest.length || isCut) return isCut ? say('attach_many', { most: MOST }) : '';
  return say('attach_many_named', { most: MOST, n: rest.length, names: listed(rest.map((file) => file.name)) });
}

// A later question in the conversation is answered without them, and says so.
let untaken = false;

function noteUntaken(rest) {
  if (!rest.length) return;
  untaken = true;
  const names = rest.slice(0, KEPT).map((file) => file.name.slice(0, LONGEST));
  ask({ do: 'untaken', names, more: rest.length - names.length });
}

// What was left out before, and is added now by the name of what is in it, is found among what is left out.
function noteNames(files, renamed) {
  const called = Object.entries(renamed).map(([index, [name]]) => [files[index].name.slice(0, LONGEST), name.slice(0, LONGEST)]);
  if (called.length) ask({ do: 'untaken', called: Object.fromEntries(called) });
}

// Nothing of what was dropped is sent.
function forgetUntaken() {
  if (untaken || JSON.parse(status()?.chosen || '{}').untaken) ask({ do: 'untaken', names: [] });
  untaken = false;
  forgetMany();
}

// What is no document, whatever its name says, goes by the name of what it is.
function called(file, [name, type] = []) {
  if (!name) return file;
  const other = new File([file], name, { type, lastModified: file.lastModified });
  wasCalled.set(other, file.name);
  return other;
}

// Stays until it is closed or a question is sent, the next one where files may be added later: what was left out is not
// overlooked.
export function refuse(said, { calm = false, later = false } = {}) {
  document.querySelector('.p-left-out')?.remove();
  if (!said) return null;
  const line = Object.assign(document.createElement('p'), { className: calm ? 'p-left-out p-calm' : 'p-left-out' });
  line.toggleAttribute('data-later', later);
  line.setAttribute('role', calm ? 'status' : 'alert');
  const close = Object.assign(document.createElement('button'), { type: 'button', className: 'p-icon' });
  close.setAttribute('aria-label', say('close'));
  close.addEventListener('click', () => { line.remove(); document.querySelector('#composer textarea')?.focus(); });
  const reasons = document.createElement('span');
  reasons.append(...said.split('\n').map((textContent) => Object.assign(document.createElement('span'), { textContent })));
  line.append(reasons, close);
  document.getElementById('composer')?.before(line);
  return line;
}

async function changed(event) {
  const input = event.target;
  if (!input.matches?.(INPUT) || checked.has(event) || !input.files.length) return;
  event.stopImmediatePropagation();
  const files = [...input.files];
  input.value = '';  // else a refused file that was mended could not be chosen again: to the browser it is the same
  await offer({ files, entries: [] }, input);
}

// All that lies in a folder, as if it had been dropped.
export const attachFolder = () => chooseFolder(offer);

// To Gradio, as if the reader had chosen these alone.
export function hand(files, input = document.querySelector(INPUT)) {
  if (!input || !files.length) return;
  for (const file of files) { chosen.add(file); owner.set(file, at); keep(file, at); }
  handed.push(...files);
  input.files = listOf(files);
  const change = new Event('change', { bubbles: true });
  checked.add(change);
  input.dispatchEvent(change);
  input.value = '';  // Gradio has them: one that is taken out again may be chosen again
}

async function dropped(event) {
  const drop = dropOf(event.dataTransfer);
  if (!drop.files.length && !drop.entries.length || checked.has(event) || !event.target.closest?.('#room, #composer')) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const target = event.target.closest('#composer') ? event.target : null;
  if (target) {  // Gradio marks its box while something is over it; a drop of nothing ends that
    const empty = new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: new DataTransfer() });
    checked.add(empty);
    target.dispatchEvent(empty);
  }
  await offer(drop);
}

// What Gradio sends up, and whether it arrived: each answer tells of the files of its own request.
function watchUploads() {
  const send = window.fetch;
  window.fetch = async (to, options) => {
    const body = options?.body;
    if (!(body instanceof FormData) || !String(to?.url ?? to).includes('/gradio_api/upload?')) return send(to, options);
    const files = body.getAll('files').filter((file) => file instanceof Blob).map(asHanded);
    const sent = files.map((file) => ({ name: nameOf(file), file, at: owner.get(file) ?? at }));
    coming.push(...sent);
    draw();
    let arrived = false;
    let answered = false;
    try {
      const answer = inOurWords(await send(to, options));
      arrived = answer.ok;
      answered = !DOWN.has(answer.status);
      return answer;
    } finally {
      coming = coming.filter((one) => !sent.includes(one));
      if (arrived) names.push(...sent);
      else if (waitNoMore()) hint('attach_unsent');
      if (!answered) keepForAgain(sent);
      draw();
    }
  };
}

// Files that did not arrive, for nobody was there, are still at hand: they are named, and go up again at a click, or when
// their draft comes in sight again.
function keepForAgain(sent) {
  for (const one of sent) setAside(one);
  const some = aside.get(at) ?? [];
  if (!some.length) return;
  const others = [...document.querySelectorAll('.p-left-out:not(.p-again) > span > span')].map(({ textContent }) => textContent);
  const said = say(some.length === 1 ? 'attach_broken_one' : 'attach_broken', { names: listed(some.map(nameOf)) });
  const line = refuse([said, ...others].join('\n'), { later: true });
  line.classList.add('p-again');
  const again = Object.assign(document.createElement('button'), { type: 'button', textContent: say('attach_again') });
  again.addEventListener('click', () => { line.remove(); handAside(); });
  line.querySelector('.p-icon').addEventListener('click', () => aside.delete(at));
  line.querySelector('.p-icon').before(again);
}

// Gradio sends copies.
function asHanded(copy) {
  const index = handed.findIndex(({ name, size }) => name === copy.name && size === copy.size);
  return index < 0 ? copy : handed.splice(index, 1)[0];
}

function nameOf(file) {
  if (file.type.startsWith('audio/') && !chosen.has(file)) return say('recording');
  return file.name || say('recording');
}

// Gradio takes its files away when a question is sent.
export function draw() {
  const tiles = [...document.querySelectorAll('#composer .thumbnail-wrapper')];
  if (tiles.length < tiled) for (const { file } of names.splice(0, tiled - tiles.length)) drop(file);
  tiled = tiles.length;
  if (leftBehind(tiles)) return;
  if (waits() && !mine(coming).length && !checking && tiles.length >= names.length) setTimeout(allCame, 0);
  const pictures = tiles.map((tile) => tile.querySelector('img')?.src ?? '');
  const onTheWay = mine(coming).map(({ name }) => name);
  const now = JSON.stringify([names.map(({ name }) => name), pictures, onTheWay]);
  const holder = document.querySelector('#composer .p-chips') ?? place();
  if (now === drawn || !holder) return;
  drawn = now;
  holder.replaceChildren(
    ...names.slice(0, tiles.length).map(({ name }, index) => chip(name, pictures[index], index)),
    ...[...mine(names.slice(tiles.length)).map(({ name }) => name), ...onTheWay].map((name) => arrivingChip(name)),
  );
}

// ---- files stay with the draft that they were chosen for

function setAside({ file, at: id }) { aside.set(id, [...aside.get(id) ?? [], file]); }

function takeOut(index) {
  names.splice(index, 1);
  tiled -= 1;
  document.querySelectorAll('#composer .thumbnail-wrapper .delete-button')[index]?.click();
}

function remove(index) {
  drop(names[index].file);
  takeOut(index);
}

// What Gradio has drawn of other drafts is taken out of it, the last one first: the numbers of the others stay so.
// Gradio draws anew then.
function leftBehind(tiles) {
  const others = names.slice(0, tiles.length).flatMap((one, index) => (one.at === at ? [] : [index]));
  for (const index of others) setAside(names[index]);
  for (const index of others.reverse()) takeOut(index);
  return others.length > 0;
}

// Another conversation's draft comes in sight, with its files.
export function showFilesOf(id) {
  if (id === at) return;
  waitNoMore();  // a question that waited for its files is not sent elsewhere
  const line = document.querySelector('.p-left-out[data-lost]');
  if (line) lost.set(at, saying);
  line?.remove();
  document.querySelector('.p-again')?.remove();
  at = id;
  draw();
  handAside();
  sayLost();
}

function takeAside() {
  const some = aside.get(at) ?? [];
  aside.delete(at);
  return some;
}

const handAside = () => hand(takeAside());

// Pastes that the tab has kept stand with their drafts again, and the draft in sight says what is lost; `sent` where it
// was sent as the page was left.
export function filesCameBack(sent) {
  for (const one of keptBefore()) {
    if (sent && one.at === at) { drop(one.file); continue; }
    back.add(one.file);
    setAside(one);
  }
  handAside();
  sayLost();
}

// The draft that came back turns out to have been sent.
export function takeBack() {
  const some = names.flatMap(({ file }, index) => (back.has(file) ? [index] : []));
  for (const index of some.reverse()) remove(index);
}

// Whether the draft of a conversation has files.
export const hasFiles = (id) => Boolean(aside.get(id)?.length) || [...names, ...coming].some((one) => one.at === id);

// That files were too many outlives a reload as the text of a draft does.
function manyLeft() {
  try { return JSON.parse(session.get(MANY) ?? '{}'); } catch { return {}; }
}

// What is said of another draft stays said.
function forgetMany() { if (manyLeft().at === at) session.remove(MANY); }

// The draft in sight, with its files, is that of this conversation; `waiting`: with those that nobody took, too.
export function filesBelongTo(id, { waiting = false } = {}) {
  const some = mine([...names, ...coming]);
  for (const one of some) one.at = id;
  for (const file of waiting ? takeAside() : []) setAside({ file, at: id });
  move(id, { files: some.map(({ file }) => file) });
  const many = manyLeft();
  if (some.length && many.at === at) session.set(MANY, JSON.stringify({ ...many, at: id }));
  at = id;
}

function place() {
  const around = document.querySelector('#composer .full-container');
  if (!around) return null;
  const holder = Object.assign(document.createElement('div'), { className: 'p-chips' });
  holder.setAttribute('role', 'list');
  around.prepend(holder);
  drawn = '';
  return holder;
}

function plainChip(name, said) {
  const element = Object.assign(document.createElement('span'), { className: 'p-chip' });
  element.setAttribute('role', 'listitem');
  const label = Object.assign(document.createElement('span'), { className: 'p-name', textContent: name, title: name });
  element.append(label, Object.assign(document.createElement('span'), { className: 'p-kind', textContent: said }));
  return element;
}

function chip(name, picture, index) {
  const element = plainChip(name, /\.([a-z0-9]{1,5})$/i.exec(name)?.[1].toUpperCase() ?? '');
  if (picture) {
    element.classList.add('p-pictured');
    element.prepend(Object.assign(document.createElement('img'), { src: picture, alt: '' }));
  }
  const cross = Object.assign(document.createElement('button'), { type: 'button', className: 'p-icon' });
  cross.setAttribute('aria-label', say('remove', { name }));
  cross.addEventListener('click', () => {
    remove(index);
    if (!attached().length && !mine(coming).length) forgetUntaken();
    document.querySelector('#composer textarea')?.focus();
  });
  element.append(cross);
  return element;
}

function arrivingChip(name) {
  const element = plainChip(name, say('uploading'));
  element.classList.add('p-sending');
  return element;
}

// Whether a question must wait for its files; it is sent when they are there, and says so.
export function stillArriving() {
  if (!mine(coming).length && !checking) return false;
  letWait();
  return true;
}

// Files do not outlive a page that is left, and the next one says which they were, in the conversation that they were
// chosen for. What is on its way is cut off before the page hides.
let leaving = [];

function unsent() {
  const some = [...aside].flatMap(([id, files]) => files.map((file) => ({ name: file.name, file, at: id })));
  return [...names, ...coming, ...some].filter(({ file }) => !isKept(file))
    .map(({ name, file, at: id }) => ({ name, at: id, pasted: isPasted(file) }));
}

function leave() {
  leaving = unsent();
  setTimeout(() => { leaving = []; }, 2000);  // the reader stayed
}

function noteLeft() {
  const unsaid = [...lost].flatMap(([id, some]) => some.map((one) => ({ ...one, at: id })));
  const left = [...unsaid, ...leaving.length ? leaving : unsent()];
  if (left.length) session.set(LEFT, JSON.stringify(left));
}

function readLeft() {
  let left = [];
  try { left = JSON.parse(session.get(LEFT) ?? '[]'); } catch { /* nothing of ours */ }
  for (const one of left) lost.set(one.at, [...lost.get(one.at) ?? [], one]);
  session.remove(LEFT);
}

function sayLost() {
  saying = lost.get(at) ?? [];
  lost.delete(at);
  const said = [['attach_lost', false], ['pasted_lost', true]].flatMap(([key, pasted]) => {
    const some = saying.filter((one) => one.pasted === pasted).map(({ name }) => name);
    return some.length ? say(some.length === 1 ? `${key}_one` : key, { names: some.join(say('comma')) }) : [];
  });
  const many = manyLeft();
  if (many.at === at) said.push(many.said);
  if (!said.length) return;
  refuse(said.join('\n')).setAttribute('data-lost', '');
}

// A question is sent.
export function forget() {
  untaken = false;
  forgetMany();
  const line = document.querySelector('.p-left-out[data-later]');
  if (line) return line.removeAttribute('data-later');
  if (document.querySelector('.p-again')) takeAside();  // two questions were sent without them
  refuse('');
}

export function start() {
  watchUploads();
  readLeft();
  addEventListener('beforeunload', leave);
  addEventListener('pagehide', noteLeft);
  addEventListener('change', changed, true);
  addEventListener('dragover', (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });
  addEventListener('drop', dropped, true);
}
