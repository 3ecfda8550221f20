// Where the keyboard is, when what it was on goes away: a row that is drawn anew, a menu or question that closes.
import { onChange } from './state.js';

const WITHIN = 10_000;  // milliseconds: even a busy server draws the row anew by then
let wanted = null;

const lost = () => !document.activeElement || document.activeElement === document.body;

function restore() {
  if (!wanted || Date.now() > wanted.until) return;
  if (!lost() || document.querySelector('dialog[open]')) return;
  for (const selector of wanted.selectors) {
    const element = document.querySelector(selector);
    if (element?.checkVisibility?.({ visibilityProperty: true }) ?? element) return element.focus();
  }
}

// Go to the first of these that is there, now and while the page is drawn anew, as long as nobody goes elsewhere.
export function keepFocus(...selectors) {
  wanted = { selectors, until: Date.now() + WITHIN };
  restore();
}

export function start() {
  onChange(restore);
  addEventListener('pointerdown', () => { wanted = null; }, true);
  addEventListener('keydown', (event) => { if (event.key === 'Tab') wanted = null; }, true);
}
