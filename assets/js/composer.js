// The composer: names for its buttons, and the draft that a page begins with.
import { attached, draw, filesCameBack, forget, refuse, start as startAttaching, stillArriving, takeBack } from './attaching.js';
import { put } from './bus.js';
import { bringBack, firstDraft, noteSent, start as startDrafts } from './drafts.js';
import { onChange, status, touched } from './state.js';
import { start as guardSending, sentTo, wasSent } from './sending.js';
import { say } from './words.js';

const LONG = 20_000; // letters
const LABELS = [
  ['.submit-button', 'send'], ['.input-row > .stop-button', 'stop'], ['.upload-button', 'attach'],
  ['.microphone-button', 'record'], ['textarea', 'question'], ['[role="group"]', 'question'],
];
const named = new URLSearchParams(location.search).get('c');  // the conversation that the page was opened for
let restored = false;
let back = null;  // the draft that came back, while nothing else was typed

const area = () => document.querySelector('#composer textarea');

function label() {
  for (const [selector, key] of LABELS) {
    const element = document.querySelector(`#composer ${selector}`);
    if (!element) continue;
    const said = say(key);
    if (element.getAttribute('aria-label') !== said) element.setAttribute('aria-label', said);
    if (element.tagName === 'BUTTON' && element.title !== said) element.title = said;
  }
  if (touched() && area()?.placeholder === say('placeholder')) area().placeholder = say('placeholder_touch');  // nothing is dragged there
  document.getElementById('composer')?.toggleAttribute('data-hears', status()?.hears === '1');
  const log = document.querySelector('#chat [role="log"]');
  if (log && log.getAttribute('aria-label') !== say('chat')) {
    log.setAttribute('aria-label', say('chat'));
    log.setAttribute('aria-live', 'off');  // #status says when a reply is there; every token would be too much
    log.tabIndex = 0;
  }
  const down = document.querySelector('#chat .scroll-down-button-container button');
  if (down && down.getAttribute('aria-label') !== say('down')) down.setAttribute('aria-label', say('down'));
}

function restore() {
  if (restored || !area() || !status()) return;
  const draft = firstDraft(status().conversation);
  if (!draft) return;
  restored = true;
  const sent = wasSent(draft.kept);
  bringBack(sent ? '' : draft.kept, draft.typed);
  if (!sent && !draft.typed) back = draft.kept;
  filesCameBack(sent);
  begin();
  if (named && !status().conversation && !status().demo && !sentTo(named)) refuse(say('no_conversation'), { calm: true });
}

// What was sent in the moment in which the page was left shows in the conversation sooner or later.
function dropSent() {
  if (back === null) return;
  const sent = area()?.value === back && wasSent(back);
  if (sent) {
    if (back) put(area(), '');
    takeBack();
  }
  if (sent || area()?.value !== back) back = null;
}

// Who opens the page can write at once. A finger raises a keyboard of glass over half the page, so it is not asked
// there; and a page within another does not take the keyboard from that one.
function begin() {
  const mine = window.top === window && !matchMedia('(hover: none) and (pointer: coarse)').matches;
  if (mine && document.activeElement === document.body && !document.querySelector('dialog[open]')) area().focus({ preventScroll: true });
}

// The side that letters run from is looked for anew in each line: in a megabyte of them that takes minutes.
function measure({ target, type, data }) {
  if (target !== area()) return;
  const coming = type === 'beforeinput' ? data?.length ?? 0 : 0;
  target.toggleAttribute('data-long', target.value.length + coming > LONG);
}

export function start() {
  for (const kind of ['beforeinput', 'input']) addEventListener(kind, measure, true);
  startAttaching();
  startDrafts();
  guardSending(area, attached, stillArriving, () => { noteSent(area()?.value); forget(); });
  onChange(() => { label(); draw(); restore(); dropSent(); });
}
