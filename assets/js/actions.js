// Clicks. Links of ours carry a class that no model can write; a link with only `#…` does nothing.
import { decide } from './approval.js';
import { ask } from './bus.js';
import { runAgain, showLarge, showWhole } from './calls.js';
import { closeChoosing, openChoosing, writeAgain } from './choosing.js';
import { copy, copyMessage, done } from './copying.js';
import { back, faster, forward, play, stand, stepTo, takeOver, watch } from './demo.js';
import { closeMenu, openMenu, openSteering } from './dialogs.js';
import { noteSent } from './drafts.js';
import { closeEdit, editInPlace, rewriteInPlace } from './editing.js';
import { keepFocus } from './focus.js';
import { onBack } from './going_back.js';
import { hint } from './hint.js';
import { fold } from './keeping.js';
import { lendFrom } from './lending.js';
import { openLibraries } from './libraries.js';
import { tryAgain } from './list.js';
import { foldFiles } from './many_files.js';
import { openModels } from './models.js';
import { openPalette } from './palette.js';
import { larger, occurrence, stay, unfold, whole } from './paper.js';
import { showPasted } from './pasting.js';
import { showPicture } from './pictures.js';
import { closeEvidence, closeOver, drawer, escape, evidence, liesOver, nameAhead, openConversation, visit } from './places.js';
import { removeQueued, sendQueued, takeBack } from './queue.js';
import { rate } from './rating.js';
import { keepPlace, keepThere, toEnd } from './scroll.js';
import { replyText } from './source.js';
import { speak } from './speech.js';
import { backToService, beginWith, folderDocuments, forgetPersona, forgetPrompt, libraryMenu, namePersona, personaMenu, press, reset } from './steering.js';
import { stopReply } from './stopping.js';
import { csv } from './tables.js';
import { openTools } from './tools.js';
import { unlock } from './unlock.js';
import { say } from './words.js';

const opened = new CSSStyleSheet();

const BUTTONS = {
  new: () => { openConversation(''); document.querySelector('#composer textarea')?.focus(); },
  settings: () => visit('general'),
  drawer: () => drawer(true),
  evidence: () => evidence(true),
  close: closeEvidence,
  whole,
  larger: () => larger(1),
  smaller: () => larger(-1),
  unfold,
  page: (button) => {
    stay(button);
    ask({ do: 'page', document: button.dataset.document, n: Number(button.dataset.n), part: Number(button.dataset.part ?? 0) });
  },
  inspect: ({ dataset: { message, call, stage, closing } }) => {
    keepFocus(`#page [data-call="${CSS.escape(call)}"]${stage ? `[data-stage="${CSS.escape(stage)}"]` : ''}`);
    ask({ do: 'inspect', message, call: closing ? '' : call, stage });
  },
  passages: (button) => { stay(button); ask({ do: 'passages', n: Number(button.dataset.n) }); },
  chunk: (button) => { stay(button); ask({ do: 'chunk', n: Number(button.dataset.n) }); },
  csv: (button) => copy(csv(button.previousElementSibling), button, 'copy_csv'),
  retry: () => ask({ do: 'retry' }),
  menu: openMenu,
  models: openModels,
  choose: openChoosing,
  libraries: () => openLibraries(),
  find: openPalette,
  steering: (button) => (document.querySelector('#page .p-steer') && document.documentElement.dataset.evidence === 'open' ? closeEvidence() : openSteering(button.dataset.folder)),
  'steer-own': backToService,
  'steer-reset': reset,
  'folder-documents': folderDocuments,
  'persona-name': namePersona,
  'persona-forget': forgetPersona,
  'begin-with': beginWith,
  'prompt-forget': forgetPrompt,
  lend: lendFrom,
  'bar-web': press,
  'bar-code': press,
  'bar-libraries': libraryMenu,
  'bar-persona': personaMenu,
  watch: (link) => watch(link.dataset.name),
  'demo-play': play,
  'demo-still': stand,
  'demo-back': back,
  'demo-on': forward,
  'demo-step': (button) => stepTo(Number(button.dataset.n)),
  'demo-speed': faster,
  'demo-take': takeOver,
  tools: () => openTools(),
  'temporary-on': () => ask({ do: 'temporary', on: true }),
  'temporary-off': () => { ask({ do: 'temporary', on: false }); keepFocus('#top .p-passing', '#composer textarea'); },
  requeue: takeBack,
  unqueue: removeQueued,
  sendqueued: sendQueued,
  allow: decide,
  always: decide,
  refuse: decide,
  answer: decide,
  decline: decide,
};

const LINKS = {
  models: openModels,
  agent: (n) => ask({ do: 'agent', n: Number(n) }),
  starter: (n) => { noteSent(); nameAhead(); ask({ do: 'starter', n: Number(n) }); },
  again: (claim) => { evidence(true); ask({ do: 'cite', message: claim, n: 1 }); },
  older: tryAgain,
  fold: (_, link) => fold(link),
  earlier: () => { keepPlace(); ask({ do: 'earlier' }); },
  regenerate: (id, link) => writeAgain(id, link, (model) => { ask({ do: 'regenerate', id, ...model }); toEnd(); }),
  column: (n) => { document.documentElement.dataset.column = n; },
  prefer: (id) => { ask({ do: 'prefer', id }); hint('compare_kept'); document.querySelector('#composer textarea')?.focus(); },
  continue: (id) => { ask({ do: 'continue', id }); toEnd(); },
  fork: (id) => { ask({ do: 'fork', id }); document.querySelector('#composer textarea')?.focus(); },
  up: (id, link) => rate('up', id, link),
  down: (id, link) => rate('down', id, link),
  judge: (id) => ask({ do: 'judge', id }),
  judgenow: (id) => ask({ do: 'judge', id, step: 'yes' }),
  judgenot: (id) => ask({ do: 'judge', id, step: 'no' }),
  judgestop: (id) => ask({ do: 'judge', id, step: 'stop' }),
  inspect: (message) => { evidence(true); ask({ do: 'inspect', message }); },
  speak: (_, link) => speak(replyText(link.closest('.message-row')), link),
  version: (id, link) => {
    const there = `#chat .p-v-${CSS.escape(id)}`;
    const way = link.classList.contains('p-older') ? 'older' : 'newer';
    keepThere(link, `${there} .p-${way}`);
    ask({ do: 'version', id });
    keepFocus(`${there} .p-${way}[href]`, `${there} [href]`);
  },
  picture: (_, link) => showPicture(link),
  foot: (id, link) => toFoot(link, 'footback', id),
  footback: (id, link) => toFoot(link, 'foot', id),
  copy: (_, link) => copyMessage(link),
  pasted: showPasted,
  files: (_, link) => foldFiles(link),
  long: (_, link) => link.closest('.prose').querySelector('.p-long').classList.toggle('p-folded'),
  cancel: (id) => ask({ do: 'cancel', id }),
  inside: (id) => { evidence(true); ask({ do: 'inside', id }); },
  reread: (id) => ask({ do: 'reread', id }),
  forget: (id) => ask({ do: 'forget', id }),
  whole: showWhole,
  rerun: runAgain,
  asknow: () => ask({ do: 'asknow' }),
  unlock: (id, link) => unlock(id, link.closest('.p-doc')?.querySelector('.p-name')?.textContent ?? '', link.classList.contains('p-chip') ? '.p-chip' : '.p-word'),
  edit: (id, link) => editInPlace(id, link),
  rewrite: (id, link) => rewriteInPlace(id, link),
};

// From the number of a footnote to what it says, and back.
function toFoot(link, other, id) {
  const to = link.closest('.message-row').querySelector(`a.p-${other}[href="#do-${other}-${CSS.escape(id)}"]`);
  to?.scrollIntoView({ block: 'center' });
  to?.focus({ preventScroll: true });
}

function cite(link) {
  const [, message, n] = /^#cite-(.+)-(\d+)$/.exec(link.getAttribute('href')) ?? [];
  if (!message) return;
  evidence(true);
  ask({ do: 'cite', message, n: Number(n), at: occurrence(link) });
  opened.replaceSync(`#chat .prose a.cite[href="#cite-${CSS.escape(message)}-${n}"] { background: var(--p-accent); color: var(--p-on-accent); }`);
}

function clicked(event) {
  if (!event.target.closest?.('.p-float, .p-menu, .p-tap, .p-more')) closeMenu();
  if (!event.target.closest?.('.p-choose, [data-do="choose"]')) closeChoosing();
  const card = document.querySelector('.p-ready[open]');
  if (card && (!card.contains(event.target) || event.target.closest('[data-do="models"]'))) card.open = false;
  const code = event.target.closest?.('.copy_code_button');
  if (code?.closest('.p-code-head')) {  // there Gradio would copy the head
    event.stopPropagation();
    return copy(code.closest('.code_wrap').querySelector('pre > code').textContent, code);
  }
  if (code) return done(code);
  const link = event.target.closest?.('a[href^="#"], [data-do], a[data-open], #chat a.p-pic');
  if (!link || link.tagName === 'A' && (event.ctrlKey || event.metaKey || event.shiftKey || event.button)) return;
  if (link.tagName === 'A') event.preventDefault();
  if (link.dataset.open) return openConversation(link.dataset.open);
  if (link.dataset.do) {
    return BUTTONS[link.dataset.do]?.(link);
  }
  if (link.matches('.cite, .p-beside')) return cite(link);
  if (link.classList.contains('p-pic')) return showLarge(link);
  const [, act, id] = /^#do-([a-z]+)(?:-(.+))?$/.exec(link.getAttribute('href')) ?? [];
  if (act && link.classList.contains('p-do')) LINKS[act]?.(id, link);
}

// The first press closes what is open, and only the next one stops the reply.
function pressed(event) {
  const composing = event.isComposing || event.keyCode === 229;
  if (event.key === 'Escape' && !composing && !document.querySelector('dialog[open], #p-mention, .p-selected')) {
    const card = document.querySelector('.p-ready[open]');
    if (closeMenu({ back: true }) || closeChoosing({ back: true }) || (card && !(card.open = false)) || closeEdit() || escape() || stopReply()) event.stopPropagation();
  }
  const link = event.target.closest?.('a[role="button"]');
  if (link && event.key === ' ') { event.preventDefault(); link.click(); }
}

const OVER = 'dialog[open], .p-float, .p-choose';
const isOver = () => Boolean(document.querySelector(OVER)) || liesOver();

function closeTop() {
  const top = [...document.querySelectorAll('dialog[open]')].at(-1);
  top?.close();
  return Boolean(top) || closeMenu({ back: true }) || closeChoosing({ back: true }) || closeOver();
}

export function start() {
  onBack(isOver, closeTop);
  addEventListener('p-unmark', () => opened.replaceSync(''));
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, opened];
  addEventListener('click', clicked, true);
  addEventListener('keydown', pressed, true);
}
