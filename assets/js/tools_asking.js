// Who is asked before a tool runs, and what runs unasked in the conversation on the page.
import { keyed } from './libraries_parts.js';
import { make } from './models_form.js';
import { button, field, heading, note, ruleName, section, setSwitch, text } from './tools_parts.js';
import { say } from './words.js';

const MODES = ['writes', 'always', 'never'];
const LISTS = ['deny', 'ask', 'allow'];

export function asking(dialog) {
  const choices = Object.fromEntries(MODES.map((mode) => [mode, choice(mode)]));
  const fields = Object.fromEntries(LISTS.map((name) => [name, field(`p-tools-${name}`, say(`tools_${name}`), { rows: 3 }, 'textarea')]));
  const hints = Object.fromEntries(LISTS.map((name) => [name, hint(fields[name])]));
  const save = button('', say('tools_save'), 'submit');
  const form = make('form', { noValidate: true },
    note(say('tools_patterns_note')), ...LISTS.map((name) => fields[name][0]), make('div', { className: 'p-row' }, save));
  const rules = make('details', { className: 'p-fold' }, make('summary', { textContent: say('tools_patterns') }), form);
  const here = allowed(dialog);
  const { element, name } = section(say('tools_asking'), note(say('tools_asking_about')),
    make('fieldset', { className: 'p-choices', attributes: { 'aria-label': say('tools_asking') } }, ...MODES.map((mode) => choices[mode].row)), here.element, rules);
  let busy = false;
  let typed = false;

  element.addEventListener('change', async (event) => {
    if (event.target.name !== 'p-tools-mode') return;
    busy = true;
    await dialog.run('mode', { mode: event.target.value });
    busy = false;
    draw(dialog.data);
  });
  form.addEventListener('input', () => { typed = true; });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const lists = Object.fromEntries(LISTS.map((name) => [name, lines(fields[name][1].value)]));
    if (await dialog.run('patterns', lists)) { typed = false; draw(dialog.data); }
  });

  function draw({ approval }) {
    for (const mode of MODES) setSwitch(choices[mode].input, approval.mode === mode, busy);
    for (const name of LISTS) hints[name](approval.hints[name]);
    here.draw(approval.allowed, name);
    if (typed) return;
    for (const name of LISTS) fields[name][1].value = approval[name].join('\n');
    if (!form.contains(document.activeElement) && LISTS.some((name) => approval[name].length)) rules.open = true;
  }
  return { element, draw };
}

// What was always allowed in this conversation, each with a button that takes it back.
function allowed(dialog) {
  const list = make('ul', { className: 'p-tool-list', attributes: { role: 'list' } });
  const element = make('div', { className: 'p-allowed', hidden: true }, heading(say('rules_here')), note(say('rules_here_about')), list);
  let near = -1;  // the row that was taken back: the next one has the keyboard then

  function row(one) {
    const back = button('p-quiet', say('rules_take_back'));
    back.addEventListener('click', async () => {
      near = [...list.children].findIndex((each) => each.contains(back));
      if (!await dialog.run('take_back', { tool: one.id })) near = -1;
    });
    return make('li', {}, make('div', { className: 'p-what' }, make('span', { className: 'p-name', attributes: { dir: 'auto' } }), ruleName()), back);
  }

  function change(row, one) {
    const [what, back] = row.children;
    text(what.children[0], one.label);
    text(what.children[1], one.id);
    back.setAttribute('aria-label', say('rules_take_back_named', { name: one.label }));
  }

  function draw(given, title) {
    element.hidden = !given.length;
    const fewer = given.length < list.children.length;
    keyed(list, given, row, change);
    if (near < 0 || !fewer) return;
    (list.children[Math.min(near, given.length - 1)]?.lastElementChild ?? title).focus();
    near = -1;
  }
  return { element, draw };
}

// What is to be known of rules, under the field where they stand.
function hint([row, area]) {
  const told = note('', 'p-rule-hint');
  told.id = `${area.id}-hint`;
  told.hidden = true;
  told.setAttribute('role', 'status');
  area.setAttribute('aria-describedby', told.id);
  row.append(told);
  return (said) => {
    text(told, said.join('\n'));
    told.hidden = !said.length;
  };
}

function choice(mode) {
  const id = `p-tools-mode-${mode}`;
  const input = make('input', { type: 'radio', name: 'p-tools-mode', value: mode, id, attributes: { 'aria-describedby': `${id}-note` } });
  const row = make('div', { className: 'p-choice' }, input,
    make('label', { htmlFor: id, textContent: say(`tools_mode_${mode}`) }),
    make('p', { id: `${id}-note`, textContent: say(`tools_mode_${mode}_note`) }));
  return { row, input };
}

const lines = (value) => value.split('\n').map((line) => line.trim()).filter(Boolean);
