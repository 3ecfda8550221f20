// Many files of a question stand in one group, which is drawn anew while they are read: what the reader unfolded stays.
import { onChange } from './state.js';

const opened = new Set();  // the addresses of the groups that are unfolded, each of one message

function follow() {
  for (const link of document.querySelectorAll('#chat .p-many-head a.p-many-fold')) {
    const isOpen = opened.has(link.getAttribute('href'));
    if ((link.getAttribute('aria-expanded') === 'true') === isOpen) continue;
    link.setAttribute('aria-expanded', String(isOpen));
    link.closest('.p-many').classList.toggle('p-open', isOpen);
  }
}

// The head stays where it is, so that nothing above the rows moves; the link that says how many more there are is gone.
export function foldFiles(link) {
  const address = link.getAttribute('href');
  if (!opened.delete(address)) opened.add(address);
  follow();
  link.closest('.p-many').querySelector('a.p-many-fold').focus({ preventScroll: true });
}

export function start() { onChange(follow); }
