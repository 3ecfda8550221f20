// Dictation where the model takes no sound: what is said becomes text, which one reads before it is sent. The browser
// does it, or a recording goes to where the settings say; the button tells which before anything is recorded.
import { begin as listen, isListening, onEnd as onSilence, Recognition, stop as stopListening } from './dictation_browser.js';
import { hint, tell } from './hint.js';
import { isWithheld, tellRefused } from './microphone.js';
import { onPlace, section } from './places.js';
import { begin as record, isRecording, isTurning, onEnd as onRecorded, stop as stopRecording } from './recording.js';
import { request } from './request.js';
import { onChange } from './state.js';
import { local } from './storage.js';
import { say, together } from './words.js';

const KNOWN = 'p-dictation';
const FRESH = 30_000;  // milliseconds that what the server said of dictation is taken for true
const MAKERS = [['Edg/', 'Microsoft'], ['Chrome/', 'Google'], ['Safari/', 'Apple']];
let told = null;    // { browser, way: { as, title, first }, problem, longest }, as the server said
let asked = null;   // the question to the server that is under way
let at = 0;

const composer = () => document.getElementById('composer');
const button = () => document.querySelector('#composer .p-dictate');
const maker = () => MAKERS.find(([mark]) => navigator.userAgent.includes(mark))?.[1] ?? say('dictation_maker');

// What a press would do: 'browser', 'record', 'tell' for what stands in the way, '' where there is nothing.
function kind() {
  if (Recognition() && (told?.browser ?? true)) return 'browser';
  if (told?.way) return 'record';
  return told?.problem ? 'tell' : '';
}

function label() {
  if (!composer()) return;
  if (!told && !Recognition()) know();
  const shown = !composer().hasAttribute('data-hears') && (Boolean(kind()) || isRecording());
  composer().toggleAttribute('data-dictates', shown);
  if (shown && !button()) {
    const made = Object.assign(document.createElement('button'), { type: 'button', className: 'p-dictate' });
    made.addEventListener('click', pressed);
    for (const comes of ['pointerenter', 'focus']) made.addEventListener(comes, know);
    composer().append(made);
  }
  if (!button()) return;
  button().hidden = !shown;
  if (!shown) stopListening();
  named();
}

function named() {
  if (!button()) return;
  const on = isListening() || isRecording();
  const said = say(isListening() ? 'dictate_stop' : isRecording() ? 'record_done' : 'dictate');
  const more = { browser: () => say('dictation_by_browser', { maker: maker() }), record: () => told.way.title }[kind()];
  const title = on || !more ? said : more();
  if (button().title !== title) button().title = title;
  if (button().getAttribute('aria-label') !== said) button().setAttribute('aria-label', said);
  if (button().getAttribute('aria-pressed') !== String(on)) button().setAttribute('aria-pressed', String(on));
  button().disabled = isTurning();
}

// What the server says of dictation; asked for anew where that is a while ago.
function know() {
  if (told && performance.now() - at < FRESH) return null;
  asked ??= request('./dictation/way', 'dictation_unknown').then((answer) => {
    asked = null;
    at = performance.now();
    told = answer.failed ? told ?? { browser: true } : answer;
    label();
  });
  return asked;
}

async function pressed() {
  if (isListening()) return stopListening();
  if (isRecording()) return stopRecording();
  await know();
  const what = kind();
  if (what === 'tell') return tell(told.problem);
  if (isWithheld()) return tellRefused();  // before anything else is told that then cannot be done
  const mark = what === 'record' ? `${KNOWN} ${told.way.as}` : KNOWN;
  if (!local.get(mark)) {  // what is said may leave the machine: once it is told, and nothing is recorded yet
    local.set(mark, '1');
    return what === 'record' ? tell(together([told.way.first, say('dictation_again')])) : hint('dictation_first', { maker: maker() });
  }
  if (what === 'browser') listen();
  else if (what === 'record') await record(told.way.as, told.longest);
  named();
}

export function start() {
  onSilence(named);
  onRecorded(() => { at = 0; label(); });
  onChange(label);
  onPlace(() => { if (!section()) at = 0; });  // the settings may say something else now
}
