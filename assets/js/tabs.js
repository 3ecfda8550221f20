// Other tabs, and this one when nobody looks at it.
import { ask } from './bus.js';
import { onChange, status } from './state.js';

const REST_AFTER = 30_000;
let resting = false;
let timer = 0;
let last = '';
let told = false;

function look() {
  if (document.hidden) return;
  resting = false;
  ask({ do: 'look' });
}

export function start() {
  const channel = 'BroadcastChannel' in window ? new BroadcastChannel('parlour') : null;
  channel?.addEventListener('message', () => {
    told = true;
    if (!resting) look();
    setTimeout(() => { told = false; }, 1000);
  });
  onChange(() => {
    const now = status();
    const mine = now ? `${now.state} ${now.conversation}` : '';
    // A reply began here: the other tabs' histories do not know yet. What another tab told is not told again.
    if (last && mine !== last && now.state === 'running' && !told) channel?.postMessage('look');
    last = mine;
  });
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => { resting = true; ask({ do: 'rest' }); }, REST_AFTER);
    else look();
  });
  addEventListener('pageshow', (event) => { if (event.persisted) look(); });
}
