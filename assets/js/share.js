// A link to a snapshot of a conversation: what it would hold, how long it lasts, and the links that there are.
import { keepFocus } from './focus.js';
import { about, acts, addressOf, copyAddress } from './links.js';
import { make } from './models_form.js';
import { request } from './request.js';
import { say } from './words.js';

const LASTS = ['week', 'day', 'month', 'ever'];
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const call = (act, body) => request(`./shares/${act}`, 'share_failed', body);

function parts(title) {
  const heading = make('h2', { id: 'p-share-title', textContent: say('share_title', { title }) });
  const what = make('p', { className: 'p-note', textContent: say('share_what') });
  // Who runs it on 127.0.0.1 knows before the link is made that nobody else reaches it.
  const local = LOOPBACK.test(location.hostname) ? [make('p', { className: 'p-note', textContent: say('share_local') })] : [];
  const holds = make('ul', { className: 'p-holds', attributes: { 'aria-label': say('share_holds') } });
  const see = make('a', { textContent: say('share_see'), target: '_blank', rel: 'noopener' });
  const lasts = make('select', { id: 'p-share-lasts' }, ...LASTS.map((one) => make('option', { value: one, textContent: say(`share_${one}`) })));
  const label = make('label', { htmlFor: 'p-share-lasts', textContent: say('share_lasts') });
  const told = make('p', { className: 'p-told', attributes: { role: 'status' } });
  const made = make('div', { className: 'p-share-made', hidden: true });
  const links = make('div', { className: 'p-share-links' });
  const no = make('button', { type: 'button', className: 'p-button', textContent: say('close') });
  const yes = make('button', { type: 'submit', className: 'p-button p-main', textContent: say('share_make') });
  const form = make('form', { method: 'dialog', noValidate: true }, heading, what, ...local, holds, make('p', {}, see),
    make('div', { className: 'p-share-lasts' }, label, lasts), made, told, links, make('div', { className: 'p-row' }, no, yes));
  const element = make('dialog', { className: 'p-dialog p-share', attributes: { 'aria-labelledby': 'p-share-title' } }, form);
  return { element, form, holds, see, lasts, told, made, links, no, yes };
}

export function share(id, title, back) {
  if (document.querySelector('dialog.p-share')) return;
  const { element, form, holds, see, lasts, told, made, links, no, yes } = parts(title);
  const fail = (text = '') => told.replaceChildren(...(text ? [make('span', { className: 'p-st p-bad' }), make('span', { textContent: text })] : []));
  let busy = false;

  function list(all) {
    const rows = all.map((one) => {
      const said = make('span', { textContent: about(one) });
      const revoke = () => work('revoke', { id, share: one.share }, () => { made.hidden = true; no.focus(); });
      return make('li', {}, said, make('span', { className: 'p-acts' }, ...acts(one, about(one), { revoke, told: (text) => { told.textContent = text; } })));
    });
    links.replaceChildren(...(rows.length ? [make('h3', { textContent: say('share_links') }), make('ul', {}, ...rows)] : []));
  }

  async function work(act, body, then) {
    if (busy) return;
    busy = true;
    fail();
    const answer = await call(act, body);
    busy = false;
    if (answer.failed) return fail(answer.failed);
    list(answer.links);
    then(answer);
  }

  function show({ path }) {
    const address = addressOf(path);
    const field = make('input', { id: 'p-share-link', readOnly: true, value: address });
    const copy = make('button', { type: 'button', className: 'p-button', textContent: say('share_copy') });
    copy.addEventListener('click', async () => {
      await copyAddress(path, copy);
      copy.textContent = say('copied');
    });
    made.replaceChildren(make('label', { htmlFor: 'p-share-link', textContent: say('share_link') }),
      make('div', { className: 'p-share-line' }, field, copy), make('p', { className: 'p-note', textContent: say('share_once') }));
    made.hidden = false;
    field.focus();
    field.select();
  }

  form.addEventListener('submit', (event) => { event.preventDefault(); work('make', { id, lasts: lasts.value }, show); });
  no.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', () => { element.remove(); keepFocus(...back); });
  see.href = `./shares/preview?id=${encodeURIComponent(id)}`;
  document.body.append(element);
  element.showModal();
  yes.disabled = true;  // until it says what the link would hold: a press before that would be lost
  work('look', { id }, (answer) => {
    holds.replaceChildren(...answer.holds.map((text) => make('li', { textContent: text })));
    yes.disabled = false;
  });
}
