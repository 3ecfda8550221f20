// Reads a reply aloud, by the browser's own voice; and says when each message was written, in the reader's own time.
import { onChange } from './state.js';
import { lang, locale, say } from './words.js';

const SCRIPTS = [['zh-CN', /\p{Script=Han}/u], ['ja-JP', /[\p{Script=Hiragana}\p{Script=Katakana}]/u], ['ko-KR', /\p{Script=Hangul}/u], ['ru-RU', /\p{Script=Cyrillic}/u]];
const voice = window.speechSynthesis;
let speaking = null;  // the link whose reply is being read
const times = new WeakMap();  // by the element that tells them
let today = '';

// What a voice would spell: marks of citations, fences, signs of emphasis.
const spoken = (text) => text
  .replace(/```[\s\S]*?(```|$)/g, ' ').replace(/\s*\[\d+\]/g, '')
  .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[*_`#>|]+/g, ' ').trim();

function named(link, key) {
  if (!link) return;
  link.classList.toggle('p-speaking', key === 'quiet');
  link.title = say(key);
  link.setAttribute('aria-label', say(key));
}

function quiet() {
  named(speaking, 'speak');
  speaking = null;
  voice.cancel();
}

export function speak(text, link) {
  const again = speaking === link;
  quiet();
  if (again || !spoken(text)) return;
  const words = new SpeechSynthesisUtterance(spoken(text));
  words.lang = SCRIPTS.find(([, script]) => script.test(words.text))?.[0] ?? (lang().startsWith('zh') ? 'en-US' : lang());
  words.onend = words.onerror = () => { if (speaking === link) { named(link, 'speak'); speaking = null; } };
  named(link, 'quiet');
  speaking = link;
  voice.speak(words);
}

// Those of another day name it, so all are told anew once the day is over.
function tellTimes() {
  const now = new Date().toDateString();
  const all = now === today ? '#chat .p-time:empty' : '#chat .p-time';
  today = now;
  for (const element of document.querySelectorAll(all)) {
    if (!element.textContent) times.set(element, new Date(element.title));
    const at = times.get(element);
    if (!at) continue;
    element.textContent = at.toLocaleString(locale(), at.toDateString() === today ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' });
    element.title = at.toLocaleString(locale(), { dateStyle: 'full', timeStyle: 'medium' });
  }
}

export function start() {
  document.documentElement.toggleAttribute('data-mute', !voice);
  addEventListener('pagehide', () => voice?.cancel());
  onChange(tellTimes);
  addEventListener('visibilitychange', tellTimes);
  setInterval(tellTimes, 60_000);
}
