// What was dropped or chosen, folders with all that lies in them.

const LOOKED_AT = 2000; // files and folders of one drop, where no more is said

// Whether a folder can be chosen here: a telephone's browser has nothing to choose one with.
export const canChooseFolder = () => 'webkitdirectory' in HTMLInputElement.prototype;

// The system asks for a folder; `taken` gets it as it would get a drop.
export function chooseFolder(taken) {
  const input = Object.assign(document.createElement('input'), { type: 'file', webkitdirectory: true, hidden: true });
  input.addEventListener('change', () => taken({ files: [], entries: [], folder: [...input.files] }));
  for (const end of ['change', 'cancel']) input.addEventListener(end, () => input.remove());
  document.body.append(input);  // not every browser tells one that stands nowhere what was chosen
  input.click();
}

// To be asked for at once: after the event nothing of it is left.
export function dropOf(data) {
  const entries = [...(data?.items ?? [])].filter((item) => item.kind === 'file').map((item) => item.webkitGetAsEntry?.());
  const isWhole = !entries.length || entries.includes(null) || entries.includes(undefined);
  return isWhole || entries.every((entry) => entry.isFile) ? { files: [...(data?.files ?? [])], entries: [] } : { files: [], entries };
}

// The files of a drop, in the order of their names; those of folders that are hidden are left out, and counted. `most` is how
// many files and folders are looked at.
export async function within({ files, entries, folder = [] }, most = LOOKED_AT) {
  const shown = folder.filter((file) => !isHidden(file)).sort((one, other) => one.webkitRelativePath.localeCompare(other.webkitRelativePath));
  const found = files.map((file) => ({ file, around: [] }));
  for (const file of shown.slice(0, most)) found.push({ file, around: file.webkitRelativePath.split('/').slice(1, -1) });
  let waiting = entries.map((entry) => ({ entry, around: [] }));
  const meant = entries.length === 1 ? entries[0] : null;
  let hidden = folder.length - shown.length;
  for (let looked = 0; waiting.length && looked < most; looked += 1) {
    const { entry, around } = waiting.shift();
    if (!entries.includes(entry) && entry.name.startsWith('.')) hidden += 1;
    else if (!entry.isDirectory) found.push({ file: await fileOf(entry), around });
    else {
      const inside = entry === meant ? [] : [...around, entry.name];
      waiting = [...(await membersOf(entry, most)).map((member) => ({ entry: member, around: inside })), ...waiting];
    }
  }
  return { files: apart(found.filter(({ file }) => file)), hidden, isCut: waiting.length > 0 || shown.length > most };
}

// Files of one name are told apart by the folders around them, `readme (north-cellar).md`; the one that was meant is around
// all of them.
function apart(found) {
  const times = new Map();
  for (const { file } of found) times.set(file.name, (times.get(file.name) ?? 0) + 1);
  return found.map(({ file, around }) => {
    if (times.get(file.name) < 2 || !around.length) return file;
    const [, stem, ending] = /^(.+?)(\.[^.]*)?$/s.exec(file.name);
    return new File([file], `${stem} (${around.join('-')})${ending ?? ''}`, { type: file.type, lastModified: file.lastModified });
  });
}

// Of a chosen folder a browser gives the files alone, each with its path; the folder's own name was meant.
const isHidden = (file) => file.webkitRelativePath.split('/').slice(1).some((part) => part.startsWith('.'));

// A browser gives a hundred at a time. What cannot be read is left out.
async function membersOf(folder, most) {
  const reader = folder.createReader();
  const members = [];
  for (;;) {
    const some = await new Promise((done) => reader.readEntries(done, () => done([])));
    if (!some.length || members.length >= most) break;
    members.push(...some);
  }
  return members.sort((one, other) => one.name.localeCompare(other.name));
}

const fileOf = (entry) => new Promise((done) => entry.file(done, () => done(null)));
