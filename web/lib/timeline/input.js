// Pointer, wheel and keys of the timeline's canvas.
import { AXIS_HEIGHT } from '/lib/timeline/lanes.js';

const DRAG_PX = 4; // a shorter movement is a click
const WHEEL_ZOOM = 1.0015; // factor for each px of the wheel
const LINE_PX = 16; // height of a line, for wheels that report lines
const KEY_ZOOM = 0.6;
const KEY_PAN = 0.2; // fraction of the window

/** The keys: [keys, name, help text, action]. */
export const keys = [
  [['w', '+', '='], 'W or +', 'zooms in', (actions) => actions.zoom(KEY_ZOOM)],
  [['s', '-'], 'S or −', 'zooms out', (actions) => actions.zoom(1 / KEY_ZOOM)],
  [['a', 'ArrowLeft'], 'A or ←', 'moves to earlier times', (actions) => actions.pan(-KEY_PAN)],
  [['d', 'ArrowRight'], 'D or →', 'moves to later times', (actions) => actions.pan(KEY_PAN)],
  [['0', 'Home'], '0 or Home', 'shows the whole trace', (actions) => actions.showAll()],
  [['ArrowUp'], '↑', 'goes to the lane above', (actions) => actions.moveLane(-1)],
  [['ArrowDown'], '↓', 'goes to the lane below', (actions) => actions.moveLane(1)],
  [['.'], '.', 'goes to the next event of the lane', (actions) => actions.moveEvent(1)],
  [[','], ',', 'goes to the previous event of the lane', (actions) => actions.moveEvent(-1)],
  [['Enter'], 'Enter', 'selects the event, or else the window', (actions) => actions.select()],
  [['f'], 'F', 'zooms to the selection', (actions) => actions.showSelection()],
  [['Escape'], 'Esc', 'clears selection and search', (actions) => actions.clear()],
  [['/'], '/', 'searches by name', (actions) => actions.search()],
  [['?'], '?', 'shows or hides this help', (actions) => actions.help()],
];
export const pointerHelp = [
  ['Drag', 'moves the window'],
  ['Shift + drag, or drag the time axis', 'selects an interval'],
  ['Ctrl + wheel, pinch, or the wheel after a click', 'zooms'],
  ['Shift + wheel', 'moves the window'],
  ['Click', 'selects an event'],
  ['Double click', 'zooms to an event'],
];

/** Calls the actions for the keys of an element. */
export function listenToKeys(element, actions) {
  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const found = keys.find(([names]) => names.includes(pressed));
    if (!found) return;
    event.preventDefault();
    const [, , , act] = found;
    act(actions);
  });
}

/** Calls the actions for the wheel. If the canvas has no focus, the wheel scrolls the page, unless Ctrl is pressed. Browsers
 * report a trackpad pinch as a wheel event with Ctrl. */
export function listenToWheel(canvas, actions) {
  canvas.addEventListener('wheel', (event) => {
    const unit = event.deltaMode === 1 ? LINE_PX : 1, [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    const isSideways = event.shiftKey || Math.abs(dx) > Math.abs(dy);
    if (!event.ctrlKey && !isSideways && document.activeElement !== canvas) return;
    event.preventDefault();
    if (isSideways && !event.ctrlKey) actions.panPixels(dx || dy);
    else actions.zoomAt(WHEEL_ZOOM ** (event.ctrlKey ? 4 * dy : dy), event.offsetX);
  }, { passive: false });
}

/** Calls the actions for mouse, pen and touch: one pointer drags or selects, two zoom. */
export function listenToPointers(canvas, actions) {
  const down = new Map(); // pointer id -> {x, y}
  let gesture = null; // {kind: 'click' | 'drag' | 'select' | 'pinch', x, y}
  const distance = () => { const [a, b] = [...down.values()]; return Math.max(8, Math.abs(a.x - b.x)); };
  const middle = () => { const [a, b] = [...down.values()]; return (a.x + b.x) / 2; };

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const selects = event.shiftKey || event.offsetY < AXIS_HEIGHT;
    gesture = down.size === 2 ? { kind: 'pinch', span: distance(), x: middle() }
      : { kind: 'click', then: selects ? 'select' : 'drag', x: event.offsetX, y: event.offsetY, startX: event.offsetX };
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!down.has(event.pointerId)) { actions.hover(event.offsetX, event.offsetY); return; }
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (gesture?.kind === 'pinch' && down.size === 2) {
      actions.panPixels(gesture.x - middle());
      actions.zoomAt(gesture.span / distance(), middle());
      Object.assign(gesture, { span: distance(), x: middle() });
      return;
    }
    if (gesture?.kind === 'click' && Math.abs(event.offsetX - gesture.startX) >= DRAG_PX) gesture.kind = gesture.then;
    if (gesture?.kind === 'drag') actions.panPixels(gesture.x - event.offsetX);
    if (gesture?.kind === 'select') actions.selectPixels(gesture.startX, event.offsetX, false);
    if (gesture) gesture.x = event.offsetX;
  });
  const end = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (event.type === 'pointerup' && gesture?.kind === 'click') actions.click(event.offsetX, event.offsetY);
    if (gesture?.kind === 'select') actions.selectPixels(gesture.startX, gesture.x, true);
    gesture = null;
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', () => actions.hover(-1, -1));
  canvas.addEventListener('dblclick', (event) => actions.zoomToEvent(event.offsetX, event.offsetY));
}
