// A call seen whole, a picture seen large, and a call made again with other arguments.
import { check, checkAll } from './arguments.js';
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { make } from './models_form.js';
import { toEnd } from './scroll.js';
import { say } from './words.js';

// "message.call" and "message.call.what": an id of a message has no dot, a call's may have any.
function named(id, parts) {
  const pieces = id.split('.');
  const what = parts > 2 ? pieces.pop() : '';
  return { message: pieces[0], call: pieces.slice(1).join('.'), what };
}

const query = (about) => new URLSearchParams(about).toString();

function dialog(className, title, ...children) {
  const heading = make('h2', { id: 'p-call-title', textContent: title, attributes: { dir: 'auto' } });
  const close = make('button', { type: 'button', className: 'p-icon p-close', attributes: { 'aria-label': say('call_close') } });
  const element = make('dialog', { className: `p-dialog p-call ${className}`, attributes: { 'aria-labelledby': 'p-call-title' } },
    make('header', {}, heading, close), ...children);
  const before = document.activeElement;
  close.addEventListener('click', () => element.close());
  element.addEventListener('click', (event) => { if (event.target === element) element.close(); });
  element.addEventListener('close', () => {
    element.remove();
    const link = before?.getAttribute?.('href');
    if (link) keepFocus(`#chat a[href="${CSS.escape(link)}"]`, '#composer textarea');
  });
  document.body.append(element);
  element.showModal();
  return { element, close };
}

export async function showWhole(id, link) {
  const { message, call, what } = named(id, 3);
  const address = `./calls/text?${query({ message, call, of: what })}`;
  const text = make('pre', { textContent: say('call_loading'), tabIndex: 0 });
  const take = make('a', { className: 'p-button p-take', href: address, textContent: say('call_download') });
  take.setAttribute('download', '');
  const title = link.closest('.thought-group:has(> .title :is(.p-tool, .p-asked))')?.querySelector('.p-tool, .p-asked')?.textContent ?? '';
  dialog('p-whole', title, text, make('div', { className: 'p-row' }, take));
  try {
    const answer = await fetch(address, { cache: 'no-store', credentials: 'same-origin' });
    text.textContent = answer.ok ? await answer.text() : say('call_failed');
  } catch {
    text.textContent = say('call_failed');
  }
}

export function showLarge(link) {
  const small = link.querySelector('img');
  const picture = make('img', { src: small.src, alt: small.alt });
  const take = make('a', { className: 'p-button p-take', href: small.src, textContent: say('call_download') });
  take.setAttribute('download', small.alt || '');
  dialog('p-large', small.alt, picture, make('div', { className: 'p-row' }, take));
}

function row(field, number) {
  const id = `p-again-${number}`;
  const rows = Math.min(14, field.text.split('\n').length);
  const area = make('textarea', { id, rows, value: field.text, spellcheck: false,
    attributes: { 'data-kind': field.kind, 'aria-describedby': `${id}-wrong`, autocomplete: 'off', dir: 'auto' } });
  area.dataset.name = field.name;
  area.addEventListener('input', () => { if (area.hasAttribute('aria-invalid')) check(area); });
  return make('div', { className: 'p-arg' }, make('label', { htmlFor: id, textContent: field.name }), area,
    make('p', { className: 'p-wrong', id: `${id}-wrong`, attributes: { role: 'alert' } }));
}

export async function runAgain(id) {
  const { message, call } = named(id, 2);
  const args = make('div', { className: 'p-args' }, make('p', { className: 'p-note', textContent: say('call_loading') }));
  const yes = make('button', { type: 'button', className: 'p-button p-main', textContent: say('call_run'), disabled: true });
  const note = make('p', { className: 'p-note', textContent: say('call_note') });
  const { element } = dialog('p-again', say('call_again'), args, note, make('div', { className: 'p-row' }, yes));
  let given;
  try {
    const answer = await fetch(`./calls/given?${query({ message, call })}`, { cache: 'no-store', credentials: 'same-origin' });
    given = answer.ok ? await answer.json() : null;
  } catch { given = null; }
  if (!given) return args.replaceChildren(make('p', { className: 'p-note', textContent: say('call_failed') }));
  element.querySelector('h2').append(make('span', { className: 'p-tool', textContent: given.name }));
  args.replaceChildren(...given.fields.map(row));
  yes.disabled = false;
  const areas = [...args.querySelectorAll('textarea')];
  yes.addEventListener('click', () => {
    if (!checkAll(areas)) return;
    const edits = areas.filter((area, at) => area.value !== given.fields[at].text).map((area) => [area.dataset.name, area.value]);
    ask({ do: 'rerun', id: message, call, arguments: Object.fromEntries(edits) });
    element.close();
    toEnd();
  });
  areas[0]?.focus();
}
