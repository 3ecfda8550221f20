// How a service knows who asks: the ways that its document declares, and the fields of the one that is chosen.
import { make } from './models_form.js';
import { field, note, text } from './tools_parts.js';
import { say } from './words.js';

const KINDS = ['bearer', 'header', 'query', 'basic', 'oauth2'];
const NONE = { kind: 'none', name: '', token_url: '', scopes: [] };
const NAMED = { basic: 'services_key_user', oauth2: 'services_key_client' };
const SECRETS = { basic: 'services_key_password', oauth2: 'services_key_secret' };

export function keyFields(id) {
  const mono = { className: 'p-mono' };
  const [kindRow, kind] = field(`${id}-kind`, say('services_key_kind'), {}, 'select');
  const [calledRow, called] = field(`${id}-called`, say('services_key_name'), { ...mono, maxLength: 200 });
  const [valueRow, value] = field(`${id}-value`, say('services_key_value'), { type: 'password', maxLength: 8000, attributes: { autocomplete: 'new-password' } });
  const [urlRow, url] = field(`${id}-token-url`, say('services_key_token_url'), { ...mono, type: 'url', maxLength: 2000, placeholder: 'https://…', attributes: { inputmode: 'url' } });
  const [scopeRow, scope] = field(`${id}-scope`, say('services_key_scope'), { ...mono, maxLength: 4000, placeholder: say('services_key_scope_note') });
  const scopes = make('div', { className: 'p-scopes', attributes: { role: 'group', 'aria-label': say('services_key_scopes') } });
  const safe = note('');
  scopeRow.append(scopes);
  let offered = [];

  const way = () => offered[Number(kind.value)] ?? NONE;

  // Without a word of the document about keys anything may be right; a way that is in use is always there.
  function offer(ways, used = null) {
    const before = way();
    const known = ways.length ? ways : KINDS.map((one) => ({ ...NONE, kind: one }));
    offered = [...known, NONE];
    if (used && used.kind !== 'none' && !known.some((one) => is(one, used))) offered.unshift({ ...NONE, ...used, scopes: [] });
    if (!ways.length) offered = [NONE, ...offered.filter((one) => one.kind !== 'none')];
    kind.replaceChildren(...offered.map((one, at) => make('option', { value: String(at), textContent: caption(one) })));
    const chosen = offered.findIndex((one) => is(one, used ?? (ways.length ? offered[0] : before)));
    kind.value = String(Math.max(0, chosen));
    fit();
  }

  function fit() {
    const one = way();
    const isClient = one.kind === 'oauth2';
    calledRow.hidden = ['none', 'bearer'].includes(one.kind) || Boolean(one.name && !NAMED[one.kind]);
    valueRow.hidden = safe.hidden = one.kind === 'none';
    urlRow.hidden = scopeRow.hidden = !isClient;
    text(calledRow.querySelector('label'), say(NAMED[one.kind] ?? 'services_key_name'));
    text(valueRow.querySelector('label'), say(SECRETS[one.kind] ?? 'services_key_value'));
    text(safe, say(isClient ? 'services_key_client_note' : 'services_key_note'));
    if (isClient && one.token_url) url.value = one.token_url;
    scopes.hidden = !one.scopes.length;
    scopes.replaceChildren(...one.scopes.map(([name, about]) => scopeButton(name, about)));
    mark();
  }

  // What the document knows is pressed instead of typed.
  function scopeButton(name, about) {
    return make('button', { type: 'button', className: 'p-scope p-mono', title: about, textContent: name });
  }
  const chosen = () => scope.value.split(/\s+/).filter(Boolean);
  function mark() {
    for (const one of scopes.children) one.setAttribute('aria-pressed', String(chosen().includes(one.textContent)));
  }
  scopes.addEventListener('click', ({ target }) => {
    if (!target.closest('.p-scope')) return;
    const name = target.textContent;
    scope.value = (chosen().includes(name) ? chosen().filter((one) => one !== name) : [...chosen(), name]).join(' ');
    mark();
  });
  scope.addEventListener('input', mark);
  kind.addEventListener('change', fit);
  offer([]);

  return {
    rows: [kindRow, calledRow, valueRow, urlRow, scopeRow, safe],
    parts: { kind, called, value },
    offer,
    fill: (one, ways) => {
      offer(ways, one);
      called.value = one.name;
      value.value = '';
      value.placeholder = one.end ? say('tools_key_kept', { end: one.end }) : '';
      if (one.kind === 'oauth2') url.value = one.token_url;
      scope.value = one.scope;
      mark();
    },
    given: () => {
      const { kind: given, name } = way();
      const isClient = given === 'oauth2';
      const typed = { kind: given, name: NAMED[given] || !name ? called.value.trim() : name, value: value.value };
      return isClient ? { ...typed, token_url: url.value.trim(), scope: chosen().join(' ') } : typed;
    },
  };
}

const is = (one, other) => one.kind === other.kind && (NAMED[one.kind] || one.kind === 'bearer' || !one.name || one.name === other.name);

function caption({ kind, name }) {
  const said = say(`services_key_${kind}`);
  return name && !NAMED[kind] ? say('services_key_of', { kind: said, name }) : said;
}
