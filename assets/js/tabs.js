// Other tabs, and this one when nobody looks at it.
import { ask } from './bus.js';
import { wantsNotices } from './notices.js';
import { onChange, status } from './state.js';

const REST_AFTER = 30_000;
let resting = false;
let timer = 0;
let last = null;
let told = false;
let channel = null;

function look() {
  if (document.hidden) return;
  resting = false;
  ask({ do: 'look' });
}

// Who wants to be told when the reply is there is still waiting for it.
function rest() {
  if (status()?.state === 'running' && wantsNotices()) { timer = setTimeout(rest, REST_AFTER); return; }
  resting = true;
  ask({ do: 'rest' });
}

// What this tab did shows in the others too.
export function tellOthers() { channel?.postMessage('look'); }

// A frame whose storage is blocked may have none.
function opened() {
  try { return new BroadcastChannel('parlour'); } catch { return null; }
}

export function start() {
  channel = opened();
  channel?.addEventListener('message', () => {
    told = true;
    if (!resting) look();
    setTimeout(() => { told = false; }, 1000);
  });
  onChange(() => {
    const now = status();
    if (!now) return;
    // A reply may be there before its run was seen, so questions are counted too.
    const asked = document.querySelectorAll('#chat [data-testid="user"]').length;
    const mine = { conversation: now.conversation, running: now.state === 'running', asked };
    const began = last && (mine.running && !last.running || mine.conversation === last.conversation && mine.asked > last.asked);
    // The other tabs do not know yet; what another tab told is not told again.
    if (began && !told) tellOthers();
    last = mine;
  });
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(rest, REST_AFTER);
    else look();
  });
  addEventListener('pageshow', (event) => { if (event.persisted) look(); });
}
