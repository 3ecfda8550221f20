// A question that waits for its files: it stands in the composer, can be changed there, and is sent when all have come.
import { status } from './state.js';
import { say } from './words.js';

let line = null;  // says that it waits, and takes that back; there while it waits
let room = '';    // the conversation that it is for

const composer = () => document.getElementById('composer');

export const waits = () => line !== null;

export function letWait() {
  if (line) return;
  line = Object.assign(document.createElement('p'), { className: 'p-left-out p-arriving' });
  line.setAttribute('role', 'alert');
  const said = Object.assign(document.createElement('span'), { textContent: say('attach_wait') });
  const stay = Object.assign(document.createElement('button'), { type: 'button', textContent: say('attach_stay') });
  stay.addEventListener('click', () => { waitNoMore(); composer()?.querySelector('textarea')?.focus(); });
  line.append(said, stay);
  room = status()?.conversation;
  composer()?.before(line);
}

// Whether one waited.
export function waitNoMore() {
  const waited = waits();
  line?.remove();
  line = null;
  return waited;
}

// All files are there. Who went to another conversation meanwhile sends nothing there.
export function allCame() {
  if (waitNoMore() && status()?.conversation === room) composer()?.querySelector('.submit-button')?.click();
}
