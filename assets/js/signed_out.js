// Whoever is signed out while the page is open, in another tab or by somebody who may, reads that in place of what fails
// from then on, with the way to sign in and back to the conversation.
import { make } from './models_form.js';
import { status } from './state.js';
import { say } from './words.js';

let told = false;

// A request was refused because nobody is known who asks. Without accounts there is nothing to sign in to.
export function noteRefused() {
  const now = status();
  if (told || !now?.role) return;
  told = true;
  const text = make('p', { id: 'p-signed-out', textContent: say('signed_out') });
  const go = make('button', { type: 'submit', className: 'p-button p-main', textContent: say('signed_out_do') });
  const form = make('form', { method: 'dialog' }, text, make('div', { className: 'p-row' }, go));
  const element = make('dialog', { className: 'p-dialog', attributes: { 'aria-labelledby': 'p-signed-out' } }, form);
  const back = now.conversation ? `./?c=${encodeURIComponent(now.conversation)}` : './';
  element.addEventListener('close', () => { location.assign(back); });  // by Escape, too: nothing here does anything more
  document.documentElement.dataset.connection = 'ended';
  document.body.append(element);
  element.showModal();
}

// What is followed broke off: it is asked whether that is why.
export async function askWhether(send) {
  if (told || !status()?.role) return;
  const answer = await send('./standing', { cache: 'no-store', credentials: 'same-origin' }).catch(() => null);
  if (answer?.status === 401) noteRefused();
}
