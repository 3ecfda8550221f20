// The composer: names for its buttons, chips for its files, a draft that outlives a reload.
import { put } from './bus.js';
import { onChange, status } from './state.js';
import { start as guardSending } from './sending.js';
import { say } from './words.js';

const DRAFT = 'p-draft';
const LONG = 20_000; // letters
const LABELS = [
  ['.submit-button', 'send'], ['.input-row > .stop-button', 'stop'], ['.upload-button', 'attach'],
  ['.microphone-button', 'record'], ['textarea', 'question'],
];
let names = [];     // of the files that are there, in Gradio's order
let coming = [];    // of files on their way up
let refused = [];   // of files that did not arrive: they are shown until they are taken away
let warned = false; // that a question would go without them
let sending = false;
let restored = false;

const area = () => document.querySelector('#composer textarea');

function label() {
  for (const [selector, key] of LABELS) {
    const element = document.querySelector(`#composer ${selector}`);
    if (!element) continue;
    const said = say(key);
    if (element.getAttribute('aria-label') !== said) element.setAttribute('aria-label', said);
    if (element.tagName === 'BUTTON' && element.title !== said) element.title = said;
  }
  const log = document.querySelector('#chat [role="log"]');
  if (log && log.getAttribute('aria-label') !== say('chat')) {
    log.setAttribute('aria-label', say('chat'));
    log.setAttribute('aria-live', 'off');  // #status says when a reply is there; every token would be too much
    log.tabIndex = 0;
  }
  const down = document.querySelector('#chat .scroll-down-button-container button');
  if (down && down.getAttribute('aria-label') !== say('down')) down.setAttribute('aria-label', say('down'));
}

function countFiles() {
  const tiles = [...document.querySelectorAll('#composer .thumbnail-wrapper')];
  const loading = Boolean(document.querySelector('#composer .thumbnails .loader'));
  if (tiles.length > names.length) {
    while (tiles.length > names.length) names.push(coming.shift() ?? say('recording'));
  } else if (!tiles.length && names.length) names = [];
  if (sending && !loading && coming.length) {  // what did not arrive was refused, and said so
    refused.push(...coming);
    coming = [];
    warned = false;
  }
  sending = loading;
  drawChips(tiles, loading);
}

let drawn = '';
function drawChips(tiles, loading) {
  const pictures = tiles.map((tile) => tile.querySelector('img')?.src ?? '');
  const now = JSON.stringify([names, pictures, loading ? coming : 0, refused]);
  const holder = document.querySelector('#composer .p-chips') ?? place();
  if (now === drawn || !holder) return;
  drawn = now;
  holder.replaceChildren(
    ...names.map((name, index) => chip(name, pictures[index], index)),
    ...(loading ? coming.map((name) => sendingChip(name)) : []),
    ...refused.map((name, index) => refusedChip(name, index)),
  );
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

function cross(name, remove) {
  const element = Object.assign(document.createElement('button'), { type: 'button', className: 'p-icon' });
  element.setAttribute('aria-label', say('remove', { name }));
  element.addEventListener('click', () => { remove(); area()?.focus(); });
  return element;
}

function chip(name, picture, index) {
  const element = plainChip(name, /\.([a-z0-9]{1,5})$/i.exec(name)?.[1].toUpperCase() ?? '');
  if (picture) element.prepend(Object.assign(document.createElement('img'), { src: picture, alt: '' }));
  element.append(cross(name, () => {
    names.splice(index, 1);
    document.querySelectorAll('#composer .thumbnail-wrapper .delete-button')[index]?.click();
  }));
  return element;
}

function sendingChip(name) {
  const element = plainChip(name, say('uploading'));
  element.classList.add('p-sending');
  return element;
}

function refusedChip(name, index) {
  const element = plainChip(name, say('not_added'));
  element.classList.add('p-refused');
  element.append(cross(name, () => { refused.splice(index, 1); countFiles(); }));
  return element;
}

// Their names, the first time that a question would go without them; then they are let go.
function missing() {
  const said = refused.join(', ');
  if (said && !warned) { warned = true; return said; }
  refused = [];
  return '';
}

const note = (files) => { coming.push(...[...files].map((file) => file.name || say('recording'))); };

function dropped(event) {
  const files = event.dataTransfer?.files;
  if (!files?.length) return;
  if (event.target.closest?.('#composer')) return note(files);
  const input = document.querySelector('#composer input[type="file"]');
  if (!input || !event.target.closest?.('#room')) return;
  event.preventDefault();
  input.files = files;
  input.dispatchEvent(new Event('change', { bubbles: true }));
}

function pasted(event) {
  const data = event.clipboardData;
  if (!data || !event.target.closest?.('#composer')) return;
  const pictures = [...data.files].filter((file) => file.type.includes('image'));
  if (pictures.length) note(pictures);
  else if (data.getData('text').length > 8000) note([{ name: 'pasted_text.txt' }]);
}

// A page that is left before its draft came back must not take it away.
function keep() {
  if (!restored) return;
  const text = area()?.value ?? '';
  if (text) sessionStorage.setItem(DRAFT, text);
  else sessionStorage.removeItem(DRAFT);
}

function restore() {
  if (restored || !area() || !status()) return;
  restored = true;
  const text = sessionStorage.getItem(DRAFT);
  if (text && !area().value) put(area(), text);
}

// The side that letters run from is looked for anew in each line: in a megabyte of them that takes minutes.
function measure({ target, type, data }) {
  if (target !== area()) return;
  const coming = type === 'beforeinput' ? data?.length ?? 0 : 0;
  target.toggleAttribute('data-long', target.value.length + coming > LONG);
}

export function start() {
  for (const kind of ['beforeinput', 'input']) addEventListener(kind, measure, true);
  addEventListener('input', (event) => { if (event.target === area()) keep(); }, true);
  addEventListener('pagehide', keep);
  guardSending(area, () => names, missing);
  addEventListener('change', (event) => { if (event.target.matches?.('#composer input[type="file"]')) note(event.target.files); }, true);
  addEventListener('dragover', (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });
  addEventListener('drop', dropped, true);
  addEventListener('paste', pasted, true);
  onChange(() => { label(); countFiles(); restore(); });
}
