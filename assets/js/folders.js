// What was dropped, folders with all that lies in them.

const LOOKED_AT = 2000; // files and folders of one drop

// To be asked for at once: after the event nothing of it is left.
export function dropOf(data) {
  const entries = [...(data?.items ?? [])].filter((item) => item.kind === 'file').map((item) => item.webkitGetAsEntry?.());
  const isWhole = !entries.length || entries.includes(null) || entries.includes(undefined);
  return isWhole || entries.every((entry) => entry.isFile) ? { files: [...(data?.files ?? [])], entries: [] } : { files: [], entries };
}

// The files of a drop, in the order of their names; those of folders that are hidden are left out, and counted.
export async function within({ files, entries }) {
  const found = [...files];
  const waiting = [...entries];
  let hidden = 0;
  for (let looked = 0; waiting.length && looked < LOOKED_AT; looked += 1) {
    const entry = waiting.shift();
    if (!entries.includes(entry) && entry.name.startsWith('.')) hidden += 1;
    else if (entry.isDirectory) waiting.unshift(...await membersOf(entry));
    else found.push(await fileOf(entry));
  }
  return { files: found.filter(Boolean), hidden, isCut: waiting.length > 0 };
}

// A browser gives a hundred at a time. What cannot be read is left out.
async function membersOf(folder) {
  const reader = folder.createReader();
  const members = [];
  for (;;) {
    const some = await new Promise((done) => reader.readEntries(done, () => done([])));
    if (!some.length || members.length >= LOOKED_AT) break;
    members.push(...some);
  }
  return members.sort((one, other) => one.name.localeCompare(other.name));
}

const fileOf = (entry) => new Promise((done) => entry.file(done, () => done(null)));
