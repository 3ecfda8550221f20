// The files of built-in models, in the dialog about models: what each takes, and whether it is here. While one is being
// downloaded the list is asked for anew each second. What comes from the server becomes text, never markup.
import { make } from './models_form.js';
import { request as requested } from './request.js';
import { say } from './words.js';

const EVERY = 1000;
const request = (what, body) => requested(`./models/${what}`, 'models_failed', body);

export class Files {
  // `choose` takes the name of a model, `tell` what went wrong.
  constructor(element, choose, tell) {
    Object.assign(this, { element, choose, tell, shown: false, timer: 0, turn: 0 });
  }

  async show(shown) {
    clearTimeout(this.timer);
    this.turn += 1;
    this.shown = shown;
    this.element.hidden = !shown;
    if (shown) await this.ask('files');
  }

  // Only the newest answer is drawn.
  async ask(what, body) {
    const turn = ++this.turn;
    clearTimeout(this.timer);
    const answer = await request(what, body);
    if (turn !== this.turn || !this.shown) return;
    if (answer.failed) this.tell(answer.failed);
    if (answer.files) this.draw(answer.files);
    else if (what === 'files') return;
    if (!answer.files || answer.files.some((one) => one.state === 'fetching')) {
      this.timer = setTimeout(() => this.ask('files'), EVERY);
    }
  }

  draw(files) {
    const held = this.element.contains(document.activeElement) ? document.activeElement.dataset.key : '';
    const top = this.element.scrollTop;
    this.element.replaceChildren(...files.map((one) => this.row(one)));
    this.element.scrollTop = top;
    if (!held) return;
    const [name] = held.split(' ');
    (this.element.querySelector(`[data-key="${held}"]`) ?? this.element.querySelector(`[data-key^="${name} "]`))?.focus();
  }

  row(one) {
    const mark = (shape, text) => make('span', { className: 'p-mark' }, make('span', { className: `p-st p-${shape}` }), text);
    const facts = [one.size, one.licence, one.languages, say('weights_memory', { size: one.memory }), ...one.able].join(' · ');
    const lines = [
      make('p', { className: 'p-weight-name', textContent: one.label }),
      make('p', { className: 'p-weight-facts', textContent: facts }),
      make('p', { className: 'p-weight-state' }, mark(one.shape, one.said), mark(one.fit_shape, one.fit)),
      make('p', { className: 'p-weight-facts', textContent: `${one.repository} · ${one.checked}` }),
      ...one.failed ? [make('p', { className: 'p-weight-failed', textContent: one.failed })] : [],
    ];
    return make('div', { className: 'p-weight', attributes: { role: 'listitem' } },
      make('div', { className: 'p-weight-text' }, ...lines), make('div', { className: 'p-weight-acts' }, ...this.acts(one)));
  }

  acts(one) {
    const act = (word, work) => {
      const label = say('weights_of', { what: say(word), model: one.label });
      const button = make('button', { type: 'button', className: 'p-button', textContent: say(word), attributes: { 'aria-label': label, 'data-key': `${one.name} ${word}` } });
      button.addEventListener('click', work);
      return button;
    };
    const model = one.name;
    // What took minutes to come goes with the second press alone.
    const remove = act('weights_remove', () => {
      if (remove.dataset.sure) return this.ask('delete', { model });
      remove.dataset.sure = 'yes';
      remove.textContent = say('weights_sure');
      remove.setAttribute('aria-label', say('weights_of', { what: say('weights_sure'), model: one.label }));
    });
    remove.addEventListener('blur', () => {
      delete remove.dataset.sure;
      remove.textContent = say('weights_remove');
      remove.setAttribute('aria-label', say('weights_of', { what: say('weights_remove'), model: one.label }));
    });
    if (one.state === 'fetching') return [act('weights_cancel', () => this.ask('cancel', { model }))];
    if (one.state === 'here') return [act('weights_choose', () => this.choose(model)), ...one.ours ? [remove] : []];
    if (one.state === 'begun') return [act('weights_on', () => this.ask('fetch', { model })), remove];
    return [act('weights_get', () => this.ask('fetch', { model }))];
  }
}
