// The palette: one field over conversations, messages, documents, libraries and commands.
import { ask } from './bus.js';
import { askAnew, openAt, wordsOf } from './jump.js';
import { openLibraries } from './libraries.js';
import { make } from './models_form.js';
import { drawn, readsIn } from './palette_rows.js';
import { drawer, evidence } from './places.js';
import { request } from './request.js';
import { say } from './words.js';

const LONGEST = 300;  // letters that are looked for
const QUIET = 150;    // milliseconds in which nobody types, until documents are looked into
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const SCOPES = ['everywhere', 'conversations', 'documents', 'libraries', 'commands'];
const SIGNS = { '>': 'commands', '＞': 'commands', '@': 'libraries', '＠': 'libraries' };

let offered = () => [];
let open = null;
let last = '';  // what was looked for last: it stands there again, chosen, at the next time

// Other parts of the page say what can be done here.
export function offer(commands) { offered = commands; }

export function openPalette() {
  if (document.querySelector('dialog[open]')) return;  // one that is closed already may not have heard so yet
  drawer(false);
  open = new Palette();
  open.show();
}

// A passage on its page, beside whatever is open.
function openPassage(document, chunk, text) {
  evidence(true);
  ask({ do: 'found', document, n: chunk, text });
}

class Palette {
  constructor() {
    this.answer = {};      // the newest that came
    this.shown = null;     // what it is the answer to
    this.scope = 'everywhere';
    this.opened = new Set();
    this.options = [];
    this.at = 0;
    this.asking = false;
    this.inside = { passages: [], more: false, of: '' };  // what stands in documents, and of which words that is the answer
    this.reading = 0;      // the timer until documents are looked into
    this.found = 0;
    this.waits = null;     // what is done as soon as the answer to what stands in the field has come
    this.build();
  }

  build() {
    this.field = make('input', { type: 'text', value: last, maxLength: LONGEST, placeholder: say('palette_hint'), autocomplete: 'off',
      spellcheck: false, enterKeyHint: 'go', attributes: { role: 'combobox', 'aria-label': say('palette_title'), 'aria-autocomplete': 'list',
        'aria-expanded': 'true', 'aria-controls': 'p-palette-list', autocapitalize: 'none' } });
    this.list = make('div', { id: 'p-palette-list', className: 'p-results', attributes: { role: 'listbox', 'aria-label': say('palette_results') } });
    this.heard = make('p', { className: 'p-sr', attributes: { role: 'status' } });
    this.told = make('p', { className: 'p-told', hidden: true });
    const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'aria-label': say('close') } });
    this.chips = make('div', { className: 'p-scopes', attributes: { role: 'group', 'aria-label': say('palette_scope') } },
      ...SCOPES.map((scope) => make('button', { type: 'button', textContent: say(`palette_${scope}`), attributes: { 'data-scope': scope } })));
    const foot = make('footer', { attributes: { 'aria-hidden': 'true' } },
      ...[['↑ ↓', 'choose'], ['>', 'commands'], ['@', 'libraries'], ['Esc', 'close']].map(([key, what]) =>
        make('span', {}, make('kbd', { textContent: key }), say(`palette_key_${what}`))));
    this.scrim = make('div', { className: 'p-palette-scrim' });
    this.element = make('dialog', { className: 'p-palette', attributes: { 'aria-label': say('palette_title'), 'aria-modal': 'true' } },
      make('header', {}, make('span', { className: 'p-glyph', attributes: { 'aria-hidden': 'true' } }), this.field, close),
      this.chips, this.told, this.list, foot, this.heard);
    close.addEventListener('click', () => this.element.close());
    this.field.addEventListener('input', () => this.changed());
    this.element.addEventListener('keydown', (event) => this.pressed(event));
    this.chips.addEventListener('click', ({ target }) => { if (target.dataset.scope) this.narrow(target.dataset.scope); });
    this.list.addEventListener('pointerdown', (event) => event.preventDefault());  // the keyboard stays in the field
    this.list.addEventListener('pointermove', (event) => this.point(event));
    this.list.addEventListener('click', ({ target }) => { const at = this.indexOf(target); if (at >= 0) this.take(at); });
    this.scrim.addEventListener('pointerdown', (event) => event.preventDefault());
    this.scrim.addEventListener('click', () => this.element.close());
    // The back key of a telephone closes a dialog by itself only where that is modal.
    const watcher = window.CloseWatcher ? new CloseWatcher() : null;
    watcher?.addEventListener('close', () => this.element.close());
    this.element.addEventListener('close', () => { watcher?.destroy(); this.scrim.remove(); this.element.remove(); if (open === this) open = null; });
  }

  show() {
    document.body.append(this.scrim, this.element);
    this.element.show();  // showModal() makes all else inert: that finds the styles of the whole page anew
    this.field.focus();
    this.field.select();
    this.draw();
    this.changed();
  }

  // What is looked for, and among what: a sign before the words narrows it as well.
  sought() {
    const typed = this.field.value.trim();
    const scope = SIGNS[typed[0]];
    return { text: (scope ? typed.slice(1) : typed).trim(), scope: scope ?? this.scope };
  }

  narrow(scope) {
    this.scope = scope;
    this.field.focus();
    this.read();
    this.draw();
  }

  // One question at a time; until its answer has come the former results stay.
  async changed() {
    last = this.field.value;
    this.opened.clear();
    clearTimeout(this.reading);
    if (this.asking) return;
    this.asking = true;
    this.list.ariaBusy = 'true';
    while (open === this && this.shown !== this.sought().text) {
      const { text } = this.sought();
      const answer = await request(`./search?q=${encodeURIComponent(text)}`, 'palette_failed');
      this.shown = text;
      this.told.hidden = !answer.failed;
      this.told.textContent = answer.failed ?? '';
      this.answer = answer.failed ? {} : answer;
    }
    this.asking = false;
    if (open !== this) return;
    this.read();
    this.draw();
    this.list.ariaBusy = 'false';
    this.settle();
  }

  // What stands in documents comes after the rest, once nobody types for a moment, and stands below it: nothing moves.
  read() {
    clearTimeout(this.reading);
    const { text, scope } = this.sought();
    if (text === this.inside.of || !readsIn(scope)) return;
    if (!text) { this.inside = { passages: [], more: false, of: '' }; return; }
    this.reading = setTimeout(async () => {
      if (open !== this) return;
      const answer = await request(`./search/passages?q=${encodeURIComponent(text)}`, 'palette_failed');
      if (open !== this || text !== this.sought().text) return;
      this.inside = { passages: answer.passages ?? [], more: answer.more ?? false, of: text };
      if (answer.failed) { this.told.hidden = false; this.told.textContent = answer.failed; }
      this.draw({ stays: true });
      this.settle();
    }, QUIET);
  }

  // Whether all that Enter may mean has come.
  isSettled() {
    const { text, scope } = this.sought();
    return this.shown === text && (this.found > 0 || !text || !readsIn(scope) || this.inside.of === text);
  }

  settle() {
    if (!this.waits || !this.isSettled()) return;
    this.waits();
    this.waits = null;
  }

  draw({ stays = false } = {}) {
    const { text, scope } = this.sought();
    const last = this.at > 0 && this.at === this.options.length - 1;  // the row below all that is found
    const words = wordsOf(text);
    const commands = offered().filter(({ name }) => words.every((word) => wordsOf(name).some((one) => one.includes(word))));
    const acts = {
      open: (conversation, message) => openAt(conversation, message, text),
      library: (id) => openLibraries(id),
      passage: ({ document: id, chunk }) => openPassage(id, chunk, text),
      anew: () => askAnew(text),
      anewKeys: MAC ? '⌘ Enter' : 'Ctrl Enter',
      unfold: (kind) => { this.opened.add(kind); this.draw(); },
    };
    const inside = this.inside.of === text ? this.inside : { passages: [], more: false };
    const awaited = Boolean(text) && readsIn(scope) && this.inside.of !== text;
    const given = { ...this.answer, passages: inside.passages, more: [...this.answer.more ?? [], ...inside.more ? ['passages'] : []] };
    const rows = drawn(given, { text, scope, acts, opened: this.opened, commands, awaited });
    this.options = rows.options;
    this.found = rows.found;
    this.list.replaceChildren(...rows.elements);
    for (const chip of this.chips.children) chip.setAttribute('aria-pressed', String(chip.dataset.scope === scope));
    const kept = last && stays ? this.options.length - 1 : this.at;
    this.choose(Math.min(stays || this.opened.size ? kept : 0, this.options.length - 1), false);
    if (text && this.shown === text && !(awaited && !rows.found)) this.heard.textContent = rows.found ? say('palette_heard', { n: rows.found }) : say('palette_nothing');
  }

  indexOf(target) {
    const element = target.closest?.('[role="option"]');
    return this.options.findIndex((one) => one.element === element);
  }

  point(event) {
    const at = event.movementX || event.movementY ? this.indexOf(event.target) : -1;
    if (at >= 0 && at !== this.at) this.choose(at, false);
  }

  choose(at, shows = true) {
    this.options[this.at]?.element.setAttribute('aria-selected', 'false');
    for (const one of this.list.querySelectorAll('[aria-selected="true"]')) one.setAttribute('aria-selected', 'false');
    this.at = Math.max(0, at);
    const element = this.options[this.at]?.element;
    element?.setAttribute('aria-selected', 'true');
    if (element) this.field.setAttribute('aria-activedescendant', element.id);
    else this.field.removeAttribute('aria-activedescendant');
    if (shows && this.at === 0) this.list.scrollTop = 0;
    else if (shows) element?.scrollIntoView({ block: 'nearest' });
  }

  take(at) {
    const chosen = this.options[at];
    if (!chosen) return;
    if (!chosen.stays) this.element.close();
    chosen.act();
  }

  anew() {
    const { text } = this.sought();
    if (!text) return;
    this.element.close();
    askAnew(text);
  }

  // Tab stays within, as in every dialog.
  step(by) {
    const stops = [this.field, ...this.element.querySelectorAll('button')].filter((one) => one.checkVisibility());
    const at = stops.indexOf(document.activeElement);
    stops.at((at + by) % stops.length).focus();
  }

  // Enter that is quicker than the answer waits for it: what still stands there is not what was looked for.
  enter() {
    if (this.isSettled()) this.take(this.at);
    else this.waits = () => this.take(this.at);
  }

  pressed(event) {
    const { key, isComposing, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (isComposing || event.keyCode === 229 || altKey) return;
    if (key === 'Escape') { event.preventDefault(); event.stopPropagation(); return this.element.close(); }
    if (key === 'Tab') { event.preventDefault(); return this.step(shiftKey ? -1 : 1); }
    const held = ctrlKey || metaKey;
    if (held && key.toLowerCase() === 'k') { event.preventDefault(); this.field.focus(); return this.field.select(); }
    if (event.target !== this.field || held && key !== 'Enter' || shiftKey) return;
    const count = this.options.length;
    const act = {
      ArrowDown: () => this.choose((this.at + 1) % count),
      ArrowUp: () => this.choose((this.at - 1 + count) % count),
      Home: () => this.choose(0),
      End: () => this.choose(count - 1),
      Enter: () => (held ? this.anew() : this.enter()),
    }[key];
    if (!act || !count && key !== 'Enter') return;
    event.preventDefault();
    act();
  }
}
