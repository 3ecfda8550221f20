// What the script itself says: the server puts the table of its reader's language into the page.
const table = JSON.parse(document.getElementById('p-words')?.textContent || '{}');

export const lang = () => (document.documentElement.lang.startsWith('zh') ? 'zh' : 'en');

export function say(key, blanks = {}) {
  return (table[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => blanks[name] ?? '…');
}
