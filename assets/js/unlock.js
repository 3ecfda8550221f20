// The password of a document: it travels in one request of its own, and stands nowhere on the page.
import { ask } from './bus.js';
import { make } from './models_form.js';
import { keepFocus } from './focus.js';
import { request } from './request.js';
import { toEnd } from './scroll.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

const opened = (id, password) => request('./documents/unlock', 'unlock_failed', { id, password });

function parts(name) {
  const plain = { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', 'data-1p-ignore': '', 'data-lpignore': 'true' };
  const title = make('h2', { id: 'p-unlock-title', textContent: say('unlock_title', { name }) });
  const field = make('input', { id: 'p-unlock', type: 'password', attributes: { ...plain, 'aria-describedby': 'p-unlock-note' } });
  const label = make('label', { htmlFor: 'p-unlock', textContent: say('unlock_field') });
  const told = make('p', { className: 'p-told', attributes: { role: 'status' } });
  const note = make('p', { id: 'p-unlock-note', className: 'p-note', textContent: say(window.isSecureContext ? 'unlock_note' : 'unlock_open_way') });
  const no = make('button', { type: 'button', className: 'p-button', textContent: say('cancel') });
  const yes = make('button', { type: 'submit', className: 'p-button p-main', textContent: say('unlock_do') });
  const form = make('form', { method: 'dialog', noValidate: true }, title, label, field, note, told, make('div', { className: 'p-row' }, no, yes));
  const element = make('dialog', { className: 'p-dialog p-unlock', attributes: { 'aria-labelledby': 'p-unlock-title' } }, form);
  return { element, form, title, label, field, note, told, no, yes };
}

// It is open, and nothing is asked by itself: the dialog says so, and offers what may be asked once more.
function showOpened({ title, label, field, note, no, yes }, name, reply, close) {
  field.value = '';
  for (const one of [label, field, note]) one.remove();
  title.textContent = say('unlock_opened', { name });
  no.textContent = say('close');
  if (!reply) { yes.remove(); return no.focus(); }
  yes.textContent = say('unlock_again');
  yes.type = 'button';
  yes.addEventListener('click', () => { close(); ask({ do: 'regenerate', id: reply }); toEnd(); });
  yes.focus();
}

// From which of its links: there the focus goes back to.
export function unlock(id, name, from) {
  if (document.querySelector('dialog.p-unlock')) return;
  const made = parts(name);
  const { element, form, field, told, no, yes } = made;
  let busy = false;
  const tell = (shape, text) => told.replaceChildren(make('span', { className: `p-st p-${shape}` }), make('span', { textContent: text }));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (busy) return;
    if (!field.value) { tell('bad', say('unlock_empty')); return field.focus(); }
    busy = true;
    yes.setAttribute('aria-disabled', 'true');
    tell('run', say('unlock_trying'));
    const answer = await opened(id, field.value);
    busy = false;
    yes.removeAttribute('aria-disabled');
    ask({ do: 'look' });
    tellOthers();
    if (!answer.failed && answer.answers) return element.close();
    if (!answer.failed) {
      showOpened(made, name, answer.reply, () => element.close());
      return tell('ok', say(answer.reply ? 'unlock_answered' : 'unlock_ask'));
    }
    tell('bad', answer.failed);
    field.select();
    field.focus();
  });
  field.addEventListener('input', () => { if (!busy) told.replaceChildren(); });
  no.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', () => {
    field.value = '';
    element.remove();
    keepFocus(`#chat ${from}[href="#do-unlock-${CSS.escape(id)}"]`, '#composer textarea');
  });
  document.body.append(element);
  element.showModal();
  field.focus();
}
