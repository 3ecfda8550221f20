// The one way to the server: a JSON message into a hidden field, then a click on a hidden button.
import { noteAsked } from './stopping.js';

const PATIENCE = 2000;  // milliseconds in which a click is heard, and its request answered
const waiting = [];     // what was asked for and has not left the page
const followers = [];   // who waits until everything has reached the server
let busy = false;
let timer = 0;

const field = () => document.querySelector('#bus textarea, #bus input');
const button = () => document.getElementById('bus-go');

export function ask(message) {
  noteAsked(message);
  waiting.push(JSON.stringify(message));
  if (!busy) next();
}

// Everything that was asked for has reached the server.
export const allSent = () => new Promise((tell) => { if (busy) followers.push(tell); else tell(); });

function next() {
  clearTimeout(timer);
  busy = waiting.length > 0;
  if (!busy) return followers.splice(0).forEach((tell) => tell());
  const to = field();
  const ready = to && button();
  if (ready) {
    put(to, waiting[0]);
    setTimeout(() => button()?.click(), 0);  // Gradio takes the value in before it hears the click
  }
  timer = setTimeout(next, ready ? PATIENCE : 100);
}

// Gradio reads the field some turns after the click: on a slow machine the message before still stands in it, or the
// next one already. What leaves the page is what was asked for, each once and in its order.
async function deliver(send, to, options) {
  const call = callOf(options);
  if (!call) return send(to, options);
  const body = JSON.stringify({ ...call, data: [waiting.shift() ?? '{}'] });
  clearTimeout(timer);
  timer = setTimeout(next, PATIENCE);  // a network that stands still holds nothing up
  try {
    return await send(to, { ...options, body });
  } finally {
    next();
  }
}

// The request of the hidden button: the only one of the page whose data are one string.
function callOf(options) {
  if (typeof options?.body !== 'string' || !options.body.includes('"fn_index"')) return null;
  const call = JSON.parse(options.body);
  return call.data?.length === 1 && (call.data[0] === null || typeof call.data[0] === 'string') ? call : null;
}

// Write into a field as a person would: through the element's own setter, so that the page's framework notices.
export function put(element, text) {
  const kind = element.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(element, text);
  element.dispatchEvent(new Event('input', { bubbles: true }));
}

export function start() {
  const send = window.fetch;
  window.fetch = (to, options) => deliver(send, to, options);
}
