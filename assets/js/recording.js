// A recording that becomes text elsewhere: a line above the composer shows that it runs, how long and how loud; what
// came of it goes to where one writes. A recording that could not be turned into text stays until it is let go.
import { hand } from './attaching.js';
import { put } from './bus.js';
import { gap } from './dictation_browser.js';
import { hint, tell } from './hint.js';
import { isRefusal, tellRefused } from './microphone.js';
import { status } from './state.js';
import { say, together } from './words.js';

const KINDS = ['audio/webm;codecs=opus', 'audio/ogg;codecs=opus', 'audio/mp4'];
const BITS = 32_000;   // a second: enough for speech
let now = null;   // { as, most, recorder, stream, pieces, began, seconds, blob, turning, drop, bar }
let ended = () => {};

export const isRecording = () => now?.recorder?.state === 'recording';
export const isTurning = () => Boolean(now?.turning);
export const onEnd = (callback) => { ended = callback; };

const area = () => document.querySelector('#composer textarea');
const make = (tag, className, said, act) => {
  const element = Object.assign(document.createElement(tag), { className, textContent: said ?? '' });
  if (act) Object.assign(element, { type: 'button', onclick: act });
  return element;
};

export async function begin(as, most) {
  if (now) return now.bar?.querySelector('button')?.focus();  // the one before is not let go yet
  if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) return hint('record_insecure');
  const mine = now = { as, most, pieces: [], seconds: 0 };
  try {
    mine.stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
    const mimeType = KINDS.find((one) => MediaRecorder.isTypeSupported(one));
    mine.recorder = new MediaRecorder(mine.stream, { mimeType, audioBitsPerSecond: BITS });
  } catch (error) {
    letGo();
    return isRefusal(error) ? tellRefused() : hint('record_none');
  }
  mine.recorder.ondataavailable = ({ data }) => { if (data.size) mine.pieces.push(data); };
  mine.recorder.onstop = () => { if (mine === now) recorded(); };
  mine.recorder.onerror = () => { if (mine === now) stop(); };
  for (const track of mine.stream.getTracks()) track.onended = () => { if (mine === now) stop(); };  // it was unplugged
  mine.began = performance.now();
  mine.recorder.start(1000);
  tell('');
  running();
  area()?.focus();
}

export function stop() {
  if (!isRecording()) return;
  now.seconds = (performance.now() - now.began) / 1000;
  now.recorder.stop();
}

// ---- what is seen

function bar(kind, ...parts) {
  const line = now.bar ??= make('div');
  line.className = `p-recording p-${kind}`;
  line.setAttribute('role', 'group');
  line.setAttribute('aria-label', say('record_label'));
  const had = line.contains(document.activeElement);
  line.replaceChildren(...parts);
  if (!line.isConnected) document.getElementById('composer')?.before(line);
  if (had) (line.querySelector('.p-word') ?? line.querySelector('button'))?.focus();
  return line;
}

function acts(...buttons) {
  const element = make('span', 'p-acts');
  element.append(...buttons);
  return element;
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function running() {
  const mine = now;
  const level = make('span', 'p-level');
  level.setAttribute('aria-hidden', 'true');
  const time = make('span', 'p-time', clock(0));
  time.setAttribute('role', 'timer');
  const said = make('span', 'p-said', say('record_on'));
  said.setAttribute('role', 'status');
  bar('running', level, time, said, acts(make('button', 'p-quiet', say('record_drop'), drop), make('button', 'p-word', say('record_done'), stop)));
  const loud = loudness(mine.stream);
  const draw = () => {
    if (mine !== now || !isRecording()) return loud.close();
    const seconds = (performance.now() - mine.began) / 1000;
    const shown = say('record_time', { time: clock(seconds), most: clock(mine.most) });
    if (time.textContent !== shown) time.textContent = shown;
    level.style.setProperty('--loud', loud.now().toFixed(2));
    if (seconds >= mine.most) return stop();
  };
  mine.drawing = setInterval(draw, 100);
  draw();
}

// How loud it is, from 0 to 1.
function loudness(stream) {
  try {
    const audio = new AudioContext();
    const meter = new AnalyserNode(audio, { fftSize: 512 });
    audio.createMediaStreamSource(stream).connect(meter);
    const wave = new Float32Array(meter.fftSize);
    return {
      now() {
        meter.getFloatTimeDomainData(wave);
        return Math.min(1, Math.sqrt(wave.reduce((sum, one) => sum + one * one, 0) / wave.length) * 6);
      },
      close() { if (audio.state !== 'closed') audio.close(); },
    };
  } catch {
    return { now: () => 0, close() {} };  // the recording goes on without it
  }
}

// ---- what becomes of it

function recorded() {
  quiet();
  now.blob = new Blob(now.pieces, { type: now.recorder.mimeType.split(';')[0] || 'audio/webm' });
  ended();
  if (!now.blob.size) { letGo(); return hint('record_empty'); }
  turn();
}

async function turn() {
  const mine = now;
  const leaving = new AbortController();
  mine.turning = leaving;
  const said = make('span', 'p-said', say('record_turning'));
  said.setAttribute('role', 'status');
  bar('turning', make('span', 'p-spin'), said, acts(make('button', 'p-quiet', say('record_drop'), drop)));
  ended();
  const answer = await sent(mine, leaving.signal);
  if (mine !== now) return;
  mine.turning = null;
  if (answer.text) {
    letGo();
    write(answer.text);
  } else {
    failed(answer.failed || say('unanswered'));
    if (answer.changed) mine.as = '';
  }
  ended();
}

async function sent({ as, blob, seconds }, signal) {
  const about = new URLSearchParams({ as, seconds: seconds.toFixed(1), talk: status()?.conversation ?? '' });
  const headers = { 'content-type': blob.type };
  try {
    const answer = await fetch(`./dictation/text?${about}`, { method: 'POST', body: blob, headers, signal, cache: 'no-store', credentials: 'same-origin' });
    return await answer.json();
  } catch {
    return {};
  }
}

function failed(why) {
  const said = make('span', 'p-said', together([why, say('record_kept')]));
  said.setAttribute('role', 'alert');
  const file = new File([now.blob], `${say('record_file')}.${{ 'audio/mp4': 'm4a', 'audio/ogg': 'ogg' }[now.blob.type] ?? 'webm'}`, { type: now.blob.type });
  const save = Object.assign(make('a', 'p-quiet', say('record_save')), { href: URL.createObjectURL(file), download: file.name });
  const also = status()?.hears === '1' ? [make('button', 'p-quiet', say('record_attach'), () => { hand([file]); drop(); })] : [];
  const more = make('button', 'p-word', say('record_again'), again);
  bar('failed', said, acts(make('button', 'p-quiet', say('record_drop'), drop), save, ...also, more)).save = save;
}

// What is chosen may have changed: then the button says so before the recording goes anywhere else.
async function again() {
  if (!now.as) {
    const { way } = await (await fetch('./dictation/way', { cache: 'no-store', credentials: 'same-origin' })).json().catch(() => ({}));
    if (!now || !way) return;
    now.as = way.as;
    return failed(way.first);
  }
  turn();
}

function write(text) {
  const field = area();
  const { selectionStart: from, selectionEnd: to, value } = field;
  const before = value.slice(0, from);
  const words = gap(before, text) + text;
  const after = value.slice(to);
  const space = after && !/^[\s\p{P}]/u.test(after) && !/\p{Script=Han}$/u.test(words) ? ' ' : '';
  put(field, before + words + space + after);
  field.focus();
  field.setSelectionRange(from + words.length, from + words.length);
}

function drop() {
  const here = now?.bar?.contains(document.activeElement);
  letGo();
  ended();
  if (here) area()?.focus();
}

function quiet() {
  clearInterval(now?.drawing);
  for (const track of now?.stream?.getTracks() ?? []) track.stop();
}

function letGo() {
  const mine = now;
  quiet();
  now = null;
  if (mine?.recorder?.state === 'recording') mine.recorder.stop();
  mine?.turning?.abort();
  if (mine?.bar?.save) URL.revokeObjectURL(mine.bar.save.href);
  mine?.bar?.remove();
}

// Escape lets go of what is recorded or sent, and of nothing else with it; what failed waits for a button.
function escaped(event) {
  if (event.key !== 'Escape' || event.isComposing || !(isRecording() || isTurning())) return;
  event.stopImmediatePropagation();
  drop();
}

addEventListener('keydown', escaped, true);
addEventListener('pagehide', () => { if (isRecording()) drop(); });
addEventListener('beforeunload', (event) => { if (now?.blob) event.preventDefault(); });
