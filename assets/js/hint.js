// A soft sentence above the composer, for what is no failure: it goes by itself.
import { say } from './words.js';

let going = 0;

export const hint = (key, blanks) => tell(say(key, blanks));

// A sentence that the server has made already.
export function tell(said) {
  const composer = document.getElementById('composer');
  if (!composer) return;
  let line = document.querySelector('.p-hint');
  if (!line) {
    line = Object.assign(document.createElement('p'), { className: 'p-hint' });
    line.setAttribute('role', 'status');
    composer.before(line);
  }
  line.textContent = said;
  clearTimeout(going);
  going = setTimeout(() => { line.textContent = ''; }, 8000);
}
