// Named libraries: a dialog that speaks with the server by requests of its own; each answer holds all that it shows.
import { ask } from './bus.js';
import { question } from './dialogs.js';
import { keepFocus } from './focus.js';
import { chooseFolder, dropOf, within } from './folders.js';
import { lend } from './lending.js';
import { forgetLost, lost, sent } from './libraries_sending.js';
import { changeDocumentRow, changeShelfRow, closing, documentRow, foundRow, keyed, parts, shape, shelfRow } from './libraries_parts.js';
import { make } from './models_form.js';
import { drawer, evidence } from './places.js';
import { request as requested } from './request.js';
import { onChange } from './state.js';
import { tellOthers } from './tabs.js';
import { say } from './words.js';

const AGAIN = 1000;    // milliseconds between two looks at what is being read; more where there is much to look at
const SELDOM = 30_000; // at most, while Parlour cannot be reached
const MANY = 8;        // documents, from which on they can be looked for by name
const BELIEVED = 3000; // and until a switch shows what the server says, whatever was pressed

let open = null;
let listening = false;
let sending = null;    // { file, library }: those on their way, whether the dialog is open or not

const request = (what, body) => requested(`./libraries/${what}`, 'libraries_failed', body);

// Those that the conversation uses, by the chip above it.
const used = () => (document.querySelector('#top .p-uses')?.dataset.uses ?? '').split(' ').filter(Boolean);

// `files` are for the library that is named; they go to it at once.
export function openLibraries(library = '', files = []) {
  if (open) return;
  drawer(false);
  if (!listening) {
    onChange(() => open?.drawUses());
    addEventListener('p-standing', () => open?.look());
  }
  listening = true;
  open = new Dialog(library);
  open.show();
  open.take(files, library);
}

class Dialog {
  constructor(library) {
    this.data = { libraries: [], opened: null, limit: 0 };
    this.at = library || (used()[0] ?? '');  // which is asked for; shown is `data.opened`, and only that is acted upon
    this.turn = 0;       // of the newest request: an older answer shows nothing any more
    this.meant = null;   // what was switched, until the server says so too
    this.timer = 0;
    this.pause = AGAIN;  // longer and longer while looking fails
    this.going = new Set();  // acts that are not answered yet
    this.shown = used().join(' ');
    this.parts = parts();
    const { element, back, close, list, making, rename, remove, share, use, add, addFolder, files, filter, trying } = this.parts;
    close.addEventListener('click', () => element.close());
    back.addEventListener('click', () => this.leave());
    list.addEventListener('click', (event) => this.choose(event.target.closest('[data-library]')?.dataset.library));
    making.addEventListener('submit', (event) => { event.preventDefault(); this.create(); });
    rename.addEventListener('click', () => this.rename());
    remove.addEventListener('click', () => this.delete());
    share.addEventListener('click', () => lend('library', this.data.opened.id, this.data.opened.name, '', () => share.focus()));
    use.addEventListener('change', () => this.use());
    add.addEventListener('click', () => files.click());
    addFolder.addEventListener('click', () => chooseFolder((folder) => this.takeFolder(folder)));
    files.addEventListener('change', () => { this.take([...files.files]); files.value = ''; });
    filter.addEventListener('input', () => this.draw());
    trying.addEventListener('submit', (event) => { event.preventDefault(); this.try(); });
    for (const kind of ['dragenter', 'dragover', 'dragleave', 'drop']) element.addEventListener(kind, (event) => this.dragged(event));
    element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
    element.addEventListener('close', (event) => { if (event.target === element) this.left(); });
  }

  async show() {
    const { element, fresh } = this.parts;
    document.body.append(element);
    element.showModal();
    if (fingers()) { element.tabIndex = -1; element.focus(); }  // a field would raise a keyboard of glass over what it belongs to
    const first = document.activeElement;
    this.tell('run', say('libraries_loading'));
    await this.look();
    const { libraries, opened } = this.data;
    if (!this.at && libraries.length === 1 && !narrow()) await this.choose(libraries[0].id, { quiet: true });
    if (!element.isConnected || !this.free(first) || fresh.value) return;  // who writes already is left alone
    if (!libraries.length) (fingers() ? element : fresh).focus();
    else if (opened) this.parts.name.focus();
    else (element.querySelector('[aria-current], [data-library]') ?? (fingers() ? element : fresh)).focus();
  }

  left() {
    clearTimeout(this.timer);
    this.turn += 1;
    this.parts.element.remove();
    open = null;
    keepFocus('#top .p-uses', '#history .p-shelf', '#top .p-open-menu', '#composer textarea');
  }

  // ---- what the server says

  async look() {
    const turn = ++this.turn;
    const answer = await request(`state?library=${encodeURIComponent(this.at)}`);
    if (turn !== this.turn || open !== this) return;
    if (answer.failed) {
      this.tell('bad', answer.failed);
      this.pause = Math.min(this.pause * 1.5, SELDOM);
      this.at = this.data.opened?.id ?? '';
      this.parts.section.inert = false;
      return this.plan();
    }
    this.taken(answer);
    if (this.parts.told.textContent === say('libraries_loading')) this.tell();
  }

  // The same act pressed twice is one; what was changed shows in the page too. Only the newest answer is shown: another
  // has changed something that the newest may not know yet, so that is looked at anew.
  async run(what, body, { changes = false } = {}) {
    const act = JSON.stringify([what, body]);
    if (this.going.has(act)) return null;
    this.going.add(act);
    clearTimeout(this.timer);
    const turn = ++this.turn;
    const answer = await request(what, body);
    if (changes && !answer.failed) { ask({ do: 'look' }); tellOthers(); }
    if (open !== this) return null;
    this.tell(answer.failed ? 'bad' : '', answer.failed);
    if (turn === this.turn && answer.libraries) this.taken(answer);
    else await this.look();
    this.going.delete(act);
    return answer.failed ? null : answer;
  }

  taken(answer) {
    if (answer.opened?.id !== this.data.opened?.id) this.forget();
    this.data = answer;
    this.pause = AGAIN;
    this.at = answer.opened?.id ?? '';
    this.parts.section.inert = false;
    this.draw();
    this.plan();
  }

  // Looked at again only while something is being read, or made ready for search by meaning.
  plan() {
    clearTimeout(this.timer);
    const { libraries, opened } = this.data;
    if (!libraries.some((one) => one.reading) && !opened?.documents.some((one) => one.moves)) return;
    const rest = this.pause + 2 * (opened?.documents.length ?? 0);
    this.timer = setTimeout(() => (document.hidden ? this.plan() : this.look()), rest);
  }

  // ---- what is shown

  draw() {
    const { element, list, none, section, name, documents, filter } = this.parts;
    const { libraries, opened } = this.data;
    element.dataset.view = opened ? 'one' : 'list';
    const mine = used();
    keyed(list, libraries, shelfRow, (row, one) => changeShelfRow(row, one, one.id === opened?.id, mine.includes(one.id)));
    none.textContent = libraries.length ? say('libraries_choose') : say('libraries_none');
    none.hidden = Boolean(opened);
    section.hidden = !opened;
    if (!opened) return;
    if (name.textContent !== opened.name) name.textContent = opened.name;
    this.drawWhose();
    filter.hidden = opened.documents.length < MANY;
    const part = filter.hidden ? '' : filter.value.trim().toLowerCase();
    const shown = opened.documents.filter((one) => one.name.toLowerCase().includes(part));
    keyed(documents, shown, documentRow, (row, one) => changeDocumentRow(row, one, this.actsOf(one)));
    this.drawUse();
  }

  // One that somebody else shares says whose it is; what the reader may not do there is not offered.
  drawWhose() {
    const { data: { opened, shares }, parts: { rename, remove, drop, whose, share } } = this;
    const lent = opened.whose !== undefined;
    rename.hidden = remove.hidden = lent;
    drop.hidden = lent && !opened.writes;
    whose.textContent = opened.whose ?? '';
    whose.hidden = !lent;
    share.hidden = lent || !shares;
  }

  // The chip says at the next frame what was switched.
  drawUses() {
    const now = used().join(' ');
    if (now === this.shown) return;
    this.shown = now;
    if (this.parts.told.textContent === say('libraries_use_failed')) this.tell();  // it came late
    this.draw();
  }

  drawUse() {
    const { meant, data: { opened } } = this;
    if (!opened) return;
    const isUsed = used().includes(opened.id);
    const trust = meant?.library === opened.id && meant.on !== isUsed;
    this.parts.use.checked = trust ? meant.on : isUsed;
  }

  actsOf(one) {
    if (this.data.opened.writes === false) return [];
    const { id: document, name } = one;
    const body = { library: this.data.opened.id, document };
    const take = ['trash', say('libraries_remove', { name }), () => this.remove(one, body)];
    if (one.state === 'reading') return [['stop', say('libraries_cancel', { name }), () => this.run('cancel', body)], take];
    if (one.locked) return [['key', say('libraries_unlock', { name }), () => this.unlock(one, body)], take];
    return [['again', say(one.stopped ? 'libraries_rest' : 'libraries_again', { name }), () => this.run('again', body)], take];
  }

  // Where nothing else is to be said, what was not sent before the page was left. What went wrong stays until it is
  // put away, or something else is said.
  tell(kind = '', said = '') {
    const unsent = said ? '' : this.unsent();
    const shown = said || unsent;
    const isBad = kind === 'bad' || unsent;
    const close = isBad ? closing(() => { if (unsent) forgetLost(); this.tell(); }) : '';
    this.parts.told.replaceChildren(...(shown ? [shape(isBad ? 'bad' : kind), make('span', { textContent: shown }), close] : []));
  }

  unsent() {
    const counts = lost();
    const some = this.data.libraries.filter(({ id }) => counts.has(id)).map(({ id, name }) => [counts.get(id), name]);
    return some.map(([n, name]) => say(n === 1 ? 'libraries_lost_one' : 'libraries_lost', { n, name })).join('\n');
  }

  // Whether the keyboard may be put elsewhere: it is nowhere, on what is gone, or still where it was before.
  free(...before) {
    const now = document.activeElement ?? document.body;
    return now === document.body || now === this.parts.element || !now.checkVisibility() || before.includes(now);
  }

  // ---- libraries

  async choose(library, { quiet = false } = {}) {
    if (!library || library === this.at) return;
    clearTimeout(this.timer);
    this.at = library;
    this.parts.section.inert = true;  // it shows another one until the answer is here
    this.tell();
    await this.look();
    if (!quiet && narrow()) this.parts.name.focus();
  }

  leave() {
    const { at } = this;
    this.at = '';
    this.data.opened = null;
    this.turn += 1;
    this.draw();
    this.plan();
    this.parts.list.querySelector(`[data-library="${CSS.escape(at)}"]`)?.focus();
  }

  async create() {
    const { fresh, add, making } = this.parts;
    const name = fresh.value;
    const made = await this.run('create', { name });
    const typed = fresh.value !== name;  // meanwhile: the next one
    if (made && !typed) fresh.value = '';
    if (this.free(...making.children) && !(typed && fresh.checkVisibility())) (made ? add : fresh).focus();
  }

  // What was tried in another library.
  forget() {
    this.parts.found.replaceChildren();
    this.parts.hint.textContent = say('libraries_try_hint');
    this.parts.question.value = this.parts.filter.value = '';
  }

  rename() {
    const { id, name } = this.data.opened;
    const input = make('input', { value: name, maxLength: 80, autocomplete: 'off' });
    question(say('libraries_name'), input, say('save'), () => {
      const given = input.value.trim();
      if (given && given !== name) this.run('rename', { library: id, name: given }, { changes: true });
    }, { name: say('libraries_rename') });
    input.select();
  }

  delete() {
    const { id, name } = this.data.opened;
    const text = make('p', { textContent: say('libraries_delete_ask', { name }) });
    question('', text, say('delete'), async () => {
      this.tell('run', say('libraries_deleting'));
      await this.run('delete', { library: id }, { changes: true });
      if (this.free()) (this.parts.list.querySelector('[data-library]') ?? this.parts.fresh).focus();
    }, { kind: 'p-danger' });
  }

  use() {
    const { use } = this.parts;
    const { id } = this.data.opened;
    const meant = { library: id, on: use.checked };
    this.meant = meant;
    ask({ do: 'use', id, on: use.checked });
    tellOthers();
    setTimeout(() => this.settle(meant), BELIEVED);
  }

  // The page's own notices are behind the dialog: what was not switched is said here.
  settle(meant) {
    if (this.meant !== meant || open !== this) return;
    this.meant = null;
    const failed = used().includes(meant.library) !== meant.on;
    this.draw();
    if (failed) this.tell('bad', say('libraries_use_failed'));
  }

  // ---- documents

  async take(files, library = this.data.opened?.writes === false ? '' : this.data.opened?.id) {
    if (!files.length || !library) return;
    forgetLost(library);
    const more = files.map((file) => ({ file, library }));
    if (sending) { sending.push(...more); return; }
    sending = more;
    await sent(sending, this.data.limit, {
      tell: (kind, said) => open?.tell(kind, said),
      taken: (answer, where) => open?.arrived(answer, where),
    });
    sending = null;
  }

  // Of any size. It goes to the library that was open when it was chosen.
  async takeFolder(drop) {
    const library = this.data.opened?.id;
    const { files } = await within(drop, Infinity);
    if (files.length) this.take(files, library);
    else this.tell('bad', say('attach_empty'));
  }

  // A file, in the library that is open or in another one.
  arrived(answer, library) {
    if (library !== this.at) { this.look(); return; }
    this.turn += 1;
    this.taken(answer);
  }

  dragged(event) {
    if (![...(event.dataTransfer?.types ?? [])].includes('Files')) return;
    event.preventDefault();
    const over = this.data.opened && this.data.opened.writes !== false && !this.parts.section.inert && event.target.closest?.('.p-one');
    event.dataTransfer.dropEffect = over ? 'copy' : 'none';
    const leaves = event.type === 'drop' || event.type === 'dragleave' && !this.parts.element.contains(event.relatedTarget);
    this.parts.section.classList.toggle('p-over', Boolean(over) && !leaves);
    if (event.type === 'drop' && over) this.takeFolder(dropOf(event.dataTransfer));
  }

  remove({ name }, body) {
    const text = make('p', { textContent: say('libraries_remove_ask', { name }) });
    question('', text, say('libraries_remove_do'), async () => {
      await this.run('remove', body);
      if (this.free()) (this.parts.documents.querySelector('[data-act]') ?? this.parts.add).focus();
    }, { kind: 'p-danger' });
  }

  unlock({ name }, body) {
    const input = make('input', { type: 'password', attributes: { autocomplete: 'off', 'data-1p-ignore': '', 'data-lpignore': 'true' } });
    question(say('libraries_unlock', { name }), input, say('libraries_unlock_do'), () => {
      const password = input.value;
      input.value = '';
      if (password) this.run('again', { ...body, password });
    }, { name: say('libraries_unlock', { name }), note: window.isSecureContext ? say('unlock_note') : say('unlock_open_way') });
  }

  // The page of a passage, beside the conversation.
  page(id, question, n) {
    this.parts.element.close();
    evidence(true);
    ask({ do: 'tried', id, question, n });
  }

  async try() {
    const { question: field, hint, found, trying } = this.parts;
    if (!field.value.trim() || trying.dataset.busy) return;
    trying.dataset.busy = 'true';
    const library = this.data.opened.id;
    const asked = field.value;
    const answer = await request('try', { library, question: asked });
    delete trying.dataset.busy;
    if (open !== this || library !== this.data.opened?.id) return;
    hint.textContent = answer.failed ?? answer.said;
    found.replaceChildren(...(answer.found ?? []).map((one, at) => foundRow(one, () => this.page(library, asked, at + 1))));
    if (found.childElementCount) trying.scrollIntoView({ block: 'start' });  // else they would stand below the edge
  }
}

const fingers = () => matchMedia('(hover: none) and (pointer: coarse)').matches;
const narrow = () => matchMedia('(max-width: 839.98px)').matches;
