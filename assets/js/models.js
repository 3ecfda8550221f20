// Which model answers: a dialog that speaks with the server by requests of its own, so that a key stands nowhere else.
import { ask } from './bus.js';
import { question } from './dialogs.js';
import { keepFocus } from './focus.js';
import { hint } from './hint.js';
import { lend } from './lending.js';
import { Files } from './models_files.js';
import { fields, grouped, make } from './models_form.js';
import { section } from './places.js';
import { request as requested } from './request.js';
import { status } from './state.js';
import { tellOthers } from './tabs.js';
import { say, together } from './words.js';

let open = null;

const request = (what, body) => requested(`./models/${what}`, 'models_failed', body);

export const openModels = (service) => begin(typeof service === 'string' ? service : undefined);

// The same for one service, from elsewhere; `closed` is called when the dialog is.
export const editService = (service, closed) => begin(service, closed);

function begin(service, closed) {
  if (open) return;
  open = new Dialog(closed);
  open.show(service);
}

class Dialog {
  constructor(closed) {
    this.closed = closed;
    this.menu = null;
    this.gone = false;   // the kept key is to be removed
    this.turn = 0;       // of the newest request: an older answer says nothing any more
    this.listing = 0;    // the same for lists of names
    this.busy = '';      // what is being asked
    this.anyway = false; // what would be saved was tried, and does not work
    this.meant = '';     // the address that the key was typed for
    this.parts = fields();
    this.files = new Files(this.parts.files, (name) => this.fill(name), (text) => this.tell('bad', text));
    const { element, form, service, address, key, model, remove, close, test, save, forget, share } = this.parts;
    forget.addEventListener('click', () => this.forget());
    share.addEventListener('click', () => lend('model', this.chosen.name, this.chosen.label, '', () => share.focus()));
    service.addEventListener('change', () => this.choose());
    address.addEventListener('input', () => { this.list([]); this.drawKey(); });
    for (const field of [address, key]) field.addEventListener('change', () => this.offered());
    model.addEventListener('change', () => this.drawAbilities());
    for (const field of [address, key, model]) field.addEventListener('input', () => this.changed());
    key.addEventListener('input', () => { this.gone = false; this.meant = address.value; this.drawKey(); });
    remove.addEventListener('click', () => { this.gone = true; key.value = ''; this.drawKey(); key.focus(); });
    close.addEventListener('click', () => element.close());
    test.addEventListener('click', () => this.test());
    save.addEventListener('click', () => this.save());
    form.addEventListener('submit', (event) => { event.preventDefault(); this.use(); });
    element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
    element.addEventListener('close', () => this.left());
  }

  async show(wanted) {
    const { element, service } = this.parts;
    document.body.append(element);
    element.showModal();
    this.tell('run', say('models_loading'));
    const menu = await request('menu');
    if (!element.isConnected) return;
    if (menu.failed) return this.tell('bad', menu.failed);
    this.tell();
    if (menu.fixed) return this.said(menu.fixed);
    this.take(menu, wanted);
    service.focus();
  }

  // Nothing can be chosen here: one sentence says why.
  said(why) {
    const { body, actions, told, close } = this.parts;
    body.hidden = actions.hidden = true;
    told.textContent = why;
    close.focus();
  }

  left() {
    this.turn += 1;
    this.files.show(false);
    this.parts.key.value = '';
    this.parts.element.remove();
    open = null;
    if (this.closed) this.closed();
    else keepFocus('#top .p-open-models');
  }

  get chosen() { return this.menu?.services.find((one) => one.name === this.parts.service.value); }

  // The kept key is for the server that it was given for, and for no other.
  get keeps() {
    const { chosen } = this;
    return Boolean(chosen?.has_key) && !this.gone && sameServer(this.parts.address.value, chosen.address);
  }

  // An address as it may look; on a shared page, one of this machine's would be refused.
  get example() {
    if (this.chosen?.kind === 'azure') return 'https://NAME.openai.azure.com';
    if (this.chosen?.usual) return this.chosen.usual;
    return this.menu.local ? 'http://127.0.0.1:8000/v1' : 'https://api.example.com/v1';
  }

  get draft() {
    const { service, address, model, key } = this.parts;
    const typed = key.value.trim();
    const draft = { service: service.value, address: address.value, model: model.value, abilities: this.parts.able.get() };
    return typed || this.gone ? { ...draft, key: typed } : draft;
  }

  take(menu, wanted = menu.used) {
    this.menu = menu;
    this.parts.body.disabled = this.parts.actions.disabled = false;
    const { service } = this.parts;
    service.replaceChildren(...grouped(menu));
    service.value = wanted;
    this.choose();
  }

  choose() {
    const { chosen, parts } = this;
    this.gone = false;
    parts.key.value = '';
    parts.address.value = chosen?.address ?? '';
    parts.model.value = chosen?.model ?? '';
    parts.address.placeholder = this.example;
    parts.model.placeholder = chosen?.hint ?? '';
    parts.captions.model.textContent = chosen?.kind === 'azure' ? say('models_deployment') : say('models_model');
    parts.rows.address.hidden = !chosen?.typed;
    parts.rows.model.hidden = !chosen;
    parts.rows.key.hidden = !chosen || chosen.key === 'none';
    parts.able.element.hidden = parts.rows.key.hidden;
    this.drawAbilities();
    parts.save.disabled = !chosen;
    parts.forget.hidden = !chosen?.kept;
    parts.share.hidden = !(chosen?.kept && this.menu.shares);
    this.list(chosen?.models ?? []);
    this.files.show(chosen?.kind === 'llama_cpp');
    this.changed();
    this.drawKey();
    this.offered();
  }

  // What was said of the model whose name stands there.
  drawAbilities() { this.parts.able.set(this.chosen?.said[this.parts.model.value.trim()]); }

  drawKey() {
    const { chosen, keeps, parts } = this;
    const made = chosen?.keys_at ? say('models_key_from', { host: chosen.keys_at }) : say('models_key_type');
    const empty = chosen?.key === 'optional' ? say('models_key_none') : made;
    parts.key.placeholder = keeps ? say('models_key_kept', { end: chosen.key_end }) : this.gone ? say('models_key_gone') : empty;
    parts.remove.hidden = !keeps || Boolean(parts.key.value);
    const host = chosen && chosen.key !== 'none' ? place(parts.address.value.trim() || chosen.usual) : '';
    const goes = host ? [say('models_goes', { host })] : [];
    const more = chosen?.own ? [chosen.own] : [];
    const mine = chosen && !this.menu.local ? [say('models_mine')] : [];
    const own = !chosen ? [say('models_default_note')] : chosen.key === 'none' ? [say('models_here_note')] : [];
    const kept = parts.rows.key.hidden ? [] : [isSecure() ? say('models_key_note') : say('models_key_open')];
    const titles = host && this.menu.titles ? [this.menu.titles] : [];  // who brings a key hears what is asked beside replies
    parts.note.textContent = together([...own, ...more, ...goes, ...mine, ...kept, ...titles]);
  }

  // A built-in model that was chosen from the list.
  fill(name) {
    this.parts.model.value = name;
    this.changed();
    this.parts.use.focus();
  }

  // Which names the service has; nothing is asked before there is an address and, where one is needed, a key.
  async offered() {
    const { chosen, parts } = this;
    const listing = ++this.listing;
    if (!chosen || chosen.typed && !parts.address.value.trim()) return;
    if (chosen.key === 'needed' && !this.keeps && !parts.key.value.trim()) return;
    if (parts.key.value && !sameServer(parts.address.value, this.meant)) return;  // it goes elsewhere only when told to
    const answer = await request('offered', this.draft);
    if (listing === this.listing && answer.models) this.list(answer.models);
  }

  list(names) {
    const { models, count, model } = this.parts;
    models.replaceChildren(...names.map((name) => make('option', { value: name })));
    count.textContent = names.length > 1 ? say('models_offered', { n: names.length }) : '';
    if (!model.value && names.length === 1) [model.value] = names;
  }

  tell(shape = '', text = '') {
    const { told } = this.parts;
    told.replaceChildren(...(text ? [make('span', { className: `p-st p-${shape}` }), make('span', { textContent: text })] : []));
  }

  // An answer about what stood there before would be taken for one about what stands there now.
  changed() {
    if (this.busy === 'test') this.turn += 1;
    this.tell();
    this.offer(false);
  }

  // Only the newest question may speak, and nothing else can be pressed while it runs.
  async run(what, draft) {
    const { test, save, use, forget } = this.parts;
    const turn = ++this.turn;
    const buttons = [test, save, use, forget].filter((button) => !button.disabled);
    for (const button of buttons) button.setAttribute('aria-disabled', 'true');
    this.parts.body.disabled = what.startsWith('save');  // what is kept is shown then, and would go over what is typed
    this.busy = what;
    const answer = await request(what, draft);
    this.busy = '';
    this.parts.body.disabled = false;
    for (const button of buttons) button.removeAttribute('aria-disabled');
    if (what !== 'test' && !answer.failed) {  // also where the dialog was closed meanwhile
      ask({ do: 'look' });
      tellOthers();
    }
    if (turn !== this.turn) return null;
    if (!answer.failed) return answer;
    this.tell('bad', answer.failed);
    this.offer(answer.anyway === true);
    return null;
  }

  // To keep what was tried and does not work; it takes the place of Save until something is changed.
  offer(anyway) {
    this.anyway = anyway;
    this.parts.save.textContent = say(anyway ? 'models_anyway' : 'save');
  }

  async test() {
    if (this.busy) return;
    this.tell('run', say('models_testing'));
    const answer = await this.run('test', this.draft);
    if (answer) this.tell('ok', answer.said);
  }

  async save() {
    if (this.busy) return;
    const service = this.parts.service.value;
    const tried = this.menu.used === service && this.chosen.key !== 'none' && !this.anyway;
    if (tried) this.tell('run', say('models_testing'));
    const answer = await this.run(this.anyway ? 'save_anyway' : 'save', this.draft);
    if (!answer) return;
    this.take(answer, service);
    this.tell('ok', answer.said);
  }

  forget() {
    if (this.busy) return;
    const text = make('p', { textContent: say('service_remove_ask', { name: this.chosen.label }) });
    question('', text, say('models_remove'), () => this.removed(), { kind: 'p-danger', name: say('models_remove') });
  }

  async removed() {
    const answer = await this.run('remove', this.draft);
    if (!answer) return;
    this.take(answer);
    this.tell('ok', say('models_removed'));
    this.parts.service.focus();
  }

  async use() {
    if (this.busy || !this.menu) return;
    if (this.chosen && this.chosen.key !== 'none') this.tell('run', say('models_testing'));
    const { draft } = this;
    const answer = await this.run('use', draft);
    if (!answer) return;
    this.parts.element.close();
    // What is answered already keeps its model, but for the conversation that is in sight.
    if (status()?.conversation && !section()) ask({ do: 'model', service: draft.service, model: draft.model });
    if (answer.model) hint('models_used', { model: answer.model });
  }
}

// Whether what is typed here reaches Parlour unread: over https, or within this machine.
function isSecure() { return window.isSecureContext; }

function place(address) { return parsed(address)?.host ?? ''; }

// By its name, port and scheme, where one was typed: else the server adds it.
function sameServer(typed, other) {
  const [one, two] = [parsed(typed), parsed(other)];
  return Boolean(one && two) && one.host === two.host && (!typed.includes('://') || one.protocol === two.protocol);
}

// Some browsers make a host of anything: `hello world` would be hello%20world.
function parsed(address) {
  try {
    const url = new URL(address.includes('://') ? address : `http://${address}`);
    return /^https?:$/.test(url.protocol) && !/[\s%]/.test(url.host) ? url : null;
  } catch {
    return null;
  }
}
