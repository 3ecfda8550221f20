// A small chat on another site's page: a button that opens a frame, or the frame itself in `data-target`.
// <script src="https://chat.example.com/embed.js" data-key="pk-parlour-…" data-persona="…" defer></script>
(() => {
  const script = document.currentScript;
  const { key = '', persona = '', target = '', label = '', lang = '' } = script.dataset;
  const spoken = lang || document.documentElement.lang || navigator.language || 'en';
  const said = label || (spoken.startsWith('zh') ? '提问' : 'Ask');
  const shut = spoken.startsWith('zh') ? '关闭' : 'Close';
  const page = new URL('./embed', script.src);
  page.searchParams.set('lang', spoken);
  page.hash = new URLSearchParams({ key, who: persona }).toString();  // what follows a # goes to no server

  function styled(element, style) {
    Object.assign(element.style, style);
    return element;
  }

  function frame() {
    const made = document.createElement('iframe');
    made.src = page.href;
    made.title = said;
    made.loading = 'lazy';
    return styled(made, { border: '0', width: '100%', height: '100%', display: 'block', colorScheme: 'normal' });
  }

  function begin() {
    const place = target && document.querySelector(target);
    if (place) {
      if (!place.style.height && place.clientHeight < 200) place.style.height = '32rem';
      place.replaceChildren(frame());
      return;
    }
    const narrow = matchMedia('(max-width: 520px)');
    const panel = styled(document.createElement('div'), { position: 'fixed', zIndex: 2147483000, display: 'none', overflow: 'hidden', background: 'Canvas', boxShadow: '0 8px 40px rgb(0 0 0 / 25%)' });
    const button = styled(document.createElement('button'), {
      position: 'fixed', zIndex: 2147483001, right: '20px', bottom: '20px', minWidth: '56px', height: '48px', padding: '0 18px', border: '0', borderRadius: '24px',
      background: '#1d5a49', color: '#fff', font: '500 16px/1 system-ui, sans-serif', cursor: 'pointer', boxShadow: '0 2px 12px rgb(0 0 0 / 25%)',
    });
    button.type = 'button';
    button.textContent = said;
    button.setAttribute('aria-expanded', 'false');
    const fit = () => styled(panel, narrow.matches
      ? { inset: '0 0 76px 0', width: 'auto', height: 'auto', borderRadius: '0' }
      : { inset: 'auto 20px 80px auto', width: '390px', height: 'min(640px, calc(100vh - 110px))', borderRadius: '14px' });
    const show = (open) => {
      if (open && !panel.firstChild) panel.append(frame());
      panel.style.display = open ? 'block' : 'none';
      button.textContent = open ? shut : said;
      button.setAttribute('aria-expanded', String(open));
      if (open) panel.firstChild.focus();
    };
    const isOpen = () => button.getAttribute('aria-expanded') === 'true';
    fit();
    narrow.addEventListener('change', fit);
    button.addEventListener('click', () => show(!isOpen()));
    addEventListener('keydown', (event) => { if (event.key === 'Escape' && isOpen()) { show(false); button.focus(); } });
    // The frame tells of Escape, which the page around it does not hear while the frame has the focus.
    addEventListener('message', (event) => {
      if (event.origin === page.origin && event.data === 'parlour-embed-close' && event.source === panel.firstChild?.contentWindow) { show(false); button.focus(); }
    });
    document.body.append(panel, button);
  }

  if (document.body) begin();
  else addEventListener('DOMContentLoaded', begin);
})();
