// Tools: who is asked before they run, which there are, and the servers that bring more. The dialog speaks with the
// server by requests of its own; each answer holds all that it shows.
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { keyed, shape } from './libraries_parts.js';
import { make } from './models_form.js';
import { drawer } from './places.js';
import { request as requested } from './request.js';
import { status } from './state.js';
import { asking } from './tools_asking.js';
import { builtin } from './tools_builtin.js';
import { adding } from './tools_form.js';
import { lent } from './tools_lent.js';
import { outside } from './tools_outside.js';
import { changeEntry, changeServerRow, entryRow, frame, serverRow } from './tools_parts.js';
import { served } from './tools_server.js';
import { services } from './tools_services.js';
import { say } from './words.js';

const AGAIN = 1000;  // milliseconds between two looks at servers that are being connected
const SELDOM = 30_000;  // at most, while Parlour cannot be reached
const PARTS = ['asking', 'builtin', 'services', 'lent', 'outside'];
const OF_A_PROGRAM = ['asking', 'outside'];  // where a program has brought the tools itself

let open = null;

const request = (what, body) => requested(`./tools/${what}`, 'tools_failed', body);

let listening = false;

export function openTools(part = '') {
  if (open) return;
  if (!listening) addEventListener('p-standing', () => open?.look());
  listening = true;
  drawer(false);
  open = new Dialog(part);
  open.show();
}

class Dialog {
  constructor(part) {
    this.data = null;
    this.part = typeof part === 'string' && part || (narrow() ? '' : PARTS[0]);
    this.turn = 0;           // of the newest request: an older answer shows nothing any more
    this.timer = 0;
    this.pause = AGAIN;  // longer and longer while looking fails
    this.going = new Set();  // acts that are not answered yet
    this.parts = frame();
    this.panes = { asking: asking(this), builtin: builtin(this), services: services(this), lent: lent(this), outside: outside(this), add: adding(this), server: served(this) };
    const { element, back, close, shelf, one } = this.parts;
    one.append(...Object.values(this.panes).map((pane) => pane.element));
    close.addEventListener('click', () => element.close());
    back.addEventListener('click', () => this.leave());
    shelf.addEventListener('click', (event) => {
      const part = event.target.closest('[data-part]')?.dataset.part;
      if (part) this.go(part);
    });
    element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
    element.addEventListener('close', (event) => { if (event.target === element) this.left(); });
  }

  async show() {
    const { element, shelf } = this.parts;
    document.body.append(element);
    element.showModal();
    this.draw();
    this.tell('run', say('tools_loading'));
    const fine = await this.look();
    if (!fine || !element.isConnected) return;
    this.tell();
    (shelf.querySelector('[aria-current]') ?? shelf.querySelector('[data-part]'))?.focus();
  }

  left() {
    clearTimeout(this.timer);
    this.turn += 1;
    this.parts.element.remove();
    open = null;
    ask({ do: 'look' });  // whether a server is in trouble stands on the page, too
    keepFocus('#history .p-open-tools', '#top .p-open-menu', '#composer textarea');
  }

  // ---- what the server says

  get server() { return PARTS.includes(this.part) || this.part === 'add' ? '' : this.part; }

  async look() {
    const turn = ++this.turn;
    const here = new URLSearchParams({ server: this.server, conversation: status()?.conversation ?? '' });
    const answer = await request(`state?${here}`);
    if (turn !== this.turn || open !== this) return false;
    if (answer.failed) {
      this.tell('bad', answer.failed);
      this.pause = Math.min(this.pause * 1.5, SELDOM);
      this.plan();
    } else this.taken(answer);
    return !answer.failed;
  }

  // The same act pressed twice is one. What it says stands below; its answer is what is shown from then on.
  async run(what, body = {}, { quiet = false, refused = null } = {}) {
    const act = JSON.stringify([what, body]);
    if (this.going.has(act)) return null;
    this.going.add(act);
    clearTimeout(this.timer);
    const turn = ++this.turn;
    if (!quiet) this.tell();
    const answer = await request(what, { opened: this.server, conversation: status()?.conversation ?? '', ...body });
    this.going.delete(act);
    if (open !== this) return null;
    if (answer.failed && refused) refused(answer.failed, answer.at);
    else if (answer.failed) this.tell('bad', answer.failed);
    else if (answer.said) this.tell('ok', answer.said);
    if (turn === this.turn && answer.servers) this.taken(answer);
    else await this.look();
    return answer.failed ? null : answer;
  }

  taken(answer) {
    this.data = answer;
    this.pause = AGAIN;
    if (answer.own && this.part && !OF_A_PROGRAM.includes(this.part)) this.part = OF_A_PROGRAM[0];
    if (this.server && answer.opened?.id !== this.server) this.part = narrow() ? '' : PARTS[1];  // removed elsewhere
    this.draw();
    this.plan();
  }

  // Looked at again only while a server is being connected.
  plan() {
    clearTimeout(this.timer);
    if (![...this.data?.servers ?? [], ...this.data?.lent ?? []].some((one) => one.shape === 'run')) return;
    this.timer = setTimeout(() => (document.hidden ? this.plan() : this.look()), this.pause);
  }

  // ---- what is shown

  draw() {
    const { element, entries, servers, none, add, own, title } = this.parts;
    const { data, part } = this;
    element.dataset.view = part ? 'one' : 'list';
    const places = data?.own ? OF_A_PROGRAM : PARTS.filter((id) => id !== 'lent' || data?.lent.length || part === id);
    own.textContent = data?.own ?? '';
    own.hidden = !data?.own;
    const rows = places.map((id) => ({ id, name: say(`tools_${id}`), said: data?.sums?.[id] }));
    keyed(entries, rows, entryRow, (row, one) => changeEntry(row, one, one.id === part));
    keyed(servers, data?.own ? [] : data?.servers ?? [], serverRow, (row, one) => changeServerRow(row, one, one.id === part));
    none.hidden = Boolean(data?.own || data?.servers.length);
    servers.hidden = add.hidden = title.hidden = Boolean(data?.own);
    if (part === 'add') add.setAttribute('aria-current', 'true');
    else add.removeAttribute('aria-current');
    const shown = data && (PARTS.includes(part) || part === 'add' ? part : data.opened && part === data.opened.id && 'server');
    for (const [name, pane] of Object.entries(this.panes)) {
      pane.element.hidden = name !== shown;
      if (name === shown) pane.draw(data);
    }
    if (element.open && data) this.keep();
  }

  // What had the keyboard may be gone: then the heading of what came instead has it, where Enter does nothing.
  keep() {
    const { element, one, shelf } = this.parts;
    const now = document.activeElement;
    if (now && now !== document.body && now !== element && now.checkVisibility()) return;
    (one.querySelector('section:not([hidden]) h3') ?? shelf.querySelector('[data-part]'))?.focus();
  }

  async go(part, { focus = true } = {}) {
    if (part === this.part) return;
    this.tell();
    this.part = part;
    this.panes.add.leave();
    this.panes.server.leave();
    if (this.server) await this.look();
    else this.draw();
    this.parts.one.scrollTop = 0;
    if (focus && narrow()) this.parts.one.querySelector('section:not([hidden]) h3')?.focus();
  }

  leave() {
    const { part } = this;
    this.part = '';
    this.turn += 1;
    this.draw();
    this.plan();
    this.parts.shelf.querySelector(`[data-part="${CSS.escape(part)}"]`)?.focus();
  }

  tell(kind = '', said = '') {
    this.parts.told.replaceChildren(...(said ? [shape(kind), make('span', { textContent: said })] : []));
  }
}

const narrow = () => matchMedia('(max-width: 839.98px)').matches;
