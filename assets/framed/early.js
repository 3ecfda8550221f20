// In a frame of another site, before anything else runs. The place is kept for the tab, for when the outer page is loaded
// again. A browser may keep no cookie there: then each request says itself who asks, from the first one on. Each says from
// where, too: WebKit leaves the path and the query out of what a frame of another site refers to.
(() => {
  if (parent === self) return;
  const kept = (name, value) => {
    try {
      if (value !== undefined) sessionStorage.setItem(name, value);
      return sessionStorage.getItem(name) ?? '';
    } catch { return ''; }
  };
  const noted = () => {
    try {
      return decodeURIComponent(/(?:^|; )p-place=([^;]*)/.exec(document.cookie)?.[1] ?? '');
    } catch { return ''; }
  };
  const place = kept('p-place') || noted();
  if (place && !/[?&](c|demo)=/.test(location.search)) history.replaceState({}, '', `./${place}`);
  const given = document.querySelector('meta[name="p-visitor"]')?.content ?? '';
  let visitor = kept('p-visitor') || given;
  if (visitor) kept('p-visitor', visitor);
  const ours = (to) => new URL(to, document.baseURI).origin === location.origin;
  const send = window.fetch;
  const named = (to, options) => {
    const headers = new Headers(options?.headers ?? (to instanceof Request ? to.headers : undefined));
    headers.set('x-parlour-place', location.search);
    if (visitor) headers.set('x-parlour-visitor', visitor);
    return send(to, { ...options, headers });
  };
  window.fetch = async (to, options) => {
    if (!ours(to?.url ?? to)) return send(to, options);
    const answer = await named(to, options);
    if (![401, 403].includes(answer.status) || !given || visitor === given || to instanceof Request) return answer;
    visitor = given;  // what was kept is of another Parlour
    kept('p-visitor', visitor);
    return named(to, options);
  };
  if (!visitor) return;
  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, to, ...rest) {
    open.call(this, method, to, ...rest);
    if (ours(to)) this.setRequestHeader('x-parlour-visitor', visitor);
  };
  window.parlourVisitor = () => visitor;
})();
