// Back, pressed while something lies over the page, closes that and stays where one is. The page that was opened first
// has nothing of ours before it: its entry becomes two, and the one beneath is passed over.
import { onChange } from './state.js';

let closesOver = () => false;
let isOver = () => false;
let guarded = false;
let forth = false;  // whether the last step went forward; a browser that does not say so is taken to go back
let ours = false;   // whether the next step is one that we take: it closes nothing

export function onBack(is, closes) { [isOver, closesOver] = [is, closes]; }

export function guard() {
  if (guarded || window.top !== window || !isOver()) return;
  guarded = true;
  history.replaceState({ beneath: true }, '');
  history.pushState({}, '');
}

// Whether a step through the history was ours to undo or to go on with: it leads nowhere then.
export function passes() {
  const closed = !ours && closesOver();
  ours = closed || Boolean(history.state?.beneath);
  if (!ours) return false;
  if (closed === forth) history.back();
  else history.forward();
  return true;
}

export function start() {
  window.navigation?.addEventListener('currententrychange', ({ from }) => { forth = window.navigation.currentEntry.index > from.index; });
  onChange(guard);
}
