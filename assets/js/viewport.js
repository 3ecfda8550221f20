// A keyboard of glass covers part of the page; the page ends where it begins, so that the field stays in sight.
const root = document.documentElement;
const COVERS = 120;  // pixels: less is a bar of the browser's own

function fit() {
  const { height, scale } = visualViewport;
  const covered = scale === 1 && innerHeight - height > COVERS;
  const wanted = covered ? `${Math.round(height)}px` : '';
  if (root.style.getPropertyValue('--p-room') === wanted) return;
  root.style.setProperty('--p-room', wanted);
  if (covered) scrollTo(0, 0);  // some browsers push the page up instead
}

export function start() {
  if (!window.visualViewport) return;
  visualViewport.addEventListener('resize', fit);
  visualViewport.addEventListener('scroll', fit);
}
