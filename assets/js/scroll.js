// Stay at the end while the reader is there; never move the page under a reader's eyes.
import { keepFocus } from './focus.js';
import { onChange, status } from './state.js';

const NEAR = 8;
let stick = true;
let anchor = null;
let conversation;
let measured = null;
let last = 0;       // where the box was, to know which way it moves
let leftAt = 0;     // when the reader moved up
// A bubble that slides open grows without any change of the page's elements.
const growth = new ResizeObserver(() => hold());

const box = () => document.querySelector('#chat [role="log"]');
const rows = () => [...(box()?.querySelectorAll('[data-testid="user"], [data-testid="bot"]') ?? [])];
const key = (element) => element.innerText.slice(0, 80);

export function toEnd() { stick = true; hold(); }

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

function hold() {
  const scroller = box();
  if (!scroller) return;
  if (scroller.firstElementChild !== measured) {
    growth.disconnect();
    measured = scroller.firstElementChild;
    if (measured) growth.observe(measured);
  }
  const now = status()?.conversation;
  if (now !== conversation) { conversation = now; stick = true; anchor = null; }
  if (anchor) {
    const same = anchor.find();
    if (same) scroller.scrollTop += same.getBoundingClientRect().top - anchor.y;
  } else if (stick && scroller.scrollTop + scroller.clientHeight < scroller.scrollHeight - 1) {
    scroller.scrollTop = scroller.scrollHeight;
  }
}

export function start() {
  const inside = (event) => box()?.contains(event.target);
  const leave = (event) => { if (inside(event)) { stick = false; leftAt = performance.now(); } };
  addEventListener('wheel', (event) => { if (event.deltaY < 0) leave(event); }, { passive: true });
  addEventListener('touchmove', leave, { passive: true });
  addEventListener('keydown', (event) => { if (['PageUp', 'ArrowUp', 'Home'].includes(event.key)) leave(event); });
  // An opened bubble grows downwards: what was opened stays in sight.
  addEventListener('click', (event) => { if (event.target.closest?.('#chat .title')) stick = false; }, true);
  addEventListener('scroll', (event) => {
    const scroller = box();
    if (event.target !== scroller) return;
    // On the way up the first steps are near the end too, and our own move there may be told late.
    const down = scroller.scrollTop >= last && performance.now() - leftAt > 200;
    last = scroller.scrollTop;
    if (down && last + scroller.clientHeight >= scroller.scrollHeight - NEAR) stick = true;
  }, true);
  addEventListener('click', (event) => {
    if (!event.target.closest?.('.scroll-down-button-container')) return;
    toEnd();
    keepFocus('#chat [role="log"]');  // the button goes as the end is reached
  }, true);
  addEventListener('resize', hold);
  onChange(hold);
}
