// The page for times when Parlour cannot be reached: asks for it again and again, and loads what was asked for.
const EACH = 3000, PATIENCE = 10000;  // milliseconds
const AWAY = [502, 503, 504];  // said by a proxy in front of Parlour, or by Parlour while it opens
const told = document.getElementById('told');
let next = 0;
let trying = null;

try {
  const chosen = localStorage.getItem('p-theme');
  if (chosen) document.documentElement.style.colorScheme = chosen;
} catch { /* a browser that keeps nothing has the system's theme */ }

async function answers(signal) {
  const asked = { method: 'HEAD', cache: 'no-store', redirect: 'manual', signal };
  const said = await fetch(location.pathname, asked).catch(() => null);
  return said !== null && !AWAY.includes(said.status);
}

// Whether it answered; `undefined` where a later try took the place of this one.
async function attempt() {
  clearTimeout(next);
  trying?.abort();
  const mine = new AbortController();
  trying = mine;
  const end = setTimeout(() => mine.abort(), PATIENCE);
  const there = await answers(mine.signal);
  clearTimeout(end);
  if (mine !== trying) return undefined;
  if (there) location.reload();
  else next = setTimeout(attempt, EACH);
  return there;
}

// Only what somebody asked for is said: a line that changed with every try would be read aloud every few seconds.
document.getElementById('now').addEventListener('click', async () => {
  told.textContent = told.dataset.trying;
  if (await attempt() !== false) return;
  told.textContent = told.dataset.none.replace('{time}', new Date().toLocaleTimeString(document.documentElement.lang));
});
addEventListener('online', attempt);
document.addEventListener('visibilitychange', () => { if (!document.hidden) attempt(); });
next = setTimeout(attempt, EACH);
