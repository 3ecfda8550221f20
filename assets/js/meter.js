// The ring in the composer: how much of the model's room the next message will take, and what it costs.
import { hint } from './hint.js';
import { request } from './request.js';
import { onChange, status } from './state.js';
import { drawAnew } from './steering.js';
import { lang, say } from './words.js';

const PAUSE = 700; // milliseconds after the last letter
let shown = '';
let typed = 0;
let asked = 0;
let told = null;
let costs = {};  // of the chips, in tokens
let drawn = '';  // what the open panel shows
let counted = '';  // the conversation that was counted

// What the next message of the open conversation will take; 0 while nobody knows.
export const tokensTaken = () => (told && counted === status()?.conversation ? told.taken : 0);

const area = () => document.querySelector('#composer textarea');
const figure = (number) => number.toLocaleString(lang());
const make = (name, className, text = '') => Object.assign(document.createElement(name), { className, textContent: text });

function ring() {
  const composer = document.getElementById('composer');
  let button = composer?.querySelector('.p-ring');
  if (!composer || button) return button;
  button = Object.assign(make('button', 'p-ring'), { type: 'button', hidden: true });
  button.setAttribute('aria-haspopup', 'dialog');
  button.setAttribute('aria-expanded', 'false');
  composer.append(button);
  return button;
}

async function ask(fresh) {
  const mine = ++asked;
  const now = status();
  const told_ = await request('./meter', 'meter_failed', { conversation: now?.conversation ?? '', draft: area()?.value ?? '', fresh });
  if (mine !== asked) return;
  told = told_.parts ? told_ : null;
  counted = now?.conversation ?? '';
  costs = told_.chips ?? costs;
  draw();
  chips();
}

// What each tool behind a chip costs stands in its title; the next frame may draw the chips anew.
function chips() {
  for (const [name, tokens] of Object.entries(costs)) {
    const chip = document.querySelector(`#toolbar .p-tap-${name}`);
    const title = chip && say('chip_tokens', { name: chip.textContent, n: figure(tokens) });
    if (chip && chip.title !== title) chip.title = title;
  }
}

function draw() {
  const button = ring();
  if (!button) return;
  button.hidden = !told?.room;
  button.parentElement.toggleAttribute('data-meter', !button.hidden);
  if (button.hidden) return close();
  const percent = Math.round((told.taken / told.room) * 100);
  button.style.setProperty('--taken', `${Math.min(percent, 100)}%`);
  button.dataset.level = percent > 100 ? 'over' : percent > 80 ? 'high' : 'low';
  button.setAttribute('aria-label', say('meter_ring', { n: percent, room: figure(told.room) }));
  button.title = button.getAttribute('aria-label');
  if (card()) redraw();
}

// The keyboard stays where it was, and what a screen reader is told stays in its place.
function redraw() {
  const panel = card();
  const now = JSON.stringify(told);
  if (now === drawn) return;  // a press that has begun on a row ends on it
  drawn = now;
  const { key } = document.activeElement?.dataset ?? {};
  const inside = panel.contains(document.activeElement);
  panel.firstChild.replaceChildren(...content());
  if (inside && document.activeElement !== panel) (key && find(key) || panel).focus();
}

const card = () => document.querySelector('#talk > .p-meter');

function row(name, value, note = '', part = '') {
  const line = make('div', 'p-meter-row');
  const label = make('span', 'p-meter-name', name);
  if (part) { label.prepend(make('i', `p-meter-${part}`)); }
  if (note) label.append(make('small', '', note));
  line.append(label, make('span', 'p-meter-figure', value));
  return line;
}

function bar() {
  const line = make('div', 'p-meter-bar');
  line.setAttribute('aria-hidden', 'true');
  const reserved = told.reserved ? [{ name: 'reserved', tokens: told.reserved }] : [];
  const all = told.taken + told.reserved;
  for (const { name, tokens } of [...told.parts, { name: 'free', tokens: Math.max(told.room - all, 0) }, ...reserved]) {
    const part = make('i', `p-meter-${name}`);
    part.style.flexGrow = tokens;
    line.append(part);
  }
  return line;
}

function content() {
  const head = make('header', '');
  const percent = Math.round((told.taken / told.room) * 100);
  const over = told.taken - told.room;
  head.append(make('h2', '', say('meter_room', { n: figure(told.room) })),
    make('span', over > 0 ? 'p-meter-over' : '', over > 0 ? say('meter_over', { n: figure(over) }) : say('meter_taken', { n: percent })));
  const rows = told.parts.map(({ name, tokens, note }) => row(say(`meter_${name}`), figure(tokens), note, name));
  if (told.reserved) rows.push(row(say('meter_reserved'), figure(told.reserved), '', 'reserved'));
  const nodes = [head, bar(), ...rows];
  if (told.next) {
    const prices = make('div', 'p-meter-prices');
    prices.append(...told.next.map(({ model, cost }) => row(say('meter_next'), cost, model)), row(say('meter_spent'), told.spent));
    nodes.push(prices);
  }
  if (told.savings?.length) nodes.push(savings());
  if (!told.exact) nodes.push(make('p', 'p-none', say('meter_counted')));
  return nodes;
}

// Each saving is one button; done, it says so and has the way back in its place.
function savings() {
  const list = make('ul', 'p-meter-savings');
  list.setAttribute('aria-label', say('meter_savings'));
  list.append(...told.savings.map(saving));
  return list;
}

function saving({ key, title, note, tokens, done }) {
  const line = make('li', done ? 'p-done' : '');
  const act = make('button', done ? 'p-quiet' : 'p-save', done ? say('undo') : '');
  Object.assign(act, { type: 'button' }).dataset.key = key;
  const words = make('span', 'p-meter-words');
  words.append(make('b', '', title), make('small', '', note));
  const figures = make('span', 'p-meter-figure', tokens ? `− ${figure(tokens)}` : '');
  if (done) {
    act.setAttribute('aria-label', `${say('undo')}: ${title}`);
    line.append(words, figures, act);
  } else {
    act.append(words, figures);
    line.append(act);
  }
  act.addEventListener('click', () => save(key, !done, tokens));
  return line;
}

// The conversation that was counted is the one that is changed, whatever is shown meanwhile.
async function save(key, on, tokens) {
  const mine = ++asked;
  const body = { conversation: counted, draft: area()?.value ?? '', key, on };
  const told_ = await request('./meter/save', 'meter_save_failed', body);
  if (told_.failed) return hint(told_.failed);
  if (mine !== asked || !told_.parts) return;
  told = told_;
  draw();
  drawAnew();
  card()?.querySelector('[role="status"]')?.replaceChildren(on ? say('meter_saved', { n: figure(tokens) }) : say('meter_unsaved'));
  (find(key) ?? find('') ?? card())?.focus();
}

const find = (key) => card()?.querySelector(`[data-key${key && `="${CSS.escape(key)}"`}]`);

function open() {
  const talk = document.getElementById('talk');
  const panel = make('div', 'p-meter');
  panel.setAttribute('role', 'dialog');
  panel.setAttribute('aria-label', say('meter_title'));
  panel.tabIndex = -1;
  const body = make('div', '');
  body.append(...content());
  drawn = JSON.stringify(told);
  const said = make('p', 'p-meter-said');
  said.setAttribute('role', 'status');
  panel.append(body, said);
  talk.append(panel);
  place(panel);
  panel.focus();
  ring().setAttribute('aria-expanded', 'true');
  ask(true);
}

// Over the right end of the composer; its own box hides whatever is larger.
function place(panel) {
  const here = document.getElementById('talk').getBoundingClientRect();
  const sheet = document.getElementById('composer').getBoundingClientRect();
  panel.style.right = `${here.right - sheet.right}px`;
  panel.style.bottom = `${here.bottom - sheet.top + 8}px`;
}

function close() {
  card()?.remove();
  document.querySelector('#composer .p-ring')?.setAttribute('aria-expanded', 'false');
}

function clicked({ target }) {
  if (target.closest?.('.p-ring')) return card() ? close() : open();
  if (card() && !target.closest?.('.p-meter')) close();
}

function pressed(event) {
  if (event.key !== 'Escape' || event.isComposing || !card()) return;
  event.stopPropagation();
  close();
  ring()?.focus();
}

// A conversation is counted when it is shown and when its reply ends; the frames in between change nothing. One that
// has just begun with a question is not counted before its reply ends: what was known of it as a draft stands there.
function changed() {
  const now = status();
  chips();
  if (!now || !ring()) return;
  const key = `${now.conversation} ${now.state === 'running' ? 'running' : ''}`;
  if (key === shown) return;
  shown = key;
  const begun = asked > 0 && (counted === now.conversation || !counted);
  if (now.state === 'running' && begun) return;
  ask(true);
}

export function start() {
  onChange(changed);
  addEventListener('input', (event) => {
    if (event.target !== area()) return;
    clearTimeout(typed);
    typed = setTimeout(() => ask(false), PAUSE);
  }, true);
  addEventListener('click', clicked);
  addEventListener('keydown', pressed, true);
  addEventListener('resize', close);
}
