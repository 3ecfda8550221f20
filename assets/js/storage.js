// What the browser keeps for the page. In a frame whose storage is blocked each access throws: there nothing is kept.
function held(kind) {
  const open = () => window[kind];
  return {
    get(name) { try { return open().getItem(name); } catch { return null; } },
    set(name, value) { try { open().setItem(name, value); } catch { /* blocked, or full */ } },
    remove(name) { try { open().removeItem(name); } catch { /* blocked */ } },
  };
}

export const local = held('localStorage');
export const session = held('sessionStorage');
