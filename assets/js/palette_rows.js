// The rows of the palette: what was found and what can be done, in groups. Every text is text, never markup.
import { make } from './models_form.js';
import { locale, say } from './words.js';

const FEW = { conversations: 3, documents: 2, libraries: 2, commands: 4, passages: 3 };
const DAY = 86_400_000;

// A text whose marks stand out; they count characters, not halves of them.
function marked(text, marks = []) {
  const letters = Array.from(text);
  const pieces = [];
  let at = 0;
  for (const [begin, end] of marks) {
    pieces.push(letters.slice(at, begin).join(''), make('mark', { textContent: letters.slice(begin, end).join('') }));
    at = end;
  }
  return [...pieces, letters.slice(at).join('')];
}

function when(seconds) {
  const at = new Date(seconds * 1000);
  const near = Date.now() - at < DAY && at.getDate() === new Date().getDate();
  const far = at.getFullYear() !== new Date().getFullYear();
  const shape = near ? { timeStyle: 'short' } : { day: 'numeric', month: 'short', ...far && { year: 'numeric' } };
  return new Intl.DateTimeFormat(locale(), shape).format(at);
}

function option(row, ...inside) {
  const element = make('div', { className: `p-option ${row.form ?? ''}`, attributes: { role: 'option', 'aria-selected': 'false' } }, ...inside);
  return { ...row, element };
}

function line(row) {
  const icon = make('span', { className: 'p-glyph', attributes: { 'aria-hidden': 'true' } });
  icon.style.setProperty('--icon', `var(--i-${row.icon})`);
  const name = make('span', { className: 'p-name', dir: 'auto' }, ...marked(row.name, row.marks));
  const notes = [row.note && make('span', { className: 'p-note', textContent: row.note }),
    row.keys && make('kbd', { textContent: row.keys, attributes: { 'aria-hidden': 'true' } })].filter(Boolean);
  return [make('div', { className: 'p-line' }, icon, name, ...notes)];
}

function hitLine(hit) {
  const who = hit.who ? [make('span', { className: 'p-who', textContent: say(`palette_${hit.who}`) })] : [];
  return make('div', { className: 'p-hit' }, ...who,
    make('span', { className: 'p-text', dir: 'auto' }, ...marked(hit.text, hit.marks)));
}

// A conversation with its first line is one row, its second line another: the keyboard comes to both.
function conversation(found, acts) {
  const place = found.archived ? say('palette_archived') : found.folder;
  const note = [place, found.archived ? '' : when(found.at)].filter(Boolean).join(say('palette_between'));
  const row = { icon: 'lines', name: found.title || say('palette_untitled'), marks: found.marks, note };
  const [first, ...others] = found.hits;
  return [
    option({ act: () => acts.open(found.id, first?.message), form: others.length ? 'p-more-below' : '' }, ...line(row), ...first ? [hitLine(first)] : []),
    ...others.map((hit) => option({ act: () => acts.open(found.id, hit.message), form: 'p-more-of-it' }, hitLine(hit))),
  ];
}

function document_(found, acts) {
  const act = found.library ? () => acts.library(found.library) : () => acts.open(found.conversation);
  return [option({ act }, ...line({ icon: 'page', name: found.name, marks: found.marks, note: found.within }))];
}

const library = (found, acts) => [option({ act: () => acts.library(found.id) }, ...line({ icon: 'books', name: found.name, marks: found.marks }))];
const command = (one) => [option({ act: one.act }, ...line(one))];


// What stands in a document: it opens at its page.
const passage = (found, acts) => [option({ act: () => acts.passage(found), form: 'p-inside' },
  ...line({ icon: 'page', name: found.where, note: found.within }), hitLine(found))];

const ROWS = { conversations: conversation, documents: document_, libraries: library, commands: command, passages: passage };
const INSIDE = { documents: ['documents', 'passages'] };  // kinds that a scope has beside its own

// Whether documents are looked into.
export const readsIn = (scope) => scope === 'everywhere' || scope === 'documents';

// A group under its head, cut to the first few where it is not opened: the last row opens the rest.
// Of `more` there is more than was told.
function group(kind, all, { acts, opened, latest, cut, more: cutThere }) {
  if (!all.length) return null;
  const few = !cut || opened.has(kind) ? all.length : FEW[kind];
  const options = all.slice(0, few).flatMap((one) => ROWS[kind](one, acts));
  const count = cutThere.includes(kind) ? `${all.length}+` : String(all.length);
  const counted = all.length > few ? say('palette_some', { n: few, all: count }) : cut && kind !== 'commands' ? count : '';
  if (all.length > few) {
    const more = { icon: 'chevron', name: say(cutThere.includes(kind) ? 'palette_first' : 'palette_all', { n: all.length }) };
    options.push(option({ act: () => acts.unfold(kind), stays: true, form: 'p-rest' }, ...line(more)));
  }
  const id = `p-palette-${kind}`;
  const head = make('div', { className: 'p-head', id, attributes: { role: 'presentation' } },
    make('span', { textContent: say(latest && kind === 'conversations' ? 'palette_latest' : `palette_${kind}`) }),
    make('span', { className: 'p-count', textContent: counted }));
  const element = make('div', { attributes: { role: 'group', 'aria-labelledby': id } }, head, ...options.map((one) => one.element));
  return { element, options };
}

// All groups of an answer, as elements and as the options in them, in order.
export function drawn(answer, { text, scope, acts, opened, commands, awaited }) {
  const latest = !text;
  const given = { ...answer, commands };
  const shape = { acts, opened, latest, cut: Boolean(text) && scope === 'everywhere', more: answer.more ?? [] };
  const kinds = Object.keys(ROWS).filter((kind) => scope === 'everywhere' ? !(latest && kind === 'libraries') : (INSIDE[scope] ?? [scope]).includes(kind));
  const groups = kinds.map((kind) => group(kind, given[kind] ?? [], shape)).filter(Boolean);
  const found = groups.reduce((sum, one) => sum + one.options.length, 0);
  const elements = groups.map((one) => one.element);
  const options = groups.flatMap((one) => one.options);
  if (text && scope !== 'commands' && scope !== 'libraries') {
    const name = say(found ? 'palette_anew' : awaited ? 'palette_reading' : 'palette_nothing');
    const anew = option({ act: acts.anew, form: found ? '' : 'p-nothing' }, ...line({ icon: found ? 'plus' : 'search', name, keys: found ? acts.anewKeys : '' }));
    elements.push(make('div', { attributes: { role: 'group', 'aria-label': say('palette_anew') } }, anew.element));
    options.push(anew);
  } else if (!found) {
    elements.push(make('p', { className: 'p-none', textContent: say('palette_none') }));
  }
  for (const [index, one] of options.entries()) one.element.id = `p-option-${index}`;
  return { elements, options, found };
}
