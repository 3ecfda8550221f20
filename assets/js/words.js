// What the script itself says: the server puts the table of its reader's language into the page.
const table = JSON.parse(document.getElementById('p-words')?.textContent || '{}');

export const lang = () => document.documentElement.lang || 'en';

// The reader's own kind of the page's language: British English on an English page.
export const locale = () => navigator.languages?.find((one) => one.split('-')[0] === lang().split('-')[0]) ?? lang();

// Several sentences, as the language joins them.
export const together = (said) => said.reduce((first, second) => (first ? say('sentences', { first, second }) : second), '');

const EACH = 10;     // names are told one by one where they are no more than these
const FIRST = 5;     // of more than that
const LONGEST = 80;  // letters of a name

// Names one after the other, or the first of many and how many more there are.
export function listed(names) {
  const first = names.length > EACH ? names.slice(0, FIRST) : names;
  const said = first.map((name) => name.replace(/\s+/g, ' ').slice(0, LONGEST));
  if (names.length > first.length) said.push(say('and_more', { n: names.length - first.length }));
  return said.join(say('comma'));
}

export function say(key, blanks = {}) {
  return (table[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => blanks[name] ?? '…');
}
