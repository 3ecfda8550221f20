// One MCP server: whether it answers, what must be allowed before it starts, and its tools.
import { question } from './dialogs.js';
import { keyed, shape } from './libraries_parts.js';
import { lend } from './lending.js';
import { make } from './models_form.js';
import { editing } from './tools_form.js';
import { button, heading, icon, labelled, note, ruleName, section, setSwitch, text, toggle } from './tools_parts.js';
import { status } from './state.js';
import { say } from './words.js';

const MANY = 160;  // characters of a description, from which on it is folded

export function served(dialog) {
  const edit = icon('p-rename', say('tools_edit'));
  const remove = icon('p-trash', say('tools_remove'));
  const state = make('p', { className: 'p-server-state', attributes: { dir: 'auto' } });
  const check = button('', say('tools_check'));
  const again = button('', say('tools_again'));
  const signIn = button('p-main', say('servers_sign_in'));
  const signOut = button('', say('servers_sign_out'));
  const way = make('a', { className: 'p-sign-in', target: '_blank', rel: 'noopener' });
  const reached = make('pre', { className: 'p-reached' });
  const confirm = confirmation(dialog);
  const enabled = toggle('');
  const trusted = toggle('', { described: 'p-tools-trust' });
  const trust = note(say('tools_trusted_note'), 'p-indented');
  trust.id = 'p-tools-trust';
  const asks = toggle('', { described: 'p-tools-asks' });
  const asksNote = note(say('tools_asks_note'), 'p-indented');
  asksNote.id = 'p-tools-asks';
  const all = button('', say('tools_approve_all'));
  const title = make('div', { className: 'p-between' }, heading(say('tools_its_tools')), all);
  const list = make('ul', { className: 'p-tool-list', attributes: { role: 'list' } });
  const log = make('pre', { tabIndex: 0, attributes: { 'aria-label': say('tools_log') } });
  const logs = make('details', { className: 'p-fold' }, make('summary', { textContent: say('tools_log') }), log);
  // What there is nothing to say about before its command was seen.
  const afterwards = make('div', {}, labelled(enabled, say('tools_enabled')), labelled(trusted, say('tools_trusted')), trust,
    labelled(asks, say('tools_asks')), asksNote);
  const shown = make('div', {}, make('div', { className: 'p-between p-of-server' }, state, make('span', { className: 'p-row' }, signIn, check, again, signOut)),
    way, reached, confirm.element, afterwards, title, list, logs);
  const form = editing(dialog, () => { changing = false; draw(dialog.data); edit.focus(); });
  const { element, head, name } = section('', shown, form.element);
  const share = icon('p-share', say('lend'));
  head.append(share, edit, remove);
  const busy = new Set();
  let changing = false;
  const id = () => dialog.data.opened.id;

  share.addEventListener('click', () => lend('server', id(), dialog.data.opened.name, '', () => share.focus()));
  edit.addEventListener('click', () => { changing = !changing; if (changing) form.fill(dialog.data); draw(dialog.data); });
  remove.addEventListener('click', () => {
    const server = id();
    const asked = make('p', { textContent: say('tools_remove_ask', { name: dialog.data.opened.name }) });
    question('', asked, say('tools_remove'), () => dialog.run('remove', { server }), { kind: 'p-danger' });
  });
  check.addEventListener('click', async () => {
    dialog.tell('run', say('tools_checking'));
    await dialog.run('check', { server: id() }, { quiet: true });
  });
  // The page of the service opens in a tab of its own. Where a browser thinks it comes unasked, its address stays.
  signIn.addEventListener('click', async () => {
    dialog.tell('run', say('servers_signing_in'));
    const answer = await dialog.run('sign_in', { server: id() }, { quiet: true });
    if (!answer) return;
    dialog.tell();
    if (!way.hidden) {
      way.focus();
      way.click();
    }
  });
  signOut.addEventListener('click', () => dialog.run('sign_out', { server: id() }));
  again.addEventListener('click', () => dialog.run('connect', { server: id() }));
  all.addEventListener('click', () => approve(dialog.data.opened.tools.filter((one) => one.mark)));
  for (const [input, what] of [[enabled, 'enable'], [trusted, 'trust'], [asks, 'let_ask']]) {
    input.addEventListener('change', async () => {
      busy.add(what);
      await dialog.run(what, { server: id(), on: input.checked });
      busy.delete(what);
      draw(dialog.data);
    });
  }
  list.addEventListener('change', async (event) => {
    const tool = event.target.closest('[data-key]')?.dataset.key;
    if (!tool) return;
    busy.add(tool);
    await dialog.run('tool', { server: id(), tool, on: event.target.checked });
    busy.delete(tool);
    draw(dialog.data);
  });
  list.addEventListener('click', (event) => {
    if (!event.target.closest('.p-approve')) return;
    const key = event.target.closest('[data-key]').dataset.key;
    approve(dialog.data.opened.tools.filter((one) => one.id === key));
  });

  // What was seen is agreed to, and not what came meanwhile.
  function approve(tools) {
    return dialog.run('approve', { server: id(), prints: Object.fromEntries(tools.map((one) => [one.id, one.print])) });
  }

  function draw(data) {
    const { opened } = data;
    if (!opened) return;
    text(name, opened.name);
    share.hidden = !data.shares;
    form.element.hidden = !changing;
    shown.hidden = changing;
    edit.setAttribute('aria-pressed', String(changing));
    state.replaceChildren(shape(opened.shape), make('span', { textContent: opened.told }));
    const { needed, address, at, out } = opened.sign_in;
    signIn.hidden = !needed;
    signOut.hidden = !(out && opened.ready);
    way.hidden = !address;
    if (address) way.href = address;
    else way.removeAttribute('href');
    text(way, at);
    check.hidden = !opened.ready;
    again.hidden = opened.ready || !opened.may_connect;
    text(reached, opened.reached);
    reached.hidden = Boolean(opened.confirm);
    confirm.draw(opened);
    afterwards.hidden = logs.hidden = opened.waits;
    setSwitch(enabled, opened.enabled, busy.has('enable'));
    setSwitch(trusted, opened.trusted, busy.has('trust'));
    setSwitch(asks, opened.asks, busy.has('let_ask'));
    title.hidden = !opened.tools.length;
    all.hidden = opened.tools.filter((one) => one.mark).length < 2;
    keyed(list, opened.tools, toolRow, (row, one) => changeTool(row, one, busy.has(one.id)));
    text(log, opened.log.join('\n') || say('tools_log_none'));
  }
  return { element, draw, leave: () => { changing = false; logs.open = false; } };
}

function toolRow() {
  const whole = make('details', {}, make('summary', { textContent: say('tools_more') }), make('pre', { className: 'p-whole' }));
  return make('li', {},
    make('div', { className: 'p-what' },
      make('span', { className: 'p-name p-mono' }), ruleName(), make('span', { className: 'p-marked' }), make('span', { className: 'p-about', attributes: { dir: 'auto' } }), whole,
      make('span', { className: 'p-state' }), button('p-approve', say('tools_approve'))),
    toggle(''));
}

function changeTool(row, one, busy) {
  const [what, input] = row.children;
  const [name, rule, marked, about, whole, state, approve] = what.children;
  const folded = one.description.length > MANY && !one.mark;
  text(name, one.id);
  text(rule, one.rule);
  text(marked, one.mark_said);
  marked.hidden = !one.mark;
  text(about, folded ? `${one.description.slice(0, MANY).trimEnd()} …` : one.description);
  whole.hidden = !folded;
  text(whole.lastChild, one.description);
  text(state, one.may);
  approve.hidden = !one.mark;
  row.dataset.state = one.mark ? 'marked' : 'on';
  input.setAttribute('aria-label', one.id);
  input.disabled = Boolean(one.mark);
  setSwitch(input, one.on && !one.mark, busy);
}

// What would be started, to the last argument: nothing runs before it was seen.
function confirmation(dialog) {
  const where = status()?.role ? '_house' : '';  // whoever has an account may sit at another machine
  const rows = make('dl');
  const risks = make('ul', { className: 'p-risks', attributes: { role: 'list' } });
  const start = button('p-main', say('tools_confirm_do'));
  const element = make('div', { className: 'p-confirm', hidden: true, attributes: { role: 'group', 'aria-label': say(`tools_confirm_title${where}`) } },
    heading(say(`tools_confirm_title${where}`)), rows, risks, note(say(`tools_confirm_note${where}`)), make('div', { className: 'p-row' }, start));
  let shown = null;
  let drawn = '';
  start.addEventListener('click', () => dialog.run('confirm', { server: dialog.data.opened.id, print: shown.print }));

  function draw({ confirm }) {
    element.hidden = !confirm;
    shown = confirm;
    const now = JSON.stringify(confirm);
    if (!confirm || now === drawn) return;
    drawn = now;
    rows.replaceChildren(
      ...term('program', [confirm.program]),
      ...term('arguments', confirm.arguments),
      ...term('folder', confirm.folder ? [confirm.folder] : []),
      ...term('variables', confirm.variables));
    risks.replaceChildren(...confirm.risks.map((said) => make('li', {}, shape('ask'), make('span', { textContent: said }))));
  }
  return { element, draw };
}

function term(name, values) {
  if (!values.length) return [];
  return [make('dt', { textContent: say(`tools_confirm_${name}`) }), make('dd', {}, ...values.map((value) => make('code', { textContent: value })))];
}
