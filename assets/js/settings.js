// The settings: a page in the middle column. The server draws it; here what is changed goes there, and is found.
import { apiKeys } from './api_keys.js';
import { bringIn } from './bringing.js';
import { ask } from './bus.js';
import { choose, chosen } from './choices.js';
import { question } from './dialogs.js';
import { willGo } from './keeping.js';
import { keyParts } from './keys.js';
import { editService } from './models.js';
import { make } from './models_form.js';
import { askForNotices, wantsNotices } from './notices.js';
import { amend, onPlace, section, visit } from './places.js';
import { request } from './request.js';
import { services } from './services.js';
import { sharedLinks } from './shared_links.js';
import { onChange } from './state.js';
import { tellOthers } from './tabs.js';
import { notes } from './tools_notes.js';
import { say } from './words.js';

const PAUSE = 500;  // milliseconds without a key, after which a text is kept
let page = null;      // the section that holds it
let turn = 0;
let pausing = 0;
let given = [];       // the notes, as the server told them last
let from = null;      // what had the keyboard before

const find = (selector) => page?.querySelector(selector);

function tell(said, kind = '') {
  const told = find('.p-told');
  if (!told) return;
  told.textContent = said ?? '';
  told.dataset.kind = kind;
}

// ---- what is changed

async function send(what, body) {
  tell('');
  const answer = await request(`./preferences/${what}`, 'settings_failed', body);
  tell(answer.failed ?? answer.said, answer.failed ? 'bad' : 'ok');
  return answer.failed ? null : answer;
}

async function set(control) {
  const { set: name } = control.dataset;
  clearTimeout(pausing);
  if (name === 'language') {
    if (await send('language', { value: control.value })) location.reload();
    return;
  }
  const value = control.type === 'checkbox' ? control.checked : control.value;
  const kept = await send('change', { name, value });
  if (!kept && control.type === 'checkbox') control.checked = !control.checked;
  if (kept && name === 'formatted') { ask({ do: 'look' }); tellOthers(); }  // the conversation behind is drawn anew
  if (kept && 'anew' in control.dataset) await redraw(kept.said, `#${control.id}`);  // other rows follow from it
}

async function told(box) {
  const may = await askForNotices(box.checked);
  tell(may ? '' : say('notices_refused'), 'bad');
}

function count() {
  const area = find('textarea[data-set]');
  const letters = find('.p-letters');
  if (area) letters.textContent = say('settings_letters', { n: area.value.length, most: letters.dataset.most });
}

function changed({ target, type }) {
  if (target.matches('.p-seek input')) return void (type === 'input' && seek(target.value));
  if (target.matches('textarea[data-set]')) {
    clearTimeout(pausing);
    if (type === 'input') { count(); pausing = setTimeout(() => set(target), PAUSE); } else set(target);
  } else if (type === 'change' && target.dataset.set) set(target);
  else if (type === 'change' && target.dataset.keep === 'notices') told(target);
  else if (type === 'change' && target.dataset.keep) {
    choose(target.dataset.keep, target.value);
    find('.p-keys-here').replaceChildren(...keyParts());  // which key sends was chosen, perhaps
  }
}

function deleteAll({ dataset }) {
  const word = make('input', { type: 'text', id: 'p-delete-word', autocomplete: 'off', spellcheck: false });
  const too = make('input', { type: 'checkbox', id: 'p-delete-notes' });
  const body = make('div', { className: 'p-deleting' },
    make('p', { textContent: say('settings_delete_ask') }),
    make('label', { htmlFor: word.id, textContent: say('settings_delete_type', { word: dataset.word }) }), word,
    make('label', { className: 'p-tick', htmlFor: too.id }, too, make('span', { textContent: say('settings_delete_notes') })));
  question('', body, say('settings_delete'), async () => {
    willGo();
    const done = await send('delete', { word: word.value, notes: too.checked });
    if (!done) return;
    ask({ do: 'look' });  // the list is shorter, and what was open is gone
    tellOthers();
    await draw(done.said);
  }, { kind: 'p-danger', name: say('settings_delete'), back: ['#p-settings [data-delete]'] });
}

// ---- what is found

function seek(text) {
  const words = text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const has = (element) => words.every((word) => element.textContent.toLocaleLowerCase().includes(word));
  let any = false;
  for (const part of page.querySelectorAll('.p-sections > section')) {
    const whole = has(part.querySelector('h2'));
    let shown = whole || !words.length;
    for (const row of part.querySelectorAll('.p-set, .p-keys-here section')) {
      row.hidden = !whole && !has(row);
      shown ||= !row.hidden;
    }
    part.hidden = !shown && !(has(part) && !part.querySelector('.p-set, .p-keys-here'));
    any ||= !part.hidden;
  }
  find('.p-nothing').hidden = any;
  mark(words);
}

function mark(words) {
  if (!window.Highlight || !CSS.highlights) return;
  const found = [];
  const walk = document.createTreeWalker(find('.p-sections'), NodeFilter.SHOW_TEXT);
  while (words.length && walk.nextNode()) {
    const node = walk.currentNode;
    const text = node.data.toLocaleLowerCase();
    if (text.length !== node.data.length || node.parentElement.closest('[hidden], select, textarea')) continue;
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        found.push(range);
      }
    }
  }
  CSS.highlights.set('p-found', new Highlight(...found));
}

// ---- where one is

function here(name) {
  for (const link of page.querySelectorAll('nav a')) {
    if (link.dataset.section === name) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
}

function isInSight(element, scroll) {
  const [its, all] = [element.getBoundingClientRect(), scroll.getBoundingClientRect()];
  return its.bottom > all.top && its.top < all.bottom;
}

function scrolled() {
  const scroll = find('.p-scroll');
  if (!scroll) return;  // closed before the event came
  const top = scroll.getBoundingClientRect().top + 80;
  const parts = [...page.querySelectorAll('.p-sections > section:not([hidden])')];
  const end = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 2;
  const used = document.activeElement?.closest('.p-sections > section');  // while what has the keyboard is in sight
  const part = used && isInSight(document.activeElement, scroll) ? used : end ? parts.at(-1) : parts.findLast((one) => one.getBoundingClientRect().top <= top) ?? parts[0];
  if (part && scroll.scrollTop > 2) here(part.id.slice('p-s-'.length));
}

function show(name) {
  const part = document.getElementById(`p-s-${name}`);
  if (!part) return;
  find('.p-scroll').scrollTop = name === 'general' ? 0 : part.offsetTop - 16;
  here(name);
}

function clicked(event) {
  const link = event.target.closest('nav a[data-section]');
  if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
    event.preventDefault();
    visit(link.dataset.section);
  } else if (event.target.closest('[data-leave]')) visit('');
  else if (event.target.closest('[data-models]')) editService(undefined, () => redraw('', '[data-models]'));
  else if (event.target.closest('[data-import]')) bringIn();
  else if (event.target.closest('[data-delete]')) deleteAll(event.target.closest('[data-delete]'));
}

// ---- the page

async function run(what, body) {
  const answer = await request(`./tools/${what}`, 'settings_failed', body);
  tell(answer.failed ?? answer.said, answer.failed ? 'bad' : 'ok');
  if (answer.notes) drawNotes(answer.notes);
  return answer.failed ? null : answer;
}

const kept = notes({ get data() { return { notes: given }; }, run });

const providers = services(redraw);

const links = sharedLinks((said, kind = 'ok') => tell(said, kind));

const programs = apiKeys((said, kind = 'ok') => tell(said, kind));

// What was pressed is drawn anew; the keyboard goes to it, unless somebody went elsewhere meanwhile.
async function redraw(said, back) {
  await draw(said);
  if ([document.body, find('h1')].includes(document.activeElement)) (find(back) ?? find('.p-add-service'))?.focus();
}

function drawNotes(list) {
  given = list;
  kept.element.open = true;
  kept.draw(given);
}

async function draw(said = '') {
  const mine = ++turn;
  const answer = await request('./preferences/page', 'settings_failed');
  if (mine !== turn || !page) return;
  if (answer.failed) return page.replaceChildren(make('p', { className: 'p-failed', textContent: answer.failed, attributes: { role: 'alert' } }));
  const top = find('.p-scroll')?.scrollTop ?? 0;
  page.innerHTML = answer.markup;  // the server's own, escaped there
  for (const control of page.querySelectorAll('[data-keep]')) control.checked = control.type === 'radio' ? control.value === chosen(control.dataset.keep) : wantsNotices();
  find('.p-keys-here').replaceChildren(...keyParts());
  find('.p-notes-here').replaceChildren(kept.element);
  drawNotes(answer.notes);
  find('.p-services-here')?.replaceChildren(providers.element);
  providers.look(answer.services, () => { const words = find('.p-seek input').value; if (words) seek(words); });
  find('.p-links-here')?.replaceChildren(links.element);
  links.draw(answer.links);
  find('.p-api-keys-here')?.replaceChildren(programs.element);
  programs.draw(answer.keys ?? []);
  count();
  find('.p-scroll').addEventListener('scroll', scrolled, { passive: true });
  find('.p-scroll').addEventListener('focusin', scrolled);
  const unknown = !document.getElementById(`p-s-${section()}`);
  if (unknown) amend();
  if (top) find('.p-scroll').scrollTop = top;
  else show(section());
  if (unknown) tell(say('settings_unknown'), 'bad');
  else tell(said, 'ok');
  if (document.activeElement === document.body) find('h1').focus();
}

// How much there is, and would be deleted, is told anew; what somebody types meanwhile stays.
async function recount() {
  if (!page) return;
  const mine = turn;
  const answer = await request('./preferences/page', 'settings_failed');
  if (answer.failed || mine !== turn || !page) return;
  const now = make('div', { innerHTML: answer.markup });  // the server's own, escaped there
  for (const part of ['.p-space', '.p-sizes', '#p-n-delete']) find(part)?.replaceWith(now.querySelector(part));
}

function open() {
  const talk = document.getElementById('talk');
  if (!talk) return;
  from = document.activeElement;
  page = make('section', { id: 'p-settings', attributes: { 'aria-labelledby': 'p-settings-title' } });
  for (const kind of ['input', 'change']) page.addEventListener(kind, changed);
  page.addEventListener('click', clicked);
  page.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && event.target.matches('.p-seek input') && event.target.value) {
      event.target.value = '';
      seek('');
      event.stopPropagation();
    }
  });
  talk.append(page);
  if (from?.closest('#talk, #composer')) from.blur();
  draw();
}

function close() {
  clearTimeout(pausing);
  const area = find('textarea[data-set]');
  if (area && area.value !== area.defaultValue) request('./preferences/change', 'settings_failed', { name: area.dataset.set, value: area.value });
  page.remove();
  page = null;
  providers.forget();
  programs.forget();
  CSS.highlights?.delete('p-found');
  (from?.isConnected && from.checkVisibility() ? from : document.querySelector('#composer textarea'))?.focus();
}

// The page is there exactly where the address says so.
function follow() {
  const name = section();
  const link = document.querySelector('#history .p-open-settings');
  if (link && link.hasAttribute('aria-current') !== Boolean(name)) link.toggleAttribute('aria-current', Boolean(name));
  if (name && !page) open();
  else if (!name && page) close();
  else if (name && !page.isConnected) document.getElementById('talk')?.append(page);
}

export function start() {
  onPlace(() => { const there = page; follow(); if (there && page && section()) { tell(''); show(section()); } });
  addEventListener('p-brought', recount);
  onChange(follow);
  follow();
}
