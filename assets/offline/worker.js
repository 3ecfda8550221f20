// Shows PAGE, with HEADERS, where Parlour cannot be reached; both stand above, the server writes them. It keeps nothing,
// and is there for the addresses of the page alone: whatever else is asked for goes past it.
const ROOT = new URL('./', self.location).pathname;
const PLACE = /^(settings(\/[a-z]*)?)?$/;

function isPage({ method, mode, destination, url }) {
  if (method !== 'GET' || mode !== 'navigate' || destination !== 'document') return false;
  return PLACE.test(new URL(url).pathname.slice(ROOT.length));
}

// Browsers that know such rules do not even wake it for the parts of a page.
async function stayOut(event) {
  const parts = ['cors', 'no-cors', 'same-origin'].map((requestMode) => ({ requestMode }));
  try { await event.addRoutes?.({ condition: { or: parts }, source: 'network' }); } catch { return; }
}

self.addEventListener('install', (event) => {
  self.skipWaiting();  // the worker before it has nothing that an open tab could miss
  event.waitUntil(stayOut(event));
});

// No navigation preload: with it browsers do not ask for the password that a proxy in front of Parlour may want.
self.addEventListener('fetch', (event) => {
  if (!isPage(event.request)) return;
  const away = { status: 503, statusText: 'Service Unavailable', headers: HEADERS };
  event.respondWith(fetch(event.request).catch(() => new Response(PAGE, away)));
});
