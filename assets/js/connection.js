// Gradio's notices in our words, and what to see while Parlour is away. The page comes back by itself: Gradio asks for
// it every two seconds, and loads it again. That may be another Parlour than before, behind a proxy that has several.
import { DOWN } from './in_front.js';
import { askWhether, noteRefused } from './signed_out.js';
import { onChange, status } from './state.js';
import { say } from './words.js';

const LOST = 'Connection to the server was lost';
const UNANSWERED = 'Connection errored out';
const ENDED = /"msg":\s*"(close_stream|unexpected_error)"/;
const LAST = 400;  // bytes, in which the last message fits
const NUMBER = /^HTTP \d{3}: /;

function reword() {
  for (const text of document.querySelectorAll('[data-testid="toast-text"]')) {
    const said = text.textContent.trim();
    if (said.startsWith(LOST)) {
      document.documentElement.dataset.connection = 'lost';
      text.textContent = say('lost');
    } else if (said.startsWith(UNANSWERED)) text.textContent = say('unanswered');
    else if (NUMBER.test(said)) text.textContent = said.replace(NUMBER, '');
  }
  for (const cross of document.querySelectorAll('[data-testid="toast-close"]')) {
    if (cross.getAttribute('aria-label') !== say('close')) cross.setAttribute('aria-label', say('close'));
  }
}

function mark() {
  if (document.documentElement.dataset.connection !== 'lost') return;
  const said = document.querySelector('#top .p-said');
  if (said && said.textContent !== say('away')) said.textContent = say('away');
}

// Where a Parlour dies, some proxies end its streams as if all had been said, and Gradio would wait for good. What ends
// without its last message is broken.
function whole(broken) {
  const letters = new TextDecoder();
  let end = '';
  return new TransformStream({
    transform(piece, to) {
      end = (end + letters.decode(piece.subarray(-LAST))).slice(-LAST);
      to.enqueue(piece);
    },
    flush(to) {
      if (ENDED.test(end)) return;
      to.error(new TypeError('network error'));
      broken();
    },
  });
}

async function watched(send, to, options) {
  const answer = await send(to, options);
  const { origin, pathname } = new URL(to.url ?? to, document.baseURI);
  if (answer.status === 401 && origin === location.origin) noteRefused();
  // What a proxy says in place of a Parlour that is gone: nobody heard what was asked.
  if (DOWN.has(answer.status) && pathname.endsWith('/queue/join') && !answer.headers.get('content-type')?.includes('json')) {
    throw new TypeError('network error');
  }
  if (!answer.ok || !answer.body || !pathname.endsWith('/queue/data')) return answer;
  return new Response(answer.body.pipeThrough(whole(() => askWhether(send))), answer);
}

// A notice without a time of its own holds until the limit that it speaks of does not: a question was taken since, or
// limits are others now.
const lasting = () => document.querySelectorAll('[data-testid="toast-body"]:not(:has(.timer))');
const over = () => { for (const one of lasting()) one.querySelector('.toast-close')?.click(); };

let before = '';

function follow() {
  const { state = '' } = status() ?? {};
  if (state === 'running' && before !== state) over();
  before = state;
}

export function start() {
  addEventListener('p-standing', over);
  const send = window.fetch;
  window.fetch = (to, options) => watched(send, to, options);
  onChange(() => { reword(); mark(); follow(); });
}
