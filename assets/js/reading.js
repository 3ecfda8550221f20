// Cards of documents are drawn anew while these are read: a press and the keyboard's place outlive that.
import { keepFocus } from './focus.js';
import { onChange } from './state.js';

const LINKS = '#chat :is(.p-doc, .p-wait-read) a.p-do';
let held = '';      // the address of the link that the keyboard is on
let pressed = null; // the link that the mouse went down on

const named = (address) => document.querySelector(`#chat a.p-do[href="${CSS.escape(address)}"]`);

function restore() {
  if (!held || document.activeElement !== document.body || document.querySelector('dialog[open]')) return;
  const link = named(held) ?? named(held.replace('#do-cancel-', '#do-reread-')) ?? named(held.replace('#do-reread-', '#do-cancel-'));
  if (link) return link.focus({ preventScroll: true });
  held = '';
  keepFocus('#composer textarea');
}

export function start() {
  addEventListener('focusin', (event) => { held = event.target.closest?.(LINKS)?.getAttribute('href') ?? ''; });
  addEventListener('pointerdown', (event) => {
    const link = event.target.closest?.(LINKS) ?? null;
    if (!link) held = '';
    pressed = event.pointerType === 'mouse' && event.button === 0 ? link : null;
  }, true);
  addEventListener('pointerup', (event) => {
    const before = pressed;
    pressed = null;
    if (!before || before.isConnected) return;  // the browser makes a click of it
    const link = document.elementFromPoint(event.clientX, event.clientY)?.closest(LINKS);
    if (link?.getAttribute('href') === before.getAttribute('href')) link.click();
  }, true);
  onChange(restore);
}
