// What the script itself says, in the page's language. The server puts both tables into the page.
const tables = JSON.parse(document.getElementById('p-words')?.textContent || '{}');

export const lang = () => (document.documentElement.lang.startsWith('zh') ? 'zh' : 'en');

export function say(key, blanks = {}) {
  const said = tables[lang()]?.[key] ?? tables.en?.[key] ?? key;
  return said.replace(/\{(\w+)\}/g, (_, name) => blanks[name] ?? '…');
}
