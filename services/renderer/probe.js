// Runs in the page's isolated world: page scripts are off, this is not one of them.
// Writes the document, holds it at its first frame, waits until it can be drawn, and tells
// what is on it. See page.py for what is done with the answer.
//
// A document can hide properties of `document` and of a form behind elements that bear their
// names, so both are reached only through what was taken before the document was there.
async (html, wantsElements) => {
  const { open, write, close } = Document.prototype;
  const first = document.querySelector.bind(document);
  const all = document.querySelectorAll.bind(document);
  const animations = document.getAnimations.bind(document);
  const fonts = document.fonts;
  const readyState = Object.getOwnPropertyDescriptor(Document.prototype, 'readyState').get;
  open.call(document);
  write.call(document, html);
  close.call(document);

  // Everything that moves stands where it starts.
  const moving = animations();
  for (const animation of moving) {
    animation.pause();
    // Driven by scrolling, it counts in percent and stands where the page does.
    if (animation.timeline instanceof DocumentTimeline) animation.currentTime = 0;
  }
  for (const svg of all('svg')) {
    svg.pauseAnimations?.();
    svg.setCurrentTime?.(0);
  }
  const marquees = all('marquee');
  for (const marquee of marquees) marquee.stop?.();
  const animated = moving.length + marquees.length
    + all('animate, animateTransform, animateMotion, set').length;

  if (readyState.call(document) !== 'complete') {
    await new Promise(done => window.addEventListener('load', done, { once: true }));
  }
  await Promise.all(Array.from(all('img'), image => image.decode().catch(() => {})));
  await fonts.ready;
  // The capture then takes the second frame. The first one is drawn with transforms rounded
  // in one of two ways, depending on when the capture begins.
  await new Promise(requestAnimationFrame);

  const body = first('body');
  const target = first('#render-target');
  const painted = element => {
    const style = element && getComputedStyle(element);
    return style !== null
      && (style.backgroundImage !== 'none' || !/^rgba\(.*, 0\)$|\/ 0\)$/.test(style.backgroundColor));
  };
  // As in sanitize.py.
  const HARMLESS = ['viewport', 'description', 'author', 'generator', 'keywords', 'theme-color'];
  const beyond = axis => Number(target[`scroll${axis}`]) - Number(target[`client${axis}`]) || 0;
  const facts = {
    target: target !== null,
    background: [target, body, first(':root')].some(painted),
    content: body !== null && (body.innerText.trim() !== '' || first('body :is(img, svg, canvas, '
      + 'video, input, button, select, textarea, progress, meter, [data-id])') !== null),
    animated,
    // What a later document in this page would still feel: of all that a document without
    // script can do, its metas alone outlive it.
    spoiled: body === null || body.localName !== 'body' || Array.from(all('meta')).some(meta => (
      meta.httpEquiv && meta.httpEquiv.toLowerCase() !== 'content-type')
      || (meta.name && !HARMLESS.includes(meta.name.toLowerCase()))),
    overflow: target === null ? [0, 0] : [beyond('Width'), beyond('Height')],
    elements: [],
  };
  if (!wantsElements || body === null) return facts;

  const ROLES = { a: 'link', button: 'button', select: 'combobox', textarea: 'textbox',
    summary: 'button', option: 'option', img: 'image', label: 'label' };
  const INPUTS = { button: 'button', submit: 'button', reset: 'button', image: 'button',
    checkbox: 'checkbox', radio: 'radio', range: 'slider', hidden: '' };
  const CLICKABLE = new Set(['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'menuitem',
    'menuitemcheckbox', 'menuitemradio', 'option', 'combobox', 'slider', 'textbox', 'searchbox',
    'key', 'treeitem', 'spinbutton']);
  const OWNERS = '[data-id], [role], a, button, label, select, textarea, svg';
  // null: not said.
  const flag = value => (value === null || value === undefined ? null : value !== 'false');
  const roleOf = element => {
    const named = element.getAttribute('data-role') || element.getAttribute('role');
    if (named) return named;
    if (element.localName === 'input') return INPUTS[element.type] ?? 'textbox';
    if (element.hasAttribute('contenteditable')) return 'textbox';
    // An icon without a name is part of what it stands in.
    if (element.localName === 'svg') return element.hasAttribute('aria-label') ? 'image' : '';
    return ROLES[element.localName] ?? '';
  };
  const hasOwnText = element => Array.from(element.childNodes).some(
    node => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');
  const textOf = element => {
    const text = element.getAttribute('aria-label') ?? element.getAttribute('alt')
      ?? (element.localName === 'select' ? element.selectedOptions?.[0]?.label : undefined)
      ?? (element.value || element.getAttribute('placeholder') || element.innerText || '');
    return String(text).replace(/\s+/g, ' ').trim().slice(0, 500);
  };
  const checkedOf = element => flag(element.getAttribute('data-checked'))
    ?? flag(element.getAttribute('aria-checked'))
    ?? (['checkbox', 'radio'].includes(element.type) ? element.checked : null);
  const enabledOf = element => flag(element.getAttribute('data-enabled')) !== false
    && !element.matches(':disabled') && element.getAttribute('aria-disabled') !== 'true';

  // Where a page says at all what can be clicked, what it does not name cannot.
  const told = first('[data-clickable]') !== null;
  let number = 0;
  for (const element of all('body *')) {
    number += 1;
    if (element.localName === 'form' || element === target) continue;
    const owner = element.closest(OWNERS);
    if (owner !== element && owner?.localName === 'svg') continue;
    const id = element.getAttribute('data-id');
    const role = roleOf(element);
    // A word inside something that has a name, a role or a text of its own belongs to that.
    const textual = hasOwnText(element) && (owner === null || owner === element)
      && !hasOwnText(element.parentElement);
    if (id === null && role === '' && !textual) continue;
    const style = getComputedStyle(element);
    if (style.visibility !== 'visible') continue;
    const rect = element.getBoundingClientRect();
    const left = Math.max(rect.left, 0), top = Math.max(rect.top, 0);
    const right = Math.min(rect.right, innerWidth), bottom = Math.min(rect.bottom, innerHeight);
    if (right <= left || bottom <= top) continue;
    const clickable = told ? flag(element.getAttribute('data-clickable')) === true
      : CLICKABLE.has(role) || element.tabIndex >= 0 || style.cursor === 'pointer';
    facts.elements.push([
      id ?? (element.getAttribute('id') || `e${number}`),
      role || (textual ? 'text' : 'region'), textOf(element),
      left, top, right - left, bottom - top, clickable, checkedOf(element),
      flag(element.getAttribute('data-focused')) === true, enabledOf(element),
    ]);
    if (facts.elements.length === 2000) break;
  }
  return facts;
}
