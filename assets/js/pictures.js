// Pictures from elsewhere: shown on a click, fetched by the server. The page itself asks no other machine.
import { make } from './models_form.js';
import { onChange } from './state.js';
import { say } from './words.js';

const got = new Map();  // by address: the picture as the page has it, for a reply is drawn anew with each frame
const going = new Set();

const linkOf = (button) => button.previousElementSibling?.closest('a[href^="http"]');

function place(button, source) {
  const address = linkOf(button)?.href;
  const shown = make('img', { src: source, alt: linkOf(button)?.textContent ?? '', className: 'p-got' });
  shown.dataset.from = address;
  button.after(shown);
  button.hidden = true;
}

async function fetched(address) {
  const answer = await fetch('./pictures/show', { method: 'POST', credentials: 'same-origin', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ address }) });
  if (answer.ok) return URL.createObjectURL(await answer.blob());
  throw new Error((await answer.json()).failed ?? '');
}

export async function showPicture(button) {
  const address = linkOf(button)?.href;
  if (!address || going.has(address)) return;
  going.add(address);
  button.textContent = say('picture_loading');
  try {
    got.set(address, await fetched(address));
    look();
  } catch (error) {
    button.textContent = error.message || say('picture_failed');
    button.classList.add('p-none');
  }
  going.delete(address);
}

function look() {
  if (!got.size) return;
  for (const button of document.querySelectorAll('#chat a.p-picture:not([hidden])')) {
    const source = got.get(linkOf(button)?.href);
    if (source) place(button, source);
  }
}

export function start() { onChange(look); }
