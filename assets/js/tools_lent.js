// What others share with the reader: each to be used or not. Nothing of how it is reached comes to the page.
import { keyed, shape } from './libraries_parts.js';
import { make } from './models_form.js';
import { note, section, setSwitch, text, toggle } from './tools_parts.js';
import { say } from './words.js';

export function lent(dialog) {
  const list = make('ul', { className: 'p-lent-list', attributes: { role: 'list' } });
  const none = note(say('tools_lent_none'));
  const { element } = section(say('tools_lent'), note(say('tools_lent_about')), none, list);
  const busy = new Set();
  list.addEventListener('change', async (event) => {
    const one = event.target.closest('.p-lent-tool').dataset.key;
    busy.add(one);
    await dialog.run('lent', { lent: one, on: event.target.checked });
    busy.delete(one);
    draw(dialog.data);
  });

  function draw(data) {
    const found = data?.lent ?? [];
    none.hidden = found.length > 0;
    keyed(list, found, row, (element, one) => change(element, one, busy.has(one.id)));
  }
  return { element, draw };
}

function row() {
  return make('li', { className: 'p-lent-tool' },
    make('div', { className: 'p-between' },
      make('div', { className: 'p-what' },
        make('span', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-about', attributes: { dir: 'auto' } }),
        make('span', { className: 'p-state' }, shape('open'), make('span'))),
      make('label', { className: 'p-switch' }, toggle(''))),
    make('details', { className: 'p-fold' }, make('summary', { textContent: say('tools_its_tools') }), make('ul', { className: 'p-tool-list', attributes: { role: 'list' } })));
}

function change(element, one, busy) {
  const [head, fold] = element.children;
  const [what, label] = head.children;
  const [name, whose, state] = what.children;
  text(name, one.name);
  text(whose, one.whose);
  state.firstChild.className = `p-st p-${one.shape}`;
  text(state.lastChild, one.said);
  const input = label.firstChild;
  input.setAttribute('aria-label', say('tools_lent_use', { name: `${one.name} · ${one.whose}` }));
  setSwitch(input, one.on, busy);
  fold.hidden = !one.tools.length;
  keyed(fold.lastChild, one.tools, () => make('li', {}, make('div', { className: 'p-what' },
    make('span', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-state' }))), (row, tool) => {
    const [label, can] = row.firstChild.children;
    text(label, tool.label);
    text(can, tool.may);
  });
}
