// Dictation where the model takes no sound: the browser turns speech into text, which one reads before it is sent.
// https://webaudio.github.io/web-speech-api/#speechreco-section
import { put } from './bus.js';
import { hint } from './hint.js';
import { onChange } from './state.js';
import { local } from './storage.js';
import { lang, say } from './words.js';

const KNOWN = 'p-dictation';
const SAID = {
  'not-allowed': 'microphone_refused', 'service-not-allowed': 'dictation_none', 'audio-capture': 'microphone_none',
  network: 'dictation_none', 'language-not-supported': 'dictation_none', 'no-speech': 'dictation_nothing',
};
const Recognition = () => window.SpeechRecognition ?? window.webkitSpeechRecognition;
let listening = null;
let before = '';   // what stood in the field when these words began
let written = '';  // the field with what was heard so far
let first = 0;     // the first of the browser's results that is not in `before`

const area = () => document.querySelector('#composer textarea');
const button = () => document.querySelector('#composer .p-dictate');

function label() {
  const composer = document.getElementById('composer');
  if (!composer) return;
  const hears = composer.hasAttribute('data-hears');
  composer.toggleAttribute('data-dictates', !hears);
  if (!button()) {
    const made = Object.assign(document.createElement('button'), { type: 'button', className: 'p-dictate' });
    made.addEventListener('click', pressed);
    composer.append(made);
  }
  button().hidden = hears;
  if (hears) stop();
  named();
}

function named() {
  const said = say(listening ? 'dictate_stop' : 'dictate');
  if (button().title !== said) button().title = said;
  button().setAttribute('aria-label', said);
  button().setAttribute('aria-pressed', String(Boolean(listening)));
}

function pressed() {
  if (listening) return stop();
  if (local.get(KNOWN)) return begin();
  local.set(KNOWN, '1');  // what is said may leave the machine: once it is told, and nothing is recorded yet
  hint('dictation_first');
}

function begin() {
  const here = new (Recognition())();
  Object.assign(here, { continuous: true, interimResults: true, lang: spoken() });
  here.onresult = (event) => { if (here === listening) heard(event); };
  here.onerror = ({ error }) => { if (SAID[error]) hint(SAID[error]); };
  here.onend = () => { if (here === listening) { listening = null; named(); } };
  [listening, before, written, first] = [here, area().value, area().value, 0];
  here.start();
  hint('dictation_on');
  named();
  area().focus();
}

// The reader's own kind of the page's language: British English on an English page.
function spoken() {
  return navigator.languages?.find((one) => one.split('-')[0] === lang().split('-')[0]) ?? lang();
}

function heard({ results, resultIndex }) {
  const field = area();
  if (!field.value && written) return stop();  // it was sent
  if (field.value !== written) [before, first] = [field.value, resultIndex];  // somebody typed, too
  const words = Array.from(results).slice(first).map((one) => one[0].transcript).join('').trimStart();
  const space = before && !/\s$/.test(before) && !/^[\p{Script=Han}\p{P}]/u.test(words) ? ' ' : '';
  written = before + space + words;
  put(field, written);
}

function stop() {
  listening?.stop();
  listening = null;
  if (button()) named();
}

// Escape ends what listens, and nothing else with it.
function escaped(event) {
  if (event.key !== 'Escape' || !listening || event.isComposing) return;
  event.stopImmediatePropagation();
  stop();
}

export function start() {
  if (!Recognition()) return;
  addEventListener('keydown', escaped, true);
  addEventListener('pagehide', stop);
  onChange(label);
}
