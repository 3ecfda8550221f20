// What Enter does not do: send twice, send into a reply that is being written, or send without a file that was refused.
import { hint } from './hint.js';
import { toEnd } from './scroll.js';
import { status } from './state.js';

const TWICE = 1000;  // milliseconds
let last = { what: '', at: 0 };

// `refused` gives the names of files that did not arrive, once.
function held(text, files, refused) {
  if (['running', 'stopping'].includes(status()?.state)) return hint('busy'), true;
  const missing = refused();
  if (missing) return hint('without', { name: missing }), true;
  const what = JSON.stringify([status()?.conversation, text, files]);  // elsewhere the same may be asked again
  if (text.trim() && what === last.what && performance.now() - last.at < TWICE) return true;
  last = { what, at: performance.now() };
  return false;
}

export function start(area, files, refused) {
  let stopped = false;  // a key that was held back stays so from its first event to its last
  const stop = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };
  addEventListener('keydown', (event) => {
    if (event.target !== area() || event.key !== 'Enter') return;
    // The key that ends the choice of a Chinese character is not the key that sends.
    if (event.isComposing || event.keyCode === 229) return event.stopImmediatePropagation();
    if (event.shiftKey) return;
    stopped = held(area().value, files(), refused);
    if (stopped) stop(event);
    else toEnd();
  }, true);
  addEventListener('keypress', (event) => {
    if (event.target !== area() || event.key !== 'Enter') return;
    if (event.isComposing || event.keyCode === 229) event.stopImmediatePropagation();
    else if (!event.shiftKey && stopped) stop(event);
  }, true);
  addEventListener('click', (event) => {
    if (!event.target.closest?.('#composer .submit-button')) return;
    if (held(area()?.value ?? '', files(), refused)) stop(event);
    else toEnd();
  }, true);
}
