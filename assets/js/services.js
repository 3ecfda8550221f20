// The services in the settings: one row for each, with a menu of what can be done with it. Its data come from the
// server and become text, never markup.
import { ask } from './bus.js';
import { item, question, toggleMenu } from './dialogs.js';
import { editService } from './models.js';
import { make } from './models_form.js';
import { request } from './request.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

// `changed` draws the page anew, with a sentence.
export function services(changed) {
  const element = make('div', { className: 'p-services' });
  const found = new Map();  // by service, what its test found: { shape, word, said }
  const lines = new Map();  // by service, what of its row changes in place, so that it is read aloud
  let told = null;

  const more = (service) => `.p-more[data-service="${CSS.escape(service)}"]`;

  function row(one) {
    const button = make('button', { type: 'button', className: 'p-icon p-more', attributes: { 'data-service': one.service,
      'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': say('service_menu', { name: one.label }),
    } });
    button.addEventListener('click', () => toggleMenu(button, items(one), { label: one.label, back: `#p-settings ${more(one.service)}` }));
    const result = make('span', { attributes: { role: 'status' } });
    const state = make('span');
    lines.set(one.service, { result, state });
    mark(one);
    return make('div', { className: 'p-set p-service-row' },
      make('div', { className: 'p-what' }, make('span', { className: 'p-label', textContent: one.label }),
        make('span', { className: 'p-note' }, make('span', { className: 'p-place', textContent: one.place, title: one.place }), one.about), result),
      make('div', { className: 'p-how' }, state, button));
  }

  // What its test found, else what the server knows.
  function mark(one) {
    const { result, state } = lines.get(one.service) ?? {};
    const { shape, word, said = '' } = found.get(one.service) ?? { shape: one.shape, word: one.said };
    if (!state) return;
    state.className = `p-state p-is-${shape}`;
    state.replaceChildren(make('span', { className: `p-st p-${shape}` }), word);
    result.className = `p-note p-found p-is-${shape}`;
    result.textContent = said;
  }

  function items(one) {
    return [
      ...one.service ? [item(say('service_edit'), '', () => edit(one.service))] : [],
      item(say('models_test'), '', () => test(one)),
      ...one.used ? [] : [item(say('service_use'), '', () => use(one))],
      ...one.kept ? [item(say('models_remove'), 'p-danger', () => remove(one))] : [],
    ];
  }

  function edit(service) {
    editService(service, () => { found.delete(service); changed('', more(service)); });
  }

  // What a test found stands in its row until something changes.
  async function asked(what, one) {
    found.set(one.service, { shape: 'run', word: say('service_testing') });
    mark(one);
    const answer = await request(`./models/${what}`, 'models_failed', { service: one.service, address: one.address, model: one.model });
    if (answer.failed) found.set(one.service, { shape: 'bad', word: say('service_failed'), said: answer.failed });
    else found.set(one.service, { shape: 'ok', word: say('service_ready'), said: answer.said });
    mark(one);
    return answer.failed ? null : answer;
  }

  const test = (one) => asked('test', one);

  async function use(one) {
    const answer = await asked('use', one);
    if (answer) done(one, say('models_used', { model: answer.model }));
  }

  function remove(one) {
    const text = make('p', { textContent: say('service_remove_ask', { name: one.label }) });
    question('', text, say('models_remove'), async () => {
      const answer = await request('./models/remove', 'models_failed', { service: one.service });
      if (!answer.failed) return done(one, say('models_removed'));
      found.set(one.service, { shape: 'bad', word: one.said, said: answer.failed });
      mark(one);
    }, { kind: 'p-danger', name: say('models_remove'), back: [`#p-settings ${more(one.service)}`, '#p-settings .p-add-service'] });
  }

  function done(one, said) {
    found.delete(one.service);
    ask({ do: 'look' });
    tellOthers();
    changed(said, more(one.service));
  }

  // Drawn anew, the keyboard stays where it was.
  function draw(given = told) {
    told = given;
    lines.clear();
    if (!told) return element.replaceChildren();
    const held = element.contains(document.activeElement) ? document.activeElement.dataset.service : undefined;
    const add = make('button', { type: 'button', className: 'p-button p-add-service', textContent: say('service_add') });
    add.addEventListener('click', () => editService(told.add, () => changed('', '.p-add-service')));
    element.replaceChildren(...told.services.map(row), make('div', { className: 'p-set p-adds' }, add));
    if (held !== undefined) element.querySelector(more(held))?.focus();
  }

  // What is known stands there at once; services whose list of models is old are asked meanwhile.
  async function look(given, drawn) {
    draw(given);
    if (!given) return;
    const fresh = await request('./models/services', 'models_failed', {});
    if (fresh.failed || told !== given || !element.isConnected) return;
    draw(fresh);
    drawn();
  }

  return { element, look, forget: () => found.clear() };
}
