// Where the reader is: the address, the drawer, the evidence, the hour.
import { ask } from './bus.js';
import { keepFocus } from './focus.js';
import { guard, passes } from './going_back.js';
import { onChange, status } from './state.js';
import { isReplying } from './stopping.js';
import { say } from './words.js';

const root = document.documentElement;
const wide = matchMedia('(min-width: 1200px)');
const phone = matchMedia('(max-width: 839.98px)');
let fresh = true;
let wanted = null;  // the conversation that was asked for and has not come yet
let ahead = '';     // the name of a conversation that the address has before the server made it
let returns = [];      // what the panels at the right were opened from, the last one at the end
let overOpen = false;  // whether the last one was opened over another that was in sight
let covered = false;  // by the evidence

const named = () => new URLSearchParams(location.search).get('c') ?? '';

// ---- the settings, which have addresses of their own: `settings/<part>`, the conversation behind them still named

const HOME = new URL('.', document.baseURI).pathname;
const places = [];
const leavers = [];

// The part of the settings that the address names; '' outside of them.
export function section() {
  const found = /^settings(?:\/([^/]*))?$/.exec(location.pathname.slice(HOME.length));
  return found ? found[1] || 'general' : '';
}

function turned(event) {
  if (passes()) return event.stopImmediatePropagation();
  arrive();
  if (status() && named() !== status().conversation) openConversation(named());
}

export function onPlace(listener) { places.push(listener); }

// Hears which conversation the reader goes to, before the server knows; what it gives is told to the server as well.
export function onLeave(listener) { leavers.push(listener); }

function arrive() {
  if (section()) root.dataset.settings = 'open';
  else delete root.dataset.settings;
  cover();
  entitle();
  for (const listener of places) listener();
}

// Goes to a part of the settings; '' leaves them, to the conversation behind.
export function visit(part) {
  if (part === section()) return arrive();
  drawer(false);
  history.pushState({}, '', `${part ? `settings/${part}` : './'}${location.search}`);
  arrive();
}

// In the place of an address that names no part of the settings there is: their first part's.
export function amend() { history.replaceState({}, '', `settings/general${location.search}`); }

const addressOf = (id) => `${section() ? `settings/${section()}` : './'}${id ? `?c=${encodeURIComponent(id)}` : ''}`;

// Opens a conversation, a new one where it has no name; `message` is one that shall be among what it shows, `folder` where
// a new one begins.
export function openConversation(id, message = '', folder = '') {
  if (section()) {
    history.pushState({}, '', id ? `./?c=${encodeURIComponent(id)}` : './');
    arrive();
  }
  wanted = { id, until: Date.now() + 5000 };
  const more = Object.assign({}, ...leavers.map((listener) => listener(id)));
  ask(id ? { do: 'open', id, ...message && { message } } : { do: 'new', ...folder && { folder }, ...more });
  drawer(false);
}

const NAME = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))))
  .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

// Whoever loads the page again right after Send lands in the new conversation: its name is in the address before the
// question leaves the page, and the server takes it from there. Gives that name; nothing where there is one already.
export function nameAhead() {
  if (status()?.conversation !== '' || wanted && !wanted.ahead) return '';
  if (named() !== ahead || !ahead) {
    ahead = NAME();
    history.replaceState({}, '', `./?c=${ahead}`);
  }
  wanted = { id: ahead, ahead: true, until: Date.now() + 15_000 };
  return ahead;
}

const came = (conversation) => wanted?.id === conversation || Boolean(wanted?.ahead && conversation);

// Whether a conversation was asked for that the server does not show yet.
export const isOnTheWay = () => Boolean(wanted && !came(status()?.conversation) && Date.now() < wanted.until);

function followAddress() {
  const now = status();
  if (!now || isOnTheWay()) return;  // the address is right already, or soon will be
  const arrived = came(now.conversation);
  if (now.conversation !== named()) {
    // A new conversation that just got its name is still the same place: going back leads to the one before.
    const same = fresh || !named() && !arrived || ahead && named() === ahead;
    history[same ? 'replaceState' : 'pushState']({}, '', addressOf(now.conversation));
  }
  wanted = null;
  ahead = '';
  fresh = false;
  entitle();
}

function entitle() {
  const title = document.querySelector('#top .p-title')?.textContent.trim();
  const asks = document.querySelector('#ask .p-asks') ? `${say('ask_title')} · ` : '';
  const place = section() ? say('settings_title') : status()?.conversation ? title : '';
  const page = place ? `${asks}${place} · Parlour` : 'Parlour';
  if (document.title !== page) document.title = page;
}

// What an open drawer or the evidence lies on takes neither the keyboard nor a finger. The page of the evidence comes
// after it was asked for, and nothing is covered until then.
function cover() {
  const drawn = root.dataset.drawer === 'open';
  const close = document.querySelector('#page .p-evidence .p-close');
  const over = Boolean(close) && !drawn && !wide.matches && root.dataset.evidence === 'open';
  const inert = { side: over, talk: over || drawn, evidence: drawn };
  for (const [id, still] of Object.entries(inert)) {
    const part = document.getElementById(id);
    if (part && part.inert !== still) part.inert = still;
  }
  if (over && !covered && !document.querySelector('dialog[open]')) close.focus();
  covered = over;
  guard();
}

// Closed, it gives the keyboard back, also to who opened it with a finger.
export function drawer(open) {
  if (!phone.matches && open) return;
  const was = root.dataset.drawer === 'open';
  root.dataset.drawer = open ? 'open' : 'closed';
  cover();
  if (open && !was) document.querySelector('#house .p-new')?.focus();
  else if (was && !open && phone.matches) document.querySelector('#top .p-open-menu')?.focus();
}

// ---- the panel at the right: the evidence, and what stands in its place

const MOST_RETURNS = 8;
const former = () => document.querySelector('#page .p-former');
const wasOpen = () => root.dataset.evidence === 'open' && Boolean(document.querySelector('#page .p-evidence'));

export function evidence(open) {
  const from = document.activeElement;
  if (open && !from?.closest('#evidence')) returns = [...returns, from].slice(-MOST_RETURNS);
  if (open) overOpen = wasOpen();
  root.dataset.evidence = open ? 'open' : 'closed';
  cover();
  if (wide.matches || open) return;
  giveBack('#top .p-open-evidence');
  returns = [];
}

// The keyboard goes back to what the panel was opened from, else to the first of these that is there.
function giveBack(...others) {
  const from = returns.pop();
  if (from?.isConnected && from !== document.body) from.focus();
  else keepFocus(...others);
}

// What stands over another panel goes, and that one is back; the last one leaves the column empty on a wide page. On a
// narrow one the last sheet goes down and can come back, and one comes up again only where one was up.
export function closeEvidence() {
  const back = former();
  const other = document.querySelector('#page :is(.p-steer, .p-inspect)');
  if (!other || !back) dispatchEvent(new Event('p-unmark'));
  if (back || wide.matches) ask({ do: 'close' });
  if (back && (wide.matches || overOpen)) return giveBack('#page .p-close', '#composer textarea');
  evidence(false);
  if (wide.matches) { giveBack('#composer textarea'); returns = []; }
}

// On a wide page a panel stays while one works: the key stops a reply first, unless the keyboard is in the panel.
const closesPanel = () => (wide.matches
  ? document.querySelector('#page .p-evidence') && (document.activeElement?.closest('#evidence') || !isReplying())
  : root.dataset.evidence === 'open');

// What lies over the page of a narrow window: the drawer, or the sheet of the evidence.
export const liesOver = () => root.dataset.drawer === 'open' || !wide.matches && closesPanel();

export function closeOver() {
  if (root.dataset.drawer === 'open') return drawer(false), true;
  return liesOver() && (closeEvidence(), true);
}

export function escape() {
  if (root.dataset.drawer === 'open') return drawer(false), true;
  if (section()) return visit(''), true;
  if (closesPanel()) return closeEvidence(), true;
  return false;
}

function speak() {
  if (root.lang !== say('tag')) root.lang = say('tag');
}

function tellHour() {
  const hour = new Date().getHours();
  root.dataset.hour = hour >= 5 && hour < 12 ? 'morning' : hour >= 12 && hour < 18 ? 'day' : 'evening';
}

export function start() {
  speak();
  tellHour();
  setInterval(tellHour, 600_000);
  phone.addEventListener('change', () => drawer(false));
  wide.addEventListener('change', cover);
  const scrim = Object.assign(document.createElement('button'), { className: 'p-scrim', type: 'button', tabIndex: -1 });
  scrim.setAttribute('aria-hidden', 'true');
  scrim.addEventListener('click', escape);
  document.body.append(scrim);
  addEventListener('popstate', turned);
  onChange(() => { speak(); followAddress(); cover(); });
}
