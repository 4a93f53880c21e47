import { $ } from './dom.js'

const DRAWERS = [
  { panel: 'sidebar', button: 'show-chats' },
  { panel: 'memory', button: 'show-memory' },
]

/** On small windows the panels slide in; on large ones they are simply there and nothing of this is seen. */
export function setUpDrawers() {
  for (const { panel, button } of DRAWERS) {
    $(button).addEventListener('click', () => {
      const isOpen = $(panel).classList.contains('open')
      closeDrawers()
      if (isOpen) return
      $(panel).classList.add('open')
      $(button).setAttribute('aria-expanded', 'true')
      $('veil').hidden = false
      // Hidden elements take no focus: wait until the style has changed.
      requestAnimationFrame(() => $(panel).querySelector('button')?.focus())
    })
  }
  $('veil').addEventListener('click', closeDrawers)
}

/** Gives whether one was open, so that Esc can mean something else otherwise. */
export function closeDrawers() {
  const open = DRAWERS.filter(({ panel }) => $(panel).classList.contains('open'))
  for (const { panel, button } of open) {
    const hadFocus = $(panel).contains(document.activeElement)
    $(panel).classList.remove('open')
    $(button).setAttribute('aria-expanded', 'false')
    if (hadFocus) $(button).focus()
  }
  $('veil').hidden = true
  return open.length > 0
}
