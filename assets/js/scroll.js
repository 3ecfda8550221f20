// Stay at the end while the reader is there; never move the page under a reader's eyes.
import { keepFocus } from './focus.js';
import { onChange, status } from './state.js';

const NEAR = 8;
const BELOW = 100;  // pixels below the edge that are worth a button; Gradio's own button appears from there
let stick = true;
let anchor = null;
let conversation;
let measured = null;
let last = 0;       // where the box was, to know which way it moves
let height = 0;     // of what was in it then
let leftAt = 0;     // when the reader moved up
// A bubble that slides open grows without any change of the page's elements.
const growth = new ResizeObserver(() => hold());

const box = () => document.querySelector('#chat [role="log"]');
const rows = () => [...(box()?.querySelectorAll('[data-testid="user"], [data-testid="bot"]') ?? [])];
const key = (element) => element.innerText.slice(0, 80);

// Another place of the box, by our own hand.
function move(scroller, top) {
  scroller.scrollTop = top;
  [last, height] = [scroller.scrollTop, scroller.scrollHeight];
}

const below = (scroller) => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;

export function toEnd() {
  const scroller = box();
  if (scroller) [last, height] = [scroller.scrollTop, scroller.scrollHeight];
  stick = true;
  hold();
}

// Focus, the browser's search, a screen reader: whoever moved the box up, the page did not. What shrinks pulls it up, too,
// and may have grown again before anybody looked.
function notice(scroller) {
  const up = last - scroller.scrollTop;
  const shrunk = height - scroller.scrollHeight;
  if (up > (shrunk > 0 ? shrunk + BELOW : 0) && below(scroller) > NEAR) leave();
  [last, height] = [scroller.scrollTop, scroller.scrollHeight];
  return up;
}

function leave() { stick = false; leftAt = performance.now(); }

function offer(scroller) {
  const more = below(scroller) > BELOW;
  document.documentElement.toggleAttribute('data-below', more);
  return more;
}

// Before older messages come in above: remember what is at the top, and keep it there.
export function keepPlace() {
  const first = rows().find((element) => !element.querySelector('.p-earlier') && key(element));
  if (!first) return;
  stick = false;
  const name = key(first);
  anchor = { find: () => rows().find((element) => key(element) === name), y: first.getBoundingClientRect().top };
  setTimeout(() => { anchor = null; }, 1500);
}

// What is about to take the place of this element will stand where it stands.
export function keepThere(element, selector) {
  const held = { find: () => document.querySelector(selector), y: element.getBoundingClientRect().top };
  [stick, anchor] = [false, held];
  setTimeout(() => { if (anchor === held) anchor = null; }, 1500);
}

// What was looked for stands in the upper part of the box, and stays there while the rest is drawn.
export function bring(find) {
  const scroller = box();
  if (!scroller) return;
  const place = scroller.getBoundingClientRect();
  const held = { find, y: place.top + place.height / 4 };
  [stick, anchor] = [false, held];
  setTimeout(() => { if (anchor === held) anchor = null; }, 1500);
  hold();
}

function hold() {
  const scroller = box();
  if (!scroller) return;
  if (scroller.firstElementChild !== measured) {
    growth.disconnect();
    measured = scroller.firstElementChild;
    if (measured) growth.observe(measured);
  }
  const now = status()?.conversation;
  const other = now !== conversation;
  if (other) [conversation, stick, anchor] = [now, true, null];
  else notice(scroller);  // it may have moved, and the event that says so is still on its way
  if (anchor) {
    const same = anchor.find();
    if (same) move(scroller, scroller.scrollTop + same.getBoundingClientRect().top - anchor.y);
  } else if (stick && below(scroller) > 1) move(scroller, scroller.scrollHeight);
  // Gradio draws its button when the box is scrolled, but not when what is in it grows.
  if (offer(scroller) && !document.querySelector('#chat .scroll-down-button-container')) scroller.dispatchEvent(new Event('scroll'));
}

// The keyboard stands on something in the conversation, or the browser's search is open: it must not move away.
function focused({ target }) {
  const scroller = box();
  if (!scroller) return;
  if (target !== scroller && scroller.contains(target)) {
    if (target.matches(':focus-visible')) leave();
  } else if (target !== scroller && below(scroller) <= NEAR) stick = true;
}

const searches = ({ key, ctrlKey, metaKey }) => key === 'F3' || (ctrlKey || metaKey) && ['f', 'g'].includes(key.toLowerCase());

export function start() {
  const inside = (event) => box()?.contains(event.target);
  // Before the box has moved: a reply that grows in this moment does not hold it back.
  addEventListener('wheel', (event) => { if (event.deltaY < 0 && inside(event)) leave(); }, { passive: true });
  addEventListener('touchmove', (event) => { if (inside(event)) leave(); }, { passive: true });
  addEventListener('keydown', (event) => {
    if (searches(event) || ['PageUp', 'ArrowUp', 'Home'].includes(event.key) && inside(event)) leave();
  });
  addEventListener('focusin', focused);
  // An opened bubble grows downwards: what was opened stays in sight.
  addEventListener('click', (event) => { if (event.target.closest?.('#chat .title')) stick = false; }, true);
  addEventListener('scroll', (event) => {
    const scroller = box();
    if (event.target !== scroller) return;
    // On the way up the first steps are near the end too, and our own move there may be told late.
    const down = notice(scroller) < 0 && performance.now() - leftAt > 200;
    if (down && below(scroller) <= NEAR) stick = true;
    offer(scroller);
  }, true);
  addEventListener('click', (event) => {
    if (!event.target.closest?.('.scroll-down-button-container')) return;
    toEnd();
    keepFocus('#chat [role="log"]');  // the button goes as the end is reached
  }, true);
  addEventListener('resize', hold);
  onChange(hold);
}
