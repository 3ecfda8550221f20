// The notes that the assistant keeps across conversations: seen, changed and deleted. Their text is text, never markup.
import { question } from './dialogs.js';
import { keyed } from './libraries_parts.js';
import { make } from './models_form.js';
import { button, text } from './tools_parts.js';
import { say } from './words.js';

export function notes(dialog) {
  const summary = make('summary', {});
  const list = make('ul', { attributes: { role: 'list' } });
  const element = make('details', { className: 'p-notes' }, summary, list);
  let writing = '';

  function noteRow(one) {
    const area = make('textarea', { rows: 3, maxLength: 100000, attributes: { 'aria-label': one.key } });
    const change = button('p-quiet p-change', say('tools_note_change'));
    const remove = button('p-quiet p-remove', say('tools_note_delete'));
    const save = button('', say('tools_save'), 'submit');
    const form = make('form', { noValidate: true },
      make('span', { className: 'p-name p-mono', attributes: { dir: 'auto' } }), make('p', { className: 'p-about', attributes: { dir: 'auto' } }),
      Object.assign(area, { hidden: true }), make('div', { className: 'p-row' }, change, remove, save));
    change.addEventListener('click', () => { writing = one.key; draw(dialog.data.notes); area.focus(); });
    area.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation();
      writing = '';
      draw(dialog.data.notes);
      change.focus();
    });
    remove.addEventListener('click', () => {
      const asked = make('p', { textContent: say('tools_note_ask', { name: one.key }) });
      question('', asked, say('tools_note_delete'), async () => {
        if (await dialog.run('delete_note', { key: one.key })) (list.querySelector('.p-change') ?? summary).focus();
      }, { kind: 'p-danger' });
    });
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      if (!await dialog.run('change_note', { key: one.key, text: area.value })) return;
      writing = '';
      draw(dialog.data.notes);
      change.focus();
    });
    return make('li', {}, form);
  }

  function changeNote(row, one) {
    const [name, about, area, buttons] = row.firstElementChild.children;
    const [change, remove, save] = buttons.children;
    const here = writing === one.key;
    text(name, one.key);
    text(about, one.whole ? one.text : `${one.text} …`);
    if (here && area.hidden) area.value = one.text;
    about.hidden = here;
    area.hidden = save.hidden = !here;
    change.hidden = here || !one.whole;
    remove.hidden = here;
  }

  function draw(given) {
    element.hidden = !given.length;
    text(summary, say(given.length === 1 ? 'tools_notes_one' : 'tools_notes', { n: given.length }));
    keyed(list, given.map((one) => ({ ...one, id: one.key })), noteRow, changeNote);
  }
  return { element, draw };
}
