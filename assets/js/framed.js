// In a frame of another site. What comes with early.js: `parlourVisitor`, where a browser may keep no cookie for the page.
import { onChange } from './state.js';
import { session } from './storage.js';
import { say } from './words.js';

const SHOWN = /^\/(?:[^?]*\/)?(?:files|pages|inspect|calls|conversations)\//;

function keepPlace() {
  const asked = new URLSearchParams(location.search);
  const named = ['c', 'demo'].filter((name) => asked.get(name)).map((name) => `${name}=${encodeURIComponent(asked.get(name))}`);
  const place = named.length ? `?${named[0]}` : '';
  session.set('p-place', place);
  // Where other sites' cookies are blocked, storage is too; a cookie for the page in this outer site alone is kept.
  if (session.get('p-place') === place) return;
  try {
    document.cookie = `p-place=${encodeURIComponent(place)}; SameSite=None; Secure; Partitioned`;
  } catch { /* a frame of no origin may keep nothing at all */ }
}

const ours = (address) => address.origin === location.origin && SHOWN.test(address.pathname);

// A picture is asked for without a name: what came back is none. Its bytes are fetched with one.
async function fetchPicture({ target }) {
  if (target?.tagName !== 'IMG' || !ours(new URL(target.src, document.baseURI))) return;
  const answer = await fetch(target.src).catch(() => null);
  if (answer?.ok) target.src = URL.createObjectURL(await answer.blob());
}

async function fetchFile(event) {
  const link = event.target.closest?.('a[href]');
  if (!link || event.defaultPrevented || link.getAttribute('href').startsWith('#') || !ours(new URL(link.href))) return;
  event.preventDefault();
  const answer = await fetch(link.href).catch(() => null);
  if (!answer?.ok) return;
  const [, name] = /filename="?([^";]+)/.exec(answer.headers.get('content-disposition') ?? '') ?? [];
  const address = URL.createObjectURL(await answer.blob());
  Object.assign(document.createElement('a'), { href: address, download: link.download || name || 'file' }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// Nothing here outlives the tab: that is said, with the way out.
function tell() {
  const kept = session.get('p-visitor');
  const note = Object.assign(document.createElement('p'), { className: 'p-framed', textContent: say(kept ? 'framed_tab' : 'framed_none') });
  note.setAttribute('role', 'note');
  const way = { href: './', target: '_blank', rel: 'noopener', textContent: say('framed_open') };
  note.append(' ', Object.assign(document.createElement('a'), way));
  document.body.append(note);
  document.documentElement.dataset.framed = 'unkept';
}

export async function start() {
  if (parent === self) return;
  onChange(keepPlace);
  if (!window.parlourVisitor) return;
  const answer = await fetch('./visitor').catch(() => null);
  if (!answer?.ok || (await answer.json()).cookie) return;
  addEventListener('error', fetchPicture, true);
  addEventListener('click', fetchFile, true);
  for (const picture of document.querySelectorAll('img')) if (picture.complete && !picture.naturalWidth) fetchPicture({ target: picture });
  tell();
}
