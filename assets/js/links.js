// Links to shared snapshots, wherever they are listed: what each says, and what can be done with it.
import { make } from './models_form.js';
import { lang, say } from './words.js';

export const day = (seconds) => new Date(seconds * 1000).toLocaleDateString(lang(), { day: 'numeric', month: 'short', year: 'numeric' });
export const addressOf = (path) => new URL(`.${path}`, document.baseURI).href;

// When it was made and ends, and what it holds.
export function about(one) {
  const when = say(one.ends ? 'share_until' : 'share_made', { when: day(one.made), until: one.ends ? day(one.ends) : '' });
  return [when, one.holds, one.path ? '' : say('share_unkept')].filter(Boolean).join(' · ');
}

// Without the newer way, which a page that is not encrypted lacks, a field beside `place` holds what is copied.
export const copyAddress = (path, place) => copyText(addressOf(path), place);

export async function copyText(text, place) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make('textarea', { value: text, readOnly: true, className: 'p-sr' });
    place.after(field);
    field.select();
    document.execCommand('copy');
    field.remove();
    place.focus();
  }
}

const button = (said, name, kind = '') => make('button', { type: 'button', className: `p-quiet ${kind}`, textContent: said, attributes: { 'aria-label': `${said}: ${name}` } });

// What can be done with a link; `name` says which one it is.
export function acts(one, name, { revoke, told }) {
  const gone = button(say('share_revoke'), name, 'p-danger');
  gone.addEventListener('click', revoke);
  if (!one.path) return [gone];
  const open = make('a', { href: addressOf(one.path), target: '_blank', rel: 'noopener', className: 'p-quiet', textContent: say('share_open'), attributes: { 'aria-label': `${say('share_open')}: ${name}` } });
  const copy = button(say('share_copy'), name);
  copy.addEventListener('click', async () => { await copyAddress(one.path, copy); told(say('share_copied')); });
  return [open, copy, gone];
}
