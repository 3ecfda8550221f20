// Parlour's own page for times when it cannot be reached: from the first visit on a service worker holds it.
async function register() {
  const lang = document.getElementById('p-words')?.lang ?? '';
  // A frame of another site, or an address without HTTPS, may not have one; then the browser's own page has to do.
  try { await navigator.serviceWorker?.register(`./offline.js?lang=${lang}`); } catch { return; }
}

export function start() {
  if (document.readyState === 'complete') register();
  else addEventListener('load', register, { once: true });
}
