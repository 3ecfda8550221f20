// The one way to the server: a JSON message into a hidden field, then a click on a hidden button.
const waiting = [];
let busy = false;

const field = () => document.querySelector('#bus textarea, #bus input');
const button = () => document.getElementById('bus-go');

export function ask(message) {
  waiting.push(JSON.stringify(message));
  if (!busy) next();
}

function next() {
  const text = waiting[0];
  busy = text !== undefined;
  if (!busy) return;
  const to = field();
  if (!to || !button()) return void setTimeout(next, 100);
  waiting.shift();
  put(to, text);
  // Gradio takes the value in before it hears the click; and one message is gone before the next is written.
  setTimeout(() => { button().click(); setTimeout(next, 30); }, 0);
}

// Write into a field as a person would: through the element's own setter, so that the page's framework notices.
export function put(element, text) {
  const kind = element.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(element, text);
  element.dispatchEvent(new Event('input', { bubbles: true }));
}
