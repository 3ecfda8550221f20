// Text that was pasted as a file is nowhere else once the page is gone, so the tab keeps it, with the draft that it is
// of, until it is sent or removed: it outlives a reload as the text of a draft does.
import { session } from './storage.js';

const LIST = 'p-pastes';  // of { key, name, at }: what they are called, and the conversation whose draft has them
const TEXT = 'p-paste:';
const texts = new WeakMap();  // by the file; those that are kept no less
const keys = new WeakMap();   // of those that are kept

function list() {
  try { return JSON.parse(session.get(LIST) ?? '[]'); } catch { return []; }
}

export function fileOf(text, name) {
  const file = new File([text], name, { type: 'text/plain' });
  texts.set(file, text);
  return file;
}

export const isPasted = (file) => texts.has(file);
export const isKept = (file) => keys.has(file);

// Where storage is full or blocked it is not kept.
export function keep(file, at) {
  const text = texts.get(file);
  if (text === undefined || isKept(file)) return;
  const all = list();
  const key = String(1 + Math.max(0, ...all.map((one) => Number(one.key))));
  session.set(TEXT + key, text);
  session.set(LIST, JSON.stringify([...all, { key, name: file.name, at }]));
  if (session.get(TEXT + key) === text && list().some((one) => one.key === key)) keys.set(file, key);
  else session.remove(TEXT + key);
}

export function drop(file) {
  const key = keys.get(file);
  if (key === undefined) return;
  keys.delete(file);
  session.set(LIST, JSON.stringify(list().filter((one) => one.key !== key)));
  session.remove(TEXT + key);
}

// They are of another conversation's draft from now on: those of these files, or all of a draft.
export function move(to, { files = [], from = null }) {
  const some = files.map((file) => keys.get(file)).filter(Boolean);
  if (!some.length && from === null) return;
  session.set(LIST, JSON.stringify(list().map((one) => (some.includes(one.key) || one.at === from ? { ...one, at: to } : one))));
}

// Those that were kept before this page was loaded, as files again.
export function keptBefore() {
  return list().flatMap(({ key, name, at }) => {
    const text = session.get(TEXT + key);
    if (text === null) return [];
    const file = fileOf(text, name);
    keys.set(file, key);
    return [{ file, at }];
  });
}
