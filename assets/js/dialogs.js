// Small questions to the reader: a row's menu, a new title, a deletion.
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { archive, deleteOne, move, pin } from './keeping.js';
import { foldersThere } from './list.js';
import { drawer, evidence, openConversation } from './places.js';
import { share } from './share.js';
import { say } from './words.js';

let menu = null;

// A row is drawn anew after each change: its button is found again by the row's name.
const rowOf = (id) => `#history .p-menu:is([data-id="${CSS.escape(id)}"], [data-of="${CSS.escape(id)}"])`;

export function closeMenu({ back = false } = {}) {
  if (!menu) return false;
  const { button, element, home } = menu;
  menu = null;
  button.setAttribute('aria-expanded', 'false');
  element.remove();
  if (back) keepFocus(home ?? rowOf(button.dataset.id ?? button.dataset.of));
  return true;
}

export function openMenu(button) {
  const again = menu?.button === button;
  closeMenu();
  if (again) return;
  const { id, of, title, marks = '' } = button.dataset;
  if (of) return show(button, folderItems(of, title));
  const is = new Set(marks.split(' '));
  const here = () => document.querySelector(rowOf(id)) ?? button;
  show(button, [
    item(say('rename'), '', () => rename(id, title)),
    ...is.has('archived') ? [] : [
      item(say(is.has('pinned') ? 'unpin' : 'pin'), '', () => pin(id, !is.has('pinned'))),
      item(say('move'), '', () => show(here(), places(id, title, is.has('filed')))),
    ],
    item(say('share'), '', () => share(id, title, [rowOf(id)])),
    item(say('export'), '', () => show(here(), forms((form) => `./conversations/${encodeURIComponent(id)}/export?as=${form}`))),
    item(say('select'), '', () => dispatchEvent(new CustomEvent('p-select', { detail: id }))),
    item(say(is.has('archived') ? 'unarchive' : 'archive'), '', () => archive(id, title, !is.has('archived'))),
    item(say('delete'), 'p-danger', () => remove(id, title)),
  ]);
}

function folderItems(id, title) {
  return [
    item(say('folder_begin'), '', () => { openConversation('', '', id); document.querySelector('#composer textarea')?.focus(); }),
    item(say('steer_folder'), '', () => openSteering(id)),
    item(say('rename'), '', () => named(title, say('save'), say('rename'), (name) => ask({ do: 'folder', id, name }), [rowOf(id)])),
    item(say('export'), '', () => show(document.querySelector(rowOf(id)), forms((form) => `./conversations/export?as=${form}&folder=${encodeURIComponent(id)}`))),
    item(say('delete'), 'p-danger', () => {
      const text = Object.assign(document.createElement('p'), { textContent: say('folder_delete_ask', { title }) });
      question('', text, say('delete'), () => ask({ do: 'folder', id }), { kind: 'p-danger', back: [rowOf(id), '#house .p-new'] });
    }),
  ];
}

// Where several conversations can be moved to, as a menu that hangs on this button: a folder, none, or a new one.
export function openPlaces(button, move) {
  show(button, [
    ...foldersThere().map((folder) => item(folder.name, 'p-folder-item', () => move(folder.id))),
    item(say('move_out'), '', () => move('')),
    item(say('folder_new'), '', () => named('', say('folder_make'), say('folder_new'), (name) => move('', name), ['#p-find'])),
  ]);
}

// Where a conversation can be moved to.
function places(id, title, filed) {
  const make = () => named('', say('folder_make'), say('folder_new'), (name) => ask({ do: 'move', ids: [id], name }), [rowOf(id)]);
  return [
    ...foldersThere().map((folder) => item(folder.name, 'p-folder-item', () => move(id, title, folder.id))),
    ...filed ? [item(say('move_out'), '', () => move(id, title, ''))] : [],
    item(say('folder_new'), '', make),
  ];
}

// A question for the name of a folder.
function named(value, verb, called, act, back) {
  const input = Object.assign(document.createElement('input'), { value, maxLength: 120, autocomplete: 'off' });
  question(say('folder_name'), input, verb, () => {
    const name = input.value.trim();
    if (name && name !== value) act(name);
  }, { name: called, back });
  input.select();
}

// What a conversation can be taken along as; the browser saves what comes from these addresses.
function forms(address) {
  return ['bundle', 'html', 'pdf', 'md', 'json'].map((form) => item(say(`export_${form}`), '', () => {
    Object.assign(document.createElement('a'), { href: address(form), download: '' }).click();
  }));
}

// The same for several, which come as one archive.
export function openForms(button, ids) {
  const these = ids.map((id) => `&id=${encodeURIComponent(id)}`).join('');
  show(button, forms((form) => `./conversations/export?as=${form}${these}`), say('export'));
}

// A menu of names and what each does, elsewhere on the page; `back` finds what it hangs on, which may be drawn anew.
export function float(button, lines, { label, back }) {
  closeMenu();
  show(button, lines.map(([name, act]) => item(name, '', act)), label, back);
}

// Steering, of a folder where one is named, in the place of the evidence.
export function openSteering(folder = '') {
  drawer(false);  // on a phone it would stand before the panel
  evidence(true);
  ask({ do: 'steering', folder });
  keepFocus('#page .p-steer .p-close');
}

// Hangs a menu on what was pressed; pressed again, it goes away. `back` is as of `float`.
export function toggleMenu(button, items, { label, back }) {
  const again = menu?.button === button;
  closeMenu();
  if (!again) show(button, items, label, back);
}

function show(button, items, label, home) {
  const element = Object.assign(document.createElement('div'), { className: 'p-float' });
  element.setAttribute('role', 'menu');
  if (label) element.setAttribute('aria-label', label);
  element.append(...items);
  (document.querySelector('main') ?? document.body).append(element);
  const place = button.getBoundingClientRect();
  element.style.left = `${Math.max(8, Math.min(place.right - element.offsetWidth, innerWidth - element.offsetWidth - 8))}px`;
  element.style.top = `${place.bottom + element.offsetHeight > innerHeight ? place.top - element.offsetHeight : place.bottom}px`;
  button.setAttribute('aria-expanded', 'true');
  element.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); items.at((items.indexOf(document.activeElement) + step) % items.length).focus(); }
    if (event.key === 'Tab') closeMenu({ back: true });
  });
  element.firstChild.focus();
  menu = { button, element, home };
}

export function item(label, className, act) {
  const element = Object.assign(document.createElement('button'), { type: 'button', className, textContent: label });
  element.setAttribute('role', 'menuitem');
  element.addEventListener('click', () => { closeMenu({ back: true }); act(); });
  return element;
}

export function rename(id, title) {
  const input = Object.assign(document.createElement('input'), { value: title, maxLength: 120, autocomplete: 'off' });
  question(say('title'), input, say('save'), () => {
    const text = input.value.trim();
    if (text && text !== title) ask({ do: 'rename', id, title: text });
  }, { name: say('rename'), back: [rowOf(id)] });
  input.select();
}

export function remove(id, title) {
  const text = Object.assign(document.createElement('p'), { textContent: say('delete_ask', { title }) });
  // Where the row was, the next one is; after the last, the one before; else what begins a new conversation.
  const row = document.querySelector(rowOf(id))?.closest('li');
  const near = [row?.nextElementSibling, row?.previousElementSibling].map((one) => one?.querySelector('.p-menu')?.dataset.id);
  const back = [rowOf(id), ...near.filter(Boolean).map(rowOf), '#house .p-new', '#composer textarea'];
  question('', text, say('delete'), () => deleteOne(id, title), { kind: 'p-danger', back });
}

// A small question with one answer; what it is about is its body. One that `stays` is over when what it asks for was done:
// its act tells so.
export function question(label, body, verb, act, { kind = 'p-main', name = '', title = '', note = '', back = [], stays = false } = {}) {
  const element = Object.assign(document.createElement('dialog'), { className: 'p-dialog' });
  const form = Object.assign(document.createElement('form'), { method: 'dialog' });
  body.id = 'p-field';
  if (title) form.append(Object.assign(document.createElement('h2'), { className: 'p-question', id: 'p-question', textContent: title }));
  if (label) {
    const caption = Object.assign(document.createElement('label'), { textContent: label, htmlFor: 'p-field' });
    form.append(caption);
  }
  // Its field has the caption for a name; the dialog is called after what it does, or by what it asks.
  if (name) element.setAttribute('aria-label', name);
  else element.setAttribute('aria-labelledby', title ? 'p-question' : 'p-field');
  const row = Object.assign(document.createElement('div'), { className: 'p-row' });
  const no = Object.assign(document.createElement('button'), { type: 'button', className: 'p-button', textContent: say('cancel') });
  const yes = Object.assign(document.createElement('button'), { className: `p-button ${kind}`, textContent: verb });
  no.addEventListener('click', () => element.close());
  form.addEventListener('submit', async (event) => {
    if (!stays) return act(event);
    event.preventDefault();
    if (await act(event)) element.close();
  });
  body.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing) form.requestSubmit(yes);
  });
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', () => { element.remove(); if (back.length) keepFocus(...back); });
  row.append(no, yes);
  form.append(body, ...(note ? [Object.assign(document.createElement('p'), { className: 'p-beneath', textContent: note })] : []), row);
  element.append(form);
  document.body.append(element);
  element.showModal();
  (kind === 'p-danger' ? no : body).focus();
}
