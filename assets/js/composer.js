// The composer: names for its buttons, chips for its files, a draft that outlives a reload.
import { put } from './bus.js';
import { onChange, status } from './state.js';
import { toEnd } from './scroll.js';
import { say } from './words.js';

const DRAFT = 'p-draft';
const LABELS = [
  ['.submit-button', 'send'], ['.input-row > .stop-button', 'stop'], ['.upload-button', 'attach'],
  ['.microphone-button', 'record'], ['textarea', 'question'],
];
let names = [];     // of the files that are there, in Gradio's order
let coming = [];    // of files on their way up
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
  if (sending && !loading) coming = [];  // what did not arrive was refused, and said so
  sending = loading;
  drawChips(tiles, loading);
}

let drawn = '';
function drawChips(tiles, loading) {
  const pictures = tiles.map((tile) => tile.querySelector('img')?.src ?? '');
  const now = JSON.stringify([names, pictures, loading ? coming : 0]);
  const holder = document.querySelector('#composer .p-chips') ?? place();
  if (now === drawn || !holder) return;
  drawn = now;
  holder.replaceChildren(
    ...names.map((name, index) => chip(name, pictures[index], index)),
    ...(loading ? coming.map((name) => chip(name)) : []),
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

function chip(name, picture, index) {
  const element = Object.assign(document.createElement('span'), { className: 'p-chip' });
  element.setAttribute('role', 'listitem');
  if (picture) element.append(Object.assign(document.createElement('img'), { src: picture, alt: '' }));
  const label = Object.assign(document.createElement('span'), { className: 'p-name', textContent: name, title: name });
  const kind = Object.assign(document.createElement('span'), { className: 'p-kind' });
  element.append(label, kind);
  if (index === undefined) {
    element.classList.add('p-sending');
    kind.textContent = say('uploading');
    return element;
  }
  kind.textContent = /\.([a-z0-9]{1,5})$/i.exec(name)?.[1].toUpperCase() ?? '';
  const cross = Object.assign(document.createElement('button'), { type: 'button', className: 'p-icon' });
  cross.setAttribute('aria-label', say('remove', { name }));
  cross.addEventListener('click', () => {
    names.splice(index, 1);
    document.querySelectorAll('#composer .thumbnail-wrapper .delete-button')[index]?.click();
    area()?.focus();
  });
  element.append(cross);
  return element;
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

function keep() {
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

export function start() {
  const isArea = (event) => event.target === area();
  addEventListener('input', (event) => { if (isArea(event)) keep(); }, true);
  addEventListener('pagehide', keep);
  // The key that ends the choice of a Chinese character is not the key that sends.
  for (const kind of ['keydown', 'keypress']) {
    addEventListener(kind, (event) => {
      if (isArea(event) && event.key === 'Enter' && (event.isComposing || event.keyCode === 229)) event.stopImmediatePropagation();
      else if (isArea(event) && event.key === 'Enter' && !event.shiftKey) toEnd();
    }, true);
  }
  addEventListener('click', (event) => { if (event.target.closest?.('#composer .submit-button')) toEnd(); }, true);
  addEventListener('change', (event) => { if (event.target.matches?.('#composer input[type="file"]')) note(event.target.files); }, true);
  addEventListener('dragover', (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });
  addEventListener('drop', dropped, true);
  addEventListener('paste', pasted, true);
  onChange(() => { label(); countFiles(); restore(); });
}
