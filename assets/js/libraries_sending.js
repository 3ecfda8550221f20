// Files on their way into a library, one request after the other, so that a refused one takes no other along.
import { saidInFront } from './in_front.js';
import { say } from './words.js';

const MIB = 1024 * 1024;

// Sends each file in `files` to its library; more may be added meanwhile. Tells how far it is and how it went.
export async function sent(files, limit, { tell, taken }) {
  const sum = { fresh: 0, known: 0 };
  const refused = [];
  for (let next = 0; next < files.length; next += 1) {
    const { file, library } = files[next];
    const answer = limit && file.size > limit * MIB
      ? { failed: say('libraries_too_large', { name: file.name, limit }) }
      : await send(file, library, (n) => tell('run', say('libraries_sending', { name: file.name, n })));
    if (answer.again) {  // as many wait to be read as may: this one goes when some of them are
      answer.failed = await roomIn(library, answer, tell);
      if (!answer.failed) { next -= 1; continue; }
    }
    if (answer.failed) { refused.push(answer.failed); continue; }
    sum.fresh += answer.fresh;
    sum.known += answer.known;
    taken(answer, library);
  }
  const added = sum.fresh && say(sum.fresh === 1 ? 'libraries_added_one' : 'libraries_added', { n: sum.fresh });
  const known = sum.known && say(sum.known === 1 ? 'libraries_known_one' : 'libraries_known', { n: sum.known });
  tell(refused.length ? 'bad' : 'ok', [...refused, added, known].filter(Boolean).join(' '));
}

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
    return status === 200 ? told : { failed: told.failed ?? say('libraries_failed'), again: told.again };
  } catch {
    return { failed: say('libraries_failed') };
  }
}
