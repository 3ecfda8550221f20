// Sharing something of one's own with groups, from wherever it is: with whom, how, and who that is.
import { ask } from './bus.js';
import { keyed, shape } from './libraries_parts.js';
import { make } from './models_form.js';
import { request as requested } from './request.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

const request = (what, body) => requested(`./lending/${what}`, 'lend_failed', body);
let open = false;

// `back` finds what had the keyboard, which may be drawn anew meanwhile; `closed` is called in its place.
export function lend(kind, thing, name, back = '', closed = null) {
  if (open) return;
  open = true;
  const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'aria-label': say('close') } });
  const title = make('h2', { id: 'p-lend-title', textContent: say('lend_title', { name }), attributes: { dir: 'auto' } });
  const said = make('p', { className: 'p-lent', attributes: { role: 'status', dir: 'auto' } });
  const list = make('ul', { attributes: { role: 'list' } });
  const note = make('p', { className: 'p-beneath' });
  const element = make('dialog', { className: 'p-dialog p-lend', attributes: { 'aria-labelledby': title.id } },
    make('header', {}, title, close), said, list, note);
  let ways = [];
  let turn = 0;

  const told = (kind, text) => said.replaceChildren(...(kind ? [shape(kind)] : []), make('span', { textContent: text }));

  function row(group) {
    const select = make('select', { id: `p-lend-${group.id}` }, ...ways.map(({ value, label }) => make('option', { value, textContent: label })));
    select.addEventListener('change', () => change(group.id, select));
    return make('li', {}, make('label', { htmlFor: select.id },
      make('span', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-who', attributes: { dir: 'auto' } })), select);
  }

  function draw(answer) {
    ways = answer.ways;
    told('', answer.said);
    note.textContent = answer.note;
    keyed(list, answer.groups, row, (element, group) => {
      const [label, select] = element.children;
      label.children[0].textContent = group.name;
      label.children[1].textContent = group.people;
      select.setAttribute('aria-label', say('lend_with', { name, group: group.name }));
      select.value = group.how;
    });
  }

  async function change(group, select) {
    const mine = ++turn;
    const answer = await request('change', { kind, thing, group, how: select.value });
    ask({ do: 'look' });
    tellOthers();
    if (!element.isConnected || mine !== turn) return;
    if (!answer.failed) return draw(answer);
    await look();
    told('bad', answer.failed);
  }

  async function look() {
    const answer = await request(`of?${new URLSearchParams({ kind, thing })}`);
    if (!element.isConnected) return;
    if (answer.failed) told('bad', answer.failed);
    else draw(answer);
  }

  close.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', (event) => {
    event.stopPropagation();
    element.remove();
    open = false;
    if (closed) closed();
    else if (back) document.querySelector(back)?.focus();
  });
  document.body.append(element);
  element.showModal();
  told('run', say('lend_loading'));
  look().then(() => list.querySelector('select')?.focus());
}

// The buttons of the page itself, which name what they share.
export const lendFrom = (button) => {
  const { kind, thing, name } = button.dataset;
  lend(kind, thing, name, `[data-do="lend"][data-thing="${CSS.escape(thing)}"]`);
};
