// Services with an OpenAPI document: set up here, each operation with its switch. Keys are typed here and never come back.
import { question } from './dialogs.js';
import { keyed } from './libraries_parts.js';
import { lend } from './lending.js';
import { make } from './models_form.js';
import { request as requested } from './request.js';
import { button, field, icon, note, section, setSwitch, text, toggle } from './tools_parts.js';
import { keyFields } from './tools_service_key.js';
import { say } from './words.js';

const DOING = { add: 'services_reading', read: 'services_reading', test: 'services_testing' };

export function services(dialog) {
  const list = make('ul', { className: 'p-service-list', attributes: { role: 'list' } });
  const none = note(say('services_none'));
  const form = adding(run);
  const { element } = section(say('tools_services'), note(say('services_about')), none, list, form.fold);
  const busy = new Set();
  let known = null;
  let asked = false;

  // An answer holds all services; what it says stands below, like that of the other acts.
  async function run(what, body, refused = () => false) {
    if (DOING[what]) dialog.tell('run', say(DOING[what]));
    else dialog.tell();
    const answer = await requested(`./tools/services/${what}`, 'tools_failed', body);
    if (answer.failed && refused(answer)) dialog.tell();
    else if (answer.failed) dialog.tell('bad', answer.failed);
    else if (answer.said) dialog.tell('ok', answer.said);
    else dialog.tell();
    if (answer.services) known = answer.services;
    show();
    return answer.failed ? null : answer;
  }

  list.addEventListener('change', async (event) => {
    if (event.target.getAttribute('role') !== 'switch') return;
    const service = event.target.closest('.p-service').dataset.key;
    const tool = event.target.closest('.p-tool-list > li')?.dataset.key;
    const mark = `${service} ${tool ?? ''}`;
    busy.add(mark);
    await run(tool ? 'tool' : 'enable', { service, ...(tool ? { tool } : {}), on: event.target.checked });
    busy.delete(mark);
    show();
  });
  list.addEventListener('click', (event) => {
    const share = event.target.closest('.p-share');
    if (share) {
      const one = known.find((each) => each.id === share.closest('.p-service').dataset.key);
      lend('service', one.id, one.name, '', () => share.focus());
      return;
    }
    const row = event.target.closest('.p-trash')?.closest('.p-service');
    if (!row) return;
    const one = known.find((each) => each.id === row.dataset.key);
    const words = make('p', { textContent: say('services_remove_ask', { name: one.name }) });
    question('', words, say('services_remove'), () => run('remove', { service: one.id }), { kind: 'p-danger' });
  });

  function show() {
    none.hidden = !known || known.length > 0;
    keyed(list, known ?? [], (one) => serviceRow(one, run), (row, one) => changeService(row, one, busy, dialog.data?.shares));
    form.fold.open ||= Boolean(known) && !known.length;
  }

  async function draw() {
    show();
    if (asked) return;
    asked = true;
    const answer = await requested('./tools/services/state', 'tools_failed');
    if (answer.failed) dialog.tell('bad', answer.failed);
    known ??= answer.services ?? null;
    show();
  }
  return { element, draw };
}

function serviceRow(one, run) {
  const tools = make('ul', { className: 'p-tool-list', attributes: { role: 'list' } });
  const key = keyFields(`p-service-${one.id}`);
  const test = button('', say('services_test'));
  const form = make('form', { noValidate: true }, ...key.rows, make('div', { className: 'p-row' }, test, button('p-main', say('tools_save'), 'submit')));
  const change = make('details', { className: 'p-fold' }, make('summary', { textContent: say('services_key_change') }), form);
  const fill = () => key.fill(row.known.key, row.known.ways);
  test.addEventListener('click', async () => {
    test.disabled = true;
    await run('test', { service: one.id, key: key.given() });
    test.disabled = false;
  });
  change.addEventListener('toggle', () => { if (change.open) fill(); });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!await run('key', { service: one.id, key: key.given() })) return;
    fill();
    change.open = false;
  });
  const row = make('li', { className: 'p-service' },
    make('div', { className: 'p-between' },
      make('div', { className: 'p-what' },
        make('span', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-about p-mono' }), make('span', { className: 'p-state' })),
      make('span', { className: 'p-row' }, icon('p-share', say('lend')), icon('p-trash', say('services_remove')), make('label', { className: 'p-switch' }, toggle('')))),
    make('details', { className: 'p-fold' }, make('summary', { textContent: say('services_operations') }), tools), change);
  return row;
}

function changeService(row, one, busy, shares) {
  row.known = one;
  const [head, fold] = row.children;
  const [what, acts] = head.children;
  const [name, address, state] = what.children;
  acts.firstChild.hidden = !shares;
  text(name, one.name);
  text(address, one.address);
  text(state, [one.said, one.key.end && say('services_kept', { end: one.key.end })].filter(Boolean).join(' · '));
  state.classList.toggle('p-wrong', one.failed);
  const input = acts.lastChild.firstChild;
  input.setAttribute('aria-label', `${say('services_on')}: ${one.name}`);
  setSwitch(input, one.on, busy.has(`${one.id} `));
  fold.hidden = !one.tools.length;
  keyed(fold.lastChild, one.tools, operationRow, (each, tool) => {
    const [about, offered] = each.children;
    text(about.children[0], tool.label);
    text(about.children[1], tool.about);
    text(about.children[2], tool.may);
    each.dataset.state = one.on && tool.on ? 'on' : 'off';
    offered.setAttribute('aria-label', tool.label);
    offered.disabled = !one.on;
    setSwitch(offered, tool.on, busy.has(`${one.id} ${tool.id}`));
  });
}

function operationRow() {
  return make('li', {},
    make('div', { className: 'p-what' },
      make('span', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-about p-mono' }), make('span', { className: 'p-state' })),
    toggle(''));
}

function adding(run) {
  const [sourceRow, source] = field('p-services-source', say('services_source'), { rows: 3, maxLength: 2_000_000, placeholder: say('services_source_note') }, 'textarea');
  const [nameRow, name] = field('p-services-name', say('services_name'), { maxLength: 24, placeholder: say('services_optional') });
  const [serverRow, server] = field('p-services-server', say('services_server'), { type: 'url', placeholder: say('services_optional'), attributes: { inputmode: 'url' } });
  const key = keyFields('p-services');
  const test = button('', say('services_test'));
  const add = button('p-main', say('services_do'), 'submit');
  for (const mono of [source, server]) mono.classList.add('p-mono');
  const at = { source: wrong(source), name: wrong(name), server: wrong(server), key: wrong(key.parts.kind), called: wrong(key.parts.called), value: wrong(key.parts.value) };
  const form = make('form', { noValidate: true },
    sourceRow, nameRow, serverRow, ...key.rows, make('div', { className: 'p-row' }, test, add));
  const fold = make('details', { className: 'p-fold' }, make('summary', { textContent: say('services_add') }), form);

  const draft = () => ({ source: source.value, name: name.value.trim(), server: server.value.trim(), key: key.given() });
  const refused = ({ failed, key }) => refuse(placeOf(key), failed);

  async function ask(what) {
    refuse('source', source.value.trim() ? '' : say('services_missing'));
    if (!source.value.trim()) return null;
    add.disabled = test.disabled = true;
    const answer = await run(what, draft(), refused);
    add.disabled = test.disabled = false;
    return answer;
  }

  // Which ways of knowing who asks there are, the document says; what it says of an older one comes too late.
  async function read() {
    const wanted = draft();
    if (!wanted.source.trim()) { know({}); return; }
    const answer = await run('read', wanted, refused);
    if (source.value === wanted.source && server.value.trim() === wanted.server) know(answer?.draft ?? {});
  }
  function know({ title = '', address = '', ways = [] }) {
    name.placeholder = title || say('services_optional');
    server.placeholder = address || say('services_optional');
    key.offer(ways);
  }
  source.addEventListener('change', read);
  server.addEventListener('change', () => { if (source.value.trim()) read(); });
  test.addEventListener('click', () => ask('test'));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!await ask('add')) return;
    form.reset();
    know({});
    fold.open = false;
  });
  form.addEventListener('input', () => refuse('', ''));

  // Under the field that it is about; false where it is about none.
  function refuse(place, said) {
    for (const [name, tell] of Object.entries(at)) tell(name === place ? said : '');
    return Boolean(place && said);
  }
  return { fold };
}

const PLACES = { openapi_no_server: 'server', server_name_taken: 'name', openapi_key: 'key', openapi_key_name: 'called', openapi_key_empty: 'value', openapi_client: 'key', openapi_token_address: 'key', openapi_credentials: 'key', openapi_many: '' };
const placeOf = (key = '') => PLACES[key] ?? (/^(openapi|fetch)_/.test(key) ? 'source' : '');

// Says under a field what is wrong with it.
function wrong(input) {
  const told = make('p', { id: `${input.id}-wrong`, className: 'p-wrong', hidden: true, attributes: { role: 'alert' } });
  input.after(told);
  return (said) => {
    told.hidden = !said;
    text(told, said);
    input.setAttribute('aria-invalid', String(Boolean(said)));
    if (!said) { input.removeAttribute('aria-describedby'); return; }
    input.setAttribute('aria-describedby', told.id);
    input.form.lastElementChild.scrollIntoView({ block: 'nearest' });  // the buttons, which the sentence pushes down
    input.focus();
  };
}
