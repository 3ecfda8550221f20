// A soft sentence above the composer, for what is no failure: it goes by itself.
import { say } from './words.js';

const STAYS = 8000;  // milliseconds
const LEADS = 30_000;  // where there is something to press
let going = 0;

export const hint = (key, blanks, way) => tell(say(key, blanks), way);

// A sentence that the server has made already; `way` is a link that follows it.
export function tell(said, way) {
  const composer = document.getElementById('composer');
  if (!composer) return;
  let line = document.querySelector('.p-hint');
  if (!line) {
    line = Object.assign(document.createElement('p'), { className: 'p-hint' });
    line.setAttribute('role', 'status');
    composer.before(line);
  }
  line.textContent = said;
  if (way) line.append(' ', way);
  clearTimeout(going);
  going = setTimeout(() => { line.textContent = ''; }, way ? LEADS : STAYS);
}
