// Keys for programs in the settings: one row each, a dialog for a new one, and the key itself, which is shown once.
import { question } from './dialogs.js';
import { copyText } from './links.js';
import { make } from './models_form.js';
import { request } from './request.js';
import { lang, say } from './words.js';

const SCOPES = ['chat', 'files', 'embeddings', 'embed'];
const LASTS = ['', '30', '90', '365'];  // days
const day = (seconds) => new Date(seconds * 1000).toLocaleDateString(lang(), { day: 'numeric', month: 'short', year: 'numeric' });
const state = (kind, said) => make('span', { className: 'p-state' }, make('span', { className: `p-st ${kind}`, attributes: { 'aria-hidden': 'true' } }), said);

// What a key may do, has used, and when it was shown last or no longer counts.
function when(one) {
  if (one.revoked) return [say('apikey_revoked_on', { when: day(one.revoked) }), ''];
  if (one.ends && one.ends * 1000 <= Date.now()) return [say('apikey_over', { when: day(one.ends) }), ''];
  return one.used ? [say('apikey_used', { when: day(one.used) }), 'p-ok'] : [say('apikey_unused'), 'p-open'];
}

function field(id, caption, control, note = '') {
  const below = note ? [make('span', { className: 'p-note', id: `${id}-note`, textContent: note })] : [];
  if (note) control.setAttribute('aria-describedby', `${id}-note`);
  return make('div', { className: 'p-key-field' }, make('label', { htmlFor: id, textContent: caption }), control, ...below);
}

function form() {
  const plain = { autocomplete: 'off', spellcheck: false };
  const name = make('input', { type: 'text', id: 'p-key-name', maxLength: 60, ...plain });
  const models = make('input', { type: 'text', id: 'p-key-models', ...plain });
  const budget = make('input', { type: 'number', id: 'p-key-budget', min: '0', step: 'any' });
  const lasts = make('select', { id: 'p-key-lasts' }, ...LASTS.map((days) => make('option', { value: days, textContent: days ? say('apikey_days', { n: days }) : say('apikey_ever') })));
  const boxes = SCOPES.map((one) => make('input', { type: 'checkbox', id: `p-key-${one}`, checked: one === 'chat' }));
  const scopes = make('fieldset', { className: 'p-key-scopes' }, make('legend', { textContent: say('apikey_for') }),
    ...boxes.map((box, at) => make('label', { className: 'p-tick', htmlFor: box.id }, box, make('span', { textContent: say(`apikey_for_${SCOPES[at]}`) }))));
  const element = make('div', { className: 'p-new-key' }, field(name.id, say('apikey_name'), name), scopes,
    field(models.id, say('apikey_models'), models, say('apikey_models_note')), field(budget.id, say('apikey_budget'), budget),
    field(lasts.id, say('apikey_lasts'), lasts));
  const asked = () => ({
    name: name.value, scopes: SCOPES.filter((_, at) => boxes[at].checked), budget: budget.value || null, days: lasts.value || null,
    models: models.value.trim() ? models.value.split(',').map((one) => one.trim()).filter(Boolean) : null,
  });
  const wrong = make('p', { className: 'p-wrong', id: 'p-key-wrong', attributes: { role: 'alert' } });
  // At the field that it is about, where that is known; else below them all.
  const tell = (said, about) => {
    const at = { name, models, budget, scopes: boxes[0] }[about];
    for (const one of element.querySelectorAll('[aria-invalid]')) for (const attribute of ['aria-invalid', 'aria-errormessage']) one.removeAttribute(attribute);
    wrong.textContent = said;
    (at?.closest('.p-key-field, .p-key-scopes') ?? element).append(wrong);
    at?.setAttribute('aria-invalid', 'true');
    at?.setAttribute('aria-errormessage', wrong.id);
    at?.focus();
    wrong.scrollIntoView({ block: 'nearest' });
  };
  return { element, asked, name, tell };
}

// `told` says how it went, beside the heading of the page.
export function apiKeys(told) {
  const list = make('div', { className: 'p-key-list' });
  const once = make('div', { className: 'p-key-once', hidden: true, attributes: { role: 'group', 'aria-label': say('apikey_new') } });
  const add = make('button', { type: 'button', className: 'p-button p-add-service p-add-key', textContent: say('apikey_make'), attributes: { 'aria-haspopup': 'dialog' } });
  const element = make('div', {}, once, list, make('div', { className: 'p-set p-adds' }, add));
  let busy = false;

  function row(one) {
    const gone = make('button', { type: 'button', className: 'p-quiet p-danger', textContent: say('share_revoke'), attributes: { 'aria-label': `${say('share_revoke')}: ${one.name}` } });
    gone.addEventListener('click', () => revoke(one));
    const [said, kind] = when(one);
    const ends = one.ends && !one.revoked && one.ends * 1000 > Date.now() ? say('apikey_ends', { when: day(one.ends) }) : '';
    return make('div', { className: 'p-set p-link-row p-key-row', attributes: { 'data-key': one.id } },
      make('div', { className: 'p-what' }, make('span', { className: 'p-label', textContent: one.name, title: one.name, dir: 'auto' }),
        make('code', { className: 'p-note', textContent: one.shown }),
        make('span', { className: 'p-note', textContent: [one.may, one.month, ends].filter(Boolean).join(' · ') })),
      make('div', { className: 'p-how' }, state(kind, said), ...one.revoked ? [] : [gone]));
  }

  function draw(keys) {
    list.replaceChildren(...keys.length ? keys.map(row) : [make('p', { className: 'p-about p-none', textContent: say('apikey_none') })]);
  }

  async function work(act, body) {
    if (busy) return null;
    busy = true;
    const answer = await request(`./keys/${act}`, 'apikey_failed', body);
    busy = false;
    if (!answer.failed) draw(answer.keys);
    return answer;
  }

  function show({ key, name, note }) {
    const value = make('input', { type: 'text', readOnly: true, value: key, className: 'p-key-value', attributes: { 'aria-label': say('apikey_key') } });
    const copy = make('button', { type: 'button', className: 'p-button p-main', textContent: say('copy') });
    copy.addEventListener('click', async () => { await copyText(key, copy); copy.textContent = say('copied'); });
    const address = new URL('./v1', document.baseURI).href;
    once.replaceChildren(make('p', { className: 'p-key-made' }, make('strong', { textContent: name, dir: 'auto' }), ` ${say('apikey_shown_once')}`),
      make('div', { className: 'p-key-line' }, value, copy), make('code', { className: 'p-key-try', textContent: `curl ${address}/models -H "Authorization: Bearer $KEY"` }),
      ...note ? [make('p', { className: 'p-note', textContent: note })] : []);
    once.hidden = false;
    value.focus();
    value.select();
  }

  function begin() {
    const { element: body, asked, name, tell } = form();
    question('', body, say('apikey_create'), async () => {
      const answer = await work('make', asked());
      if (answer?.failed) tell(answer.failed, answer.field);
      else if (answer) { told(''); show(answer); }
      return Boolean(answer && !answer.failed);
    }, { title: say('apikey_new'), stays: true, back: ['#p-settings .p-key-once:not([hidden]) input', '#p-settings .p-add-key'] });
    name.focus();
  }

  function revoke(one) {
    const text = make('p', { textContent: say('apikey_revoke_ask', { name: one.name }) });
    question('', text, say('share_revoke'), async () => {
      const answer = await work('revoke', { id: one.id });
      if (answer) told(answer.failed ?? answer.said, answer.failed ? 'bad' : '');
    }, { kind: 'p-danger', back: [`#p-settings [data-key="${CSS.escape(one.id)}"] .p-danger`, '#p-settings .p-add-key'] });
  }

  add.addEventListener('click', begin);
  return { element, draw, forget: () => { once.hidden = true; once.replaceChildren(); } };
}
