// What the server says about the page, read from #status, and a signal after each change of the page.
const listeners = [];
let planned = false;

export function status() {
  const element = document.querySelector('#status [data-state]');
  if (!element?.dataset.lang) return null;  // the first frame has not come yet
  const { state, conversation, lang, room } = element.dataset;
  return { state, conversation, lang, room };
}

export function onChange(listener) { listeners.push(listener); }

export function settle() {
  planned = false;
  for (const listener of listeners) listener();
}

export function watch() {
  new MutationObserver(() => {
    if (!planned) { planned = true; requestAnimationFrame(settle); }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  // A hidden tab draws no frames, but must still notice.
  setInterval(() => { if (planned && document.hidden) settle(); }, 1000);
  settle();
}
