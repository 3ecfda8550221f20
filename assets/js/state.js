// What the server says about the page, read from #status, and a signal after each change of the page.
const LATEST = 200;  // milliseconds
const listeners = [];
let planned = 0;

export function status() {
  const element = document.querySelector('#status [data-state]');
  if (!element?.dataset.lang) return null;  // the first frame has not come yet
  const { state, conversation, lang, room, hears, service = '', model = '', second = '', demo = '', role = '', chosen } = element.dataset;
  return { state, conversation, lang, room, hears, service, model, second, demo, role, chosen };
}

// Whether a finger points: nothing is dragged, and a field that takes the focus brings up a keyboard.
export const touched = () => matchMedia('(hover: none)').matches;

export function onChange(listener) { listeners.push(listener); }

export function settle() {
  clearTimeout(planned);
  planned = 0;
  for (const listener of listeners) listener();
}

export function watch() {
  new MutationObserver(() => {
    if (planned) return;
    // A hidden or covered tab draws no frames, but must still notice.
    planned = setTimeout(settle, LATEST);
    requestAnimationFrame(() => { if (planned) settle(); });
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  settle();
}
