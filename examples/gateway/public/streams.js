const RUN_EVENTS = ['token', 'tool', 'tool_complete', 'error', 'done', 'cancel']

/**
 * Follows an answer. The browser reconnects by itself after a break, also after a restart of the gateway, and says what
 * it saw last; so each event comes once. Gives a function that stops.
 */
export function followRun(chatId, runId, { onEvent, onEnd, onBreak }) {
  const source = new EventSource(`/api/sessions/${chatId}/runs/${runId}/events`)
  for (const name of RUN_EVENTS) {
    // The browser's own trouble is an `error` event, too, and has no data.
    source.addEventListener(name, (event) => event.data !== undefined && onEvent(name, JSON.parse(event.data)))
  }
  source.addEventListener('end', () => {
    source.close()
    onEnd()
  })
  source.addEventListener('open', () => onBreak(false))
  source.addEventListener('error', (event) => {
    if (event.data !== undefined) return
    if (source.readyState === EventSource.CLOSED) onEnd()
    else onBreak(true)
  })
  return () => source.close()
}

/** What happens in memory. Only while somebody looks: a browser has few connections, and hidden tabs would hold them. */
export function followMemory(onChange) {
  let source
  const update = () => {
    source?.close()
    source = undefined
    if (document.hidden) return
    source = new EventSource('/api/events')
    source.addEventListener('memory', (event) => onChange(JSON.parse(event.data)))
    // Whatever happened while nobody listened.
    source.addEventListener('open', () => onChange({ name: 'connected' }))
  }
  document.addEventListener('visibilitychange', update)
  update()
}
