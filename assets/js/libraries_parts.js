// The parts of the dialog about libraries. What comes from the server becomes text, never markup.
import { canChooseFolder } from './folders.js';
import { make } from './models_form.js';
import { say } from './words.js';

const button = (className, textContent, type = 'button') => make('button', { type, className: `p-button ${className}`, textContent });
const icon = (className, label) => make('button', { type: 'button', className: `p-icon ${className}`, title: label, attributes: { 'aria-label': label } });
const field = (id, label) => make('input', { id, maxLength: 2000, attributes: { autocomplete: 'off', 'aria-label': label, placeholder: label } });

export const shape = (kind) => make('span', { className: `p-st p-${kind}`, attributes: { 'aria-hidden': 'true' } });

// Puts away what is told.
export function closing(done) {
  const cross = icon('p-close', say('close'));
  cross.addEventListener('click', done);
  return cross;
}

export function parts() {
  const back = icon('p-back', say('libraries_back'));
  const close = icon('p-close', say('close'));
  const title = make('h2', { id: 'p-libraries-title', textContent: say('libraries_title') });
  const list = make('ul', { attributes: { role: 'list' } });
  const fresh = Object.assign(field('p-libraries-new', say('libraries_new')), { maxLength: 80 });
  const making = make('form', { className: 'p-with', noValidate: true }, fresh, button('', say('libraries_create'), 'submit'));
  const about = make('p', { className: 'p-about', textContent: say('libraries_about') });
  const shelf = make('div', { className: 'p-shelf-list' }, about, list, making);
  const one = opened();
  const none = make('p', { className: 'p-none' });
  const told = make('p', { className: 'p-told', attributes: { role: 'status' } });
  const element = make('dialog', { className: 'p-dialog p-libraries', attributes: { 'aria-labelledby': 'p-libraries-title' } },
    make('div', { className: 'p-frame' },
      make('header', {}, back, title, close), shelf, make('div', { className: 'p-one' }, none, one.section), told));
  return { element, back, close, list, fresh, making, none, told, ...one };
}

function opened() {
  const name = make('h3', { tabIndex: -1, attributes: { dir: 'auto' } });
  const rename = icon('p-rename', say('libraries_rename'));
  const remove = icon('p-trash', say('libraries_delete'));
  const use = make('input', { type: 'checkbox', id: 'p-libraries-use', attributes: { role: 'switch' } });
  const add = button('', say('libraries_add'));
  const addFolder = button('p-quiet', say('libraries_folder'));
  addFolder.hidden = !canChooseFolder();
  const files = make('input', { type: 'file', multiple: true, hidden: true });
  const filter = Object.assign(field('p-libraries-filter', say('libraries_filter')), { type: 'search', hidden: true });
  const documents = make('ul', { className: 'p-docs', attributes: { role: 'list' } });
  const question = field('p-libraries-question', say('libraries_try'));
  const trying = make('form', { className: 'p-with', noValidate: true }, question, button('', say('libraries_try_do'), 'submit'));
  const hint = make('p', { className: 'p-about p-said', textContent: say('libraries_try_hint'), attributes: { role: 'status' } });
  const found = make('ol', { className: 'p-found', attributes: { role: 'list' } });
  const whose = make('p', { className: 'p-about p-whose', hidden: true, attributes: { dir: 'auto' } });
  const share = icon('p-share', say('lend'));
  share.hidden = true;
  const drop = make('div', { className: 'p-drop' }, add, addFolder, make('span', { textContent: say('libraries_drop') }), files);
  const section = make('section', { hidden: true },
    make('div', { className: 'p-head' }, name, share, rename, remove), whose,
    make('label', { className: 'p-switch', htmlFor: use.id }, use, make('span', { textContent: say('libraries_use') })),
    make('h4', { textContent: say('libraries_documents') }),
    drop,
    filter, documents,
    make('h4', { textContent: say('libraries_try') }), trying, hint, found);
  return { section, name, rename, remove, whose, share, drop, use, add, addFolder, files, filter, documents, question, trying, hint, found };
}

// Rows are kept by their key and only changed, so that the keyboard stays where it is.
export function keyed(list, items, born, changed) {
  const old = new Map([...list.children].map((row) => [row.dataset.key, row]));
  items.forEach((item, index) => {
    const row = old.get(item.id) ?? born(item);
    row.dataset.key = item.id;
    old.delete(item.id);
    changed(row, item);
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
  });
  for (const row of old.values()) row.remove();
}

export function shelfRow() {
  return make('li', {}, make('button', { type: 'button' },
    make('span', { className: 'p-name', attributes: { dir: 'auto' } }), shape('run'), make('span', { className: 'p-count' }),
    make('span', { className: 'p-sr' })));
}

export function changeShelfRow(row, one, here, isUsed) {
  const [choose] = row.children;
  const [name, ring, count, use] = choose.children;
  text(name, one.name);
  text(count, one.said);
  text(use, isUsed ? say('libraries_used') : '');
  ring.hidden = !one.reading;
  choose.dataset.library = one.id;
  choose.classList.toggle('p-used', isUsed);
  if (here) choose.setAttribute('aria-current', 'true');
  else choose.removeAttribute('aria-current');
}

export function documentRow() {
  return make('li', {}, shape('ok'),
    make('div', { className: 'p-what' }, make('a', { className: 'p-name', attributes: { dir: 'auto' } }), make('span', { className: 'p-state' })),
    make('span', { className: 'p-acts' }));
}

export function changeDocumentRow(row, one, acts) {
  const [disc, what, holder] = row.children;
  const [name, state] = what.children;
  disc.className = `p-st p-${{ reading: 'run', ready: 'ok', failed: 'bad', cancelled: 'open' }[one.state]}`;
  text(name, one.name);
  if (one.file) name.href = `./files/${encodeURIComponent(one.file)}?download=1`;
  else name.removeAttribute('href');  // somebody else's
  text(state, one.noted ? `${one.said} · ${one.noted}` : one.said);
  row.dataset.state = one.state;
  what.style.setProperty('--share', one.share ?? 0);
  what.classList.toggle('p-going', one.share !== null);
  const wanted = acts.map(([kind]) => kind).join(' ');
  if (holder.dataset.acts === wanted) return;
  const was = holder.contains(document.activeElement) && document.activeElement.dataset.act;
  holder.dataset.acts = wanted;
  holder.replaceChildren(...acts.map(([kind, label, done]) => {
    const act = icon(`p-${kind}`, label);
    act.dataset.act = kind;
    act.addEventListener('click', done);
    return act;
  }));
  if (was) (holder.querySelector(`[data-act="${was}"]`) ?? holder.firstChild)?.focus();
}

export function foundRow(one, shown) {
  const bar = make('span', { className: 'p-bar', attributes: { 'aria-hidden': 'true' } });
  bar.style.setProperty('--share', one.share);
  const where = make('button', { type: 'button', className: 'p-name', textContent: one.where, title: say('libraries_page'), attributes: { dir: 'auto' } });
  where.addEventListener('click', shown);
  return make('li', {},
    make('div', { className: 'p-of' }, where, bar,
      make('span', { className: 'p-figure', textContent: one.score, attributes: { 'aria-label': say('libraries_score', { n: one.score }) } })),
    ...(one.heading ? [make('p', { className: 'p-heading', textContent: one.heading, attributes: { dir: 'auto' } })] : []),
    make('p', { className: 'p-text', textContent: one.text, attributes: { dir: 'auto' } }));
}

function text(element, said) { if (element.textContent !== said) element.textContent = said; }
