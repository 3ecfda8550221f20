// What is done with conversations of the list, and the line that takes it back.
import { ask } from './bus.js';
import { say } from './words.js';

const STAYS = 10_000;  // milliseconds in which an act can be taken back

let line = null;
let over = 0;

const foot = () => document.querySelector('#history .p-side-foot');

function away() {
  clearTimeout(over);
  line?.replaceChildren();
  line?.classList.remove('p-there');
}

// Says what was done, with the way back. It is there before it speaks, or no screen reader would hear it.
function tell(text, back) {
  const undo = Object.assign(document.createElement('button'), { type: 'button', textContent: say('undo') });
  undo.addEventListener('click', () => { away(); ask(back); document.querySelector('#history nav a[tabindex="0"]')?.focus(); });
  line.replaceChildren(Object.assign(document.createElement('span'), { textContent: text }), undo);
  line.style.bottom = `${innerHeight - (foot()?.getBoundingClientRect().top ?? innerHeight) + 8}px`;
  line.classList.add('p-there');
  clearTimeout(over);
  over = setTimeout(away, STAYS);
}

export const foldersThere = () => [...document.querySelectorAll('#history a[data-folder]')]
  .map((link) => ({ id: link.dataset.folder, name: link.textContent }));

export function pin(id, on) { ask({ do: 'pin', ids: [id], on }); }

export function archive(id, title, on = true) {
  ask({ do: 'archive', ids: [id], on });
  tell(say(on ? 'archived' : 'unarchived', { title }), { do: 'archive', ids: [id], on: !on });
}

export function move(id, title, folder) {
  const before = document.querySelector(`#history .p-menu[data-id="${CSS.escape(id)}"]`)?.closest('.p-folder');
  ask({ do: 'move', ids: [id], folder });
  tell(say('moved', { title }), { do: 'move', ids: [id], folder: before?.querySelector('a[data-folder]').dataset.folder ?? '' });
}

export function fold(link) { ask({ do: 'fold', id: link.dataset.folder, on: link.getAttribute('aria-expanded') !== 'true' }); }

export function start() {
  line = Object.assign(document.createElement('div'), { className: 'p-undo' });
  line.setAttribute('role', 'status');
  document.body.append(line);
}
