// A shared conversation goes on in a copy: its page leads here with the link in the address, and the reader is asked.
import { keepFocus } from './focus.js';
import { day } from './links.js';
import { make } from './models_form.js';
import { openConversation } from './places.js';
import { request } from './request.js';
import { onChange, status } from './state.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

let link = '';

function parts() {
  const heading = make('h2', { id: 'p-over-title', dir: 'auto' });
  const what = make('p', { className: 'p-note' });
  const holds = make('ul', { className: 'p-holds', attributes: { 'aria-label': say('share_holds') } });
  const told = make('p', { className: 'p-told', attributes: { role: 'status' } });
  const no = make('button', { type: 'button', className: 'p-button', textContent: say('cancel') });
  const yes = make('button', { type: 'submit', className: 'p-button p-main', textContent: say('share_over'), disabled: true });
  const form = make('form', { method: 'dialog', noValidate: true }, heading, what, holds, told, make('div', { className: 'p-row' }, no, yes));
  const element = make('dialog', { className: 'p-dialog p-share p-over', attributes: { 'aria-labelledby': heading.id } }, form);
  return { element, form, heading, what, holds, told, no, yes };
}

async function question(token) {
  const { element, form, heading, what, holds, told, no, yes } = parts();
  const fail = (text) => told.replaceChildren(make('span', { className: 'p-st p-bad' }), make('span', { textContent: text }));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    yes.disabled = true;
    told.textContent = say('share_over_going');
    const answer = await request('./shares/copy', 'share_failed', { link: token });
    yes.disabled = false;
    if (answer.failed) return fail(answer.failed);
    element.close();
    openConversation(answer.open);
    tellOthers();
  });
  no.addEventListener('click', () => element.close());
  element.addEventListener('close', () => { element.remove(); keepFocus('#composer textarea'); });
  heading.textContent = say('share_over');
  document.body.append(element);
  element.showModal();
  no.focus();
  const answer = await request('./shares/held', 'share_failed', { link: token });
  if (answer.failed) return fail(answer.failed);
  heading.textContent = say('share_over_title', { title: answer.title || say('share_untitled') });
  what.textContent = say('share_over_what', { when: day(answer.made) });
  holds.replaceChildren(...answer.holds.map((text) => make('li', { textContent: text })));
  yes.disabled = false;
  if (document.activeElement === no) yes.focus();
}

export function start() {
  const address = new URL(location.href);
  link = address.searchParams.get('copy') ?? '';
  if (!link) return;
  address.searchParams.delete('copy');  // whoever loads the page again is not asked again
  history.replaceState({}, '', address);
  onChange(() => {
    if (!link || !status()) return;
    const token = link;
    link = '';
    question(token);
  });
}
