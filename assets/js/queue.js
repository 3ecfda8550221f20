// Messages that wait for the end of a reply: taken back into the composer with their files, removed, sent by hand.
import { hand } from './attaching.js';
import { ask, put } from './bus.js';
import { hint } from './hint.js';
import { request } from './request.js';
import { status } from './state.js';

const area = () => document.querySelector('#composer textarea');

async function fetched({ name, address }) {
  const answer = await fetch(address, { credentials: 'same-origin' });
  const bytes = await answer.blob();
  return answer.ok ? new File([bytes], name, { type: bytes.type }) : null;
}

// What stands in the composer already comes after it: nothing that was written is lost.
export async function takeBack(button) {
  const conversation = encodeURIComponent(status()?.conversation ?? '');
  button.disabled = true;
  const told = await request(`./conversations/${conversation}/queue/take`, 'queue_lost', { id: button.dataset.id });
  button.disabled = false;
  if (told.failed) return hint(told.failed);
  const field = area();
  put(field, [told.text, field.value].filter((text) => text.trim()).join('\n\n'));
  field.focus();
  field.setSelectionRange(told.text.length, told.text.length);
  if (told.files.length) hand((await Promise.all(told.files.map(fetched))).filter(Boolean));
}

export function removeQueued(button) {
  ask({ do: 'unqueue', id: button.dataset.id });
  area()?.focus();
}

export function sendQueued(button) {
  ask({ do: 'sendqueued', id: button.dataset.id });
  area()?.focus();
}

// Whether a reply was being written: it is stopped as by its button.
export function stopReply() {
  if (status()?.state !== 'running') return false;
  document.querySelector('#composer .input-row > .stop-button')?.click();
  return true;
}
