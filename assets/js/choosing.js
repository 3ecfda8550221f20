// The menu under the model's name: which model answers, here or wherever none was chosen. It opens with what is known;
// what services offer is asked for meanwhile. What comes from the server becomes text, never markup.
import { ask } from './bus.js';
import { closeMenu, float } from './dialogs.js';
import { keepFocus } from './focus.js';
import { hint } from './hint.js';
import { make } from './models_form.js';
import { tokensTaken } from './meter.js';
import { openModels } from './models.js';
import { visit } from './places.js';
import { request } from './request.js';
import { onChange, status, touched } from './state.js';
import { lang, say } from './words.js';

const FEW = 12;      // models of one service that are shown before anything is typed
const PREFETCH = 1200;
const BUTTON = '#top .p-ready button[data-do="choose"]';

let known = null;    // what the server told last
let open = null;     // { element, list, field, all, second: whether the second of two models is being chosen }
let planned = false;

const keyOf = (button) => `${button.className} ${button.dataset.key}`;
const trigger = () => document.querySelector(BUTTON);
const every = () => known?.groups.flatMap((group) => group.models) ?? [];
// The installation's model may have been chosen by the name that its service has for it.
const isChosen = (row) => {
  const now = status();
  const isNow = (one) => one?.service === now?.service && (!one.service || one.model === now.model);
  return Boolean(now) && (isNow(row) || Boolean(row.twin) && isNow(row.twin));
};

async function load(what = 'choices', body = undefined) {
  const told = await request(`./models/${what}`, 'models_failed', body);
  if (told.failed) return;  // what is known stays
  known = told;
  draw();
}

// ---- what is in it

// Whether a model cannot hold what the conversation has; of one whose window is not known, nothing is said.
const isTooSmall = (row) => row.room > 0 && tokensTaken() > row.room;

function small(row) {
  if (!isTooSmall(row)) return [];
  const [tokens, room] = [tokensTaken(), row.room].map((count) => count.toLocaleString(lang()));
  return [make('span', { className: 'p-small' }, make('span', { className: 'p-st p-open' }), say('choose_small', { tokens, room }))];
}

const state = (row) => make('span', { className: `p-state p-is-${row.shape}` },
  make('span', { className: `p-st p-${row.shape}` }), row.said);

function line(row) {
  const key = `${row.service} ${row.model}`;
  const button = make('button', { type: 'button', className: isTooSmall(row) ? 'p-pick p-too-small' : 'p-pick', tabIndex: -1, attributes: { 'data-key': key,
    role: 'menuitemradio', 'aria-checked': String(isChosen(row)), ...row.star && { 'aria-keyshortcuts': `Alt+${row.star}` },
  } },
  make('span', { className: 'p-name', textContent: row.label }),
  make('span', { className: 'p-can', textContent: row.can, title: row.can }),
  make('span', { className: 'p-price', textContent: row.price }), state(row), ...small(row));
  button.addEventListener('click', () => choose(row));
  const star = make('button', { type: 'button', className: 'p-star', tabIndex: -1, attributes: { 'data-key': key,
    role: 'menuitemcheckbox', 'aria-checked': String(row.star > 0), 'aria-label': say('choose_star', { model: row.label }),
  } });
  star.addEventListener('click', () => mark(row, star));
  return make('div', { className: 'p-pick-row', attributes: { role: 'none' } }, button, star);
}

function group(label, rows, more = 0) {
  const note = more > 0 ? [make('p', { className: 'p-pick-note', textContent: say('choose_more', { n: more }) })] : [];
  const head = make('div', { className: 'p-pick-group', textContent: label, attributes: { 'aria-hidden': 'true' } });
  return make('div', { attributes: { role: 'group', 'aria-label': label } }, head, ...rows.map(line), ...note);
}

function groups(sought) {
  const fits = (row) => `${row.label} ${row.can} ${row.model}`.toLowerCase().includes(sought);
  if (sought) {
    const found = known.groups.map(({ label, models }) => [label, models.filter(fits)]).filter(([, rows]) => rows.length);
    return found.map(([label, rows]) => group(label, rows.slice(0, 50), rows.length - 50));
  }
  const first = [['choose_favourites', known.favourites], ['choose_lately', known.lately]].filter(([, rows]) => rows.length);
  return [...first.map(([label, rows]) => group(say(label), rows)), ...known.groups.map(({ label, models }) => {
    const there = models.length > FEW ? models.filter((row, place) => place < FEW || isChosen(row)) : models;
    return group(label, there, models.length - there.length);
  })];
}

function draw() {
  if (!open || !known) return;
  const { list, field, named } = open;
  named.textContent = known.note ?? '';
  named.hidden = !known.note;
  const held = list.contains(document.activeElement) ? keyOf(document.activeElement) : '';
  const top = list.scrollTop;
  const found = groups(field.value.trim().toLowerCase());
  list.replaceChildren(...found.length ? found : [make('p', { className: 'p-pick-note', textContent: say('choose_none') })]);
  list.scrollTop = top;
  field.placeholder = say('choose_find', { n: every().length });
  field.parentElement.hidden = every().length <= FEW && !field.value;
  const rows = [...list.querySelectorAll('button')];
  // One stop for Tab, so that what scrolls can be reached.
  const stop = rows.find((one) => one.matches('[aria-checked="true"].p-pick')) ?? rows[0];
  if (stop) stop.tabIndex = 0;
  if (held) (rows.find((one) => keyOf(one) === held) ?? stop)?.focus();
  place();
}

function foot() {
  const choice = (label, all) => {
    const button = make('button', { type: 'button', tabIndex: -1, textContent: label, attributes: { role: 'menuitemradio', 'aria-checked': String(!all) } });
    button.addEventListener('click', () => {
      open.all = all;
      for (const one of button.parentElement.children) one.setAttribute('aria-checked', String(one === button));
    });
    return button;
  };
  const scope = make('div', { className: 'p-pick-for', attributes: { role: 'group', 'aria-label': say('choose_for') } },
    make('span', { textContent: say('choose_for'), attributes: { 'aria-hidden': 'true' } }),
    make('span', { className: 'p-segment' }, choice(say('choose_here'), false), choice(say('choose_all'), true)));
  const two = make('button', { type: 'button', className: 'p-pick-two', tabIndex: -1,
    textContent: say(status()?.second ? 'compare_off' : 'compare_on'), attributes: { role: 'menuitem' } });
  two.addEventListener('click', () => (status()?.second ? oneAgain() : chooseSecond(two)));
  const services = make('button', { type: 'button', className: 'p-pick-services', tabIndex: -1, attributes: { role: 'menuitem' } },
    make('span', { textContent: say('choose_services') }), make('span', { className: 'p-note', textContent: say('choose_prices') }));
  services.addEventListener('click', () => { closeChoosing(); visit('models'); });
  return [scope, two, services];
}

// The second model of two that both answer a question again.
function chooseBeside(act) {
  if (!open) openChoosing();
  open.then = act;
  chooseSecond(open.element.querySelector('.p-pick-two'));
}

function oneAgain() {
  closeChoosing({ back: true });
  ask({ do: 'compare', on: false });
}

function chooseSecond(button) {
  open.second = true;
  button.replaceWith(make('p', { className: 'p-pick-note', textContent: say('compare_choose'), attributes: { role: 'status' } }));
  open.element.querySelector('.p-pick-for').hidden = true;
  begin();
}

// ---- open and closed

export function closeChoosing({ back = false } = {}) {
  if (!open) return false;
  open.element.remove();
  open = null;
  trigger()?.setAttribute('aria-expanded', 'false');
  if (back) keepFocus(BUTTON);
  return true;
}

export function openChoosing() {
  if (closeChoosing({ back: true })) return;
  closeMenu();
  const field = make('input', { type: 'search', autocomplete: 'off', spellcheck: false, attributes: { 'aria-label': say('choose') } });
  field.addEventListener('input', draw);
  const list = make('div', { className: 'p-picks' });
  // The same words as in the line's own card: what the model is, or why there is none.
  const about = make('div', { className: 'p-about' });
  about.append(...document.querySelector('#top .p-ready .p-card')?.cloneNode(true).childNodes ?? []);
  const menu = make('div', { className: 'p-menu-body', attributes: { role: 'menu', 'aria-label': say('choose') } }, list, ...foot());
  const named = make('p', { className: 'p-pick-note', hidden: true });
  const element = make('div', { className: 'p-choose' }, make('label', { className: 'p-find', hidden: true }, field), about, menu, named);
  about.hidden = !about.childNodes.length;
  element.addEventListener('keydown', pressed);
  (document.querySelector('main') ?? document.body).append(element);
  open = { element, list, field, named, all: false };
  trigger()?.setAttribute('aria-expanded', 'true');
  if (!known) list.append(make('p', { className: 'p-pick-note', textContent: say('models_loading') }));
  draw();
  place();
  if (known) begin();
  load(...known ? ['refresh', {}] : []).then(() => { if (open && !element.contains(document.activeElement)) begin(); });
}

function begin() {
  const { list, field } = open;
  const chosen = list.querySelector('[aria-checked="true"].p-pick');
  if (!field.parentElement.hidden && !touched()) field.focus();
  else (chosen ?? mains()[0])?.focus();
  chosen?.scrollIntoView({ block: 'nearest' });
}

function place() {
  const at = trigger()?.getBoundingClientRect();
  if (!open || !at || matchMedia('(max-width: 839.98px)').matches) return;
  const { style, offsetWidth } = open.element;
  style.left = `${Math.max(8, Math.min(at.left, innerWidth - offsetWidth - 8))}px`;
  style.top = `${at.bottom + 2}px`;
  style.maxHeight = `${innerHeight - at.bottom - 18}px`;
}

// ---- by keyboard

const mains = () => [...open?.element.querySelectorAll('[role^="menuitem"]:not(.p-star)') ?? []];

function pressed(event) {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const { key, target } = event;
  const all = mains();
  const row = target.closest('.p-pick-row');
  const at = all.indexOf(row ? row.querySelector('.p-pick') : target);
  const typing = target === open.field;
  const go = {
    ArrowDown: () => all[Math.min(at + 1, all.length - 1)],
    ArrowUp: () => (at > 0 ? all[at - 1] : open.field.parentElement.hidden ? all[0] : open.field),
    Home: () => !typing && all[0],
    End: () => !typing && all.at(-1),
    ArrowRight: () => !typing && (row?.querySelector('.p-star') ?? all[at + 1]),
    ArrowLeft: () => !typing && (row?.querySelector('.p-pick') ?? all[at - 1]),
  }[key];
  const letter = !typing && key.length === 1 && key !== ' ' ? key.toLowerCase() : '';
  const next = go?.() || letter && [...all.slice(at + 1), ...all.slice(0, at + 1)].find((one) => one.textContent.toLowerCase().startsWith(letter));
  if (key === 'Tab') { event.preventDefault(); return void closeChoosing({ back: true }); }
  if (typing && key === 'Enter') { event.preventDefault(); return void open.list.querySelector('.p-pick')?.click(); }
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

// Alt and a figure: the favourite with that number, for this conversation.
function shortcut(event) {
  const n = event.altKey && !event.ctrlKey && !event.metaKey && /^Digit([1-9])$/.exec(event.code)?.[1];
  const row = n && trigger() && !document.querySelector('dialog[open]') && known?.favourites[n - 1];
  if (!row) return;
  event.preventDefault();
  choose(row);
  hint('models_used', { model: row.label });
}

// ---- what it does

function choose(row) {
  const { all = false, second = false, then = null } = open ?? {};
  closeChoosing({ back: true });
  if (row.state === 'no_key') return openModels(row.service);
  if (second && then) return then({ service: row.service, model: row.model, beside: true });
  if (second) return ask({ do: 'compare', on: true, service: row.service, model: row.model });
  ask({ do: 'model', service: row.service, model: row.model, all });
  if (all && status()?.conversation) hint('choose_all_chosen', { model: row.label });
  if (row.state === 'no_answer') ask({ do: 'retry' });
}

async function mark(row, star) {
  star.setAttribute('aria-checked', String(!row.star));
  const told = await request(`./models/${row.star ? 'unstar' : 'star'}`, 'models_failed', { service: row.service, model: row.model });
  if (told.failed) star.setAttribute('aria-checked', String(row.star > 0));
  if (told.failed) return void open?.list.prepend(make('p', { className: 'p-pick-note', textContent: told.failed, attributes: { role: 'alert' } }));
  known = told;
  draw();
}

// Another reply: at once where there is but one model to ask, else by the one that is chosen.
export function writeAgain(id, link, act) {
  const others = known?.favourites.length ? known.favourites : every().filter((row) => row.state === 'ready').slice(0, 3);
  const rows = trigger() ? others.filter((row) => !isChosen(row) && row.state !== 'no_key') : [];
  if (!rows.length) return act({});
  float(link, [
    [say('again_same'), () => act({})],
    ...rows.map((row) => [isTooSmall(row) ? say('choose_small_named', { model: row.label }) : row.label, () => act({ service: row.service, model: row.model })]),
    ...status()?.second ? [] : [[say('again_beside'), () => chooseBeside(act)]],
  ], { label: say('again_with'), back: `#chat .p-regenerate[href="#do-regenerate-${CSS.escape(id)}"]` });
}

function prefetch() {
  if (planned || !trigger() || !status()) return;
  planned = true;
  setTimeout(load, PREFETCH);
}

export function start() {
  addEventListener('keydown', shortcut);
  addEventListener('resize', place);
  onChange(() => { prefetch(); if (open) trigger()?.setAttribute('aria-expanded', 'true'); });
}
