// Gradio's notices in our words, and what to see while Parlour is away. The page comes back by itself: Gradio asks for
// it every two seconds, and loads it again.
import { onChange } from './state.js';
import { say } from './words.js';

const LOST = 'Connection to the server was lost';
const NUMBER = /^HTTP \d{3}: /;

function reword() {
  for (const text of document.querySelectorAll('[data-testid="toast-text"]')) {
    const said = text.textContent.trim();
    if (said.startsWith(LOST)) {
      document.documentElement.dataset.connection = 'lost';
      text.textContent = say('lost');
    } else if (NUMBER.test(said)) text.textContent = said.replace(NUMBER, '');
  }
}

function mark() {
  if (document.documentElement.dataset.connection !== 'lost') return;
  const said = document.querySelector('#top .p-said');
  if (said && said.textContent !== say('away')) said.textContent = say('away');
}

export function start() {
  onChange(() => { reword(); mark(); });
}
