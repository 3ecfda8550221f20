// Conversations from elsewhere: a file is chosen and sent, the line under the list says how far it is and what came in.
import { ask } from './bus.js';
import { openConversation } from './places.js';
import { request } from './request.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

let line = null;

function tell(text, { more = [], act = null, stop = null } = {}) {
  const foot = document.querySelector('#history .p-side-foot')?.getBoundingClientRect().top ?? innerHeight;
  const body = Object.assign(document.createElement('div'), { className: 'p-told' });
  body.append(...[text, ...more].map((said) => Object.assign(document.createElement('p'), { textContent: said })));
  const close = Object.assign(document.createElement('button'), { type: 'button', textContent: say(stop ? 'import_stop' : act ? 'import_open' : 'import_close') });
  close.addEventListener('click', () => { if (stop) { close.disabled = true; stop(); } else { putAway(); act?.(); } });
  const away = act ? [Object.assign(document.createElement('button'), { type: 'button', textContent: say('import_close') })] : [];
  for (const one of away) one.addEventListener('click', putAway);
  line.replaceChildren(body, close, ...away);
  line.classList.toggle('p-two', away.length > 0);
  line.style.bottom = `${innerHeight - foot + 8}px`;
  line.classList.add('p-there');
}

const putAway = () => line.classList.remove('p-there');
const parsed = (text) => { try { return JSON.parse(text); } catch { return {}; } };
const read = (text) => parsed(text.trim().split('\n').at(-1));

// How far it is; the button calls it off, and is the same one as long as it is there.
function progress(text, stop) {
  const said = line.querySelector('.p-going p');
  if (said && line.classList.contains('p-there')) { said.textContent = text; return; }
  tell(text, { stop });
  line.firstChild.classList.add('p-going');
}

function send(file) {
  const going = new XMLHttpRequest();
  const body = new FormData();
  body.append('files', file, file.name);
  going.open('POST', './conversations/import');
  going.setRequestHeader('x-parlour', '1');
  const stop = () => {
    const { going: name } = parsed(going.responseText.split('\n', 1)[0]);
    if (name) request('./conversations/import/stop', 'import_failed', { going: name });
    else { stopped = true; going.abort(); }
  };
  let stopped = false;
  const percent = (share) => Math.floor(share * 100);
  going.upload.addEventListener('progress', ({ loaded, total }) => progress(say('import_sending', { name: file.name, n: total ? percent(loaded / total) : 0 }), stop));
  going.addEventListener('progress', () => {
    const { share } = read(going.responseText);
    if (share !== undefined) progress(say('import_reading', { name: file.name, n: percent(share) }), stop);
  });
  going.addEventListener('load', () => {
    const { done, left, open, failed } = read(going.responseText);
    if (!done) return tell(failed ?? say('import_failed'));
    ask({ do: 'look' });  // they are in the list
    tellOthers();
    dispatchEvent(new CustomEvent('p-brought'));
    tell(done, { more: left, act: open ? () => openConversation(open) : null });
  });
  for (const end of ['error', 'abort', 'timeout']) going.addEventListener(end, () => tell(say(stopped ? 'import_stopped' : 'import_failed')));
  going.send(body);
}

export function bringIn() {
  const input = Object.assign(document.createElement('input'), { type: 'file', accept: '.zip,.json', hidden: true });
  input.addEventListener('change', () => { if (input.files.length) send(input.files[0]); input.remove(); });
  input.addEventListener('cancel', () => input.remove());
  document.body.append(input);
  input.click();
}

export function start() {
  line = Object.assign(document.createElement('div'), { className: 'p-undo p-bringing' });
  line.setAttribute('role', 'status');
  document.body.append(line);
  // What is being sent stays in sight; a report goes, and Escape does nothing else then.
  addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing || line.querySelector('.p-going') || !line.classList.contains('p-there') || document.querySelector('dialog[open]')) return;
    putAway();
    event.stopImmediatePropagation();
  }, true);
}
