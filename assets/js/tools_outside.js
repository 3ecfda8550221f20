// Parlour for other programs: the address, and the token that opens it.
import { question } from './dialogs.js';
import { make } from './models_form.js';
import { button, copied, field, note, section, text } from './tools_parts.js';
import { lang, say } from './words.js';

export function outside(dialog) {
  const told = (kind, said) => dialog.tell(kind, said);
  const [addressRow, address] = taken('p-tools-mcp', say('tools_address'), told);
  const [tokenRow, token] = taken('p-tools-token', say('tools_token'), told);
  const once = note(say('tools_outside_once'), 'p-once');
  const state = note('');
  const makeOne = button('p-main', say('tools_make'));
  const revoke = button('p-danger', say('tools_revoke'));
  const { element } = section(say('tools_outside'), note(say('tools_outside_about')), addressRow, state, tokenRow, once,
    make('div', { className: 'p-row p-start' }, makeOne, revoke));
  let fresh = '';

  makeOne.addEventListener('click', async () => {
    const answer = await dialog.run('token');
    if (!answer?.token) return;
    fresh = answer.token;
    draw(dialog.data);
    token.focus();
    token.select();
  });
  revoke.addEventListener('click', () => {
    const asked = make('p', { textContent: say('tools_revoke_ask') });
    question('', asked, say('tools_revoke'), async () => { fresh = ''; await dialog.run('revoke'); }, { kind: 'p-danger' });
  });

  function draw({ access }) {
    address.value = new URL(`.${access.path}`, location.href).href;
    if (!access.made) fresh = '';
    const day = new Date(access.made * 1000).toLocaleDateString(lang(), { dateStyle: 'long' });
    text(state, access.made ? say('tools_outside_made', { day }) : say('tools_outside_none'));
    tokenRow.hidden = once.hidden = !fresh;
    token.value = fresh;
    text(makeOne, access.made ? say('tools_make_again') : say('tools_make'));
    makeOne.classList.toggle('p-main', !access.made);
    revoke.hidden = !access.made;
  }
  return { element, draw };
}

function taken(id, caption, told) {
  const [row, input] = field(id, caption, { readOnly: true, className: 'p-mono' });
  const copy = button('', say('tools_copy'));
  const take = copied(copy, told);
  copy.addEventListener('click', () => take(() => input.value));
  const both = make('div', { className: 'p-with' }, copy);
  both.prepend(input);
  row.append(both);
  return [row, input];
}
