// A press counts though what it began on was drawn anew before it was let go, as happens while a reply is written:
// browsers then send no click at all.
const NEAR = 6;  // pixels: further away it was a drag
let begun = null;
let heard = false;

const pressable = (element) => element?.closest?.('a[href], button, summary, [data-do]');
const nameOf = (element) => `${element.tagName} ${element.getAttribute('href') ?? ''} ${element.getAttribute('aria-label') ?? ''} ${element.textContent.trim()}`;

function down({ target, clientX, clientY, button }) {
  const element = button ? null : pressable(target);
  begun = element && { element, name: nameOf(element), x: clientX, y: clientY };
  heard = false;
}

function up({ clientX, clientY }) {
  const press = begun;
  begun = null;
  if (!press || press.element.isConnected || Math.hypot(clientX - press.x, clientY - press.y) > NEAR) return;
  setTimeout(() => {  // after the click, if there is one
    const element = pressable(document.elementFromPoint(clientX, clientY));
    if (!heard && element && nameOf(element) === press.name) element.click();
  }, 0);
}

export function start() {
  addEventListener('pointerdown', down, true);
  addEventListener('pointerup', up, true);
  addEventListener('pointercancel', () => { begun = null; }, true);
  addEventListener('click', () => { heard = true; }, true);
}
