// Adding a server, by pasted JSON or in a form, and changing one. Secrets are typed here and never come back.
import { make } from './models_form.js';
import { button, field, icon, note, section } from './tools_parts.js';
import { say } from './words.js';

const EXAMPLE = JSON.stringify({ mcpServers: { time: { command: 'uvx', args: ['mcp-server-time'] } } }, null, 2);

export function adding(dialog) {
  const [row, area] = field('p-tools-json', say('tools_paste'), { rows: 7, maxLength: 300_000, placeholder: EXAMPLE }, 'textarea');
  area.classList.add('p-mono');
  const wrong = make('p', { id: 'p-tools-json-wrong', className: 'p-wrong', hidden: true, attributes: { role: 'alert' } });
  area.setAttribute('aria-describedby', wrong.id);
  const local = note('');
  const paste = make('form', { className: 'p-paste', noValidate: true }, row, wrong, make('div', { className: 'p-row' }, button('p-main', say('tools_paste_do'), 'submit')));
  const form = fields(dialog, 'p-tools-new');
  const typed = make('details', { className: 'p-fold' }, make('summary', { textContent: say('tools_form') }), form.element);
  const { element } = section(say('tools_add'), note(say('tools_paste_about')), local, paste, typed);

  area.addEventListener('input', () => refuse(''));
  paste.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!area.value.trim()) { refuse(say('tools_paste_missing')); return; }
    const answer = await dialog.run('paste', { text: area.value }, { refused: refuse });
    if (!answer) return;
    area.value = '';
    arrive(dialog, answer);
  });
  form.element.addEventListener('submit', async (event) => {
    event.preventDefault();
    const answer = await dialog.run('save', form.draft());
    if (!answer) return;
    form.fill(null);
    arrive(dialog, answer);
  });

  function refuse(said, details = {}) {
    wrong.hidden = !said;
    wrong.textContent = said;
    area.setAttribute('aria-invalid', String(Boolean(said)));
    if (!said) return;
    const at = offset(area.value, details.line, details.column);
    area.focus();
    if (at >= 0) area.setSelectionRange(at, Math.min(at + 1, area.value.length));
  }

  return {
    element,
    leave: () => {},
    draw: (data) => {
      local.textContent = data.local ? '' : data.only_local;
      local.hidden = data.local;
      form.limit(data.local);
    },
  };
}

// To the first that waits for a yes, else to the first that came.
function arrive(dialog, { added }) {
  const first = added.find((id) => dialog.data.servers.find((one) => one.id === id)?.shape === 'ask') ?? added[0];
  if (first) dialog.go(first);
}

export function editing(dialog, done) {
  const form = fields(dialog, 'p-tools-edit');
  const cancel = button('', say('cancel'));
  form.actions.prepend(cancel);
  cancel.addEventListener('click', done);
  form.element.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (await dialog.run('save', { server: dialog.data.opened.id, ...form.draft() })) done();
  });
  return { element: form.element, fill: (data) => { form.limit(data.local); form.fill(data.opened); } };
}

function fields(dialog, prefix) {
  const [nameRow, name] = field(`${prefix}-name`, say('tools_name'), { maxLength: 60 });
  const [kindRow, kind] = field(`${prefix}-kind`, say('tools_kind'), {}, 'select');
  kind.append(...['command', 'address'].map((value) => make('option', { value, textContent: say(`tools_kind_${value}`) })));
  const [commandRow, command] = field(`${prefix}-command`, say('tools_command'), { placeholder: 'uvx' });
  const [argsRow, args] = field(`${prefix}-args`, say('tools_arguments'), { rows: 3, placeholder: say('tools_arguments_note') }, 'textarea');
  const [folderRow, folder] = field(`${prefix}-folder`, say('tools_folder'));
  const [urlRow, url] = field(`${prefix}-url`, say('tools_address'), { type: 'url', placeholder: 'https://', attributes: { inputmode: 'url' } });
  const env = pairs(`${prefix}-env`, say('tools_env'));
  const headers = pairs(`${prefix}-headers`, say('tools_headers'));
  for (const mono of [command, args, folder, url]) mono.classList.add('p-mono');
  const save = button('p-main', say('tools_save'), 'submit');
  const actions = make('div', { className: 'p-row' }, save);
  const element = make('form', { className: 'p-server-form', noValidate: true },
    nameRow, kindRow, commandRow, argsRow, folderRow, env.element, urlRow, headers.element, note(say('tools_secret_note')), actions);

  function fit() {
    const program = kind.value === 'command';
    for (const row of [commandRow, argsRow, folderRow, env.element]) row.hidden = !program;
    for (const row of [urlRow, headers.element]) row.hidden = program;
  }
  kind.addEventListener('change', fit);

  function fill(one) {
    name.value = one?.name ?? '';
    kind.value = one ? (one.kind === 'command' ? 'command' : 'address') : kindRow.hidden ? 'address' : 'command';
    command.value = one?.command ?? '';
    args.value = (one?.args ?? []).join('\n');
    folder.value = one?.folder ?? '';
    url.value = one?.url ?? '';
    env.fill(one?.env ?? []);
    headers.fill(one?.headers ?? []);
    fit();
  }

  function draft() {
    const settings = kind.value === 'command'
      ? { command: command.value.trim(), args: args.value.split('\n').filter((line) => line.trim()), cwd: folder.value.trim(), env: env.given() }
      : { url: url.value.trim(), headers: headers.given() };
    return { name: name.value, settings };
  }
  fill(null);
  return {
    element, actions, fill, draft,
    limit: (local) => { kindRow.hidden = !local; if (!local) { kind.value = 'address'; fit(); } },
  };
}

// Names with secret values; a value that is kept shows its end, and stays where nothing is typed over it.
function pairs(id, caption) {
  const rows = make('ul', { attributes: { role: 'list' } });
  const more = button('p-more', say('tools_more_rows'));
  const element = make('div', { className: 'p-field p-pairs', attributes: { role: 'group', 'aria-label': caption } },
    make('span', { className: 'p-caption', textContent: caption }), make('div', {}, rows, more));
  more.addEventListener('click', () => { rows.append(pair()); rows.lastChild.querySelector('input').focus(); });

  function pair(one = null) {
    const plain = { autocomplete: 'off', spellcheck: 'false', 'data-1p-ignore': '', 'data-lpignore': 'true' };
    const name = make('input', { className: 'p-mono', value: one?.name ?? '', maxLength: 200, placeholder: say('tools_row_name'), attributes: { ...plain, 'aria-label': `${caption}: ${say('tools_row_name')}` } });
    const value = make('input', { type: 'password', maxLength: 8000, placeholder: one ? say('tools_key_kept', { end: one.end }) : say('tools_row_value'), attributes: { ...plain, autocomplete: 'new-password', 'aria-label': `${caption}: ${say('tools_row_value')}` } });
    const drop = icon('p-drop-row', say('tools_row_remove'));
    const row = make('li', {}, name, value, drop);
    row.kept = one?.name ?? '';
    drop.addEventListener('click', () => { row.remove(); more.focus(); });
    return row;
  }

  return {
    element,
    fill: (known) => rows.replaceChildren(...known.map(pair)),
    given: () => Object.fromEntries([...rows.children].map((row) => {
      const [name, value] = row.querySelectorAll('input');
      const said = name.value.trim();
      return [said, value.value || (row.kept && row.kept === said ? null : '')];
    }).filter(([name]) => name)),
  };
}

function offset(text, line, column) {
  if (!line) return -1;
  const before = text.split('\n').slice(0, line - 1).join('\n');
  const leading = text.length - text.trimStart().length;  // the server counts from the first sign that says something
  return Math.min((before ? before.length + 1 : 0) + column - 1 + (line === 1 ? leading : 0), text.length);
}
