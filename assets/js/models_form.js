// The fields of the dialog about models. What comes from the server becomes text, never markup.
import { say } from './words.js';

export function make(tag, given = {}, ...children) {
  const { attributes = {}, ...properties } = given;
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function row(name, caption, ...fields) {
  const label = make('label', { htmlFor: `p-models-${name}`, textContent: caption });
  return [make('div', { className: 'p-field' }, label, ...fields), label];
}

function field(name, given = {}) {
  const plain = { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', 'data-1p-ignore': '', 'data-lpignore': 'true' };
  return make('input', { id: `p-models-${name}`, ...given, attributes: { ...plain, ...given.attributes } });
}

const button = (className, textContent, type = 'button') => make('button', { type, className: `p-button ${className}`, textContent });

export function fields() {
  const title = make('h2', { id: 'p-models-title', textContent: say('models_title') });
  const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'aria-label': say('close') } });
  const service = make('select', { id: 'p-models-service' });
  const address = field('address', { type: 'url', attributes: { inputmode: 'url' } });
  const model = field('model', { attributes: { list: 'p-models-list', 'aria-describedby': 'p-models-count' } });
  const models = make('datalist', { id: 'p-models-list' });
  const count = make('span', { id: 'p-models-count', className: 'p-count' });
  const key = field('key', { type: 'password', attributes: { autocomplete: 'new-password', 'aria-describedby': 'p-models-note' } });
  const remove = button('p-remove', say('models_key_remove'));
  const able = abilities();
  const note = make('p', { id: 'p-models-note', className: 'p-note' });
  const told = make('p', { className: 'p-told', attributes: { role: 'status' } });
  const forget = button('p-forget', say('models_remove'));
  const share = button('', say('lend'));
  share.hidden = true;
  const test = button('', say('models_test'));
  const save = button('', say('save'));
  const use = button('p-main', say('models_use'), 'submit');
  const [serviceRow] = row('service', say('models_service'), service);
  const [addressRow] = row('address', say('models_address'), address);
  const [modelRow, modelCaption] = row('model', say('models_model'), model, models, count);
  const [keyRow] = row('key', say('models_key'), make('div', { className: 'p-with' }, key, remove));
  // Until the menu has come: what is typed before would be written over.
  const files = make('div', { className: 'p-weights', hidden: true, attributes: { role: 'list', 'aria-label': say('weights_title') } });
  const body = make('fieldset', { className: 'p-fields', disabled: true }, serviceRow, addressRow, modelRow, keyRow, able.element, note, files);
  const actions = make('fieldset', { className: 'p-row', disabled: true }, test, share, forget, save, use);
  const form = make('form', { method: 'dialog', noValidate: true },
    make('header', {}, title, close), body, told, actions);
  const element = make('dialog', { className: 'p-dialog p-models', attributes: { 'aria-labelledby': 'p-models-title' } }, form);
  return {
    element, form, body, actions, service, address, model, models, count, key, remove, note, told, close, test, save, use, forget, share, able, files,
    rows: { address: addressRow, model: modelRow, key: keyRow }, captions: { model: modelCaption },
  };
}

// What the model can do besides writing: by its name, or as it is said here.
function abilities() {
  const selects = Object.fromEntries(['sees', 'hears', 'calls'].map((what) => [what, make('select', { id: `p-models-${what}` },
    ...['auto', 'yes', 'no'].map((value) => make('option', { value, textContent: say(`models_${value}`) })))]));
  const rows = Object.entries(selects).map(([what, select]) => make('div', { className: 'p-able' },
    make('label', { htmlFor: select.id, textContent: say(`models_able_${what}`) }), select));
  const element = make('details', { className: 'p-abilities' }, make('summary', { textContent: say('models_abilities') }), ...rows);
  return {
    element,
    set(said = {}) {
      for (const [what, select] of Object.entries(selects)) select.value = { true: 'yes', false: 'no' }[said[what]] ?? 'auto';
      element.open = Object.keys(said).length > 0;
    },
    get: () => Object.fromEntries(Object.entries(selects).map(([what, { value }]) => [what, { yes: true, no: false }[value] ?? null])),
  };
}

// The choices, those of one place together; what is in use says so.
export function grouped(menu) {
  const said = (name, label) => (menu.used === name ? say('models_in_use', { name: label }) : label);
  const groups = new Map();
  for (const { name, label, group } of menu.services) {
    if (!groups.has(group)) groups.set(group, make('optgroup', { label: group }));
    groups.get(group).append(make('option', { value: name, textContent: said(name, label) }));
  }
  return [make('option', { value: '', textContent: said('', menu.default) }), ...groups.values()];
}
