// What the reader thinks of a reply: one press for good, one and a reason for bad, the same again takes it back.
import { ask } from './bus.js';
import { float, question } from './dialogs.js';
import { keepFocus } from './focus.js';
import { say } from './words.js';

const LONGEST = 500;
const REASONS = ['false', 'incomplete', 'other_question', 'long'];
const linkOf = (id, mark) => `#chat a.p-${mark}[href="#do-${mark}-${CSS.escape(id)}"]`;

function keep(id, mark, of, reason = '') {
  ask({ do: 'rate', id, mark, reason });
  keepFocus(linkOf(id, of));
}

function askWhy(id) {
  const field = Object.assign(document.createElement('input'), { maxLength: LONGEST, autocomplete: 'off' });
  question(say('rate_why'), field, say('rate_keep'), () => keep(id, 'down', 'down', field.value), {
    name: say('rate_why'), back: [linkOf(id, 'down')],
  });
  field.focus();
}

export function rate(mark, id, link) {
  if (link.classList.contains('p-on')) return keep(id, '', mark);
  if (mark === 'up') return keep(id, 'up', mark);
  float(link, [
    ...REASONS.map((reason) => [say(`rate_${reason}`), () => keep(id, 'down', 'down', say(`rate_${reason}`))]),
    [say('rate_else'), () => askWhy(id)],
    [say('rate_none'), () => keep(id, 'down', 'down')],
  ], { label: say('rate_why'), back: linkOf(id, 'down') });
}
