// Files on their way into a library, one request after the other, so that a refused one takes no other along.
import { saidInFront } from './in_front.js';
import { request } from './request.js';
import { session } from './storage.js';
import { listed, say } from './words.js';

const MIB = 1024 * 1024;
const LEFT = 'p-left-libraries';

let going = null;    // { files, next }: what is sent now, and which of it
let leaving = [];    // what was not sent yet as the page was about to be left

// Sends each file in `files` to its library; more may be added meanwhile. Tells how far it is and how it went.
export async function sent(files, limit, { tell, taken }) {
  const known = [];  // names of those that are there already
  let fresh = 0;
  const refused = [];
  going = { files, next: 0 };
  let why = [];
  do {
    for (; going.next < files.length; going.next += 1) {
      const { file, library } = files[going.next];
      const answer = limit && file.size > limit * MIB
        ? tooLarge(file, limit)
        : await send(file, library, (n) => tell('run', say('libraries_sending', { name: file.name, n })));
      if (answer.again) {  // as many wait to be read as may: this one goes when some of them are
        answer.failed = await roomIn(library, answer, tell);
        if (!answer.failed) { going.next -= 1; continue; }
        answer.why = null;
      }
      if (answer.failed) { refused.push(answer); continue; }
      fresh += answer.fresh;
      if (answer.known) known.push(file.name);
      taken(answer, library);
    }
    why = await together(refused);
  } while (going.next < files.length);  // more were added meanwhile
  going = null;
  const added = fresh && say(fresh === 1 ? 'libraries_added_one' : 'libraries_added', { n: fresh });
  const there = known.length && say(known.length === 1 ? 'libraries_known_one' : 'libraries_known', { n: known.length, names: listed(known) });
  tell(refused.length ? 'bad' : 'ok', [...why, added, there].filter(Boolean).join('\n'));
}

function tooLarge({ name, size }, limit) {
  const details = { name, limit, size: Math.max(Math.round(size / MIB), limit + 1) };
  return { failed: say('libraries_too_large', { name, limit }), why: { key: 'upload_too_large', details } };
}

// Why files were refused, once for all that share a reason, as it is told of those of a question.
async function together(refused) {
  const also = refused.flatMap(({ why }) => why ?? []);
  const { said } = also.length ? await request('./uploads/check', 'libraries_failed', { files: [], also }) : {};
  const others = refused.filter(({ why }) => !said || !why).map(({ failed }) => failed);
  return [said, ...new Set(others)];
}

// ---- a page that is left while files are sent

const unsent = () => going?.files.slice(going.next) ?? [];

// How many files were not sent to which library before the page was left, until it is said and put away.
export function lost() {
  try { return new Map(JSON.parse(session.get(LEFT) ?? '[]')); } catch { return new Map(); }  // nothing of ours
}

const keepLost = (counts) => (counts.size ? session.set(LEFT, JSON.stringify([...counts])) : session.remove(LEFT));

// `library` gets files again; without it the reader has read it all.
export function forgetLost(library) {
  const counts = library ? lost() : new Map();
  counts.delete(library);
  keepLost(counts);
}

addEventListener('beforeunload', (event) => {
  leaving = unsent();  // what is on its way is cut off before the page hides
  if (!leaving.length) return;
  event.preventDefault();
  setTimeout(() => { leaving = []; }, 2000);  // the reader stayed
});
addEventListener('pagehide', () => {
  const counts = lost();
  const left = leaving.length ? leaving : unsent();
  for (const { library } of left) counts.set(library, left.filter((one) => one.library === library).length);
  if (left.length) keepLost(counts);
});

// ---- requests

// Waits until one more may wait to be read, and asks without the file, which may be large. Why it is not sent then; ''
// where it may be.
async function roomIn(library, answer, tell) {
  let told = answer;
  while (told.again) {
    tell('run', told.failed);
    const pause = told.again * 1000;
    await new Promise((go) => { setTimeout(go, pause); });
    told = await ask('GET', library, 'room');
  }
  return told.failed ?? '';
}

// Not `fetch`, which does not say how much of a file has gone.
function send(file, library, progress) {
  const body = new FormData();
  body.append('files', file, file.name);
  progress(0);
  return ask('POST', library, 'files', body, progress);
}

function ask(method, library, what, body, progress) {
  return new Promise((done) => {
    const going = new XMLHttpRequest();
    going.open(method, `./libraries/${encodeURIComponent(library)}/${what}`);
    going.setRequestHeader('x-parlour', '1');
    if (progress) going.upload.addEventListener('progress', ({ loaded, total }) => progress(total ? Math.floor(loaded * 100 / total) : 0));
    going.addEventListener('load', () => done(read(going)));
    for (const end of ['error', 'abort', 'timeout']) going.addEventListener(end, () => done({ failed: say('libraries_failed') }));
    going.send(body);
  });
}

function read(answer) {
  const { status, responseText } = answer;
  const said = saidInFront(status, answer.getResponseHeader('content-type'));
  if (said) return { failed: said };
  try {
    const told = JSON.parse(responseText);  // a refusal says why
    return status === 200 ? told : { failed: told.failed ?? say('libraries_failed'), why: told.why, again: told.again };
  } catch {
    return { failed: say('libraries_failed') };
  }
}
