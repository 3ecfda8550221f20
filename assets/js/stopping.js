// Stops the reply that is being written, or that was asked for a moment ago and is about to begin.
import { onChange, status } from './state.js';

const SOON = 3000;  // milliseconds in which what was asked for begins
const BEGINS = new Set(['starter', 'regenerate', 'continue', 'edit', 'rerun', 'sendqueued', 'demotake']);
let begun = -SOON;
let wished = false;  // it is stopped as soon as it is there

const press = () => document.querySelector('#composer .input-row > .stop-button')?.click();

// A reply was asked for.
export function begins() { [begun, wished] = [performance.now(), false]; }

export function noteAsked({ do: what }) { if (BEGINS.has(what)) begins(); }

// Whether a reply is being written, or about to be.
export const isReplying = () => status()?.state === 'running' || performance.now() - begun < SOON && status()?.state !== 'stopping';

// Whether there was one: it is stopped as by its button.
export function stopReply() {
  if (!isReplying()) return false;
  if (status()?.state === 'running') press();  // nothing is known of it before the first frame
  else wished = true;
  return true;
}

function follow() {
  if (status()?.state !== 'running') return;
  const stops = wished && performance.now() - begun < SOON;
  [begun, wished] = [-SOON, false];
  if (stops) press();
}

export function start() { onChange(follow); }
