// Whether what others share with the reader, or the reader's role or limits, is another now: a page that is seen asks
// for that news and waits for it, where people have accounts.
import { ask } from './bus.js';
import { onChange, status } from './state.js';
import { drawAnew } from './steering.js';

const AGAIN = 10_000;  // milliseconds, after which it is asked again where that failed; twice as many each time
const SELDOM = 60_000;  // at most
let seen = '';
let asking = null;

async function follow() {
  if (asking || document.hidden || !status()?.role) return;
  const mine = asking = new AbortController();
  let pause = AGAIN;
  while (asking === mine && !document.hidden) {
    const now = await news(mine.signal);
    if (asking !== mine) return;
    if (now === null) {
      const rest = pause;
      await new Promise((done) => { setTimeout(done, rest); });
      pause = Math.min(pause * 2, SELDOM);
      continue;
    }
    pause = AGAIN;
    if (now !== seen) {
      const first = !seen;
      seen = now;
      if (!first) tell();
    }
  }
  if (asking === mine) asking = null;
}

async function news(signal) {
  try {
    const answer = await fetch(`./standing?${new URLSearchParams({ seen })}`, { cache: 'no-store', credentials: 'same-origin', signal });
    if (!answer.ok) return null;
    return (await answer.json()).standing ?? null;
  } catch {
    return null;
  }
}

// The page is painted anew, and what is open in front of it looks again.
function tell() {
  ask({ do: 'look' });
  drawAnew();
  dispatchEvent(new CustomEvent('p-standing'));
}

export function start() {
  onChange(follow);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return follow();
    asking?.abort();
    asking = null;
  });
}
