// The tools that Parlour brings with it.
import { keyed } from './libraries_parts.js';
import { make } from './models_form.js';
import { notes } from './tools_notes.js';
import { button, field, note, ruleName, section, setSwitch, text, toggle } from './tools_parts.js';
import { say } from './words.js';

export function builtin(dialog) {
  const list = make('ul', { className: 'p-tool-list', attributes: { role: 'list' } });
  const small = note('', 'p-small');
  const accounts = new Map();
  const { element } = section(say('tools_builtin'), note(say('tools_builtin_about')), small, list);
  const kept = notes(dialog);
  const busy = new Set();

  list.addEventListener('change', async (event) => {
    const tool = event.target.closest('[data-key]')?.dataset.key;
    if (!tool || event.target.getAttribute('role') !== 'switch') return;
    busy.add(tool);
    await dialog.run('switch', { tool, on: event.target.checked });
    busy.delete(tool);
    draw(dialog.data);
  });

  function draw(data) {
    text(small, data.small);
    small.hidden = !data.small;
    keyed(list, data.tools.map((one) => ({ ...one, id: one.name })), toolRow, (row, one) => {
      changeTool(row, one, busy.has(one.name));
      if (one.name === 'storage' && kept.element.parentElement !== row) row.append(kept.element);
      const known = data.accounts[one.name];
      if (!known) return;
      if (!accounts.has(one.name)) {
        accounts.set(one.name, account(dialog, one.name));
        row.append(accounts.get(one.name).form);
      }
      accounts.get(one.name).draw(known, one.on);
    });
    kept.draw(data.notes);
  }
  return { element, draw };
}

function toolRow() {
  return make('li', {},
    make('div', { className: 'p-what' },
      make('span', { className: 'p-name' }), ruleName(), make('span', { className: 'p-about' }), make('span', { className: 'p-state' })),
    toggle(''));
}

function changeTool(row, one, busy) {
  const [what, input] = row.children;
  const [name, rule, about, state] = what.children;
  text(name, one.label);
  text(rule, one.name);
  text(about, one.about);
  text(state, [one.may, one.noted].filter(Boolean).join(' · '));
  row.dataset.state = one.available ? 'on' : 'off';
  input.setAttribute('aria-label', one.label);
  input.disabled = !one.available || one.always;
  setSwitch(input, one.on, busy);
}

// Which service a tool asks, and the key for it: sent in one request, shown by its end.
function account(dialog, tool) {
  const id = (name) => `p-tools-${tool}-${name}`;
  const [providerRow, provider] = field(id('service'), say('tools_service'), {}, 'select');
  const [addressRow, address] = field(id('address'), say('tools_address'), { type: 'url', attributes: { inputmode: 'url' } });
  const [modelRow, model] = field(id('model'), say('tools_model'));
  const [keyRow, key] = field(id('key'), say('tools_key'), { type: 'password', attributes: { autocomplete: 'new-password' } });
  const save = button('', say('tools_save'), 'submit');
  const remove = button('p-quiet', say('models_key_remove'));
  const form = make('form', { className: 'p-engine', noValidate: true }, providerRow, addressRow, modelRow, keyRow, make('div', { className: 'p-row' }, remove, save));
  let given = null;
  let typed = false;

  function fit() {
    const one = given.providers.find((each) => each.name === provider.value);
    providerRow.hidden = given.providers.length < 2;
    addressRow.hidden = !one?.address;
    modelRow.hidden = !one?.model;
    model.placeholder = one?.model ?? '';
    const kept = one?.name === given.provider && given.has_key;
    keyRow.hidden = !one?.key && !one?.address && !kept;
    key.placeholder = kept ? say('tools_key_kept', { end: given.end }) : say('tools_key_type');
    address.placeholder = one?.usual || 'https://';
    remove.hidden = !kept;
  }
  provider.addEventListener('change', () => {
    const same = provider.value === given.provider;
    key.value = '';
    address.value = same ? given.address : '';
    model.value = same ? given.model : '';
    fit();
  });
  form.addEventListener('input', () => { typed = true; });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const said = key.value.trim();
    const body = { tool, provider: provider.value, address: address.value.trim(), model: model.value.trim(), ...(said ? { key: said } : {}) };
    if (!await dialog.run('account', body)) return;
    key.value = '';
    typed = false;
    draw(dialog.data.accounts[tool], true);
  });

  remove.addEventListener('click', async () => {
    if (!await dialog.run('forget', { tool })) return;
    typed = false;
    draw(dialog.data.accounts[tool], true);
    save.focus();
  });

  function draw(now, on) {
    form.hidden = !on;
    given = now;
    if (typed) return;
    provider.replaceChildren(...now.providers.map((one) => make('option', { value: one.name, textContent: one.label })));
    provider.value = now.provider;
    address.value = now.address;
    model.value = now.model;
    fit();
  }
  return { form, draw };
}
