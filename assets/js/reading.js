// Cards of documents are drawn anew while these are read: a press and the keyboard's place outlive that.
import { keepFocus } from './focus.js';

const LINKS = '#chat :is(.p-doc, .p-wait-read, .p-many) a.p-do';
let held = '';      // the address of the link that the keyboard is on
let leaving = 0;
let pressed = null; // the link that the mouse went down on

const named = (address) => document.querySelector(`#chat a.p-do[href="${CSS.escape(address)}"]`);

const lost = () => held && document.activeElement === document.body && !document.querySelector('dialog[open]');
// What can be done now with the document that the keyboard was on.
const link = () => named(held) ?? ['reread', 'cancel'].map((act) => named(held.replace(/^#do-[a-z]+-/, `#do-${act}-`))).find(Boolean);

function restore() {
  if (!lost()) return;
  if (link()) return link().focus({ preventScroll: true });
  clearTimeout(leaving);
  leaving = setTimeout(() => {  // nothing more can be done with it
    if (lost() && !link()) { held = ''; keepFocus('#composer textarea'); }
  }, 500);
}

export function start() {
  addEventListener('focusin', (event) => { held = event.target.closest?.(LINKS)?.getAttribute('href') ?? ''; });
  addEventListener('pointerdown', (event) => {
    const target = event.target.closest?.(LINKS) ?? null;
    if (!target) held = '';
    pressed = event.pointerType === 'mouse' && event.button === 0 ? target : null;
  }, true);
  addEventListener('pointerup', (event) => {
    const before = pressed;
    pressed = null;
    if (!before || before.isConnected) return;  // the browser makes a click of it
    const target = document.elementFromPoint(event.clientX, event.clientY)?.closest(LINKS);
    if (target?.getAttribute('href') === before.getAttribute('href')) target.click();
  }, true);
  // At once: the next key may be on its way.
  new MutationObserver(restore).observe(document.body, { subtree: true, childList: true });
}
