// What the parts of the dialog about tools are made of. What comes from the server becomes text, never markup.
import { shape } from './libraries_parts.js';
import { make } from './models_form.js';
import { say } from './words.js';

export const button = (className, textContent, type = 'button') => make('button', { type, className: `p-button ${className}`, textContent });
export const icon = (className, label) => make('button', { type: 'button', className: `p-icon ${className}`, title: label, attributes: { 'aria-label': label } });
export const note = (textContent, className = '') => make('p', { className: `p-about ${className}`, textContent });
export const ruleName = () => make('code', { className: 'p-rule', title: say('rules_name') });
export const heading = (textContent) => make('h4', { textContent });

export function text(element, said) { if (element.textContent !== said) element.textContent = said; }

const plain = { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', 'data-1p-ignore': '', 'data-lpignore': 'true' };

export function field(id, caption, given = {}, tag = 'input') {
  const { attributes = {}, ...more } = given;
  const own = tag === 'select' ? { attributes } : { maxLength: 4000, ...more, attributes: { ...plain, ...attributes } };
  const input = make(tag, { id, ...own });
  const row = make('div', { className: tag === 'textarea' ? 'p-field p-tall' : 'p-field' }, make('label', { htmlFor: id, textContent: caption }), input);
  return [row, input];
}

export function toggle(label, { described = '' } = {}) {
  const input = make('input', { type: 'checkbox', attributes: { role: 'switch', ...(label ? { 'aria-label': label } : {}) } });
  if (described) input.setAttribute('aria-describedby', described);
  return input;
}

export function labelled(input, caption) {
  return make('label', { className: 'p-switch' }, input, make('span', { textContent: caption }));
}

// A switch shows what was pressed until the server says what is.
export function setSwitch(input, on, busy) { if (!busy) input.checked = on; }

// Text that can be taken along.
export function copied(button, told) {
  return async (value) => {
    try {
      await navigator.clipboard.writeText(value());
    } catch {
      const area = make('textarea', { value: value(), readOnly: true });
      button.after(area);
      area.select();
      document.execCommand('copy');
      area.remove();
      button.focus();
    }
    told('ok', say('tools_copied'));
  };
}

export function frame() {
  const back = icon('p-back', say('tools_back'));
  const close = icon('p-close', say('close'));
  const title = make('h2', { id: 'p-tools-title', textContent: say('tools_title') });
  const entries = make('ul', { attributes: { role: 'list' } });
  const servers = make('ul', { attributes: { role: 'list', 'aria-labelledby': 'p-tools-servers' } });
  const none = note(say('tools_servers_none'));
  const own = note('', 'p-own');
  const brought = make('h3', { id: 'p-tools-servers', textContent: say('tools_servers') });
  const add = make('button', { type: 'button', className: 'p-add', attributes: { 'data-part': 'add' } }, make('span', { textContent: say('tools_add') }));
  const shelf = make('div', { className: 'p-shelf-list' },
    entries, own, brought, none, servers, add);
  const one = make('div', { className: 'p-one' });
  const told = make('p', { className: 'p-told', attributes: { role: 'status' } });
  const element = make('dialog', { className: 'p-dialog p-libraries p-tools', attributes: { 'aria-labelledby': 'p-tools-title' } },
    make('div', { className: 'p-frame' }, make('header', {}, back, title, close), shelf, one, told));
  return { element, back, close, shelf, entries, servers, none, add, one, told, own, title: brought };
}

export function entryRow() {
  return make('li', {}, make('button', { type: 'button' },
    make('span', { className: 'p-name' }), make('span', { className: 'p-count' })));
}

export function changeEntry(row, one, here) {
  const [choose] = row.children;
  const [name, count] = choose.children;
  choose.dataset.part = one.id;
  text(name, one.name);
  text(count, one.said ?? '');
  mark(choose, here);
}

export function serverRow() {
  return make('li', { className: 'p-tall' }, make('button', { type: 'button' }, shape('open'),
    make('span', { className: 'p-two' },
      make('span', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-count' }))));
}

export function changeServerRow(row, one, here) {
  const [choose] = row.children;
  const [disc, two] = choose.children;
  choose.dataset.part = one.id;
  disc.className = `p-st p-${one.shape}`;
  text(two.children[0], one.name);
  text(two.children[1], one.said);
  mark(choose, here);
}

function mark(choose, here) {
  if (here) choose.setAttribute('aria-current', 'true');
  else choose.removeAttribute('aria-current');
}

// A section of the right side: its heading can be reached, so that the keyboard comes along.
export function section(title, ...children) {
  const name = make('h3', { tabIndex: -1, textContent: title, attributes: { dir: 'auto' } });
  const head = make('div', { className: 'p-head' }, name);
  const element = make('section', { hidden: true }, head, ...children);
  return { element, head, name };
}
