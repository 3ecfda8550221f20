// What the script itself says: the server puts the table of its reader's language into the page.
const table = JSON.parse(document.getElementById('p-words')?.textContent || '{}');

export const lang = () => document.documentElement.lang || 'en';

// The reader's own kind of the page's language: British English on an English page.
export const locale = () => navigator.languages?.find((one) => one.split('-')[0] === lang().split('-')[0]) ?? lang();

// Several sentences, as the language joins them.
export const together = (said) => said.reduce((first, second) => (first ? say('sentences', { first, second }) : second), '');

export function say(key, blanks = {}) {
  return (table[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => blanks[name] ?? '…');
}
