// The browser's own recognition of speech. https://webaudio.github.io/web-speech-api/#speechreco-section
import { put } from './bus.js';
import { hint } from './hint.js';
import { tellRefused } from './microphone.js';
import { locale } from './words.js';

const SAID = {
  'service-not-allowed': 'dictation_none', 'audio-capture': 'microphone_none',
  network: 'dictation_none', 'language-not-supported': 'dictation_none', 'no-speech': 'dictation_nothing',
};
let listening = null;
let before = '';   // what stood in the field when these words began
let written = '';  // the field with what was heard so far
let first = 0;     // the first of the browser's results that is not in `before`
let ended = () => {};

export const Recognition = () => window.SpeechRecognition ?? window.webkitSpeechRecognition;
export const isListening = () => Boolean(listening);
export const onEnd = (callback) => { ended = callback; };

const area = () => document.querySelector('#composer textarea');

export function begin() {
  const here = new (Recognition())();
  Object.assign(here, { continuous: true, interimResults: true, lang: locale() });
  here.onresult = (event) => { if (here === listening) heard(event); };
  here.onerror = ({ error }) => {
    if (error === 'not-allowed') tellRefused();
    else if (SAID[error]) hint(SAID[error]);
  };
  here.onend = () => { if (here === listening) { listening = null; ended(); } };
  [listening, before, written, first] = [here, area().value, area().value, 0];
  here.start();
  hint('dictation_on');
  area().focus();
}

function heard({ results, resultIndex }) {
  const field = area();
  if (!field.value && written) return stop();  // it was sent
  if (field.value !== written) [before, first] = [field.value, resultIndex];  // somebody typed, too
  const words = Array.from(results).slice(first).map((one) => one[0].transcript).join('').trimStart();
  written = before + gap(before, words) + words;
  put(field, written);
}

// What stands between a text and words that go on from it; Chinese has no spaces.
export function gap(text, words) {
  return text && !/\s$/.test(text) && !/^[\p{Script=Han}\p{P}]/u.test(words) ? ' ' : '';
}

export function stop() {
  listening?.stop();
  listening = null;
  ended();
}

// Escape ends what listens, and nothing else with it.
function escaped(event) {
  if (event.key !== 'Escape' || !listening || event.isComposing) return;
  event.stopImmediatePropagation();
  stop();
}

addEventListener('keydown', escaped, true);
addEventListener('pagehide', () => { if (listening) stop(); });
